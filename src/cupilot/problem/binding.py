"""Between the nested arguments of a user's `forward` and the flat names a kernel file uses.

A `Binding` remembers the shape of the nest; it holds no tensors.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from cupilot.errors import ProblemError
from cupilot.types import Scalar


@dataclass(frozen=True)
class _Slot:
    """Stands in a template where a tensor goes."""

    name: str


@dataclass(frozen=True)
class Binding:
    """The arguments of `forward` with every tensor replaced by its name."""

    template: tuple[Any, ...]
    names: tuple[str, ...]
    scalars: Mapping[str, Scalar]

    def rebuild(self, tensors: Mapping[str, torch.Tensor]) -> tuple[Any, ...]:
        """The nested arguments again, with these tensors in their places."""
        return tuple(_fill(value, tensors) for value in self.template)


def bind(forward: Callable[..., Any], arguments: Sequence[Any]) -> tuple[Binding, dict[str, torch.Tensor]]:
    """Name every tensor and number among the positional arguments of `forward`."""
    tensors: dict[str, torch.Tensor] = {}
    scalars: dict[str, Scalar] = {}
    template = []
    for name, value in zip(_parameter_names(forward, arguments), arguments, strict=True):
        for leaf_name, leaf in _leaves(name, value):
            if isinstance(leaf, torch.Tensor):
                _claim(leaf_name, tensors, scalars)
                tensors[leaf_name] = leaf
            elif isinstance(leaf, bool | int | float):
                _claim(leaf_name, tensors, scalars)
                scalars[leaf_name] = leaf
            elif leaf is not None and not isinstance(leaf, str):
                raise ProblemError(
                    f"argument {leaf_name} of forward is a {type(leaf).__name__}",
                    hint="arguments are tensors, numbers, strings, None, and lists, tuples and dicts of them",
                )
        template.append(_replace(name, value))
    return Binding(tuple(template), tuple(tensors), scalars), tensors


def flatten_outputs(value: Any) -> dict[str, torch.Tensor]:
    """The returned tensors by name: `out`, or `out0`, `out1`, ... in the order of the nest."""
    leaves = [leaf for _, leaf in _leaves("out", value) if leaf is not None]
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            raise ProblemError(
                f"forward returns a {type(leaf).__name__}, a kernel can only return tensors",
                hint="return a tensor (for a number: keep it a 0-d tensor, without .item())",
            )
    if not leaves:
        raise ProblemError("forward returns no tensor", hint="return what the kernel has to compute")
    if len(leaves) == 1:
        return {"out": leaves[0]}
    return {f"out{index}": leaf for index, leaf in enumerate(leaves)}


def _parameter_names(forward: Callable[..., Any], arguments: Sequence[Any]) -> list[str]:
    try:
        signature = inspect.signature(forward)
    except ValueError:  # a function of torch itself, such as torch.matmul, does not say
        return ["x"] if len(arguments) == 1 else [f"x{index}" for index in range(len(arguments))]
    try:
        bound = signature.bind(*arguments)
    except TypeError as error:
        raise ProblemError(
            f"get_inputs returns {len(arguments)} arguments, but forward takes {signature}: {error}",
            hint="get_inputs must return a list with one entry for each positional argument of forward",
        ) from None
    names: list[str] = []
    for name in bound.arguments:
        if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}{index}" for index in range(len(bound.arguments[name]))]
        else:
            names.append(name)
    return names


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Names of nested values: `xs0`, `xs1` for a list, `xs_key` for a dict, `xs0_1` for a list in a list."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{name}_{key}", item)
    elif isinstance(value, list | tuple):
        separator = "_" if name[-1:].isdigit() else ""
        for index, item in enumerate(value):
            yield from _leaves(f"{name}{separator}{index}", item)
    else:
        yield name, value


def _replace(name: str, value: Any) -> Any:
    """The same nest with slots for tensors, which `_fill` builds again."""
    if isinstance(value, Mapping):
        return {key: _replace(f"{name}_{key}", item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        separator = "_" if name[-1:].isdigit() else ""
        items = [_replace(f"{name}{separator}{index}", item) for index, item in enumerate(value)]
        return _like(value, items)
    return _Slot(name) if isinstance(value, torch.Tensor) else value


def _fill(value: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    if isinstance(value, _Slot):
        return tensors[value.name]
    if isinstance(value, dict):
        return {key: _fill(item, tensors) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return _like(value, [_fill(item, tensors) for item in value])
    return value


def _like(value: Any, items: list[Any]) -> Any:
    """A list, tuple or named tuple of the same kind as `value`."""
    if isinstance(value, list):
        return items
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def _claim(name: str, *taken: Mapping[str, Any]) -> None:
    if any(name in names for names in taken):
        raise ProblemError(
            f"two arguments of forward would both be called {name} in a kernel file",
            hint="rename one of the arguments (lists are numbered: xs0, xs1, ...)",
        )
