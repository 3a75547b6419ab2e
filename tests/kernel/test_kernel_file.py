"""The header: sections, words, positions, canonical text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cupilot.errors import KernelSyntaxError
from cupilot.kernel.file import parse_kernel, print_kernel
from cupilot.kernel.nodes import Assign, Number
from cupilot.kernel.tunables import Tunable

SOFTMAX = """/* cupilot 1
Row softmax: one block per row.

tune:
    THREADS = 128 | 256 | 512   # threads of a block
    VEC     = 1 | 2 | 4
where:
    THREADS * VEC <= 1024
launch:
    # one launch is enough
    rows, cols = x.shape
    row_softmax[rows, THREADS](x, out, cols)
strategy:
    vector loads (width = VEC)
      because rows are contiguous
proof:
    0123abcd
*/

extern "C" __global__ void row_softmax(const float* x, float* out, int cols) {}
"""


def kernel(header: str, source: str = "void k() {}") -> str:
    return f"/* cupilot 1\n{header}*/\n{source}\n"


def error_of(text: str) -> KernelSyntaxError:
    with pytest.raises(KernelSyntaxError) as caught:
        parse_kernel(text)
    assert caught.value.hint, "every error says what is allowed"
    return caught.value


def test_a_file_is_read_in_full():
    file = parse_kernel(SOFTMAX)
    assert file.summary == "Row softmax: one block per row."
    assert file.tune == (Tunable("THREADS", (128, 256, 512)), Tunable("VEC", (1, 2, 4)))
    assert len(file.where) == 1
    assert len(file.launch.statements) == 2
    assert file.strategy == "vector loads (width = VEC)\n  because rows are contiguous"
    assert file.proof == "0123abcd"
    assert file.source.startswith('extern "C"')
    assert SOFTMAX.split("\n")[file.source_line - 1].startswith('extern "C"')


def test_canonical_text():
    assert (
        print_kernel(parse_kernel(SOFTMAX))
        == """/* cupilot 1
Row softmax: one block per row.
tune:
    THREADS = 128 | 256 | 512
    VEC = 1 | 2 | 4
where:
    THREADS * VEC <= 1024
launch:
    rows, cols = x.shape
    row_softmax[rows, THREADS](x, out, cols)
strategy:
    vector loads (width = VEC)
      because rows are contiguous
proof:
    0123abcd
*/
extern "C" __global__ void row_softmax(const float* x, float* out, int cols) {}
"""
    )


@pytest.mark.parametrize(
    "layout",
    [
        SOFTMAX.replace("\n", "\r\n"),
        "\ufeff\n\n  " + SOFTMAX,
        SOFTMAX.replace("    THREADS =", "\tTHREADS\t="),
        SOFTMAX.replace("THREADS * VEC", "(THREADS*VEC)").replace("128 |", "128|"),
        SOFTMAX.replace("/* cupilot 1\n", "/*cupilot 1  "),
        SOFTMAX.replace("rows, cols =", "(rows,\n  cols) ="),
        SOFTMAX.rstrip("\n") + "\n\n\n",
    ],
)
def test_layout_does_not_count(layout):
    assert parse_kernel(layout) == parse_kernel(SOFTMAX)
    assert parse_kernel(layout).hash == parse_kernel(SOFTMAX).hash


def test_what_a_kernel_does_counts():
    hashes = {
        parse_kernel(text).hash
        for text in (
            SOFTMAX,
            SOFTMAX.replace("1024", "2048"),
            SOFTMAX.replace("rows, THREADS", "rows + 1, THREADS"),
            SOFTMAX.replace("{}", "{ }"),
        )
    }
    assert len(hashes) == 4


def test_sections_come_in_any_order_and_only_launch_is_needed():
    file = parse_kernel(kernel("launch:\n  k[N](x)\nwhere:\n N > 1\ntune:\n  N = 1 | 2\n"))
    assert [tunable.name for tunable in file.tune] == ["N"]
    bare = parse_kernel("/* cupilot 1 launch:\n k[1]()*/ void k() {}")
    assert (bare.summary, bare.tune, bare.where, bare.strategy, bare.proof) == ("", (), (), "", "")
    assert bare.source == "void k() {}\n"


def test_words_that_could_end_the_header_are_made_harmless():
    file = parse_kernel(SOFTMAX)
    spoken = replace(
        file, summary="a */ b\n\n tune:\nNote:\nlaunch: now", strategy="  x*/y\n\tz  \n\n", proof="p\r\nq"
    )
    text = print_kernel(spoken)
    again = parse_kernel(text)
    assert again.summary == "a * / b\n\n tune:\n Note:\n launch: now"
    assert again.launch == file.launch
    assert again.source == file.source
    assert print_kernel(again) == text
    assert again.hash == spoken.hash


HEADER_ERRORS = {
    "void k() {}": (1, 1, "there is no cupilot header"),
    "": (1, 1, "there is no cupilot header"),
    "#include <x>\n" + SOFTMAX: (1, 1, "not at the top"),
    "/* cupilot\nlaunch:\n k[1]()\n*/ x": (1, 11, "no version"),
    "/* cupilot 2\nlaunch:\n k[1]()\n*/ x": (1, 12, "version '2'"),
    "/* cupilot 1.5\n*/ x": (1, 12, "version '1.5'"),
    "\n/* cupilot 1\nlaunch:\n k[1]()": (2, 1, "never closed"),
    "/* cupilot 1 */ x": (1, 14, "no launch section"),
    kernel("launch:\n\n"): (3, 1, "launch section is empty"),
    kernel("launch:\n k[1]()\n", source=" "): (6, 1, "no code below"),
    kernel("launch:\n k[1]()\nflags:\n fast\n"): (4, 1, "'flags' is reserved"),
    kernel("once:\nlaunch:\n k[1]()\n"): (2, 1, "'once' is reserved"),
    kernel("lunch:\n k[1]()\n"): (2, 1, "no section 'lunch'"),
    kernel("launch:\n k[1]()\nlaunch:\n k[1]()\n"): (4, 1, "twice"),
    kernel("launch: k[1]()\n"): (2, 1, "nothing stands behind 'launch:'"),
    kernel("launch:\n k[1]()\nk[2]()\n"): (4, 1, "does not belong to 'launch'"),
    kernel("  launch:\n   k[1]()\n"): (4, 1, "no launch section"),
    kernel("launch:\n k[1]()\n", source="a\0b"): (5, 2, "not text"),
    kernel("launch:\n k[1]()\n", source="\ud800"): (5, 1, "not text"),
    kernel("launch:\n k[1]()\n", source="x" * 300_000): (1, 1, "too long"),
}


@pytest.mark.parametrize("text", HEADER_ERRORS, ids=[expected[2] for expected in HEADER_ERRORS.values()])
def test_header_errors(text):
    line, column, message = HEADER_ERRORS[text]
    error = error_of(text)
    assert message in error.message
    assert (error.line, error.column) == (line, column)


def test_a_misspelt_section_is_recognised():
    assert error_of(kernel("lunch:\n k[1]()\n")).hint == "did you mean 'launch'?"


def test_the_canonical_text_is_never_longer_than_a_file_may_be():
    """One blank of indentation in the file becomes four in its canonical text."""
    error = error_of(kernel("launch:\n" + " k[1]()\n" * 6000 + "strategy:\n" + " x\n" * 66_000))
    assert "too long" in error.message


def test_numbers_keep_their_kind():
    text = print_kernel(parse_kernel(kernel("launch:\n a = 1\n a = True\n a = 1.0\n a = 0x10\n")))
    assert "    a = 1\n    a = True\n    a = 1.0\n    a = 16\n" in text


def test_equality_ignores_positions():
    one, two = (parse_kernel(kernel(f"{blank}launch:\n{blank} a = 1\n")) for blank in ("", "\n"))
    assert one == two
    assert one.launch.statements == (Assign("a", Number(1)),)
    assert one.launch.statements[0].at != two.launch.statements[0].at
