from __future__ import annotations

import os

import numpy as np
import pytest
from cpu_kit import N, compile_kernel, kernel, result, session, tensor

from cupilot.device.base import NUMPY_TYPES, Compiled, Ran, Ring
from cupilot.types import DType, Signature

HEAD = 'extern "C" void k(long b, const float* x, float* out)'
COPY = f"{HEAD} {{ for (long i = 256 * b; i < 256 * b + 256; ++i) out[i] = x[i]; }}"


@pytest.fixture
def numbers() -> np.ndarray:
    return np.random.default_rng(1).standard_normal(N).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("order_seed", [0, 12345])
def test_every_block_runs_once_whatever_the_order(numbers, threads, order_seed):
    once = kernel(
        'extern "C" void k(long b, const float* x, float* out) { out[b] += x[b]; }',
        "zero(out)\nk[1024](x, out)",
    )
    assert np.array_equal(
        result(once, {"x": numbers}, threads=threads, order_seed=order_seed)["out"], numbers
    )


def test_block_order_is_natural_or_shuffled(numbers):
    code = 'extern "C" void k(long b, const float* x, float* out, float* at) { out[b] = at[0]; at[0] += 1; }'
    file = kernel(code, "at = scratch((1,), f32)\nzero(at)\nk[1024](x, out, at)")
    natural = result(file, {"x": numbers})["out"]
    assert np.array_equal(natural, np.arange(N))
    shuffled = [result(file, {"x": numbers}, order_seed=seed)["out"] for seed in (1, 2)]
    assert all(
        np.array_equal(np.sort(order), natural) and not np.array_equal(order, natural) for order in shuffled
    )
    assert not np.array_equal(*shuffled)


@pytest.mark.parametrize("grid", ["7", "7, 5", "7, 5, 3"])
@pytest.mark.parametrize("order_seed", [0, 9])
def test_grids_of_one_to_three_dimensions(grid, order_seed):
    extents = tuple(int(part) for part in grid.split(","))
    names = ["bx", "by", "bz"][: len(extents)]
    place, factor = [], 1
    for name, extent in zip(names, extents, strict=True):
        place.append(f"{name}*{factor}")
        factor *= extent
    body = f"out[{'+'.join(place)}] = {'+'.join(f'{10**i}*{n}' for i, n in enumerate(names))};"
    code = f'extern "C" void k({", ".join(f"long {n}" for n in names)}, float* out) {{ {body} }}'
    signature = Signature((), {}, (tensor("out", (factor,)),))
    got = result(kernel(code, f"k[{grid}](out)"), {}, signature, order_seed=order_seed)["out"]
    index = np.indices(extents[::-1])[::-1]
    assert np.array_equal(got, sum(10**i * axis for i, axis in enumerate(index)).ravel())


