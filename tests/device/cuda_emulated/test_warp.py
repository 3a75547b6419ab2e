"""What lanes of a warp do together, against numpy."""

from __future__ import annotations

import emu_kit
import numpy as np
import pytest

from cupilot.types import DType

X = np.random.default_rng(1).integers(0, 1000, 64).astype(np.int32)
OUT = {"out": ((64,), DType.I32)}


def _compute(body: str, x: np.ndarray = X) -> np.ndarray:
    code = f"""
    __global__ void k(const int* x, int* out) {{
        const int lane = threadIdx.x % 32, v = x[threadIdx.x];
        int r = 0;
        {body}
        out[threadIdx.x] = r;
    }}"""
    return emu_kit.compute(code, "k[1, 64](x, out)", {"x": x}, OUT)["out"].reshape(2, 32)


@pytest.mark.parametrize("width", [32, 16, 4])
def test_shuffles(width: int) -> None:
    lanes, rows = np.arange(32), X.reshape(2, 32)
    base = lanes // width * width
    for by in (1, 3, 5):
        down = np.where(lanes % width + by < width, lanes + by, lanes)
        up = np.where(lanes % width - by >= 0, lanes - by, lanes)
        xor = np.where((lanes ^ by) // width == lanes // width, lanes ^ by, lanes)
        if width == 4 and by == 5:
            xor = lanes  # beyond the segment: the lane's own value, where it points upwards
        assert np.array_equal(_compute(f"r = __shfl_down_sync(~0u, v, {by}, {width});"), rows[:, down])
        assert np.array_equal(_compute(f"r = __shfl_up_sync(~0u, v, {by}, {width});"), rows[:, up])
        if by < width:
            assert np.array_equal(_compute(f"r = __shfl_xor_sync(~0u, v, {by}, {width});"), rows[:, xor])
        assert np.array_equal(
            _compute(f"r = __shfl_sync(~0u, v, {by}, {width});"), rows[:, base + by % width]
        )


def test_votes_and_masks() -> None:
    odd = X.reshape(2, 32) % 2 == 1
    ballots = (odd * (1 << np.arange(32, dtype=np.int64))).sum(axis=1).astype(np.uint32).view(np.int32)
    assert np.array_equal(_compute("r = __ballot_sync(~0u, v % 2);"), np.repeat(ballots[:, None], 32, 1))
    assert np.all(_compute("r = __any_sync(~0u, v == x[5]);")[0] == 1)
    assert np.all(_compute("r = __all_sync(~0u, v < 1000);") == 1)
    low = _compute("if (lane < 7) r = __activemask();")
    assert np.all(low[:, :7] == 127) and np.all(low[:, 7:] == 0)
    assert np.all(_compute("if (lane >= 20) r = __all_sync(0xfff00000u, lane > 18);")[:, 20:] == 1)


def test_match_and_reduce() -> None:
    few = X % 5
    rows = few.reshape(2, 32)
    same = (rows[:, :, None] == rows[:, None, :]) * (1 << np.arange(32, dtype=np.int64))
    wanted = same.sum(axis=2).astype(np.uint32).view(np.int32)
    assert np.array_equal(_compute("r = __match_any_sync(~0u, v);", few), wanted)
    assert np.array_equal(_compute("r = __reduce_add_sync(~0u, v);")[:, 0], X.reshape(2, 32).sum(axis=1))
    assert np.array_equal(_compute("r = __reduce_max_sync(~0u, v);")[:, 9], X.reshape(2, 32).max(axis=1))
    assert np.all(_compute("int p; r = __match_all_sync(~0u, 3, &p) == ~0u && p;") == 1)


def test_lanes_that_diverged_meet_again() -> None:
    body = """
    int n = lane % 4;
    while (n > 0) { r += n; n--; if (r > 4) break; }
    if (lane & 1) { if (lane & 2) r += 100; else r += 200; } else r += 300;
    r = r * 1000 + __popc(__ballot_sync(~0u, 1));"""
    counts = [0, 1, 3, 5]
    wanted = [
        (counts[k % 4] + (300 if k % 2 == 0 else 100 if k % 4 == 3 else 200)) * 1000 + 32 for k in range(32)
    ]
    assert np.array_equal(_compute(body), np.array([wanted, wanted]))


def test_a_value_from_a_lane_that_takes_no_part_is_not_to_be_relied_on() -> None:
    rows = [_compute("r = v; if (lane < 16) r = __shfl_sync(0xffffu, v, 20);")[:, :16] for _ in range(2)]
    assert not np.array_equal(rows[0], rows[1])
