"""Our reading of C++ and the compiler's agree on what is code: nothing it includes is hidden from us."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest
from cpu_kit import kernel
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cupilot.device import native
from cupilot.device.source import check_source

PIECES = [
    '"', "'", "R", 'R"(', ')"', 'R"x(', ')x"', "u8", "L", "NOTHING_R", "/*", "*/", "//", "\\", "\\\n", "\n",
    "\n", " ", "1", "0x1f", "1e+5", "a", "#if 0\n", "#endif\n", "%:", "#", '"/*"', "'\"'",
]  # fmt: skip
SECRET = "an_included_secret"


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(PIECES), max_size=8), st.lists(st.sampled_from(PIECES), max_size=8))
def test_what_the_compiler_includes_we_refuse(tmp_path, before, after):
    (tmp_path / "secret.h").write_text(f"{SECRET}\n")
    source = f'#define NOTHING_R\n{"".join(before)}\n#include "secret.h"\n{"".join(after)}\n'
    if SECRET in _preprocessed(tmp_path, source):
        refused = check_source(kernel(source))
        assert refused is not None
        assert "includes something other" in refused.reason


def _preprocessed(folder: Path, source: str) -> str:
    command = [str(native.compiler().path), "-std=c++20", "-E", "-x", "c++", "-", f"-I{folder}"]
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False).stdout


HIDDEN = {
    "between the separators of numbers": "long a = 1'0; asm(\"nop\"); long b = 1'0;",
    "behind a word that ends with R": '#define BAR\nauto a = BAR"("; asm("nop"); auto b = BAR")";',
    "behind a raw string": 'const char* a = R"x(")x"; asm("nop");',
    "behind a quote in quotes": "char a = '\"'; asm(\"nop\"); char b = '\"';",
}


@pytest.mark.parametrize("where", HIDDEN)
def test_assembly_is_seen(where):
    refused = check_source(kernel(HIDDEN[where]))
    assert refused is not None
    assert "contains assembly" in refused.reason


INCLUDED = {
    "behind a comment": '/* include */ #include "x"',
    "with comments inside": '# /* a */ /* b */ include /* c */ "x"',
    "behind a comment of two lines": '/* a\n*/ %: include "x"',
    "with a comment of two lines inside": '# /* a\n*/ include "x"',
    "in a raw string that is none for the compiler": '#if 0\n%:R"(\n#endif\n#include "x"\n// )"',
    "by a macro": '#define X "x"\n#include X',
    "over two lines": '#inc\\\nlude "x"',
}


@pytest.mark.parametrize("how", INCLUDED)
def test_what_is_included_is_seen(how):
    refused = check_source(kernel(INCLUDED[how]))
    assert refused is not None
    assert "includes something other" in refused.reason


@pytest.mark.parametrize(
    "piece",
    ["/*", 'R"(', "*/#/**/", "#include ", '"', "'", "\\ ", "1'", "*/ include ", "/**/", "constructor "],
)
def test_no_text_takes_long_to_read(piece):
    began_s = time.monotonic()
    check_source(kernel(piece * (200_000 // len(piece))))
    assert time.monotonic() - began_s < 5  # quadratic would be a minute


QUIET = {
    "a raw string": 'const char* a = R"x(asm("nop"))x";',
    "a raw string with a prefix": 'auto a = u8R"(asm("nop"))";',
    "a comment": "/* asm(1) */ // asm(2)",
    "plain headers with comments": "#include <cmath> // for expf\n/* */ # include /* */ <immintrin.h>",
    "a string": 'const char* a = "asm(\\"nop\\")";',
    "a character": "char a = L'\\''; int masm;",
}


@pytest.mark.parametrize("where", QUIET)
def test_words_that_mean_nothing_are_left_alone(where):
    assert check_source(kernel(QUIET[where])) is None
