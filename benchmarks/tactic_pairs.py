"""Shows each tactic of the built-in author by a pair of kernel files, without and with it, and measures it.

    python benchmarks/tactic_pairs.py write            # the pairs; any time
    python benchmarks/tactic_pairs.py measure          # the next tactic that is not measured; under a minute
    python benchmarks/tactic_pairs.py measure --all    # one after the other
    python benchmarks/tactic_pairs.py table            # what is known

A pair is one problem of the suite in one strategy, and in the same with the tactic added. Both run beside
each other on one thread at the first point of their tunables. What was measured, and when, is written into
the tactic's table in the cookbook; an undecided race (a busy machine) leaves it untested.
"""

from __future__ import annotations

import argparse
import datetime
import re
from pathlib import Path

from cupilot.author.builtin import BuiltinAuthor
from cupilot.brief import Brief, Declined, Parent
from cupilot.device.cpu import Cpu
from cupilot.evaluate.bench import Bench
from cupilot.evaluate.built import build
from cupilot.evaluate.contestant import KernelContestant
from cupilot.evaluate.effort import QUICK
from cupilot.evaluate.race import race
from cupilot.kernel.file import KernelFile, parse_kernel, print_kernel
from cupilot.kernel.tunables import first_point
from cupilot.problem.loading import load
from cupilot.problem.problem import Problem
from cupilot.strategy.algebra import default_use
from cupilot.strategy.strategy import Strategy, check
from cupilot.strategy.tactics import load_cookbook
from cupilot.types import Failed, Undecided

COOKBOOK = Path(__file__).parents[1] / "src/cupilot/strategy/cookbook"
PAIRS_FOLDER = COOKBOOK / "pairs"

# tactic: the problem that shows it (of the suite, or a file here), and the tactics that both kernels have
PAIRS: dict[str, tuple[str, tuple[str, ...]]] = {
    "vectorize": ("layer_norm", ()),
    "inline-transcendentals": ("gelu", ("vectorize",)),
    "fuse-passes": ("gelu_chain", ("vectorize", "inline-transcendentals")),
    "multiple-accumulators": ("cross_entropy_loss", ("vectorize", "inline-transcendentals")),
    "unroll": ("gelu", ("vectorize", "inline-transcendentals")),
    "online-reduction": ("softmax", ("vectorize", "inline-transcendentals", "multiple-accumulators")),
    "keep-exponentials": (
        "softmax",
        ("vectorize", "inline-transcendentals", "multiple-accumulators", "online-reduction"),
    ),
    "non-temporal-stores": ("relu", ("vectorize",)),
    "finite-first": ("diagonal_matmul", ("vectorize", "column-tiles", "non-temporal-stores")),
    "column-tiles": ("rms_norm", ("vectorize", "fuse-passes")),
    "avoid-division": ("rms_norm", ("vectorize", "fuse-passes", "column-tiles")),
    "split-reduction": ("matvec", ("vectorize", "multiple-accumulators")),
    "prefetch": (
        "cross_entropy_loss",
        ("vectorize", "inline-transcendentals", "multiple-accumulators", "online-reduction"),
    ),
    "register-tile": ("square_matmul", ("vectorize",)),
    "pack-right": ("matmul_transposed_b", ("vectorize", "register-tile")),
    "pack-left": ("square_matmul", ("vectorize", "register-tile", "pack-right", "cache-tiles")),
    "cache-tiles": ("square_matmul", ("vectorize", "register-tile", "pack-right")),
    "depth-blocks": ("matmul_large_k", ("vectorize", "register-tile", "pack-right", "cache-tiles")),
    "skip-zeros": ("upper_triangular_matmul", ("vectorize", "register-tile")),
    "two-level-scan": ("cumsum", ("vectorize",)),
    "line-by-line": ("problems/cumsum_down.py", ("vectorize",)),
    "separable-windows": ("max_pool_2d", ("vectorize",)),
    "doubling-windows": ("max_pool_2d", ("vectorize", "separable-windows")),
}


def problem(name: str) -> Problem:
    return load(str(Path(__file__).parent / name) if name.endswith(".py") else f"suite:{name}")


def paths(tactic: str) -> tuple[Path, Path]:
    return PAIRS_FOLDER / f"{tactic}-without.cpp", PAIRS_FOLDER / f"{tactic}-with.cpp"


def written(tactic: str) -> tuple[KernelFile, KernelFile]:
    """Both kernels, as the author writes them now."""
    name, context = PAIRS[tactic]
    task, author, book = problem(name), BuiltinAuthor(), load_cookbook()
    pair = []
    for ids in (context, (*context, tactic)):
        strategy = Strategy(tuple(sorted(default_use(book[i]) for i in ids)))
        check(strategy, author.cookbook(task))
        brief = Brief(task, "cpu", "cpp", author.cookbook(task), None)
        plain = author.generate(brief)
        assert not isinstance(plain, Declined), plain.reason
        kernel = author.write(brief, strategy, Parent(Strategy(), plain, 1.0))
        assert not isinstance(kernel, Declined), kernel.reason
        pair.append(kernel)
    return pair[0], pair[1]


def write() -> None:
    PAIRS_FOLDER.mkdir(exist_ok=True)
    for tactic in PAIRS:
        for path, kernel in zip(paths(tactic), written(tactic), strict=True):
            path.write_text(print_kernel(kernel), encoding="utf-8")
        print(tactic)


def measure(tactic: str) -> str:
    """The gain in words; why there is none, in parentheses."""
    without, with_it = (parse_kernel(path.read_text(encoding="utf-8")) for path in paths(tactic))
    name = PAIRS[tactic][0]
    with Bench(problem(name), Cpu()) as bench:
        case = bench.problem.targets[0]
        contestants = []
        for label, kernel in (("with", with_it), ("without", without)):
            built = build(kernel, first_point(kernel), case.signature, bench.device)
            if isinstance(built, Failed):
                return f"({built.reason})"
            contestants.append(KernelContestant(label, built))
        found = race(
            contestants,
            case.signature,
            bench.fresh(case),
            lambda *_: None,
            bench.sentinel,
            QUICK.race,
            bench.gate,
        )
    if isinstance(found, Failed | Undecided):
        return f"({found.reason})"
    ratio = found.ratios["without"]
    today = datetime.date.today().isoformat()
    return f"{ratio.ratio:.2f}x ({ratio.low:.2f} to {ratio.high:.2f}) on {Path(name).stem}, {today}"


def record(tactic: str, gain: str) -> None:
    """Put the gain into the tactic's table."""
    for path in COOKBOOK.glob("*.toml"):
        text = path.read_text(encoding="utf-8")
        head = f"[{tactic}]\n"
        if head in text:
            before, after = text.split(head)
            after = re.sub(r"\A((?:(?!\n\[).)*?)^tested = .*\n", r"\1", after, count=1, flags=re.S | re.M)
            path.write_text(f'{before}{head}tested = "{gain}"\n{after}', encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("write", "measure", "table"))
    parser.add_argument("--all", action="store_true", help="measure every tactic that has not been")
    chosen = parser.parse_args()
    book = load_cookbook()
    if chosen.what == "write":
        write()
    elif chosen.what == "measure":
        waiting = [tactic for tactic in PAIRS if not book[tactic].tested]
        for tactic in waiting if chosen.all else waiting[:1]:
            gain = measure(tactic)
            print(f"{tactic:24} {gain}", flush=True)
            if not gain.startswith("("):
                record(tactic, gain)
    else:
        for tactic in PAIRS:
            print(f"{tactic:24} {book[tactic].tested or 'untested'}")


if __name__ == "__main__":
    main()
