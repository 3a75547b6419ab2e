"""The running error bound: a reference in double precision that carries with every value how wrong it may be.

A dispatch mode sees every operator of the reference, computes its value, and attaches a bound in units of the
unit round-off (rounding error analysis, done while running). Does not know problems or candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cupilot.errors import ProblemError
from cupilot.evaluate import bound_rules as rules
from cupilot.evaluate import bound_select as select
from cupilot.evaluate import bound_sums as sums
from cupilot.evaluate.bound_decompose import DECOMPOSITIONS
from cupilot.evaluate.bound_shadow import Selection, Shadows, carries_error, finite_magnitude, is_discrete
from cupilot.evaluate.rounding import ROOT_CAP, Rounding


@dataclass(frozen=True)
class Bounded:
    """One output: its value, the bound (or doubt, if discrete) of it, and where an index came from."""

    value: torch.Tensor
    error: torch.Tensor | None
    selection: Selection | None


def run_with_bound(
    function: Callable[..., tuple[torch.Tensor, ...]],
    tensors: Mapping[str, torch.Tensor],
    rounding: Rounding,
    *,
    coherent: bool = False,
) -> tuple[tuple[Bounded, ...], tuple[str, ...]]:
    """Runs `function(tensors)` in double precision; also returns the operators that had to be sampled."""
    wide = {name: t.double() if t.is_floating_point() else t.clone() for name, t in tensors.items()}
    shadows = Shadows(rounding, root_cap=float("inf") if coherent else ROOT_CAP)
    for tensor in wide.values():
        if carries_error(tensor):
            shadows.put(tensor, finite_magnitude(tensor))
    fast_path = torch.backends.mha.get_fastpath_enabled()
    default = torch.get_default_dtype()
    torch.backends.mha.set_fastpath_enabled(False)
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), RunningBound(shadows):
            outputs = function(wide)
    finally:
        torch.set_default_dtype(default)
        torch.backends.mha.set_fastpath_enabled(fast_path)
    bounded = tuple(Bounded(out, _bound_of(shadows, out), shadows.selection(out)) for out in outputs)
    return bounded, tuple(sorted(shadows.sketched))


def _bound_of(shadows: Shadows, out: torch.Tensor) -> torch.Tensor | None:
    return shadows.error(out) if carries_error(out) else shadows.get(out)


class RunningBound(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sends every operator to the rule of its kind."""

    def __init__(self, shadows: Shadows) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._shadows = shadows

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = rules.name_of(func)
        if torch.Tag.nondeterministic_seeded in func.tags and name not in DECOMPOSITIONS:
            raise ProblemError(
                f"the reference draws random numbers ({name})", hint="put the module into eval mode"
            )
        if name in _METADATA or _is_view(func):
            return func(*args, **kwargs)
        if func._schema.is_mutable:
            return self._mutate(func, name, args, kwargs)
        return self._apply(func, name, args, kwargs)

    def _apply(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if name == "_to_copy":
            return rules.converted(self._shadows, func, args, kwargs)
        if kwargs.get("dtype") in _NARROW:
            kwargs["dtype"] = torch.float64
        if name in DECOMPOSITIONS and rules.floats(args):
            with self:
                return DECOMPOSITIONS[name](*args, **kwargs)
        if name == "index_put" and (len(args) > 3 and args[3]):
            return sums.averaged(self._shadows, func, args, kwargs)
        rule = RULES.get(name)
        if rule is None and torch.Tag.pointwise in func.tags:
            rule = rules.pointwise
        if rule is None and any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves((args, kwargs))):
            with self:
                taken_apart = _taken_apart(func, name, args, kwargs)
            if taken_apart is not NotImplemented:
                return taken_apart
            rule = sums.sketch
        out = rule(self._shadows, func, args, kwargs) if rule else func(*args, **kwargs)
        if any(isinstance(leaf, torch.Tensor) and leaf.is_complex() for leaf in rules.results(out)):
            raise ProblemError(
                f"the reference computes complex numbers ({name})", hint="complex work has no bound yet"
            )
        return out

    def _mutate(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The functional form gives value and bound; both are written through the target, views included."""
        functional = getattr(torch.ops.aten, _FUNCTIONAL.get(name, name.rstrip("_")), None)
        target = kwargs.pop("out", args[0] if args else None)
        if functional is None or not isinstance(target, torch.Tensor):
            raise ProblemError(f"the reference writes in place with {name}, which has no functional form")
        with self:
            result = functional(*args, **kwargs)
        target.copy_(result)
        shadow = self._shadows.get(result)
        if carries_error(target):
            self._shadows.put(target, torch.zeros_like(target) if shadow is None else shadow)
        elif is_discrete(target) and (shadow is not None or self._shadows.get(target) is not None):
            self._shadows.put(
                target, torch.zeros(target.shape, dtype=torch.bool) if shadow is None else shadow
            )
        return target


def _taken_apart(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """PyTorch's own way to say an operator in terms of others, or NotImplemented."""
    if name in _SAMPLED:
        return NotImplemented
    simpler = func.decompose(*args, **kwargs)
    if simpler is NotImplemented and func in decomposition_table:
        return decomposition_table[func](*args, **kwargs)
    return simpler


def _is_view(func: Any) -> bool:
    returns = func._schema.returns
    return any(r.alias_info is not None and not r.alias_info.is_write for r in returns)


_NARROW = (torch.float32, torch.float16, torch.bfloat16)
_METADATA = rules.names(
    "unsqueeze_ squeeze_ transpose_ t_ detach_ as_strided_ swapaxes_ swapdims_ resize_ set_ lift_fresh"
)
_FUNCTIONAL = {"_index_put_impl_": "index_put"}
_SAMPLED = frozenset(("grid_sampler_2d", "upsample_bicubic2d"))

_KINDS: tuple[tuple[str, rules.Rule], ...] = (
    (
        """cat stack flip clone gather index _unsafe_index index_select triu tril roll repeat _unsafe_view
        embedding take diag_embed select_scatter slice_scatter diagonal_scatter index_copy scatter
        reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d
        replication_pad3d im2col pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle
        upsample_nearest1d upsample_nearest2d upsample_nearest3d unsafe_split unsafe_split_with_sizes
        _reshape_copy masked_select repeat_interleave rot90 index_put contiguous unfold_copy view_copy
        expand_copy permute_copy slice_copy select_copy lift_fresh_copy alias_copy""",
        rules.moved,
    ),
    ("copy", rules.copied),
    ("constant_pad_nd", rules.padded),
    ("index_fill", rules.filled),
    ("eq ne lt le gt ge", rules.comparison),
    (
        "any all nonzero bincount one_hot searchsorted bucketize histc isin _local_scalar_dense",
        rules.discrete,
    ),
    (
        """zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty
        scalar_tensor""",
        rules.constant,
    ),
    (
        """sum mean cumsum avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
        index_add scatter_add trace col2im upsample_linear1d upsample_bilinear2d upsample_trilinear3d""",
        sums.averaged,
    ),
    ("mm bmm mv dot vdot", sums.multiplied(0, 1)),
    ("convolution", sums.multiplied(0, 1, 2)),
    ("addmm baddbmm addmv addbmm", sums.multiplied(1, 2, 0)),
    ("amax amin msort nanmedian", sums.ordered),
    ("prod cumprod", sums.chained),
    ("max min sort topk median kthvalue mode cummax cummin", select.extreme),
    (
        """max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d
        max_pool2d max_pool3d""",
        select.pooled,
    ),
    ("argmax argmin", select.extreme_index),
)
RULES: dict[str, rules.Rule] = {name: rule for text, rule in _KINDS for name in rules.names(text)}
