"""Recall of the pool: is a problem's known relative among the first five records that are offered?

    python benchmarks/retrieval.py            # prints two tables; about a minute
    python benchmarks/retrieval.py --misses   # and every pair that was missed, with what came instead

The pairs were written down by hand: what makes one of them fast makes the other fast. For a pair (a, b) the
pool holds every problem except a and all its relatives other than b, so exactly one record is right. The
query knows what a run knows before it starts: the operator graph, the family, the roofline.

Two sets. The first is within the suite; what was missed there showed which kinds of work to compare, so its
recall is no held-out figure. The second (`relatives.py`) was written down after that and before it was
measured.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from statistics import fmean as mean

import relatives
from cupilot.author.builtin import BuiltinAuthor
from cupilot.brief import Declined
from cupilot.device.peaks import cpu_peaks
from cupilot.errors import CupilotError
from cupilot.evolve.structure import structure_of
from cupilot.kinship import KIN as LEAST
from cupilot.kinship import Structure, similarity
from cupilot.pool import Pool, Record
from cupilot.problem import suite
from cupilot.problem.loading import from_function, load
from cupilot.problem.problem import Problem
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


@dataclass(frozen=True)
class Family:
    """Relatives. `line` is those whose neighbours are pairs; the rest only must not be offered instead."""

    line: tuple[str, ...]
    rest: tuple[str, ...] = ()

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Neighbours, both ways."""
        return [pair for a, b in pairwise(self.line) for pair in ((a, b), (b, a))]


Ranks = Mapping[tuple[str, str], tuple[int, list[str]]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--misses", action="store_true", help="print every pair that was missed")
    options = parser.parse_args()
    of_suite = dict(structures(suite_problems()))
    of_users = of_suite | dict(structures(users_problems()))
    for title, families, known in (
        ("Pairs within the suite, at which the kinds of work were chosen", suite_families(), of_suite),
        ("Pairs with users' problems, held out", users_families(), of_users),
    ):
        ranks = {pair: rank(pair, family, known) for family in families for pair in family.pairs}
        print(f"## {title}\n\n{page(families, ranks, len(known))}\n{alike(families, known)}\n")
        if options.misses:
            print(misses(ranks))


def suite_families() -> list[Family]:
    return [Family(tuple(line.split())) for line in KIN]


def users_families() -> list[Family]:
    found = []
    for line in relatives.KIN:
        own, of_suite = (part.split() for part in line.split("|"))
        found.append(Family((*own, *of_suite[:1]), tuple(of_suite[1:])))
    return found


def suite_problems() -> Iterator[Problem]:
    """Every member that loads."""
    for member in suite.members():
        with suppress(CupilotError):
            yield load(f"suite:{member.name}")


def users_problems() -> Iterator[Problem]:
    for name, example in relatives.EXAMPLES.items():
        yield from_function(example.function, example.inputs, name=name)


def structures(problems: Iterable[Problem]) -> Iterator[tuple[str, Structure]]:
    """What a run knows of a problem before it starts."""
    author, peaks = BuiltinAuthor(), cpu_peaks().one_thread
    for problem in problems:
        placement = place(Work.of(problem.counts), peaks, problem.precision.arithmetic, 512 << 20)
        family = author.family(problem)
        name = "" if isinstance(family, Declined) else family
        yield problem.name, structure_of(problem, name, placement)


def rank(pair: tuple[str, str], family: Family, known: Mapping[str, Structure]) -> tuple[int, list[str]]:
    """The place of the relative, from 1, and the names before it."""
    query, kin = pair
    with tempfile.TemporaryDirectory() as folder, closing(Pool(Path(folder) / "pool.db")) as pool:
        for name, structure in known.items():
            if name == kin or name not in (*family.line, *family.rest):
                pool.add(_record(name, structure))
        names = [m.record.problem for m in pool.similar(known[query], "cpu", len(known))]
    return names.index(kin) + 1, names[: names.index(kin)][:COUNT]


def _record(name: str, structure: Structure) -> Record:
    """Strategies and speeds all alike: only what the problems are decides."""
    return Record(name, name, structure, "cpu", Strategy(), "", "", 2.0, {})


def page(families: Sequence[Family], ranks: Ranks, known: int) -> str:
    lines = ["| relatives | pairs | found among 5 | first |", "|---|---|---|---|"]
    for family in families:
        places = [ranks[pair][0] for pair in family.pairs]
        found, first = sum(p <= COUNT for p in places), sum(p == 1 for p in places)
        lines.append(f"| {', '.join(family.line)} | {len(places)} | {found} | {first} |")
    places = [position for position, _ in ranks.values()]
    recall = sum(p <= COUNT for p in places) / len(places)
    lines += [
        "",
        f"{len(places)} pairs over {known} problems: recall at {COUNT} {recall:.2f} (goal {GOAL}), "
        f"at 1 {sum(p == 1 for p in places) / len(places):.2f}",
    ]
    return "\n".join(lines)


def alike(families: Sequence[Family], known: Mapping[str, Structure]) -> str:
    """How many relatives, and how many of the other pairs, are alike enough to learn from."""
    of = {name: family for family in families for name in family.line}
    related, strange = [], []
    for a, b in combinations(of, 2):
        likeness = similarity(known[a], known[b])
        (related if b in of[a].line or b in of[a].rest else strange).append(likeness >= LEAST)
    return (
        f"alike enough to learn from ({LEAST} or more): {mean(related):.2f} of {len(related)} pairs of"
        f" relatives, {mean(strange):.2f} of {len(strange)} other pairs"
    )


def misses(ranks: Ranks) -> str:
    return "".join(
        f"{query} -> {kin}: place {position}; before it {', '.join(instead)}\n"
        for (query, kin), (position, instead) in ranks.items()
        if position > COUNT
    )


if __name__ == "__main__":
    main()
