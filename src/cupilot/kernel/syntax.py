"""From lines of a header section to Python's syntax tree: the gate in front of `ast.parse`.

Python's own parser can be driven into deep recursion and gives its errors in its own terms. So the text is
first read token by token: an alphabet without strings and decorators, only the keywords we know, and bounds
on length and nesting that keep everything behind this gate shallow. Nothing is ever compiled to code.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass

from cupilot.errors import KernelSyntaxError
from cupilot.kernel import limits
from cupilot.kernel.nodes import Position, mistake

_TOKEN = re.compile(
    r"""(?P<space>[ \t]+)
    | (?P<number>0[xX][0-9a-fA-F]+ | (?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<open>[(\[]) | (?P<close>[)\]])
    | (?P<operator>\*\*=|//=|\*\*|//|[<>=!+\-*/%]=|[<>=+\-*/%,.:])""",
    re.VERBOSE | re.ASCII,
)
_KEYWORDS = frozenset({"and", "or", "not", "if", "elif", "else", "for", "in", "True", "False"})
_KEYWORD_HINTS = {
    "while": "loop with `for i in range(n):`",
    "import": "nothing can be imported; min, max and cdiv are there",
    "lambda": "there are no functions; assign the value to a name",
    "def": "there are no functions; write the launches one after another or in a for loop",
    "pass": "leave the branch out, or invert the condition",
    "is": "compare numbers with ==",
    "None": "values are numbers, tuples of them and tensors",
}
_CHARACTER_HINTS = {
    '"': "there are no strings",
    "'": "there are no strings",
    ";": "one statement per line, without `;`",
    "&": "write `and`",
    "|": "write `or`",
    "!": "write `not`",
    "^": "powers are written `**`",
    "\\": "long lines continue inside parentheses",
    "{": "blocks are indented as in Python",
}
_FRAME = "if 1:"  # stands above the lines, so that they keep their indentation and columns
_CLOSING = {"(": ")", "[": "]"}


@dataclass(frozen=True)
class Section:
    """Consecutive lines of the kernel file, as they stand there; `first_line` is the number of the first."""

    lines: tuple[str, ...]
    first_line: int

    @property
    def at(self) -> Position:
        return Position(self.first_line, 1)


def parse_python(section: Section) -> list[ast.stmt]:
    """The statements of a section, whose lines are all indented."""
    code = Section(tuple(line.partition("#")[0].rstrip(" \t") for line in section.lines), section.first_line)
    _check_tokens(code)
    if not any(code.lines):
        return []
    try:
        tree = ast.parse("\n".join([_FRAME, *code.lines, ""]))
    except SyntaxError as error:
        hint = "the launch language has Python's syntax"
        raise mistake(f"this is not valid: {error.msg}", _error_position(error, code), hint) from None
    except (RecursionError, MemoryError):  # what Python's parser raises for chains of thousands of elifs
        raise mistake("the section is nested too deeply", section.at, "use fewer branches") from None
    (frame,) = tree.body
    assert isinstance(frame, ast.If)
    return frame.body


def position(node: ast.AST, section: Section) -> Position:
    """Where a node of Python's tree stands in the kernel file."""
    line: int = getattr(node, "lineno", 1)
    column: int = getattr(node, "col_offset", 0)
    return Position(section.first_line + line - 2, column + 1)


def _error_position(error: SyntaxError, section: Section) -> Position:
    index = min(max((error.lineno or 0) - 2, 0), len(section.lines) - 1)
    column = min(max(error.offset or 1, 1), len(section.lines[index]) + 1)
    return Position(section.first_line + index, column)


def _tokens(section: Section) -> Iterator[tuple[str, str, Position]]:
    """(kind, text, position) of every token, then one ("end", "", ...) per line."""
    for number, line in enumerate(section.lines, section.first_line):
        column = 0
        while column < len(line):
            at = Position(number, column + 1)
            match = _TOKEN.match(line, column)
            if match is None:
                raise _unknown_character(line[column], at)
            if match.lastgroup != "space":
                yield str(match.lastgroup), match.group(), at
            column = match.end()
            if match.lastgroup == "number" and re.match(r"[A-Za-z_0-9.]", line[column:]):
                raise mistake(
                    f"'{match.group()}{line[column]}...' is not a number", at, "write 128, 0x80, 0.5 or 1e-5"
                )
        yield "end", "", Position(number, len(line) + 1)


def _unknown_character(character: str, at: Position) -> KernelSyntaxError:
    shown = character if character.isprintable() else f"\\x{ord(character):02x}"
    hint = _CHARACTER_HINTS.get(character, "allowed are names, numbers, arithmetic, comparisons and launches")
    return mistake(f"'{shown}' has no meaning here", at, hint)


def _check_tokens(section: Section) -> None:
    opened: list[tuple[str, Position]] = []
    total = in_statement = 0
    for kind, text, at in _tokens(section):
        if kind == "end":
            in_statement = in_statement if opened else 0
            continue
        total, in_statement = total + 1, in_statement + 1
        if kind == "name":
            _check_name(text, at)
        elif kind == "open":
            opened.append((text, at))
        elif kind == "close" and (not opened or _CLOSING[opened.pop()[0]] != text):
            raise mistake(f"'{text}' closes nothing", at, "every bracket is opened and closed once")
        if len(opened) > limits.MAX_BRACKET_DEPTH:
            raise mistake("brackets are nested too deeply", at, f"at most {limits.MAX_BRACKET_DEPTH} levels")
        if in_statement > limits.MAX_STATEMENT_TOKENS:
            raise mistake(
                "the statement is too long", at, f"at most {limits.MAX_STATEMENT_TOKENS} words; split it"
            )
        if total > limits.MAX_SECTION_TOKENS:
            raise mistake("the section is too long", at, "use a for loop")
    if opened:
        text, at = opened[-1]
        raise mistake(f"'{text}' is never closed", at, f"add '{_CLOSING[text]}'")


def _check_name(text: str, at: Position) -> None:
    if keyword.iskeyword(text) and text not in _KEYWORDS:
        hint = _KEYWORD_HINTS.get(text, f"the only keywords are {', '.join(sorted(_KEYWORDS))}")
        raise mistake(f"'{text}' is not part of the launch language", at, hint)
    if text.startswith("__"):
        raise mistake(f"the name '{text}' is not allowed", at, "names do not begin with two underscores")
