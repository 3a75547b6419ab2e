"""Where a problem's file is: a path, or a member of the suite. Does not load it, and does not need torch."""

from __future__ import annotations

from pathlib import Path

from cupilot.errors import ProblemError
from cupilot.problem import suite

_SUITE = "suite:"


def locate(source: str | Path) -> tuple[Path, str]:
    """The file of a problem and the problem's name."""
    if isinstance(source, str) and source.startswith(_SUITE):
        member = suite.find(source.removeprefix(_SUITE))
        return member.path, member.name
    path = Path(source).expanduser().resolve()
    if path.suffix in (".cpp", ".cu"):
        raise ProblemError(
            f"{path} is a kernel file, not a problem",
            hint="the problem comes first: a Python file with Model",
        )
    if not path.exists():
        raise ProblemError(f"{path} does not exist", hint="give the path of a problem file, or suite:softmax")
    return path, path.parent.name if path.stem == "problem" else path.stem
