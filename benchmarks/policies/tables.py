"""Recorded tables: every strategy of a problem's space with what was measured of its kernel.

A table is a file of JSON lines: the space first, then a line for each kernel, in any order. Recording goes on
where the file ends. Strategies that come to the same code share a kernel.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cupilot.author.builtin import BuiltinAuthor
from cupilot.device.registry import open_device
from cupilot.evaluate.bench import Bench
from cupilot.evaluate.effort import SEARCH
from cupilot.evaluate.pipeline import Options, evaluate_kernel
from cupilot.evaluate.result import Evaluation, Verdict, from_json, to_json
from cupilot.evolve.answers import code_hash
from cupilot.evolve.measuring import SEARCHING
from cupilot.kernel.file import KernelFile
from cupilot.problem.loading import load
from cupilot.strategy.algebra import neighbours
from cupilot.strategy.align import align
from cupilot.strategy.evidence import without_comments
from cupilot.strategy.strategy import Strategy
from cupilot.strategy.strategy import from_json as strategy_from_json
from cupilot.strategy.strategy import to_json as strategy_to_json
from cupilot.strategy.tactics import Cookbook
from cupilot.types import Stage

FOLDER = Path(__file__).parent / "tables"
_EMPTY = Evaluation(Verdict.PASSED, Stage.TIME, "")
MOST = 200  # strategies; a larger space is sampled
MAY_MISS = 0.05  # of a table's kernels; searches cannot measure these either
_EFFORT = replace(SEARCH, tries=1)  # at the first point of the tunables
_KEPT = ("verdict", "stage", "reason", "speedup", "time_s", "floor_s", "attainable_s", "kind", "tuned")


@dataclass(frozen=True)
class Table:
    """`kernels` maps each strategy's hash to its kernel's; `evaluations` holds those measured so far."""

    problem: str
    tactics: tuple[str, ...]
    whole: bool  # every valid strategy is there
    strategies: Mapping[str, Strategy]
    kernels: Mapping[str, str]
    aligned: Mapping[str, Strategy]  # by the hash of the strategy that was asked for
    evaluations: Mapping[str, Evaluation]

    @property
    def missing(self) -> set[str]:
        """Kernels that were not measured."""
        return set(self.kernels.values()) - set(self.evaluations)

    def ratio(self, strategy: Strategy) -> float:
        """Over eager; 0 for what did not pass or was not measured."""
        found = self.evaluations.get(self.kernels[strategy.hash])
        return found.speedup["eager"].ratio if found and found.passed and found.speedup else 0.0

    @property
    def best(self) -> Strategy:
        return max(self.strategies.values(), key=self.ratio)


def path_of(problem: str) -> Path:
    return FOLDER / f"{problem}.jsonl"


def read(problem: str) -> Table:
    space, *rows = [json.loads(line) for line in path_of(problem).read_text().splitlines()]
    strategies = [strategy_from_json(entry) for entry in space["strategies"]]
    evaluations, aligned = {}, {}
    for row in rows:
        evaluations[row["kernel"]] = from_json({**to_json(_EMPTY), **row["evaluation"]})
        for key, uses in row["aligned"].items():
            aligned[key] = strategy_from_json({"uses": uses})
    return Table(
        space["problem"],
        tuple(space["tactics"]),
        space["whole"],
        {s.hash: s for s in strategies},
        dict(zip((s.hash for s in strategies), space["kernels"], strict=True)),
        aligned,
        evaluations,
    )


def record(problem: str, limit_s: float) -> None:
    """Measure kernels that the table lacks, for about so long."""
    began_s = time.monotonic()
    loaded, author = load(f"suite:{problem}"), BuiltinAuthor()
    cookbook = author.cookbook(loaded)
    written: dict[str, KernelFile] = {}
    FOLDER.mkdir(exist_ok=True)
    if not path_of(problem).exists():
        strategies, whole = space_of(cookbook)
        kernels = [_write(author, loaded, s) for s in strategies]
        space = {
            "problem": problem,
            "tactics": sorted(t.id for t in cookbook),
            "whole": whole,
            "strategies": [{"uses": strategy_to_json(s)["uses"]} for s in strategies],
            "kernels": [code_hash(k) for k in kernels],
        }
        path_of(problem).write_text(json.dumps(space) + "\n")
    table = read(problem)
    with Bench(loaded, open_device("cpu"), gate=SEARCHING) as bench, path_of(problem).open("a") as file:
        for key, strategy in table.strategies.items():
            kernel = table.kernels[key]
            if kernel in table.evaluations or kernel in written:
                continue
            if time.monotonic() - began_s > limit_s:
                return
            written[kernel] = _write(author, loaded, strategy)
            if code_hash(written[kernel]) != kernel:
                raise SystemExit(
                    f"{problem}: the author writes other kernels now than when this table was begun; it is"
                    f" read as it is. To record it anew, delete {path_of(problem).name}."
                )
            kernel_began_s = time.monotonic()
            evaluation = evaluate_kernel(bench, written[kernel], Options(effort=_EFFORT))
            row = _row(table, kernel, written[kernel], evaluation, cookbook)
            file.write(json.dumps(row) + "\n")
            file.flush()
            words = ", ".join(map(str, strategy.uses)) or "plain"
            print(f"{problem}: {time.monotonic() - kernel_began_s:.1f} s, {evaluation.verdict}: {words}")


def space_of(cookbook: Cookbook) -> tuple[list[Strategy], bool]:
    """All valid strategies, or a random sample; whether it is all."""
    found = {Strategy().hash: Strategy()}
    waiting = [Strategy()]
    while waiting and len(found) < 50 * MOST:
        for near in neighbours(waiting.pop(), cookbook):
            if near.hash not in found:
                found[near.hash] = Strategy(tuple(sorted(near.uses)))
                waiting.append(near)
    whole = not waiting and len(found) <= MOST
    ordered = sorted(found.values(), key=lambda s: s.hash)
    return ordered if whole else [Strategy(), *random.Random(0).sample(ordered, MOST - 1)], whole


def _write(author: BuiltinAuthor, problem: Any, strategy: Strategy) -> KernelFile:
    kernel = author._write(problem, strategy)
    assert isinstance(kernel, KernelFile)
    return kernel


def _row(
    table: Table, kernel: str, written: KernelFile, evaluation: Evaluation, cookbook: Cookbook
) -> dict[str, Any]:
    facts = {**evaluation.facts, "code": without_comments(written.source)}
    sharing = [s for key, s in table.strategies.items() if table.kernels[key] == kernel]
    aligned = {
        s.hash: strategy_to_json(align(s, cookbook, facts, "cpp"))["uses"]
        for s in sharing
        if evaluation.passed
    }
    kept = {key: value for key, value in to_json(evaluation).items() if key in _KEPT}
    share = evaluation.facts.get("vector_share")
    kept["facts"] = {} if share is None else {"vector_share": share}
    return {"kernel": kernel, "evaluation": kept, "aligned": aligned}


def known() -> Iterator[Table]:
    """The tables that lack next to nothing."""
    for path in sorted(FOLDER.glob("*.jsonl")):
        table = read(path.stem)
        if len(table.missing) <= MAY_MISS * len(set(table.kernels.values())):
            yield table
