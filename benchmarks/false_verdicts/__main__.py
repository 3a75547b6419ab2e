"""False verdicts: honest kernels that are refused, and wrong ones that pass.

    python -m benchmarks.false_verdicts                      # everything
    python -m benchmarks.false_verdicts --sample 20          # 20 mutants, honest kernels in proportion
    python -m benchmarks.false_verdicts --operator softmax   # one operator, all of its mutants
    python -m benchmarks.false_verdicts --results FILE --minutes 9   # a slice; the same line again goes on

Every kernel goes through the real compiler, sandbox and verification. Mutants are honest kernels with one
small change (`mutate.py`), chosen evenly over the classes of changes and over the kernels, the same ones in
every run. What does not compile is replaced by the next; what passes is held against its original on many
inputs, and counts as a survivor unless it computes the same. The exit status is 1 if an honest kernel was
refused or more than 2 % of the mutants survived, and 3 if the minutes ran out before the end.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.false_verdicts.jobs import TORCH_COMPILE, Job, identity, run_batch
from benchmarks.false_verdicts.mutate import mutants
from benchmarks.false_verdicts.operator import Operator
from benchmarks.false_verdicts.operators import OPERATORS
from benchmarks.false_verdicts.outcomes import Fate, Outcome, page
from benchmarks.false_verdicts.records import Records
from benchmarks.false_verdicts.torch_compile import COMPILED

MUTANTS = 300
MOST_SURVIVORS = 0.02


def main() -> int:
    options = _options()
    operators = [o for o in OPERATORS if not options.operator or o.name in options.operator]
    honest = [(o.name, kernel, None) for o in operators for kernel in o.kernels]
    if not options.no_compile:
        honest += [(o.name, TORCH_COMPILE, None) for o in operators if o.name in COMPILED]
    wanted = options.sample or (10**9 if options.operator else MUTANTS)
    if options.sample:
        honest = sorted(honest, key=_order)[: max(1, len(honest) * options.sample // MUTANTS)]
    candidates = chosen(operators)
    records = Records(options.results)
    stop_s = time.monotonic() + options.minutes * 60
    outcomes: list[Outcome] = []
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=spawn) as pool:
        jobs: list[Job] = honest
        while jobs and time.monotonic() < stop_s:
            outcomes += [records.known[identity(job)] for job in jobs if identity(job) in records.known]
            fresh = [job for job in jobs if identity(job) not in records.known]
            for found in pool.map(run_batch, _batches(fresh), itertools.repeat(stop_s)):
                records.add(found)
                outcomes += found
                print(f"\r{len(outcomes)} kernels judged", end="", file=sys.stderr, flush=True)
            alive = sum(bool(o.rule) and o.fate in (Fate.KILLED, Fate.SURVIVED) for o in outcomes)
            jobs = list(itertools.islice(candidates, wanted - alive))
    print(file=sys.stderr)
    print(page(outcomes))
    if time.monotonic() >= stop_s:
        return 3
    fates = [o.fate for o in outcomes]
    survivors = fates.count(Fate.SURVIVED)
    too_many = survivors > MOST_SURVIVORS * (survivors + fates.count(Fate.KILLED))
    return int(Fate.REFUSED in fates or too_many)


def chosen(operators: Sequence[Operator]) -> Iterator[Job]:
    """All mutants of the operators: the classes take turns, and within a class the kernels."""
    queues: dict[str, list[tuple[int, Job]]] = {}
    for operator in operators:
        for kernel in operator.kernels:
            by_rule: dict[str, list[Job]] = {}
            for mutant in mutants(operator.kernel_file(kernel)):
                by_rule.setdefault(mutant.rule, []).append((operator.name, kernel, mutant))
            for rule, jobs in by_rule.items():
                queues.setdefault(rule, []).extend(enumerate(sorted(jobs, key=_order)))
    ordered = [sorted(queue, key=lambda item: (item[0], _order(item[1]))) for queue in queues.values()]
    for turn in itertools.zip_longest(*ordered):
        yield from (item[1] for item in turn if item is not None)


def _order(job: Job) -> str:
    """An arbitrary but fixed order."""
    return hashlib.sha256("\0".join(identity(job)).encode()).hexdigest()


def _owner(job: Job) -> str:
    return job[0]


def _batches(jobs: list[Job]) -> list[list[Job]]:
    return [list(batch) for _, batch in itertools.groupby(sorted(jobs, key=_owner), key=_owner)]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, metavar="N", help="N mutants instead of 300")
    parser.add_argument("--operator", action="append", choices=[o.name for o in OPERATORS], metavar="NAME")
    parser.add_argument("--no-compile", action="store_true", help=f"leave {TORCH_COMPILE}'s kernels out")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="processes")
    parser.add_argument("--results", type=Path, metavar="FILE", help="keep each outcome here, and reuse it")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no further kernel after this long")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
