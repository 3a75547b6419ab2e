"""What README and docs show can be typed: commands parse, links lead somewhere, Python compiles."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from cupilot.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
_SCRIPT = re.compile(r"(?<![\w/.])((?:benchmarks|examples|src|tests|docs)/[\w./-]*\w)")


def commands(text: str) -> Iterator[str]:
    """Lines that begin with `cupilot`, in code blocks and in code spans."""
    for _, block in _BLOCK.findall(text):
        for line in block.splitlines():
            if line.startswith(("cupilot ", ".venv/bin/cupilot ", "$ cupilot ")):
                yield line.removeprefix("$ ").removeprefix(".venv/bin/")
    for span in re.findall(r"`(cupilot [^`]+)`", _BLOCK.sub("", text)):
        yield span.replace("\n", " ")


def all_commands() -> list[tuple[str, str]]:
    found = {
        (str(page.relative_to(ROOT)), line): None for page in PAGES for line in commands(page.read_text())
    }
    return list(found)


def parse(line: str) -> None:
    """Raise ValueError unless the command line takes it. Nothing is run."""
    words = shlex.split(line, comments=True)[1:]
    command = typer.main.get_command(app)
    context = command.context_class(command, info_name="cupilot")
    while subcommands := getattr(command, "commands", None):
        name, words = (words or [""])[0], words[1:]
        if name not in subcommands:
            raise ValueError(f"there is no command {name!r}")
        command = subcommands[name]
        context = command.context_class(command, parent=context, info_name=name)
    if words not in ([], ["--help"]):
        try:
            command.make_context(command.name, words, parent=context.parent)
        except Exception as error:  # typer brings a click of its own or takes the installed one
            message = getattr(error, "format_message", None)
            if message is None:
                raise
            raise ValueError(message()) from error


@pytest.mark.parametrize(("page", "line"), all_commands())
def test_commands_parse(page: str, line: str) -> None:
    try:
        parse(line)
    except ValueError as error:
        pytest.fail(f"{page}: {line}: {error}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_named_files_exist(page: Path) -> None:
    text = page.read_text()
    prose = re.sub(r"`[^`]+`", "", _BLOCK.sub("", text))
    missing = [
        link for link in _LINK.findall(prose) if "://" not in link and not (page.parent / link).exists()
    ]
    missing += [name for name in _SCRIPT.findall(text) if not (ROOT / name).exists()]
    assert not missing, f"{page.name} names what does not exist: {missing}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_compiles(page: Path) -> None:
    for language, block in _BLOCK.findall(page.read_text()):
        if language == "python":
            compile(block, str(page), "exec")


@pytest.mark.parametrize(
    "line",
    [
        "cupilot eval problem.py kernel.cpp --no-such-option",
        "cupilot eval problem.py kernel.cpp --threads 0",
        "cupilot optimise problem.py",
        "cupilot pool find softmax",
    ],
)
def test_wrong_commands_would_be_seen(line: str) -> None:
    with pytest.raises(ValueError):
        parse(line)
