"""One spelling for every operator: names without overloads, all attributes, dimensions from the front.

The tables are the whole knowledge; an operator they do not mention keeps torch's name and attributes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from cupilot.problem.dtypes import TORCH_DTYPES
from cupilot.problem.graph import Attribute, Value

# Values pass through these unchanged, except where `_to_copy` changes the element type.
IDENTITIES = frozenset(
    {"alias", "clone", "contiguous", "detach", "lift", "lift_fresh", "lift_fresh_copy", "_to_copy"}
    | {"expand", "view", "slice", "permute", "_conj", "resolve_conj"}
)

_NAMES = {
    "_softmax": "softmax", "_safe_softmax": "softmax", "_log_softmax": "log_softmax",
    "native_layer_norm": "layer_norm", "native_group_norm": "group_norm",
    "native_batch_norm": "batch_norm", "_native_batch_norm_legit": "batch_norm",
    "_native_batch_norm_legit_functional": "batch_norm", "_native_batch_norm_legit_no_training": "batch_norm",
    "max_pool2d_with_indices": "max_pool2d", "max_pool3d_with_indices": "max_pool3d",
    "_adaptive_avg_pool2d": "adaptive_avg_pool2d", "_adaptive_avg_pool3d": "adaptive_avg_pool3d",
    "nll_loss_forward": "nll_loss", "nll_loss2d_forward": "nll_loss2d",
    "unsafe_split": "split", "unsafe_split_with_sizes": "split_with_sizes", "unsafe_chunk": "chunk",
    "_unsafe_view": "view", "reshape": "view", "_unsafe_index": "index",
    "linalg_vector_norm": "norm", "t": "permute", "transpose": "permute", "_to_copy": "cast",
    "clip": "clamp", "native_dropout": "dropout",
}  # fmt: skip
_OVERLOADS = {
    "max.default": "amax", "min.default": "amin", "max.other": "maximum", "min.other": "minimum",
    "max.dim": "max", "min.dim": "min",
}  # fmt: skip
# Memory matters to no result; the sizes of a group norm stand in its input.
_DROPPED = frozenset(
    {"memory_format", "layout", "device", "pin_memory", "non_blocking", "implicit", "generator", "copy"}
    | {"half_to_float", "N", "C", "HxW"}
)
# Reductions over several dimensions: attribute `dims`, sorted; where torch says "none", all of them.
REDUCTIONS = frozenset(
    {
        "sum",
        "mean",
        "amax",
        "amin",
        "prod",
        "any",
        "all",
        "argmax",
        "argmin",
        "max",
        "min",
        "var",
        "std",
        "norm",
    }
    | {
        "var_mean",
        "std_mean",
        "logsumexp",
        "nansum",
        "aminmax",
        "count_nonzero",
        "median",
        "nanmedian",
        "mode",
    }
)
_ADDS_A_DIMENSION = frozenset({"unsqueeze", "stack", "diag_embed"})
_POOLS = {
    "max_pool1d": 1,
    "max_pool2d": 2,
    "max_pool3d": 3,
    "avg_pool1d": 1,
    "avg_pool2d": 2,
    "avg_pool3d": 3,
}
_WINDOW = ("kernel_size", "stride", "padding", "dilation", "output_padding")


def operator_name(operator: torch._ops.OpOverload) -> str:
    name = operator._schema.name.removeprefix("aten::")
    stripped = name.rstrip("_") if not name.startswith("__") else name
    overload = f"{stripped}.{operator._overloadname}"
    return _OVERLOADS.get(overload, _NAMES.get(stripped, stripped))


def attributes_of(
    operator: torch._ops.OpOverload, op: str, given: Mapping[str, Any], first: Value | None
) -> dict[str, Attribute]:
    """The attributes of a call of canonical name `op`; `given`: its other arguments, defaults included."""
    rank = len(first.shape) if first is not None else 0
    attributes = {
        key: _plain(value) for key, value in given.items() if key not in _DROPPED and value is not None
    }
    if op == "permute":
        return {"dims": _permutation(operator._schema.name, attributes, rank)}
    if op in REDUCTIONS:
        _reduction(attributes, rank)
    elif op in _POOLS or op == "convolution":
        spatial = _POOLS.get(op, rank - 2)
        for key in _WINDOW:
            if key in attributes:
                attributes[key] = _window(attributes[key], spatial, attributes)
    else:
        _dimensions(attributes, rank + (op in _ADDS_A_DIMENSION))
    if op == "norm":
        attributes["ord"] = float(attributes.pop("p", attributes.get("ord", 2)))  # type: ignore[arg-type]
    if op in ("view", "expand"):
        return {}  # the shape of the output says it all
    if op == "layer_norm":
        normalized = attributes.pop("normalized_shape")
        assert isinstance(normalized, tuple)
        attributes["dims"] = tuple(range(rank - len(normalized), rank))
    if op == "select":
        attributes["index"] = _position(attributes, "index", 0, first)
    if op == "slice":
        _slice(attributes, first)
    return attributes


def _plain(value: Any) -> Attribute:
    if isinstance(value, torch.dtype):
        return next((ours.value for ours, theirs in TORCH_DTYPES.items() if theirs == value), str(value))
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    return value if isinstance(value, bool | int | float | str) else str(value)


def _permutation(schema: str, attributes: Mapping[str, Attribute], rank: int) -> tuple[int, ...]:
    dims = list(range(rank))
    if schema == "aten::permute":
        given = attributes["dims"]
        assert isinstance(given, tuple)
        return tuple(int(dim) % rank for dim in given)  # type: ignore[arg-type]
    one, two = int(attributes.get("dim0", 0)), int(attributes.get("dim1", 1))  # type: ignore[arg-type]
    if rank > 1:
        dims[one], dims[two] = dims[two], dims[one]
    return tuple(dims)


def _reduction(attributes: dict[str, Attribute], rank: int) -> None:
    given = attributes.pop("dim", ())
    dims = given if isinstance(given, tuple) else (given,)
    attributes["dims"] = tuple(sorted(int(dim) % max(rank, 1) for dim in dims)) or tuple(range(rank))  # type: ignore[arg-type]
    attributes.setdefault("keepdim", False)
    if "unbiased" in attributes:
        attributes["correction"] = int(attributes.pop("unbiased"))  # type: ignore[arg-type]


def _dimensions(attributes: dict[str, Attribute], rank: int) -> None:
    for key in ("dim", "dims", "dim1", "dim2", "dim0"):
        value = attributes.get(key)
        if rank and isinstance(value, int):
            attributes[key] = value % rank
        elif rank and isinstance(value, tuple):
            attributes[key] = tuple(int(dim) % rank for dim in value)  # type: ignore[arg-type]


def _window(value: Attribute, spatial: int, attributes: Mapping[str, Attribute]) -> Attribute:
    """One entry per spatial dimension; an empty stride means the kernel's size."""
    items: Sequence[Attribute] = value if isinstance(value, tuple) else (value,)
    if not items:
        return attributes["kernel_size"]
    return tuple(items) if len(items) == spatial else tuple(items[0] for _ in range(spatial))


def _slice(attributes: dict[str, Attribute], first: Value | None) -> None:
    """Start and end as positions in the tensor."""
    attributes["start"] = _position(attributes, "start", 0, first)
    attributes["end"] = _position(attributes, "end", sys.maxsize, first)


def _position(attributes: Mapping[str, Attribute], key: str, missing: int, first: Value | None) -> int:
    """An index along `dim`, counted from the front and within the tensor."""
    assert first is not None
    extent = first.shape[int(attributes.get("dim", 0))]  # type: ignore[arg-type]
    position = int(attributes.get(key, missing))  # type: ignore[arg-type]
    return min(max(position + extent if position < 0 else position, 0), extent)
