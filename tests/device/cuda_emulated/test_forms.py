"""What is not executed is refused by name and line, new forms of known opcodes like unknown ones."""

from __future__ import annotations

import forms_kit
import numpy as np
import ptx_kit
import pytest
from ptx_kit import Op

from cupilot.types import Stage


@pytest.mark.parametrize("arch", forms_kit.REFUSED)
def test_is_refused_by_name_and_line(arch: str) -> None:
    for text in forms_kit.REFUSED[arch]:
        refused = forms_kit.refusal(text, arch)
        assert refused is not None, f"`{text}` is executed"
        assert refused.stage is Stage.INSPECT, refused
        assert f"line {forms_kit.LINE} " in refused.reason, refused
        assert f"`{forms_kit.opcode(text)}" in refused.reason, refused


def test_of_three_values() -> None:
    """min and max take a third value from sm_100 on."""
    rng = np.random.default_rng(9)
    values = [rng.standard_normal(ptx_kit.COUNT).astype(np.float32) for _ in range(3)]
    values[1][::7] = np.nan
    bits = [v.view(np.uint32) for v in values]
    three = ("f32", "f32", "f32")
    ops = [Op(f"{name} %0, %1, %2, %3;", "f32", three) for name in ("max.f32", "min.f32", "max.NaN.f32")]
    largest, smallest, strict = (
        found.view(np.float32) for found in ptx_kit.apply(ops, *bits, arch="sm_100a")
    )
    assert np.array_equal(largest, np.fmax(np.fmax(values[0], values[1]), values[2]))
    assert np.array_equal(smallest, np.fmin(np.fmin(values[0], values[1]), values[2]))
    assert np.array_equal(np.isnan(strict), np.isnan(values[1]))
