"""A user's module as a function of named tensors, at any shapes and any floating precision.

Knows how to build the module and its inputs, how to call it with given inputs and weights, and how to do
both without memory: under torch's fake tensors, which have shapes and types but no data. Does not know
what the module computes.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from cupilot.errors import ProblemError
from cupilot.kernel.expressions import RESERVED
from cupilot.problem.binding import Binding, bind, flatten_outputs
from cupilot.problem.dtypes import dtype_of, torch_dtype
from cupilot.problem.modest import modest_memory
from cupilot.problem.precision import Precision
from cupilot.problem.state import adopt_plain_tensors, module_scalars, state_tensors
from cupilot.problem.usercode import guarded, seeded
from cupilot.types import Role, Scalar, Signature, TensorSpec

Shapes = Mapping[str, tuple[int, ...]]
Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Program:
    """The user's code and what one look at it without data has told."""

    make_model: Callable[[], nn.Module]
    make_inputs: Callable[..., Any]  # takes the `arguments` of a case
    path: Path | None
    precision: Precision | None  # as declared
    skeleton: nn.Module  # the module without data; every tensor in it is replaced in each call
    binding: Binding
    inputs: tuple[TensorSpec, ...]
    state: tuple[TensorSpec, ...]
    state_paths: Mapping[str, str]  # the module's dotted name by the kernel file's name
    scalars: Mapping[str, Scalar]
    uses_values: bool  # shapes cannot be learned without data: the code looks at values

    def call(self, tensors: Mapping[str, torch.Tensor], *, grad: bool = False) -> dict[str, torch.Tensor]:
        """The module applied to these inputs and weights as they are (it may change buffers among them)."""
        state = {path: tensors[name] for name, path in self.state_paths.items()}
        arguments = self.binding.rebuild(tensors)
        with torch.set_grad_enabled(grad), guarded(self.path, "forward"), sdpa_kernel(SDPBackend.MATH):
            return flatten_outputs(torch.func.functional_call(self.skeleton, state, arguments))

    def reference(self, tensors: Mapping[str, torch.Tensor], dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
        """The outputs when every floating tensor, also those made on the way, has type `dtype`."""
        clones = {
            name: tensor.detach().to(dtype if tensor.is_floating_point() else tensor.dtype, copy=True)
            for name, tensor in tensors.items()
        }
        with computing_in(dtype):
            outputs = self.call(clones)
        return tuple(tensor.detach().contiguous() for tensor in outputs.values())

    def stored(self, tensor: torch.Tensor) -> torch.Tensor:
        """As a kernel finds it: dense, without gradient, floating types as declared."""
        tensor = tensor.detach()
        if self.precision is not None and tensor.is_floating_point():
            tensor = tensor.to(torch_dtype(self.precision.storage))
        return tensor.contiguous()

    def draw_inputs(self, arguments: Arguments, seed: int) -> dict[str, torch.Tensor]:
        with guarded(self.path, "get_inputs"), seeded(seed):
            values = _as_arguments(self.make_inputs(*arguments))
        _, tensors = bind(self.skeleton.forward, values)
        return {name: self.stored(tensor) for name, tensor in tensors.items()}

    def draw_state(self, seed: int) -> dict[str, torch.Tensor]:
        with seeded(seed):
            module = build_model(self.make_model, self.path)
        return {name: self.stored(tensor.clone()) for name, (_, _, tensor) in state_tensors(module).items()}

    def input_shapes(self, arguments: Arguments) -> dict[str, tuple[int, ...]]:
        """Of what the generator makes for these arguments; it may differ from the first in extents only."""
        with self._without_data(), guarded(self.path, "make_inputs"), seeded(0):
            values = _as_arguments(self.make_inputs(*arguments))
        binding, tensors = bind(self.skeleton.forward, values)
        made = {name: _spec(name, tensor, Role.INPUT, self.precision) for name, tensor in tensors.items()}
        expected = {spec.name: (spec.dtype, len(spec.shape)) for spec in self.inputs}
        if {name: (spec.dtype, len(spec.shape)) for name, spec in made.items()} != expected:
            raise ProblemError(
                f"SHAPES: make_inputs{arguments} makes other tensors than for the first entry",
                hint="entries may differ in extents, not in names, element types or ranks",
            )
        if binding.scalars != self.binding.scalars:
            raise ProblemError(
                f"SHAPES: make_inputs{arguments} makes other numbers than for the first entry",
                hint="a number that forward takes must be the same in every entry",
            )
        return {name: spec.shape for name, spec in made.items()}

    def signature(self, shapes: Shapes | None = None) -> Signature:
        """What a kernel sees when the inputs have these shapes; raises when the module rejects them."""
        inputs = self.inputs if shapes is None else tuple(_reshaped(spec, shapes) for spec in self.inputs)
        specs = (*inputs, *self.state)
        with self.blank(specs) as tensors:
            outputs = self.call(tensors)
        found = []
        for name, tensor in outputs.items():
            found.append(TensorSpec(name, tuple(tensor.shape), self._output_dtype(tensor, name), Role.OUTPUT))
        _refuse_collisions(specs, self.scalars, found)
        return Signature(specs, self.scalars, tuple(found))

    @contextlib.contextmanager
    def blank(self, specs: Sequence[TensorSpec]) -> Iterator[dict[str, torch.Tensor]]:
        """Tensors without data to look at the module with; small real ones when the code looks at values."""
        make = torch.ones if self.uses_values else torch.empty
        with self._without_data():
            yield {spec.name: make(spec.shape, dtype=torch_dtype(spec.dtype)) for spec in specs}

    @contextlib.contextmanager
    def _without_data(self) -> Iterator[None]:
        with quiet(), modest_memory() if self.uses_values else self._fake_mode:
            yield

    @cached_property
    def _fake_mode(self) -> FakeTensorMode:
        return FakeTensorMode(allow_non_fake_inputs=True)

    def _output_dtype(self, tensor: torch.Tensor, name: str) -> Any:
        dtype = dtype_of(tensor, f"output {name}")
        # A module may upcast on the way; the declared storage holds for what it returns.
        if self.precision is not None and dtype.is_floating:
            return self.precision.storage
        return dtype


def build_program(
    make_model: Callable[[], nn.Module],
    make_inputs: Callable[..., Any],
    arguments: Arguments,
    path: Path | None,
    precision: Precision | None,
) -> Program:
    """Look at the module and its inputs once, without data when the user's code allows it."""
    parts = (make_model, make_inputs, arguments, path, precision)
    try:
        with quiet(), FakeTensorMode(allow_non_fake_inputs=True):
            program = _build(*parts, uses_values=False)
        program.signature()
    except ProblemError as without_data:
        # The code may look at values or hand tensors to numpy; real tensors, if they are small, tell.
        try:
            with modest_memory():
                program = _build(*parts, uses_values=True)
                program.signature()
                _refuse_moving_shapes(program, arguments)
        except MemoryError as error:
            raise ProblemError(
                f"{without_data.message} (seen without data; with data {error})",
                hint="use torch operations alone in get_inputs, Model and forward, no numpy and no .item(): "
                "then a large problem can be looked at without its memory",
            ) from None
    return program


def _refuse_moving_shapes(program: Program, arguments: Arguments) -> None:
    """When values decide, a few draws must at least agree on the shapes of the outputs."""
    shapes = set()
    for seed in range(4):
        outputs = program.call(program.draw_inputs(arguments, seed) | program.draw_state(seed))
        shapes.add(tuple((name, tuple(tensor.shape)) for name, tensor in outputs.items()))
    if len(shapes) > 1:
        raise ProblemError(
            "the shape of an output depends on the values of the inputs",
            hint="return a tensor of fixed shape, for example a mask in place of the selected elements",
        )


def _build(
    make_model: Callable[[], nn.Module],
    make_inputs: Callable[..., Any],
    arguments: Arguments,
    path: Path | None,
    precision: Precision | None,
    *,
    uses_values: bool,
) -> Program:
    with seeded(0):
        module = build_model(make_model, path)
    with guarded(path, "get_inputs"), seeded(0):
        values = _as_arguments(make_inputs(*arguments))
    binding, tensors = bind(module.forward, values)
    state = state_tensors(module)
    return Program(
        make_model,
        make_inputs,
        path,
        precision,
        module,
        binding,
        tuple(_spec(name, tensor, Role.INPUT, precision) for name, tensor in tensors.items()),
        tuple(_spec(name, tensor, role, precision) for name, (_, role, tensor) in state.items()),
        {name: dotted for name, (dotted, _, _) in state.items()},
        {**binding.scalars, **module_scalars(module)},
        uses_values,
    )


def build_model(make_model: Callable[[], nn.Module], path: Path | None) -> nn.Module:
    with guarded(path, "building Model"):
        module = make_model()
    if not isinstance(module, nn.Module):
        raise ProblemError(
            f"{path}: Model is not a torch.nn.Module", hint="derive Model from torch.nn.Module"
        )
    adopt_plain_tensors(module)
    return module


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Torch logs every shape that an operator rejects; asking is how shapes are learned."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


@contextlib.contextmanager
def computing_in(dtype: torch.dtype) -> Iterator[None]:
    """New floating tensors get `dtype`, and casts to another floating type go to `dtype` instead.

    `x.float()` inside a module means "wide enough"; in an fp64 reference it would be a rounding.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with _Casts(dtype):
            yield
    finally:
        torch.set_default_dtype(before)


class _Casts(TorchFunctionMode):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func in _FLOAT_CASTS:
            return args[0].to(self._dtype)
        args = tuple(self._cast(value) for value in args)
        return func(*args, **{key: self._cast(value) for key, value in (kwargs or {}).items()})

    def _cast(self, value: Any) -> Any:
        return self._dtype if isinstance(value, torch.dtype) and value.is_floating_point else value


_FLOAT_CASTS = frozenset({torch.Tensor.float, torch.Tensor.double, torch.Tensor.half, torch.Tensor.bfloat16})


def _as_arguments(values: Any) -> list[Any]:
    if isinstance(values, torch.Tensor):
        return [values]
    if not isinstance(values, list | tuple):
        raise ProblemError(
            f"get_inputs returns a {type(values).__name__}",
            hint="return a list with the arguments of forward",
        )
    return list(values)


def _spec(name: str, tensor: torch.Tensor, role: Role, precision: Precision | None) -> TensorSpec:
    dtype = dtype_of(tensor, f"{role} {name}")
    if precision is not None and dtype.is_floating:
        dtype = precision.storage
    return TensorSpec(name, tuple(tensor.shape), dtype, role)


def _reshaped(spec: TensorSpec, shapes: Shapes) -> TensorSpec:
    return TensorSpec(spec.name, tuple(shapes.get(spec.name, spec.shape)), spec.dtype, spec.role)


def _refuse_collisions(
    specs: Sequence[TensorSpec], scalars: Mapping[str, Scalar], outputs: list[TensorSpec]
) -> None:
    """Every name a kernel file may use must mean one thing."""
    seen: dict[str, str] = dict.fromkeys(scalars, "number")
    for spec in (*specs, *outputs):
        if spec.name in seen:
            raise ProblemError(
                f"{seen[spec.name]} and {spec.role} are both called {spec.name} in a kernel file",
                hint="rename the argument of forward, or the attribute of Model",
            )
        if spec.name in RESERVED or not spec.name.isidentifier():
            raise ProblemError(
                f"{spec.role} {spec.name} cannot be named in a kernel file: "
                + ("the word belongs to its language" if spec.name in RESERVED else "not an identifier"),
                hint="rename the argument of forward, or the attribute of Model",
            )
        seen[spec.name] = str(spec.role)
