"""What is refused in a kernel's text before the compiler sees it: assembly, includes beyond plain headers.

Lint with good messages; the jail stops what this misses.
"""

from __future__ import annotations

import re

from cupilot.kernel.file import KernelFile
from cupilot.types import Failed, Stage

# Comments, string, raw-string and character literals; kept apart from what counts.
_QUIET = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^()\\ \n]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:)[ \t]*(include(?:_next)?|import|embed)\b[ \t]*(.*)$", re.MULTILINE)
_HEADER = re.compile(r"<[A-Za-z0-9_]+(?:/[A-Za-z0-9_]+)*(?:\.h)?>")
_FORBIDDEN = {
    r"\b(?:asm|__asm|__asm__)\b": "contains assembly",
    r"\b(?:constructor|__constructor__|destructor|__destructor__)\b\s*(?:\(|\))": "has a constructor",
    r"\b(?:ifunc|__ifunc__)\s*\(": "chooses functions while it is loaded (ifunc)",
}


def check_source(kernel: KernelFile) -> Failed | None:
    text = _QUIET.sub(_blank, re.sub(r"\\[ \t]*\n", "", kernel.source))
    for directive in _DIRECTIVE.finditer(text):
        if not _HEADER.fullmatch(directive[2].strip()):
            reason = "includes something other than a plain header: write #include <cmath>"
            return _refuse(kernel, text, directive.start(), reason)
    for pattern, reason in _FORBIDDEN.items():
        found = re.search(pattern, text)
        if found is not None:
            return _refuse(kernel, text, found.start(), f"{reason} (`{found[0].strip('( )')}`)")
    return None


def _blank(match: re.Match[str]) -> str:
    """Literals and comments vanish, but lines keep their numbers."""
    inside = match[0]
    return ('""' if inside[0] in "\"'R" else " ") + "\n" * inside.count("\n")


def _refuse(kernel: KernelFile, text: str, at: int, reason: str) -> Failed:
    line = kernel.source_line + text.count("\n", 0, at)
    return Failed(Stage.INSPECT, f"line {line}: the code {reason}")
