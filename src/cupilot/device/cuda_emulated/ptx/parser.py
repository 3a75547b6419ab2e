"""PTX text to `ptx.model` values. Checks the grammar as far as it needs to; meaning is the encoder's."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from cupilot.device.cuda_emulated.ptx.model import (
    Function,
    Instruction,
    Label,
    Module,
    Place,
    Registers,
    Scope,
    Statement,
    Targets,
    Variable,
)
from cupilot.errors import CupilotError


class PtxError(CupilotError):
    """The text is not PTX as this parser knows it: a newer compiler, or inline assembly that is wrong."""


_MOST_INLINED = 16
_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FUNCTION = re.compile(r"^[ \t]*(?:\.(?:visible|weak|extern|common)\s+)*\.(entry|func)\b", re.MULTILINE)
_SIGNATURE = re.compile(r"\s*(?:\(([^)]*)\))?\s*([\w$]+)\s*(?:\(([^)]*)\))?\s*((?:\.\w+[^;{]*)?)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_VARIABLE = re.compile(
    r"^[ \t]*(?:\.(?:visible|weak|extern|common)\s+)*\.(global|const|shared)\b([^;{]*?)(=[^;]*)?;",
    re.MULTILINE,
)
_DECLARATION = re.compile(
    r"(?:\.align\s+(\d+)\s+)?(?:\.v(\d)\s+)?\.[busf](\d+)\s+([\w$]+)((?:\s*\[\s*\d*\s*\])*)"
)
_REGISTERS = re.compile(r"\.reg\s+(?:\.v\d\s+)?\.(\w+)\s+(.*)", re.DOTALL)
_INSTRUCTION = re.compile(r"(?:@(!?\s*%?[\w$]+)\s+)?([a-z][\w.:]*)\s*(.*)", re.DOTALL)
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+(?:\s*,[^\n]*?inlined_at\s+(\d+)\s+(\d+)\s+\d+)?[^\n]*")
_TOKEN = re.compile(
    r"""\s+
      | (?P<loc>\.loc\b[^\n]*)
      | (?P<brace>[{}])
      | (?P<targets>[\w$]+\s*:\s*\.branchtargets\s+(?P<list>[^;]*);)
      | (?P<label>[\w$]+)\s*:(?!:)
      | (?P<statement>[^;{}]*(?:\{[^{}]*\}[^;{}]*)*);""",
    re.VERBOSE,
)


def parse_module(text: str) -> Module:
    files = {int(number): path for number, path in _FILE.findall(text)}
    newlines = [match.start() for match in re.finditer("\n", text)]
    clean = _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    functions: dict[str, Function] = {}
    outside, end = [], 0
    for match in _FUNCTION.finditer(clean):
        if match.start() < end:
            continue
        outside.append(clean[end : match.start()])
        function, end = _parse_function(clean, match, files, newlines)
        if function.statements or function.name not in functions:
            functions[function.name] = function
    outside.append(clean[end:])
    variables = {v.name: v for part in outside for v in _module_variables(part)}
    return Module(functions, variables)


def source_line(text: str, ptx_line: int) -> int:
    """The line of the source that a line of PTX comes from; 0 when the text does not say."""
    files = {int(number): path for number, path in _FILE.findall(text)}
    callers: dict[tuple[str, int], tuple[str, int]] = {}
    line = 0
    for each in text.splitlines()[:ptx_line]:
        if each.lstrip().startswith(".loc"):
            line = _source(each.strip(), files, callers)[1]
    return line


def _module_variables(text: str) -> Iterator[Variable]:
    for match in _VARIABLE.finditer(text):
        yield _variable(match[1], match[2], (match[3] or "")[1:])


def _variable(space: str, declaration: str, initial: str = "") -> Variable:
    match = _DECLARATION.search(declaration)
    if match is None:
        raise PtxError(f"cannot read the declaration `.{space}{declaration.rstrip()}`")
    align, vector, bits, name, extents = match.groups()
    element = _SIZES[bits] * int(vector or 1)
    count = 1
    for extent in re.findall(r"\[\s*(\d*)\s*\]", extents):
        count *= int(extent or 0)
    data = _initial(initial.strip(), element) if initial.strip() else b""
    return Variable(space, name, int(align or element), element * count, data)


def _initial(text: str, element_bytes: int) -> bytes | tuple[tuple[int, str], ...]:
    items = [item.strip() for item in text.strip("{} \n").replace("{", "").replace("}", "").split(",")]
    symbols = []
    data = bytearray()
    for position, item in enumerate(items):
        number = parse_number(item) if item else 0
        if number is None:
            symbols.append((position * element_bytes, re.sub(r"generic\((.*)\)", r"\1", item)))
            number = 0
        data += (number & ((1 << 8 * element_bytes) - 1)).to_bytes(element_bytes, "little")
    return tuple(symbols) if symbols else bytes(data)


def parse_number(text: str) -> int | None:
    """The bits of an immediate: integers as they are, 0f and 0d as bit patterns; None for anything else."""
    head = text[:2].lower()
    if head in ("0f", "0d") and len(text) in (10, 18):
        return int(text[2:], 16)
    match = re.fullmatch(r"(-?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?", text)
    if match is None:
        return None
    digits = match[2]
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    value = int(digits, 8) if octal else int(digits, 0)
    return -value if match[1] else value


def _parse_function(
    text: str, match: re.Match[str], files: dict[int, str], newlines: list[int]
) -> tuple[Function, int]:
    signature = _SIGNATURE.match(text, match.end())
    if signature is None:
        raise PtxError(f"cannot read the function at line {bisect_right(newlines, match.start()) + 1}")
    returns, name, parameters, directives = signature.groups()
    at = signature.end()
    while text[at] not in ";{":
        at += 1
    statements: tuple[Statement, ...] = ()
    if text[at] == "{":
        statements, at = _parse_body(text, at + 1, files, newlines)
    limit = re.search(r"\.maxntid\s+([\d, ]+)", directives or "")
    threads = None
    if limit:
        threads = 1
        for extent in limit[1].split(","):
            threads *= int(extent)
    function = Function(
        name, match[1] == "entry", _parameters(returns), _parameters(parameters), statements, threads
    )
    return function, at + 1


def _parameters(text: str | None) -> tuple[Variable, ...]:
    if not text or not text.strip():
        return ()
    return tuple(
        _variable(
            "param", re.sub(r"\.ptr\b(\s*\.(?:global|shared|const|local)\b)?(\s*\.align\s+\d+)?", "", item)
        )
        for item in text.replace(".param", "").split(",")
    )


def _parse_body(
    text: str, at: int, files: dict[int, str], newlines: list[int]
) -> tuple[tuple[Statement, ...], int]:
    found: list[Statement] = []
    depth, source = 0, ("", 0)
    callers: dict[tuple[str, int], tuple[str, int]] = {}
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            raise PtxError(f"cannot read PTX line {bisect_right(newlines, at) + 1}: {text[at : at + 60]!r}")
        at = token.end()
        if token["loc"]:
            source = _source(token["loc"], files, callers)
        elif token["brace"]:
            depth += 1 if token["brace"] == "{" else -1
            if depth < 0:
                return tuple(found), at - 1
            found.append(Scope(token["brace"] == "{"))
        elif token["targets"]:
            labels = tuple(label.strip() for label in token["list"].split(","))
            found.append(Targets(token["targets"].split(":")[0].strip(), labels))
        elif token["label"]:
            found.append(Label(token["label"]))
        elif token["statement"] and token["statement"].strip():
            line = bisect_right(newlines, token.start("statement")) + 1
            found.extend(_statement(token["statement"].strip(), Place(line, *source)))


def _source(
    loc: str, files: dict[int, str], callers: dict[tuple[str, int], tuple[str, int]]
) -> tuple[str, int]:
    """Code inlined from a header counts as the line of the kernel file that called for it."""
    match = _LOC.match(loc)
    if match is None:
        return "", 0
    place = (files.get(int(match[1]), ""), int(match[2]))
    if match[3] is not None:
        callers[place] = (files.get(int(match[3]), ""), int(match[4]))
    for _ in range(_MOST_INLINED):
        if place not in callers or place == callers[place]:
            break
        place = callers[place]
    return place


def _statement(text: str, place: Place) -> Iterator[Statement]:
    if text.startswith(".reg"):
        yield from _registers(text)
    elif text.startswith((".local", ".shared", ".param")):
        space, _, rest = text[1:].partition(" ")
        yield _variable(space.strip(), rest)
    elif not text.startswith("."):  # .pragma and debug sections say nothing about what is computed
        match = _INSTRUCTION.match(text)
        if match is None:
            raise PtxError(f"cannot read PTX line {place.ptx_line}: {text[:60]!r}")
        opcode = tuple(part for part in re.split(r"(?<!:)\.", match[2]))
        yield Instruction(opcode, split_operands(match[3]), (match[1] or "").replace(" ", ""), place)


def _registers(text: str) -> Iterator[Registers]:
    match = _REGISTERS.match(text)
    if match is None:
        raise PtxError(f"cannot read the register declaration {text!r}")
    for item in match[2].split(","):
        name, _, count = item.strip().partition("<")
        yield Registers(match[1], name.strip(), int(count.rstrip("> ")) if count else None)


_OPERAND = re.compile(r"\s*((?:[^,{}()\[\]]|\{[^}]*\}|\[[^\]]*\]|\([^)]*\))+)\s*(?:,|$)")


def split_operands(text: str) -> tuple[str, ...]:
    return tuple(" ".join(match[1].split()) for match in _OPERAND.finditer(text))
