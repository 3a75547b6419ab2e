"""The kernel file: device code under a header comment that says how it is launched and what may be tuned.

A file is parsed once, here; printing gives its canonical text. Says nothing about whether the code compiles.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from textwrap import dedent

from cupilot.kernel import limits
from cupilot.kernel.expressions import suggest
from cupilot.kernel.launch import LaunchProgram, parse_program
from cupilot.kernel.nodes import Expr, Position, mistake
from cupilot.kernel.printing import INDENT, print_block, print_expr
from cupilot.kernel.syntax import Section
from cupilot.kernel.tunables import Tunable, first_point, parse_tune, parse_where

VERSION = 1
SECTIONS = ("tune", "where", "launch", "strategy", "proof")
RESERVED_SECTIONS = ("flags", "once")

_OPENING = re.compile(r"/\*[ \t]*cupilot(?![A-Za-z0-9_])[ \t]*([^\s*]*)")
# Control characters but tab and line feed; what turns the direction of text; line ends of other alphabets.
_UNSEEN = re.compile(
    "[\x01-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)
_SPLICE = re.compile(r"\\[ \t]*\n")
_HEADING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):[ \t]*(.*)")
_EXAMPLE = "begin the file with /* cupilot 1, the sections tune:, where: and launch:, and */"


@dataclass(frozen=True)
class KernelFile:
    summary: str  # in words, what the kernel does
    tune: tuple[Tunable, ...]
    where: tuple[Expr, ...]
    launch: LaunchProgram
    source: str  # the device code
    strategy: str = ""  # kept verbatim
    proof: str = ""  # kept verbatim
    source_line: int = field(default=1, compare=False)  # of the kernel file: where the source begins

    @cached_property
    def hash(self) -> str:
        """Of the canonical text: layout and comments in the header do not count."""
        return hashlib.sha256(print_kernel(self).encode()).hexdigest()[:16]


def parse_kernel(text: str) -> KernelFile:
    """Read a kernel file; whatever is wrong with it is a KernelSyntaxError with line and column."""
    text = _unix(text).removeprefix("\ufeff")
    _check_length(text)
    _check_text(text)
    start, end = _header(text)
    sections, summary = _split(text, start, end)
    if "launch" not in sections:
        raise mistake(
            "there is no launch section",
            _position(text, end),
            "add launch: and below it kernel[blocks](x, out)",
        )
    tune = parse_tune(sections["tune"]) if "tune" in sections else ()
    where = parse_where(sections["where"], tune) if "where" in sections else ()
    launch = parse_program(sections["launch"])
    if not launch.statements:
        raise mistake(
            "the launch section is empty", sections["launch"].at, "write kernel[blocks](x, out) below it"
        )
    rest = text[end + 2 :]
    source = rest.strip(" \t\n")
    source_at = _position(text, end + 2 + len(rest) - len(rest.lstrip(" \t\n")))
    if not source:
        raise mistake("there is no code below the header", source_at, "write the kernels that launch names")
    file = KernelFile(
        summary, tune, where, launch, source + "\n",
        strategy=_words(sections.get("strategy")),
        proof=_words(sections.get("proof")),
        source_line=source_at.line,
    )  # fmt: skip
    _check_length(print_kernel(file))
    first_point(file)
    return file


def print_kernel(file: KernelFile) -> str:
    """Canonical text: parsing it gives an equal file, and printing that the same text."""
    sections = {
        "tune": [str(tunable) for tunable in file.tune],
        "where": [print_expr(condition) for condition in file.where],
        "launch": print_block(file.launch.statements),
        "strategy": _dedented(file.strategy),
        "proof": _dedented(file.proof),
    }
    lines = [f"/* cupilot {VERSION}"]
    lines += [f" {line}" if _heading(line) else line for line in _printable(file.summary)]
    for name, content in sections.items():
        if content:
            lines += [f"{name}:", *(f"{INDENT}{line}" if line else "" for line in content)]
    return "\n".join([*lines, "*/", _unix(file.source).strip(" \t\n") + "\n"])


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _position(text: str, offset: int) -> Position:
    return Position(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def _check_length(text: str) -> None:
    if len(text) > limits.MAX_FILE_CHARS:
        raise mistake("the file is too long", Position(1, 1), f"at most {limits.MAX_FILE_CHARS} characters")


def _check_text(text: str) -> None:
    """Nothing that a reader would not see, and that a terminal or another reader would act on."""
    bad = re.search("[\x00\ud800-\udfff]", text)
    if bad:
        raise mistake("the file is not text", _position(text, bad.start()), "save it as UTF-8")
    unseen = _UNSEEN.search(text)
    if unseen:
        message = f"the character U+{ord(unseen[0]):04X} cannot be seen"
        raise mistake(message, _position(text, unseen.start()), "remove it: a kernel reads as it compiles")


def _header(text: str) -> tuple[int, int]:
    """Where the words after the version begin, and where the comment ends."""
    first = len(text) - len(text.lstrip(" \t\n"))
    opening = _OPENING.match(text, first)
    if opening is None:
        elsewhere = _OPENING.search(text)
        message = "the header is not at the top" if elsewhere else "there is no cupilot header"
        hint = "move what stands before it below it" if elsewhere else _EXAMPLE
        raise mistake(message, _position(text, first), hint)
    at = _position(text, opening.start(1))
    if opening[1] != str(VERSION):
        found = (
            f"version '{opening[1]}' of the format is unknown" if opening[1] else "the format has no version"
        )
        raise mistake(found, at, f"this cuPilot reads version {VERSION}: /* cupilot {VERSION}")
    end = text.find("*/", opening.end())
    if end < 0:
        raise mistake("the header is never closed", _position(text, first), "end the comment with */")
    splice = _SPLICE.search(text, first, end)
    if splice:
        raise mistake(
            "a line of the header ends with a backslash",
            _position(text, splice.start()),
            "remove it: a compiler would join the lines, and could see the comment end elsewhere",
        )
    return opening.end(), end


def _heading(line: str) -> re.Match[str] | None:
    """A section's name and colon at the beginning of a line. Other words may have a colon if text follows."""
    match = _HEADING.fullmatch(line)
    return match if match and (not match[2] or match[1] in SECTIONS + RESERVED_SECTIONS) else None


