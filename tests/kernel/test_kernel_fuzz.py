"""Damaged kernel files: whatever becomes of the text, it is a kernel or our error, and soon."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cupilot.errors import KernelSyntaxError
from cupilot.kernel.binding import bind
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.launch import run
from cupilot.kernel.plan import GridStyle
from cupilot.kernel.tunables import first_point
from cupilot.types import DType, Role, Signature, TensorSpec

ROOT = Path(__file__).parents[2]
FILES = [
    path.read_text()
    for folder in ("examples", "src/cupilot/selftest/cheats")
    for path in sorted((ROOT / folder).rglob("*.c[pu]*"))
]
SIGNATURE = Signature(
    tuple(TensorSpec(name, (61, 1021), DType.F32, Role.INPUT) for name in ("x", "a", "b", "weight")),
    {},
    (TensorSpec("out", (61, 1021), DType.F32, Role.OUTPUT),),
)
PIECES = [
    *("*/", "/*", "cupilot 1", "launch:", "tune:", "where:", "flags:", "\n", "    ", "\t", "\r", "\0"),
    *("\u202e", "\ufeff", "(", ")", "[", "]", ",", ":", "=", "**", "//", "%", "-", "9" * 30, "1e999", "0x"),
    *("_", "if ", "for i in range(", "else", "x.shape", "out", "scratch(", "zero(", "lambda", "__class__"),
    *("|", "\\\n", "#", "'", '"', "é", "１"),
]


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@settings(max_examples=250, deadline=None)
@given(st.data())
def test_any_damage_to_the_header_is_a_kernel_or_our_error(data):
    text = data.draw(st.sampled_from(FILES))
    header = text.find("*/") + 2
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, header))
        gone = data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(st.sampled_from([*PIECES, ""])) + text[at + gone :]
    began_s = time.monotonic()
    try:
        kernel = parse_kernel(text)
        run(kernel.launch, bind(kernel, SIGNATURE, first_point(kernel)), grid_style=GridStyle.CPU)
    except KernelSyntaxError as error:
        assert error.line >= 1
        assert error.message
    assert time.monotonic() - began_s < 5  # an endless one would not end at all
