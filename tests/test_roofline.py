from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cupilot.problem.operators import Operation
from cupilot.problem.precision import Arithmetic
from cupilot.roofline import (
    DevicePeaks,
    Format,
    MemoryLevel,
    Pattern,
    Placement,
    Source,
    Work,
    Zone,
    place,
)

GB, GFLOP = 1e9, 1e9
DRAM_BYTES = 1 << 40

CPU = DevicePeaks(
    device="cpu",
    source=Source.MEASURED,
    threads=1,
    levels=(
        MemoryLevel("L2", 1 << 20, {Pattern.READ: 200 * GB, Pattern.WRITE: 100 * GB, Pattern.COPY: 160 * GB}),
        MemoryLevel(
            "DRAM",
            None,
            {
                Pattern.READ: 30 * GB,
                Pattern.WRITE: 20 * GB,
                Pattern.COPY: 25 * GB,
                Pattern.STREAM_COPY: 40 * GB,
                Pattern.ZERO: 80 * GB,
            },
        ),
    ),
    core_ops_per_s={Format.F32: 100 * GFLOP, Format.F64: 50 * GFLOP},
    matrix_ops_per_s={},
    special_per_s=5 * GFLOP,
    launch_s=1e-7,
)
GPU = DevicePeaks(
    device="gpu",
    source=Source.DATASHEET,
    threads=0,
    levels=(MemoryLevel("DRAM", None, dict.fromkeys(Pattern, 1000 * GB)),),
    core_ops_per_s={Format.F32: 20_000 * GFLOP},
    matrix_ops_per_s={Format.TF32: 160_000 * GFLOP, Format.F16: 320_000 * GFLOP},
    special_per_s=2_000 * GFLOP,
    launch_s=3e-6,
)


def matmul(n: int, itemsize: int = 4) -> Work:
    return Work(2 * n * n * itemsize, n * n * itemsize, {Operation.CONTRACTION: 2.0 * n**3})


def at(work: Work, peaks: DevicePeaks = CPU, arithmetic: Arithmetic = Arithmetic.F32) -> Placement:
    return place(work, peaks, arithmetic, DRAM_BYTES)


def test_zones_of_typical_problems() -> None:
    relu = Work(64e6, 64e6, {Operation.ARITHMETIC: 16e6})
    assert at(relu).zone is Zone.MEMORY
    assert at(matmul(1024)).zone is Zone.COMPUTE
    assert at(relu, GPU).zone is Zone.MEMORY
    assert at(matmul(64)).zone is Zone.COMPUTE
    assert at(matmul(64), GPU).zone is Zone.LATENCY


def test_the_middle_zone_lies_between_the_ridges_and_needs_a_matrix_unit_that_knows_the_precision() -> None:
    thin = Work(800e6, 800e6, {Operation.CONTRACTION: 2.0 * 50e9})  # 62 operations per byte
    in_tf32, in_f32 = at(thin, GPU, Arithmetic.TF32), at(thin, GPU, Arithmetic.F32)
    assert in_tf32.zone is Zone.MIDDLE
    assert in_tf32.core_ridge_ops_per_byte == pytest.approx(20)
    assert in_tf32.matrix_ridge_ops_per_byte == pytest.approx(160)
    assert in_f32.zone is Zone.COMPUTE
    assert in_f32.core_ridge_ops_per_byte == in_f32.matrix_ridge_ops_per_byte


def test_special_functions_can_bind_but_never_raise_the_floor() -> None:
    work = Work(1e6, 1e6, {Operation.SPECIAL: 1e9})
    placement = at(work)
    assert placement.zone is Zone.COMPUTE
    assert placement.attainable_s == pytest.approx(0.2)
    assert placement.operation_floor_s == 0


def test_the_byte_floor_holds_reads_and_writes_to_their_own_fastest_rates() -> None:
    reading = at(Work(30e9, 1, {}))
    writing = at(Work(1, 80e9, {}))
    copying = at(Work(30e9, 30e9, {}))
    assert reading.byte_floor_s == pytest.approx(1.0)
    assert writing.byte_floor_s == pytest.approx(1.0)  # were it all zeros
    assert copying.byte_floor_s == pytest.approx(1.0)
    assert copying.attainable_s == pytest.approx(60 / 40)


def test_a_footprint_is_charged_at_the_fastest_level_that_holds_it() -> None:
    work = Work(400e3, 400e3, {})
    inside, outside = (
        place(work, CPU, Arithmetic.F32, 1 << 20),
        place(work, CPU, Arithmetic.F32, (1 << 20) + 1),
    )
    assert (inside.level, outside.level) == ("L2", "DRAM")
    assert inside.byte_floor_s < outside.byte_floor_s


def test_a_noisy_inner_level_never_makes_the_floor_higher_than_the_outer_one() -> None:
    slow = MemoryLevel("L2", 1 << 20, dict.fromkeys(Pattern, GB))
    slow_inside = replace(CPU, levels=(slow, CPU.levels[1]))
    work = Work(400e3, 400e3, {})
    assert place(work, slow_inside, Arithmetic.F32, 1e6).byte_floor_s <= at(work).byte_floor_s


def test_precisions_without_arithmetic_of_their_own_run_as_f32() -> None:
    assert CPU.core(Arithmetic.TF32) == CPU.core(Arithmetic.F32)
    assert CPU.matrix(Arithmetic.F64) == CPU.core(Arithmetic.F64)
    assert GPU.matrix(Arithmetic.F16) == 320_000 * GFLOP


def test_headroom_is_the_share_of_the_time_that_is_not_needed() -> None:
    placement = at(Work(40e9, 40e9, {}))
    assert placement.headroom(2 * placement.attainable_s) == pytest.approx(0.5)
    assert placement.headroom(0.9 * placement.attainable_s) == 0


def test_work_without_bytes_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="reads or writes"):
        Work(0, 0)


amount = st.floats(1, 1e12)


@given(amount, amount, amount, amount, amount, st.sampled_from([CPU, GPU]), st.sampled_from(list(Arithmetic)))
def test_the_floor_is_never_above_what_is_attainable(
    read: float, written: float, contraction: float, simple: float, special: float,
    peaks: DevicePeaks, arithmetic: Arithmetic,
) -> None:  # fmt: skip
    operations = {
        Operation.CONTRACTION: contraction,
        Operation.ARITHMETIC: simple,
        Operation.SPECIAL: special,
    }
    placement = at(Work(read, written, operations), peaks, arithmetic)
    assert 0 < placement.floor_s <= placement.attainable_s * (1 + 1e-9)
    assert placement.core_ridge_ops_per_byte <= placement.matrix_ridge_ops_per_byte * (1 + 1e-9)


@given(amount, amount, amount)
def test_zone_and_ridges_say_the_same(read: float, written: float, contraction: float) -> None:
    placement = at(Work(read, written, {Operation.CONTRACTION: contraction}), GPU, Arithmetic.TF32)
    intensity = placement.intensity_ops_per_byte
    if placement.zone is Zone.MEMORY:
        assert intensity <= placement.core_ridge_ops_per_byte * (1 + 1e-9)
    elif placement.zone is Zone.COMPUTE:
        assert intensity >= placement.matrix_ridge_ops_per_byte * (1 - 1e-9)
    elif placement.zone is Zone.MIDDLE:
        assert placement.core_ridge_ops_per_byte <= intensity * (1 + 1e-9)
        assert intensity <= placement.matrix_ridge_ops_per_byte * (1 + 1e-9)
    else:
        assert placement.attainable_s < GPU.launch_s