def _split(text: str, start: int, end: int) -> tuple[dict[str, Section], str]:
    """The sections by name, and the words before the first."""
    first_line = _position(text, start).line
    first, *others = text[start:end].split("\n")
    lines = [line.rstrip(" \t") for line in [first.lstrip(" \t"), *others]]
    headings = [index for index, line in enumerate(lines) if _heading(line)]
    sections: dict[str, Section] = {}
    for index, stop in pairwise([*headings, len(lines)]):
        at = Position(first_line + index, 1) if index else _position(text, start + len(first) - len(lines[0]))
        name = _check_heading(lines[index], at, sections)
        content = Section(tuple(lines[index + 1 : stop]), at.line + 1)
        _check_indentation(content, name)
        sections[name] = content
    return sections, "\n".join(_printable("\n".join(lines[: headings[0]] if headings else lines)))


def _check_heading(line: str, at: Position, sections: dict[str, Section]) -> str:
    name, _, rest = line.partition(":")
    if name in RESERVED_SECTIONS:
        raise mistake(
            f"the section '{name}' is reserved for a later version", at, f"sections are {', '.join(SECTIONS)}"
        )
    if name not in SECTIONS:
        hint = suggest(
            name, SECTIONS, f"sections are {', '.join(SECTIONS)}; words go above the first of them"
        )
        raise mistake(f"there is no section '{name}'", at, hint)
    if name in sections:
        raise mistake(f"the section '{name}' is there twice", at, "put everything into one")
    if rest:
        raise mistake(f"nothing stands behind '{name}:'", at, "its content goes on the lines below, indented")
    return name


def _check_indentation(section: Section, name: str) -> None:
    for number, line in enumerate(section.lines, section.first_line):
        if line and line[0] not in " \t":
            raise mistake(
                f"this line does not belong to '{name}'",
                Position(number, 1),
                "indent what a section contains",
            )


def _words(section: Section | None) -> str:
    return "\n".join(_dedented("\n".join(section.lines))) if section else ""


def _dedented(words: str) -> list[str]:
    lines = _printable(words)
    return dedent("\n".join(lines)).split("\n") if lines else []


def _printable(words: str) -> list[str]:
    """Free words as lines that a header can hold: nothing that ends it, no blanks at the ends."""
    text = _UNSEEN.sub("?", _unix(words)).replace("*/", "* /")
    lines = [line.rstrip(" \t\\") for line in text.split("\n")]
    full = [index for index, line in enumerate(lines) if line]
    return lines[full[0] : full[-1] + 1] if full else []
