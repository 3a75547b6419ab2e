"""A run in a world without compilers, as the report sees it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "evolve"))
from fakes import LawfulEvaluator, Onlooker, ScriptedAuthor, make_search

from cupilot.evolve.loop import Search, Settings
from cupilot.problem.problem import Problem
from cupilot.report.view import Circumstances, RunView, view_of
from cupilot.roofline import Placement, Source, Zone

PLACEMENT = Placement(
    zone=Zone.MEMORY, level="DRAM", source=Source.MEASURED, intensity_ops_per_byte=0.6,
    core_ridge_ops_per_byte=9.0, matrix_ridge_ops_per_byte=40.0, bytes_per_s=1.2e10, core_ops_per_s=1.1e11,
    matrix_ops_per_s=5e11, byte_floor_s=0.04, operation_floor_s=0.01, attainable_s=0.05,
)  # fmt: skip


def search_of(problem: Problem, gains: dict[str, float] | None = None, clumsy: bool = False) -> Search:
    author = ScriptedAuthor(clumsy=frozenset({"stream"}) if clumsy else frozenset())
    evaluator = LawfulEvaluator() if gains is None else LawfulEvaluator(gains=gains)
    return make_search(problem, author=author, evaluator=evaluator, settings=Settings(repairs=0))


def view_from(search: Search, placement: Placement | None = PLACEMENT) -> RunView:
    outcome = search.run()
    finished = {c.slot: 2.5 * i for i, c in enumerate(outcome.records, 1)}
    run = Circumstances(
        command="cupilot optimize problem.py",
        verify_command="cupilot eval problem.py runs/x/champion/kernel.cpp",
        policy="sce",
        machine="a test's imagination, 1 thread",
        versions={"cupilot": "0", "torch": "2"},
        placement=placement,
        started=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
        elapsed_s=2.5 * len(outcome.records),
        finished_s=finished,
    )
    return view_of(search, outcome, run)


__all__ = ["Onlooker", "search_of", "view_from"]
