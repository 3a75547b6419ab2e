"""A run's folder: what was asked, the table of answers, the kernels. Exists before anything slow starts.

    runs/<name>/run.db         the table of answers, with what was asked
    runs/<name>/kernels/       every kernel that was evaluated, by its hash
    runs/<name>/champion/      the proven champion
    runs/<name>/report.html    the report

One process owns a run at a time; looking at it needs no ownership. Knows nothing of the search.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from cupilot.errors import UsageError
from cupilot.store import Store

RUNS = Path("runs")


@dataclass(frozen=True)
class Asked:
    """What the user asked for. A run is determined by it, up to what was measured."""

    problem: str  # a path, or a member of the suite; kept relative where the run lies beside or below it
    size: str | None = None
    device: str = "cpu"
    policy: str = "sce"
    model: str | None = None  # None: the built-in author
    seed: int = 0
    budget: str = ""
    epochs: int = 4
    generations: int = 4  # in an epoch
    population: int = 8
    patience: int = 3  # generations without a gain
    roofline: bool = True  # whether the search is guided by it
    pool: bool = True  # whether earlier runs may seed this one
    ahead: bool = False  # whether a candidate is drafted while the one before it is measured
    hold_out: bool = False  # leave out of the pool what comes from this problem, or descends from it


@dataclass(frozen=True)
class Session:
    """One process's work on a run."""

    command: str
    started_at: float
    machine: str
    versions: dict[str, str]


class RunFolder:
    """A context manager: leaving it gives up the ownership. A new run that could not begin leaves nothing."""

    def __init__(self, path: Path, store: Store) -> None:
        self.path, self.store = path, store
        self.is_new = store.owned and not any(store.rows())

    @classmethod
    def create(cls, path: Path, asked: Asked) -> Self:
        if is_run(path):
            raise UsageError(
                f"{path} is a run already",
                hint=f"`cupilot resume {path}` continues it; or use another --name",
            )
        try:
            (path / "kernels").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"cannot make {path}: {error.strerror}", hint="choose another place with --name"
            ) from error
        folder = cls(path, Store(path / "run.db"))
        folder.ask_again(asked)
        return folder

    @classmethod
    def open(cls, path: Path, *, exclusive: bool) -> Self:
        path = find(path)
        folder = cls(path, Store(path / "run.db", exclusive=exclusive))
        if folder.store.meta("asked") is None:
            folder.close()
            raise UsageError(f"{path} does not say what it was asked", hint="start the run again")
        return folder

    @property
    def asked(self) -> Asked:
        known = {field.name for field in fields(Asked)}
        recorded = json.loads(self.store.meta("asked") or "{}")
        asked = Asked(**{name: value for name, value in recorded.items() if name in known})
        if _is_suite(asked.problem):
            return asked
        return replace(asked, problem=os.path.normpath(self.path.resolve() / asked.problem))

    def ask_again(self, asked: Asked) -> None:
        """What the user changed on resuming. A problem file that lies above the run moves with it."""
        if not _is_suite(asked.problem):
            problem, run = Path(asked.problem).resolve(), self.path.resolve()
            travels = run.is_relative_to(problem.parent)
            asked = replace(asked, problem=os.path.relpath(problem, run) if travels else str(problem))
        self.store.set_meta("asked", json.dumps(asdict(asked)))

    def begin(self, session: Session) -> None:
        number = len(list(self.store.rows("session")))
        self.store.put("session", {"number": number}, asdict(session), cost_s=0)

    def sessions(self) -> list[Session]:
        return [Session(**row.answer) for row in self.store.rows("session")]

    def end(self, reason: str) -> None:
        self.store.put(
            "ended", {"session": len(self.sessions())}, {"reason": reason, "at": time.time()}, cost_s=0
        )

    def ended(self) -> str | None:
        """Why the last session ended; None while it runs, or where it was cut short."""
        row = self.store.get("ended", {"session": len(self.sessions())})
        return None if row is None else str(row.answer["reason"])

    def first_end(self) -> int:
        """The place in the table at which a session ended first; later answers may be explanations."""
        return min((row.seq for row in self.store.rows("ended")), default=0)

    def keep_kernel(self, name: str, language: str, text: str) -> None:
        path = self.path / "kernels" / f"{name}.{language}"
        if not path.exists():
            path.write_text(text, encoding="utf-8")

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        gone = kind is not None and self.is_new and self.is_idle()
        self.close()
        if gone:
            self._vanish()

    def is_idle(self) -> bool:
        """Nothing was measured or asked of a model: there is nothing to resume or to report."""
        return not any(row.kind in ("evaluate", "model") for row in self.store.rows())

    def _vanish(self) -> None:
        for name in ("run.db", "run.db-wal", "run.db-shm", "run.lock"):
            (self.path / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # something of the user's lies there
            (self.path / "kernels").rmdir()
            self.path.rmdir()


def _is_suite(problem: str) -> bool:
    return problem.startswith("suite:")


def is_run(path: Path) -> bool:
    """One that was killed before it said what it was asked is none: it can be begun again."""
    if not (path / "run.db").exists():
        return False
    with Store(path / "run.db", exclusive=False) as store:
        return store.meta("asked") is not None


def find(given: Path) -> Path:
    """A run by its folder or by its name under runs/."""
    for path in (given, RUNS / given):
        if (path / "run.db").exists():
            return path
    known = sorted(p.parent.name for p in RUNS.glob("*/run.db"))
    hint = f"there are: {', '.join(known[-8:])}" if known else "`cupilot optimize PROBLEM` starts one"
    raise UsageError(f"no run at {given}", hint=hint)


def fresh_path(problem: str, root: Path = RUNS) -> Path:
    """runs/<problem>, runs/<problem>-2, ..."""
    path = Path(problem)
    stem = path.parent.resolve().name if path.stem == "problem" else path.stem
    name = re.sub(r"[^\w.-]+", "-", stem.removeprefix("suite:")) or "run"
    number = 1
    while (root / (chosen := name if number == 1 else f"{name}-{number}")).exists():
        number += 1
    return root / chosen
