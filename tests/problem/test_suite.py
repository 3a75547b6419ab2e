"""The suite's files: complete, of the stated shapes at the paper's size, and computing what they say."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import pytest
import torch

from cupilot.errors import UsageError
from cupilot.problem import suite
from cupilot.problem.loading import load
from cupilot.types import DType, Role, Signature, TensorSpec

IMAGE = "112x64x512x512"
CUBE = "128x4096x4095"
SQUARE = "32768x32768"

# inputs | weights > output of the hundred operators at the paper's size; f32 where nothing else is said
PAPER: dict[int, str] = {
    1: "4096x4096 4096x4096 > 4096x4096",
    2: "2048x8192 8192x4096 > 2048x4096",
    3: "128x512x1024 128x1024x2048 > 128x512x2048",
    4: "2048x1048576 1048576x1 > 2048x1",
    5: "65536x16384 > 65536x16384",
    6: "256x524288 524288x256 > 256x256",
    7: "32768x64 64x32768 > 32768x32768",
    8: "8205x2949 2949x5921 > 8205x5921",
    9: "32768x32 32x32768 > 32768x32768",
    10: "16x1024x2048 2048x768 > 16x1024x768",
    11: "8x256x512x256 256x768 > 8x256x512x768",
    12: "4096 4096x4096 > 4096x4096",
    **dict.fromkeys((13, 14, 15), "4096x4096 4096x4096 > 4096x4096"),
    16: "8192x2048 8192x4096 > 2048x4096",
    17: "2048x8192 4096x8192 > 2048x4096",
    18: "8192x2048 4096x8192 > 2048x4096",
    **dict.fromkeys(range(19, 33), "4096x393216 > 4096x393216"),
    33: "64x64x512x512 | 64 64 > 64x64x512x512",
    **dict.fromkeys((34, 36, 37), f"{IMAGE} > {IMAGE}"),
    35: f"{IMAGE} | 64 64 > {IMAGE}",
    **dict.fromkeys((38, 39), "32768x65535 > 32768x65535"),
    40: "16x64x256x256 | 64x256x256 64x256x256 > 16x64x256x256",
    41: "64x192x65536 > 64x192x65523",
    42: "32x64x512x512 > 32x64x511x511",
    43: "16x32x128x128x128 > 16x32x62x62x62",
    44: "64x128x65536 > 64x128x65537",
    45: "16x64x2048x2048 > 16x64x186x186",
    46: "16x32x128x128x256 > 16x32x64x64x128",
    47: f"{CUBE} > 128x1x4095",
    **dict.fromkeys((48, 49, 53), f"{CUBE} > 128x4095"),
    50: "256x3x224x224 | 96x3x11x11 96 > 256x96x55x55",
    **dict.fromkeys((51, 52), f"{CUBE} > i64:128x4095"),
    54: "16x3x64x64x64 | 64x3x3x3x3 > 16x64x62x62x62",
    55: "8x64x512x1024 | 128x64x3x3 > 8x128x510x1022",
    56: "8x64x512x256 | 128x64x5x7 > 8x128x508x250",
    57: "8x64x1024x1024 | 64x64x3x3 > 8x64x1026x1026",
    58: "16x32x16x32x64 | 32x16x3x5x7 > 16x16x18x36x70",
    59: "16x3x256x256x10 | 64x3x3x3x3 > 16x64x254x254x8",
    60: "16x3x64x64x64 | 64x3x3x5x7 > 16x64x62x60x58",
    61: "8x48x64x64x64 | 48x48x3x3x3 > 8x48x66x66x66",
    62: "8x32x512x512 | 64x32x5x9 > 8x64x508x504",
    63: "16x16x1024x1024 | 128x16x3x3 > 16x128x1022x1022",
    64: "64x128x65536 | 128x128x3 > 64x128x65538",
    65: "8x64x512x512 | 64x64x3x7 > 8x64x514x518",
    66: "8x3x16x128x128 | 64x3x3x5x7 > 8x64x14x124x122",
    67: "32x64x131072 | 128x64x3 > 32x128x131070",
    68: "16x32x64x64x64 | 32x64x3x5x5 > 16x64x66x68x68",
    69: "64x64x128x256 | 64x128x3x5 > 64x128x130x260",
    70: "8x48x96x96x96 | 48x24x3x3x3 > 8x24x98x98x98",
    71: "8x32x512x1024 | 32x32x3x3 > 8x32x514x1026",
    72: "8x32x12x24x48 | 32x8x3x5x7 > 8x32x24x48x96",
    73: "4x32x32x64x128 | 32x32x3x3x3 > 4x32x63x127x255",
    74: "32x32x131072 | 32x64x5 > 32x64x131084",
    75: "16x32x128x256 | 32x16x3x5 > 16x64x257x766",
    76: "64x64x524280 | 128x64x3 > 64x128x174758",
    77: "16x32x16x32x32 | 32x64x3x3x3 > 16x64x33x65x65",
    78: "8x32x512x1024 | 32x32x3x7 > 8x32x512x1024",
    79: "16x32x131072 | 32x64x3 > 16x64x262145",
    80: "8x32x512x512 | 64x32x5x9 > 8x64x508x496",
    81: "16x32x64x128 | 32x64x3x3 > 16x64x318x638",
    82: "16x64x512x512 | 64x1x3x3 > 16x64x510x510",
    83: "64x8x512x512 | 8x1x3x1 > 64x8x510x512",
    84: "64x128x256x512 | 128x1x3x3 > 64x128x254x510",
    85: "32x128x128x256 | 128x1x3x7 > 32x128x126x250",
    86: "16x64x512x512 | 64x1x3x3 128x64x1x1 > 16x128x512x512",
    87: "16x64x1024x1024 | 128x64x1x1 > 16x128x1024x1024",
    88: "8192x8192 > 8192x8192",
    **dict.fromkeys(range(89, 93), f"{SQUARE} > {SQUARE}"),
    93: f"{SQUARE} bool:{SQUARE} > {SQUARE}",
    **dict.fromkeys((94, 96), f"{SQUARE} {SQUARE} > scalar"),
    95: "32768x4096 i64:32768 > scalar",
    97: "32x32x512x1024 32x32x512x1024 32x32x512x1024 > 32x32x512x1024",
    98: "16384x16384 16384x16384 > scalar",
    99: "32768x8192 32768x8192 32768x8192 > scalar",
    100: f"{SQUARE} 32768 > scalar",
}

# an extent for every keyword a member may have, small enough to check members by hand
TINY = {
    "batch": 2, "channels": 8, "classes": 7, "columns": 10, "depth": 9, "features": 3, "groups": 2,
    "heads": 2, "height": 13, "i": 3, "in_channels": 4, "in_features": 6, "j": 4, "k": 5, "length": 30,
    "m": 4, "n": 6, "out_channels": 8, "out_features": 5, "rows": 3, "size": 26, "width": 12,
}  # fmt: skip

EXTENTS = set(TINY) - {"groups"}  # what decides a size; other keywords choose the operator
every_member = pytest.mark.parametrize("member", suite.members(), ids=lambda m: f"{m.number}-{m.name}")


def module_of(member: suite.Member) -> ModuleType:
    spec = importlib.util.spec_from_file_location(member.path.stem, member.path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def keywords(function: Callable[..., Any]) -> dict[str, Any]:
    return {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}


def build(module: ModuleType, sizes: Mapping[str, int]) -> tuple[torch.nn.Module, list[Any]]:
    """The module and its inputs, each function given the keywords it has."""

    def call(function: Callable[..., Any]) -> list[Any]:
        matching: list[Any] = function(**{k: v for k, v in sizes.items() if k in keywords(function)})
        return matching

    return module.Model(*call(module.get_init_inputs)), call(module.get_inputs)


def outputs(model: torch.nn.Module, inputs: list[Any]) -> tuple[torch.Tensor, ...]:
    result = model(*inputs)
    return result if isinstance(result, tuple) else (result,)


def facts(signature: Signature) -> str:
    """Inputs | parameters > outputs, as in PAPER."""

    def listed(specs: Iterable[TensorSpec]) -> str:
        return " ".join(
            ("" if s.dtype is DType.F32 else f"{s.dtype}:") + ("x".join(map(str, s.shape)) or "scalar")
            for s in specs
        )

    inputs = listed(s for s in signature.tensors if s.role is Role.INPUT)
    weights = listed(s for s in signature.tensors if s.role is Role.PARAMETER)
    return f"{inputs}{' | ' if weights else ''}{weights} > {listed(signature.outputs)}"


def size_bytes(signature: Signature) -> int:
    return sum(spec.size_bytes for spec in (*signature.tensors, *signature.outputs))


def drawn(key: str, sizes: Mapping[str, int] = TINY) -> tuple[torch.nn.Module, list[Any]]:
    torch.manual_seed(1)
    return build(module_of(suite.find(key)), sizes)


def test_the_suite_is_the_hundred_and_ours() -> None:
    members = suite.members()
    assert [m.number for m in members] == list(range(1, 112))
    assert len({m.name for m in members}) == len(members)
    numbered = sorted(n for numbers in suite._FAMILIES.values() for n in numbers)
    assert numbered == [m.number for m in members], (
        "every number has one family, every family's number a file"
    )


@every_member
def test_sizes_name_the_functions_keywords(member: suite.Member) -> None:
    module = module_of(member)
    inputs, init = keywords(module.get_inputs), keywords(module.get_init_inputs)
    assert module.__doc__ and "\n" not in module.__doc__
    assert all(inputs[k] == init[k] for k in inputs.keys() & init.keys()), "a shared keyword has one default"
    assert module.SIZES["paper"].keys() <= inputs.keys() | init.keys()
    assert set(inputs) <= EXTENTS


@every_member
def test_loads_at_both_sizes(member: suite.Member) -> None:
    cpu, paper = (load(f"suite:{member.number}", size).target for size in ("cpu", "paper"))
    if member.number in PAPER:
        assert facts(paper) == PAPER[member.number]
    assert 4 * size_bytes(cpu) < size_bytes(paper)
    assert size_bytes(cpu) < 100e6


@every_member
def test_tiny_forward(member: suite.Member) -> None:
    torch.manual_seed(0)
    model, inputs = build(module_of(member), TINY)
    results = outputs(model, inputs)
    for result in results:
        assert bool(torch.isfinite(result).all())
        assert result.numel() == 1 or bool((result != result.flatten()[0]).any())


def rows_of(x: torch.Tensor) -> torch.Tensor:
    return (x * x).sum(dim=1, keepdim=True).sqrt()


def distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return ((a - b + 1e-6) ** 2).sum(dim=1).sqrt()


def huber(d: torch.Tensor) -> torch.Tensor:
    return torch.where(d.abs() < 1, d * d / 2, d.abs() - 0.5).mean()


def running(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x[:, : j + 1].sum(dim=1) for j in range(x.shape[1])], dim=1)


# What each operator means, written a second way in fp64.
MEANING: dict[str, Callable[..., torch.Tensor]] = {
    "diagonal_matmul": lambda a, b: a[:, None] * b,
    "matmul_transposed_both": lambda a, b: torch.einsum("km,nk->mn", a, b),
    "matmul_4d": lambda a, b: a @ b,
    "matrix_scalar": lambda a, s: a * s,
    "leaky_relu": lambda x: torch.where(x > 0, x, 0.01 * x),
    "swish": lambda x: x / (1 + torch.exp(-x)),
    "gelu": lambda x: x * (1 + torch.erf(x / 2**0.5)) / 2,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "hard_sigmoid": lambda x: ((x + 3) / 6).clamp(0, 1),
    "softplus": lambda x: torch.log1p(torch.exp(x)),
    "elu": lambda x: torch.where(x > 0, x, torch.exp(x) - 1),
    "rms_norm": lambda x: x / (x.pow(2).mean(dim=1, keepdim=True) + 1e-5) ** 0.5,
    "frobenius_norm": lambda x: x / x.pow(2).sum() ** 0.5,
    "l1_norm": lambda x: x * x.shape[1] / x.abs().sum(dim=1, keepdim=True),
    "l2_norm": lambda x: x / rows_of(x),
    "cumsum": running,
    "cumprod": lambda x: torch.exp(running(torch.log(x))),
    "cumsum_reverse": lambda x: x.sum(dim=1, keepdim=True) - running(x) + x,
    "cumsum_exclusive": lambda x: running(x) - x,
    "masked_cumsum": lambda x, mask: running(torch.where(mask, x, 0)),
    "mse_loss": lambda p, t: (p - t).pow(2).mean(),
    "cross_entropy_loss": lambda p, t: (p.logsumexp(dim=1) - p.gather(1, t[:, None])[:, 0]).mean(),
    "huber_loss": lambda p, t: huber(p - t),
    "attention": lambda q, k, v: torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1) @ v,
    "kl_div_loss": lambda p, t: (t * (t / p).log()).sum() / len(p),
    "triplet_margin_loss": lambda a, p, n: (distance(a, p) - distance(a, n) + 1).clamp(min=0).mean(),
    "hinge_loss": lambda p, t: torch.relu(1 - p * t[None, :]).mean(),
    "cosine_similarity_loss": lambda p, t: (
        1 - (p * t).sum(dim=1, keepdim=True) / rows_of(p) / rows_of(t)
    ).mean(),
    "log_softmax_nll": lambda p, t: (p.logsumexp(dim=1) - p.gather(1, t[:, None])[:, 0]).mean(),
    "rms_norm_rows": lambda x: x / (x.pow(2).mean(dim=1, keepdim=True) + 1e-6) ** 0.5,
    "softmax_temperature": lambda x: torch.exp(x / 0.7) / torch.exp(x / 0.7).sum(dim=1, keepdim=True),
}


@pytest.mark.parametrize("name", MEANING)
def test_meaning(name: str) -> None:
    model, inputs = drawn(name)
    exact = [x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
    torch.testing.assert_close(model(*inputs).double(), MEANING[name](*exact), rtol=1e-4, atol=1e-5)


def test_structured_inputs_have_their_structure() -> None:
    for x in drawn("symmetric_matmul")[1]:
        assert torch.equal(x, x.T)
    for x in drawn("upper_triangular_matmul")[1]:
        assert torch.equal(x, x.triu())
    for x in drawn("lower_triangular_matmul")[1]:
        assert torch.equal(x, x.tril())
    for x in drawn("kl_div_loss")[1]:
        torch.testing.assert_close(x.sum(dim=1), torch.ones(len(x)))
    assert set(drawn("hinge_loss")[1][1].tolist()) == {-1.0, 1.0}
    mask = drawn("masked_cumsum")[1][1]
    assert mask.any() and not mask.all()


@pytest.mark.parametrize("name", ["mse_loss", "huber_loss", "triplet_margin_loss"])
def test_predictions_have_a_random_scale_below_one(name: str) -> None:
    module = module_of(suite.find(name))
    torch.manual_seed(0)
    scales = [float(build(module, {"rows": 40, "columns": 50})[1][0].std()) for _ in range(20)]
    assert min(scales) < 0.25 and 0.6 < max(scales) < 1.1


def test_batch_norm_trains() -> None:
    model, (x,) = drawn("batch_norm")
    assert model.training
    torch.testing.assert_close(
        model(3 * x + 5).mean(dim=(0, 2, 3)), torch.zeros(x.shape[1]), atol=1e-5, rtol=0
    )


def test_find_by_number_and_name() -> None:
    assert suite.find("23") == suite.find("softmax")
    assert suite.find("softmax").family == "softmax"
    assert suite.find("1").path.is_file()


@pytest.mark.parametrize(
    ("key", "hint"),
    [("sofmax", "suite:softmax"), ("LayerNorm", "suite:layer_norm"), ("500", "1 to 111"), ("!", "1 to 111")],
)
def test_an_unknown_member_is_answered_with_the_nearest(key: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        suite.find(key)
    assert hint in caught.value.hint
