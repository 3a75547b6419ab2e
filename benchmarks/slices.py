"""Long benchmarks in slices: every finished piece is a line of JSON, and a call goes on with what is missing.

A piece is a dictionary that names it; its line holds the same and what was measured. Measures nothing itself.
"""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Piece = Mapping[str, Any]
Record = dict[str, Any]


def records(out: Path) -> list[Record]:
    """What has been measured so far, in that order."""
    if not out.exists():
        return []
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def go_on(
    pieces: Sequence[Piece],
    out: Path,
    budget_s: float,
    measure: Callable[[Piece], Record],
    is_settled: Callable[[Record], bool] = lambda _: True,
) -> None:
    """Measure what has no settled line yet, in order; begin nothing that may end after `budget_s`."""
    began_s, longest_s = time.monotonic(), 0.0
    out.parent.mkdir(parents=True, exist_ok=True)
    settled = [done for done in records(out) if is_settled(done)]
    missing = [piece for piece in pieces if not any(piece.items() <= done.items() for done in settled)]
    for place, piece in enumerate(missing):
        start_s = time.monotonic()
        if place and start_s + longest_s > began_s + budget_s:
            print(f"{len(missing) - place} pieces to go")
            return
        found = measure(piece)
        longest_s = max(longest_s, time.monotonic() - start_s)
        when = datetime.datetime.now().isoformat(timespec="seconds")
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**piece, **found, "at": when}) + "\n")
        print(" ".join(map(str, piece.values())), found, flush=True)
    print("nothing is missing")
