"""Makes a `Problem` of a file in the KernelBench convention, of a suite member, or of a Python function."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from cupilot.errors import ProblemError
from cupilot.problem.capture import capture
from cupilot.problem.cases import ShapeCase
from cupilot.problem.graph import Graph
from cupilot.problem.locating import locate
from cupilot.problem.precision import Precision, default_precision, parse_precision
from cupilot.problem.problem import Problem, target_cases
from cupilot.problem.program import Arguments, build_program
from cupilot.problem.usercode import execute

_DEFAULT_SIZE = "cpu"


def load(source: str | Path, size: str | None = None) -> Problem:
    """Load a problem file, or a suite member ("suite:softmax", "suite:23"), at one of its `SIZES`."""
    path, name = locate(source)
    return _load_file(path, name, size)


def from_function(
    function: Callable[..., Any], inputs: Any, *, name: str | None = None, precision: str | None = None
) -> Problem:
    """A problem from a function (or a module) and a list of its arguments, or a callable that makes the list.

    A callable is drawn from with different seeds and so teaches the domains of the inputs; a list stands for
    itself. A module keeps the weights it has. Arguments of a function that does not tell their names, such as
    `torch.matmul`, are `x0`, `x1`, ..., or `x` where there is one.
    """
    module = copy.deepcopy(function) if isinstance(function, nn.Module) else _Function(function)
    make_inputs = inputs if callable(inputs) else partial(_copied, inputs)
    label = name or str(getattr(function, "__name__", type(function).__name__))
    declared = parse_precision(precision) if precision is not None else None
    try:
        text = inspect.getsource(function if inspect.isroutine(function) else type(function))
    except (OSError, TypeError):
        text = ""
    return _problem(label, text, lambda: module, make_inputs, ((),), None, declared)


class _Function(nn.Module):
    """A function as the forward of a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function


def _copied(value: Any) -> Any:
    """A nest of arguments with its tensors cloned, so that nobody can write to the caller's."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(item) for item in value] if isinstance(value, list) else tuple(map(_copied, value))
    return value


def _load_file(path: Path, name: str, size: str | None) -> Problem:
    module, text = execute(path)
    names = vars(module)
    keywords = _size_keywords(path, names, size)
    model = _required(path, names, "Model")
    get_init_inputs = names.get("get_init_inputs", list)

    def make_model() -> nn.Module:
        given = get_init_inputs(**_matching(get_init_inputs, keywords))
        made = model(**given) if isinstance(given, Mapping) else model(*given)
        assert isinstance(made, nn.Module)
        return made

    precision = parse_precision(names["PRECISION"]) if "PRECISION" in names else None
    if "SHAPES" in names:
        make_inputs = _required(path, names, "make_inputs")
        arguments = tuple(given if isinstance(given, tuple) else (given,) for given in names["SHAPES"])
    else:
        get_inputs = _required(path, names, "get_inputs")
        make_inputs = partial(get_inputs, **_matching(get_inputs, keywords))
        arguments = ((),)
    fixed = bool(names.get("FIXED_SHAPE", False))
    return _problem(name, text, make_model, make_inputs, arguments, path, precision, fixed, size)


def _problem(
    name: str,
    text: str,
    make_model: Callable[[], nn.Module],
    make_inputs: Callable[..., Any],
    arguments: tuple[Arguments, ...],
    path: Path | None,
    declared: Precision | None,
    fixed_shape: bool = False,
    size: str | None = None,
) -> Problem:
    program = build_program(make_model, make_inputs, arguments[0], path, declared)
    targets = target_cases(program, arguments)
    precision = declared or default_precision(targets[0].signature.tensors)
    _refuse_emptiness(targets)
    graph = capture(program, targets[0].signature)
    _refuse_rounding(graph, precision)
    return Problem(name, text, program, targets, precision, graph, fixed_shape, path, size)


def _refuse_emptiness(targets: tuple[ShapeCase, ...]) -> None:
    empty = next((spec for case in targets for spec in case.signature.outputs if not spec.numel), None)
    if empty is not None:
        raise ProblemError(
            f"{empty} has no elements: there is nothing to compute", hint="give inputs extents above zero"
        )


def _refuse_rounding(graph: Graph, precision: Precision) -> None:
    """A module that rounds on the way has no reference in double precision to compare with."""
    for node in graph.nodes:
        dtype = node.outputs[0].dtype
        if node.op == "cast" and dtype.is_floating and dtype.size_bytes < precision.storage.size_bytes:
            raise ProblemError(
                f"forward rounds to {dtype} on the way, coarser than its {precision.storage} tensors",
                hint=f'drop the cast, or declare PRECISION = "{dtype}/f32" to store all tensors so',
            )


def _required(path: Path, names: Mapping[str, Any], wanted: str) -> Callable[..., Any]:
    if not callable(names.get(wanted)):
        raise ProblemError(
            f"{path} defines no {wanted}",
            hint="a problem file defines Model (a torch.nn.Module), get_inputs() and get_init_inputs()",
        )
    found: Callable[..., Any] = names[wanted]
    return found


def _size_keywords(path: Path, names: Mapping[str, Any], size: str | None) -> Mapping[str, Any]:
    sizes: Mapping[str, Mapping[str, Any]] = names.get("SIZES", {})
    wanted = size or _DEFAULT_SIZE
    if wanted in sizes or wanted == _DEFAULT_SIZE:
        return sizes.get(wanted, {})
    known = ", ".join([_DEFAULT_SIZE, *sizes])
    raise ProblemError(
        f"{path} has no size {size!r}", hint=f"its sizes are {known}; more can be added to SIZES"
    )


def _matching(function: Callable[..., Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    accepted = inspect.signature(function).parameters
    return {name: value for name, value in keywords.items() if name in accepted}