def test_numbers_of_every_width_arrive():
    types = ["bool", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned", "long"]
    values = [1, -7, 250, -30000, 65000, -(2**31), 2**32 - 1, -(2**53)]
    types += ["float", "double", "double"]
    numbers = [0.5, 0.1, 3]
    names = [f"a{i}" for i in range(len(types))]
    parameters = ", ".join(f"{t} {n}" for t, n in zip(types, names, strict=True))
    body = " ".join(f"out[{i}] = {n};" for i, n in enumerate(names))
    file = kernel(
        f'extern "C" void k(long b, {parameters}, double* out) {{ {body} }}',
        f"k[1]({', '.join(map(str, values + numbers))}, out)",
    )
    signature = Signature((), {}, (tensor("out", (len(types),), DType.F64),))
    assert result(file, {}, signature)["out"].tolist() == values + numbers


@pytest.mark.parametrize(
    ("dtype", "c_type"),
    [
        (DType.F64, "double"), (DType.F32, "float"), (DType.F16, "_Float16"), (DType.F16, "unsigned short"),
        (DType.BF16, "unsigned short"), (DType.I64, "long long"), (DType.I32, "int"), (DType.I16, "short"),
        (DType.I8, "signed char"), (DType.U8, "unsigned char"),
        (DType.BOOL, "bool"), (DType.BOOL, "unsigned char"),
    ],
)  # fmt: skip
def test_tensors_of_every_type(dtype, c_type):
    signature = Signature((tensor("x", (16,), dtype),), {}, (tensor("out", (16,), dtype),))
    file = kernel(
        f'extern "C" void k(long b, const {c_type}* x, {c_type}* out) {{ out[b] = x[15 - b]; }}',
        "k[16](x, out)",
    )
    x = np.random.default_rng(2).integers(0, 2, 16).astype(NUMPY_TYPES[dtype])
    assert np.array_equal(result(file, {"x": x}, signature)["out"], x[::-1])


def test_several_launches_share_scratch_and_a_loop_passes_its_counter(numbers):
    code = """
    extern "C" void part(long b, const float* x, double* sums) {
        sums[b] = 0;
        for (int i = 0; i < 256; ++i) sums[b] += x[b * 256 + i];
    }
    extern "C" void add(long, const double* sums, long at, double* total) { *total += sums[at]; }
    extern "C" void spread(long b, const double* total, float* out) { out[b] = *total; }
    """
    launch = (
        "sums = scratch((4,), f64)\ntotal = scratch((1,), f64)\nzero(total)\npart[4](x, sums)\n"
        "for i in range(4):\n    add[1](sums, i, total)\nspread[1024](total, out)"
    )
    got = result(kernel(code, launch), {"x": numbers}, threads=2)["out"]
    assert np.allclose(got, numbers.sum(dtype=np.float64), rtol=1e-6)


def test_tunables_are_compile_time_constants(numbers):
    code = f"{HEAD} {{ float a[WIDTH]; a[0] = x[b]; out[b] = a[0] * WIDTH; }}"
    file = kernel(code, "k[1024](x, out)", tune="WIDTH = 2 | 3")
    for width in (2, 3):
        compiled = compile_kernel(file, point={"WIDTH": width})
        assert isinstance(compiled, Compiled)
        with session(file, compiled=compiled, point={"WIDTH": width}) as opened:
            opened.write(0, {"x": numbers})
            opened.run(0, 1)
            assert np.array_equal(opened.read(0)["out"], numbers * width)


def test_calls_take_turns_through_both_rings(numbers):
    with session(kernel(COPY), ring=Ring(3, 2)) as opened:
        for slot in range(3):
            opened.write(slot, {"x": numbers + slot})
        assert isinstance(opened.run(3, 2), Ran)  # inputs 0 and 1, outputs 1 and 0
        assert np.array_equal(opened.read(1)["out"], numbers)
        assert np.array_equal(opened.read(0)["out"], numbers + 1)
        assert isinstance(opened.run(5, 1), Ran)
        assert np.array_equal(opened.read(1)["out"], numbers + 2)


def test_large_tensors_and_many_slots(numbers):
    signature = Signature((tensor("x", (3 << 20,)),), {}, (tensor("out", (1,)),))
    code = 'extern "C" void k(long b, const float* x, float* out) { out[0] = x[(3 << 20) - 1]; }'
    with session(kernel(code, "k[1](x, out)"), signature, Ring(4, 600)) as opened:
        x = np.zeros(3 << 20, np.float32)
        x[-1] = 8
        opened.write(3, {"x": x})
        assert isinstance(opened.run(599, 1), Ran)
        assert opened.read(599)["out"][0] == 8
        assert opened.check_guards() is None


def test_vector_functions_of_the_library_can_be_called(numbers):
    code = """
    #include <immintrin.h>
    extern "C" __m128 _ZGVbN4v_expf(__m128);
    extern "C" void k(long b, const float* x, float* out) {
        _mm_storeu_ps(out + 4 * b, _ZGVbN4v_expf(_mm_loadu_ps(x + 4 * b)));
    }
    """
    got = result(kernel(code, "k[256](x, out)"), {"x": numbers})["out"]
    assert np.allclose(got, np.exp(numbers), rtol=1e-6)


def test_the_cpu_clock_advances_with_work_and_only_then(numbers):
    spin = f"{HEAD} {{ float s = 0; for (int i = 0; i < 1 << 20; ++i) s = s * x[i & 7] + 1; out[b] = s; }}"
    with session(kernel(spin)) as opened:
        opened.write(0, {"x": numbers})
        ran = opened.run(0, 1)
        assert isinstance(ran, Ran)
        assert 0 < ran.cpu_end_ns - ran.cpu_start_ns <= opened.cpu_time_ns()
        assert opened.cpu_time_ns() == opened.cpu_time_ns()


def test_pinning_covers_all_threads():
    with session(kernel(COPY), threads=2) as opened:
        opened.pin(0)
        assert all(os.sched_getaffinity(int(task)) == {0} for task in os.listdir(f"/proc/{opened.pid}/task"))
