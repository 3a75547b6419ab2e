"""How a strategy wants a stage written: what the tactics choose, as plain switches."""

from __future__ import annotations

from dataclasses import dataclass

from cupilot.strategy.strategy import Strategy


@dataclass(frozen=True)
class Style:
    vector: bool = False
    own: bool = False  # functions of our own instead of the library's
    fuse: bool = False
    accumulators: bool = False
    unroll: bool = False
    online: bool = False
    keep: bool = False
    split: bool = False
    stream: bool = False
    tiles: bool = False
    multiply: bool = False  # by reciprocals
    prefetch: bool = False
    register_tile: bool = False
    pack_right: bool = False
    pack_left: bool = False
    cache_tiles: bool = False
    depth_blocks: bool = False
    skip_zeros: bool = False
    two_level: bool = False
    line_by_line: bool = False
    separable: bool = False
    doubling: bool = False
    finite_first: bool = False

    @staticmethod
    def of(strategy: Strategy) -> Style:
        return Style(**{name: tactic in strategy for tactic, name in TACTICS.items()})


TACTICS = {
    "vectorize": "vector",
    "inline-transcendentals": "own",
    "fuse-passes": "fuse",
    "multiple-accumulators": "accumulators",
    "unroll": "unroll",
    "online-reduction": "online",
    "keep-exponentials": "keep",
    "split-reduction": "split",
    "non-temporal-stores": "stream",
    "column-tiles": "tiles",
    "avoid-division": "multiply",
    "prefetch": "prefetch",
    "register-tile": "register_tile",
    "pack-right": "pack_right",
    "pack-left": "pack_left",
    "cache-tiles": "cache_tiles",
    "depth-blocks": "depth_blocks",
    "skip-zeros": "skip_zeros",
    "two-level-scan": "two_level",
    "line-by-line": "line_by_line",
    "separable-windows": "separable",
    "doubling-windows": "doubling",
    "finite-first": "finite_first",
}
