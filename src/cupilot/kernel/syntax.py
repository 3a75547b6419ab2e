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
    r"""(?P<space>[ \t\f]+)
    | (?P<number>0[xX][0-9a-fA-F]+ | (?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<name>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<open>[(\[]) | (?P<close>[)\]])
    | (?P<operator>\*\*=|//=|\*\*|//|[<>=!+\-*/%]=|[<>=+\-*/%,.:])""",
    re.VERBOSE,
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
_CLOSING = {"(": ")", "[": "]"}


@dataclass(frozen=True)
class Section:
    """Consecutive lines of the kernel file, as they stand there; `first_line` is the number of the first."""

    lines: tuple[str, ...]
    first_line: int

    @property
    def at(self) -> Position:
        return Position(self.first_line, 1)

    @property
    def indentation(self) -> str:
        """The whitespace all lines with something on them begin with."""
        indentations = [_indentation(line) for line in self.lines if line.strip(" \t")]
        shortest = min(indentations, key=len, default="")
        while not all(each.startswith(shortest) for each in indentations):
            shortest = shortest[:-1]
        return shortest

    def dedented(self) -> list[str]:
        width = len(self.indentation)
        return [line[width:].rstrip(" \t") for line in self.lines]


def parse_python(section: Section) -> tuple[list[ast.stmt], Section]:
    """The statements of a section, and the section without comments: what `position` needs."""
    code = Section(tuple(line.partition("#")[0].rstrip(" \t") for line in section.lines), section.first_line)
    _check_tokens(code)
    try:
        tree = ast.parse("\n".join(code.dedented()) + "\n")
    except SyntaxError as error:
        at = _syntax_error_position(error, code)
        raise mistake(
            f"this is not valid: {error.msg}", at, "the launch language has Python's syntax"
        ) from None
    return tree.body, code


def position(node: ast.AST, section: Section) -> Position:
    """Where a node of Python's tree stands in the kernel file."""
    line: int = getattr(node, "lineno", 1)
    column: int = getattr(node, "col_offset", 0)
    return Position(section.first_line + line - 1, len(section.indentation) + column + 1)


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _syntax_error_position(error: SyntaxError, section: Section) -> Position:
    line = min(max(error.lineno or 1, 1), len(section.lines))
    column = max(error.offset or 1, 1) + len(section.indentation)
    return Position(section.first_line + line - 1, min(column, len(section.lines[line - 1]) + 1))


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
    total = in_statement = elifs = 0
    for kind, text, at in _tokens(section):
        if kind == "end":
            in_statement = in_statement if opened else 0
            continue
        total, in_statement = total + 1, in_statement + 1
        elifs += text == "elif"
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
        if total > limits.MAX_SECTION_TOKENS or elifs > limits.MAX_ELIFS:
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
