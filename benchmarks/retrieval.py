"""Recall of the pool: is a problem's known relative among the first five records that are offered?

    python benchmarks/retrieval.py            # prints the table; about a minute
    python benchmarks/retrieval.py --misses   # and every pair that was missed, with what came instead

The pairs were written down by hand: what makes one of them fast makes the other fast. For a pair (a, b) the
pool holds every problem of the suite except a and all its relatives other than b, so exactly one record is
right. The query knows what a run knows before it starts: the operator graph, the family, the roofline.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from cupilot.author.builtin import BuiltinAuthor
from cupilot.brief import Declined
from cupilot.device.peaks import cpu_peaks
from cupilot.errors import CupilotError
from cupilot.evolve.structure import structure_of
from cupilot.pool import Pool, Record, Structure
from cupilot.problem import suite
from cupilot.problem.loading import load
from cupilot.roofline import Work, place
from cupilot.strategy.strategy import Strategy

KIN = (
    "matmul square_matmul batched_matmul matmul_3d matmul_4d matmul_transposed_a matmul_transposed_b "
    "matmul_transposed_both tall_skinny_matmul matmul_irregular linear",
    "upper_triangular_matmul lower_triangular_matmul",
    "softmax log_softmax softmax_temperature",
    "layer_norm layer_norm_rows residual_layer_norm",
    "rms_norm rms_norm_rows",
    "batch_norm instance_norm group_norm",
    "l1_norm l2_norm frobenius_norm",
    "max_pool_1d max_pool_2d max_pool_3d",
    "average_pool_1d average_pool_2d average_pool_3d",
    "sum_reduction mean_reduction",
    "max_reduction min_reduction",
    "argmax argmin argmax_rows",
    "sigmoid swish tanh gelu gelu_tanh gelu_chain",
    "elu selu softplus",
    "relu leaky_relu hard_tanh hard_sigmoid",
    "cumsum cumsum_reverse cumsum_exclusive masked_cumsum",
    "mse_loss huber_loss hinge_loss",
    "cross_entropy_loss log_softmax_nll",
    "conv2d_square conv2d_square_5x9 conv2d_wide conv2d_tall_5x7 conv2d_alexnet",
    "conv3d_cube conv3d_cube_3x5x7 conv3d_flat",
    "conv_transposed_2d_square conv_transposed_2d_wide",
    "conv_transposed_3d conv_transposed_3d_cube",
    "depthwise_conv2d_square depthwise_conv2d_wide depthwise_conv2d_3x1",
)
COUNT = 5
GOAL = 0.9


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--misses", action="store_true", help="print every pair that was missed")
    options = parser.parse_args()
    structures = dict(known_structures())
    groups = [line.split() for line in KIN]
    ranks = {pair: rank(pair, group, structures) for group in groups for pair in pairs(group)}
    print(page(groups, ranks, len(structures)))
    if options.misses:
        for (query, kin), (position, instead) in ranks.items():
            if position > COUNT:
                print(f"{query} -> {kin}: place {position}; before it {', '.join(instead)}")


def pairs(group: Sequence[str]) -> list[tuple[str, str]]:
    """Neighbours in the group, both ways."""
    return [pair for a, b in pairwise(group) for pair in ((a, b), (b, a))]


def known_structures() -> list[tuple[str, Structure]]:
    """Of every member of the suite that loads."""
    author, peaks = BuiltinAuthor(), cpu_peaks().one_thread
    found = []
    for member in suite.members():
        try:
            problem = load(f"suite:{member.name}")
        except CupilotError:
            continue
        placement = place(Work.of(problem.counts), peaks, problem.precision.arithmetic, 512 << 20)
        family = author.family(problem)
        name = "" if isinstance(family, Declined) else family
        found.append((member.name, structure_of(problem, name, placement)))
    return found


def rank(
    pair: tuple[str, str], group: Sequence[str], structures: Mapping[str, Structure]
) -> tuple[int, list[str]]:
    """The place of the relative, from 1, and the names before it."""
    query, kin = pair
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(Path(folder) / "pool.db")
        for name, structure in structures.items():
            if name == kin or name not in group:
                pool.add(_record(name, structure))
        names = [m.record.problem for m in pool.similar(structures[query], "cpu", len(structures))]
        pool.close()
    return names.index(kin) + 1, names[: names.index(kin)][:COUNT]


def _record(name: str, structure: Structure) -> Record:
    """Strategies and speeds all alike: only what the problems are decides."""
    return Record(name, name, structure, "cpu", Strategy(), "", "", 2.0, {})


def page(
    groups: Sequence[Sequence[str]],
    ranks: Mapping[tuple[str, str], tuple[int, list[str]]],
    known: int,
) -> str:
    lines = ["| relatives | pairs | found among 5 | first |", "|---|---|---|---|"]
    for group in groups:
        places = [ranks[pair][0] for pair in pairs(group)]
        found, first = sum(p <= COUNT for p in places), sum(p == 1 for p in places)
        lines.append(f"| {', '.join(group)} | {len(places)} | {found} | {first} |")
    places = [position for position, _ in ranks.values()]
    recall = sum(p <= COUNT for p in places) / len(places)
    lines += [
        "",
        f"{len(places)} pairs over {known} problems: recall at {COUNT} {recall:.2f} (goal {GOAL}), "
        f"at 1 {sum(p == 1 for p in places) / len(places):.2f}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
