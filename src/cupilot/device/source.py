"""What is refused in a kernel's text before the compiler sees it: assembly, includes beyond plain headers.

Lint with good messages; the jail stops what this misses.
"""

from __future__ import annotations

import re

from cupilot.kernel.file import KernelFile
from cupilot.types import Failed, Stage

# Comments, string, raw-string and character literals, which do not count. Numbers and words are read whole
# first: the separator in 1'000 opens no literal, and the R in OTHER"..." no raw string. A quote without its
# partner, as a skipped part may have, reaches to the end of its line.
_TOKEN = re.compile(
    r"""(?P<quiet>//[^\n]*|/\*.*?(?:\*/|\Z)|"""
    r"""(?:u8|[uUL])?R"(?P<end>[^()\\ \n]{0,16})\(.*?(?:\)(?P=end)"\w*|\Z)|"""
    r""""(?:\\.|[^"\\\n])*(?:"\w*)?|(?:\b(?:u8|[uUL]))?'(?:\\.|[^'\\\n])*(?:'\w*)?)|"""
    r"""\.?\d(?:[eEpP][+-]|'?[\w.])*|[^\W\d]\w*""",
    re.DOTALL,
)
# Looked for in every line, those of comments and literals included: what is live is for the compiler to say.
_INCLUDE = re.compile(
    r"[ \t]*(?:(?P<mark>#|%:)[ \t]*)?(?:include(?:_next)?|import|embed)\b(?P<what>.*)", re.DOTALL
)
_COMMENT = re.compile(r"//.*|/\*.*?(?:\*/|$)")
_HEADER = re.compile(r"<[A-Za-z0-9_]+(?:/[A-Za-z0-9_]+)*(?:\.h)?>")
_FORBIDDEN = {
    r"\b(?:asm|__asm|__asm__)\b": "contains assembly",
    r"\b(?:constructor|__constructor__|destructor|__destructor__)\b\s*(?:\(|\))": "has a constructor",
    r"\b(?:ifunc|__ifunc__)\s*\(": "chooses functions while it is loaded (ifunc)",
}


def check_source(kernel: KernelFile) -> Failed | None:
    spliced = re.sub(r"\\[ \t]*\n", "", kernel.source)
    for number, line in enumerate(spliced.split("\n")):
        if not _HEADER.fullmatch(_included(line)):
            reason = "includes something other than a plain header: write #include <cmath>"
            return Failed(Stage.INSPECT, f"line {kernel.source_line + number}: the code {reason}")
    text = _TOKEN.sub(_blank, spliced)
    for pattern, reason in _FORBIDDEN.items():
        found = re.search(pattern, text)
        if found is not None:
            return _refuse(kernel, text, found.start(), f"{reason} (`{found[0].strip('( )')}`)")
    return None


def _included(line: str) -> str:
    """What the line includes, wherever it may stand; <cmath> where it includes nothing."""
    for text, in_comment in ((line, False), (line.partition("*/")[2], True)):
        found = _INCLUDE.match(_COMMENT.sub(" ", text))
        if found is not None and (found["mark"] or in_comment):
            return found["what"].strip()
    return "<cmath>"


def _blank(match: re.Match[str]) -> str:
    """Literals and comments vanish, but lines keep their numbers."""
    inside = match["quiet"]
    if inside is None:
        return match[0]
    return ('""' if inside[0] != "/" else " ") + "\n" * inside.count("\n")


def _refuse(kernel: KernelFile, text: str, at: int, reason: str) -> Failed:
    line = kernel.source_line + text.count("\n", 0, at)
    return Failed(Stage.INSPECT, f"line {line}: the code {reason}")
