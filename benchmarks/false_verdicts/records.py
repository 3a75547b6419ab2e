"""Outcomes on disk, one line of JSON each, so that a long run can be done in slices."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from benchmarks.false_verdicts.outcomes import Fate, Outcome


class Records:
    """What is `known` by (operator, kernel, change). Without a path nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        outcomes = [_outcome(json.loads(line)) for line in lines]
        self.known = {(o.operator, o.kernel, o.change): o for o in outcomes}

    def add(self, outcomes: Iterable[Outcome]) -> None:
        if self._path is not None:
            with self._path.open("a") as file:
                file.writelines(json.dumps(asdict(outcome)) + "\n" for outcome in outcomes)


def _outcome(fields: dict[str, str | float]) -> Outcome:
    return Outcome(**{**fields, "fate": Fate(fields["fate"])})  # type: ignore[arg-type]
