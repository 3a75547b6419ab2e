"""Kernel files and their differences as lines of coloured HTML. One regular expression, no grammar."""

from __future__ import annotations

import difflib
import re

from cupilot.report.markup import Markup, el, render

_CONTEXT = 3
_KEYWORDS = (
    "alignas alignof auto break case class const constexpr continue default do else enum extern for goto if "
    "inline namespace operator return sizeof static static_cast reinterpret_cast struct switch template this "
    "typedef typename union using virtual volatile while __attribute__ __global__ __device__ __shared__ "
    "__restrict__ __restrict __launch_bounds__ __host__ true false nullptr"
)
_TYPES = (
    "void bool char short int long float double signed unsigned size_t half __half __nv_bfloat16 _Float16 "
    "float2 float4 int2 int4 uint2 uint4 int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t"
)
_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))"
    r'|(?P<string>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|(?P<directive>^[ \t]*#[^\n]*)"
    r"|(?P<number>\b(?:0[xX][0-9a-fA-F']+|\d[\d']*\.?\d*(?:[eE][+-]?\d+)?)[uUlLfF]*)"
    r"|(?P<word>[A-Za-z_]\w*)",
    re.DOTALL | re.MULTILINE,
)
_SECTION = re.compile(r"^(tune|where|launch|strategy|proof):\s*$")
_KINDS = {**dict.fromkeys(_KEYWORDS.split(), "k"), **dict.fromkeys(_TYPES.split(), "t")}


def highlighted(text: str) -> list[Markup]:
    """One piece of markup per line."""
    pieces: list[str] = []
    at = 0
    for match in _TOKEN.finditer(text):
        pieces.append(render(text[at : match.start()]))
        pieces.append(_token(match, text))
        at = match.end()
    pieces.append(render(text[at:]))
    return [Markup(line) for line in "".join(pieces).rstrip("\n").split("\n")]


def _token(match: re.Match[str], text: str) -> str:
    kind, token = match.lastgroup or "", match[0]
    if kind == "comment":
        is_header = token.startswith("/* cupilot")
        return "\n".join(_comment_line(line, is_header) for line in token.split("\n"))
    if kind == "word":
        kind = _KINDS.get(token, "f" if text[match.end() :].lstrip()[:1] == "(" else "")
    return el("span", token, class_=kind[:1]) if kind else render(token)


def _comment_line(line: str, is_header: bool) -> str:
    if not line:
        return ""
    if is_header and _SECTION.match(line):
        return el("span", line, class_="h")
    return el("span", line, class_="hd" if is_header else "c")


def code(text: str) -> Markup:
    return el("pre", [_line(i, "", line) for i, line in enumerate(highlighted(text), 1)], class_="code")


def difference(before: str, after: str) -> Markup:
    """A unified difference with colours; says so where there is none."""
    if before == after:
        return el("p", "The two files are the same.", class_="note")
    old, new = highlighted(before), highlighted(after)
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    rows: list[Markup] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        if rows or group[0][1] > 0:
            rows.append(el("span", " ", class_="gap"))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                rows += [_line(j + 1, "", new[j]) for j in range(j1, j2)]
                continue
            rows += [_line(i + 1, "del", old[i]) for i in range(i1, i2)]
            rows += [_line(j + 1, "add", new[j]) for j in range(j1, j2)]
    return el("pre", rows, class_="code")


def _line(number: int, kind: str, content: Markup) -> Markup:
    sign = {"add": "+", "del": "−"}.get(kind, "")
    marks = [el("i", str(number)), el("b", sign)] if kind else [el("i", str(number)), el("b")]
    return el("span", marks, el("code", content or Markup(" ")), class_=f"ln {kind}".strip())
