import pytest

from cupilot.device.datasheet import Gpu, find_gpu, gpu_peaks, gpus
from cupilot.errors import UsageError
from cupilot.problem.precision import Arithmetic
from cupilot.roofline import Format, Source

ALL = pytest.mark.parametrize("gpu", gpus(), ids=lambda gpu: gpu.name)


@ALL
def test_the_f32_rate_follows_from_cores_and_clock(gpu: Gpu) -> None:
    assert gpu.core_ops_per_s[Format.F32] == pytest.approx(2 * gpu.cores * gpu.clock_hz, rel=0.02)


@ALL
def test_a_multiprocessor_has_64_or_128_cores(gpu: Gpu) -> None:
    assert gpu.cores / gpu.multiprocessors in (64, 128)


@ALL
def test_f64_runs_at_a_known_fraction(gpu: Gpu) -> None:
    ratio = gpu.core_ops_per_s[Format.F32] / gpu.core_ops_per_s[Format.F64]
    assert min(abs(ratio / known - 1) for known in (2, 32, 64)) < 0.03


@ALL
def test_matrix_rates_double_as_the_format_halves(gpu: Gpu) -> None:
    rates = gpu.matrix_ops_per_s
    for narrow, wide in ((Format.F16, Format.TF32), (Format.F8, Format.F16)):
        if narrow in rates and wide in rates:
            assert rates[narrow] / rates[wide] == pytest.approx(2, rel=0.03)
    if Format.BF16 in rates:
        assert rates[Format.BF16] == rates[Format.F16]


@ALL
def test_matrix_units_beat_the_cores_in_f16(gpu: Gpu) -> None:
    assert gpu.matrix_ops_per_s[Format.F16] >= 1.99 * gpu.core_ops_per_s[Format.F32]


@ALL
def test_sizes_are_plausible(gpu: Gpu) -> None:
    assert 4e9 <= gpu.memory_bytes <= 200e9
    assert 250e9 <= gpu.memory_bytes_per_s <= 8e12
    assert 1 << 20 <= gpu.l2_bytes <= 128 << 20
    peaks = gpu_peaks(gpu)
    assert peaks.source is Source.DATASHEET
    assert peaks.level(gpu.l2_bytes).name == "L2"
    assert peaks.level(gpu.l2_bytes + 1).name == "DRAM"


def test_hopper_has_two_ridges() -> None:
    peaks = gpu_peaks(find_gpu("H100 SXM"))
    assert peaks.matrix(Arithmetic.F16) == 989.4e12
    assert peaks.core(Arithmetic.F16) == 66.9e12
    assert peaks.levels[-1].bytes_per_s


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("h200", "H200 SXM"),
        ("RTX4090", "RTX 4090"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("Tesla V100-SXM2-16GB", "V100 SXM"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "RTX 4070 Ti Super"),
        ("rtx 4070", "RTX 4070"),
    ],
)
def test_names_are_found_as_people_and_drivers_write_them(text: str, name: str) -> None:
    assert find_gpu(text).name == name


def test_an_unknown_or_ambiguous_name_lists_what_there_is() -> None:
    with pytest.raises(UsageError, match=r"several GPUs(.|\n)*A100 PCIe 40GB, A100 SXM 40GB"):
        find_gpu("A100")
    with pytest.raises(UsageError, match=r"no GPU of the table(.|\n)*RTX 5090"):
        find_gpu("Voodoo 2")
