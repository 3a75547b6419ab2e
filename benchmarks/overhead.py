"""What share of a run is cuPilot's own: neither compiling nor running kernels and baselines.

    python benchmarks/overhead.py runs/softmax runs/gelu ...

Read from the runs' tables of answers, where every question stands with what it cost and when it was answered.
The clock runs from the beginning of a session (torch is loaded by then) to its last answer, the proof's.
`outside` is what no stage of any question accounts for: loading the problem, decisions, writing kernels as
text, records. Races and the proof are running through and through; getting ready is the references and
peaks, which are measured once for a problem and a machine.
"""

from __future__ import annotations

import argparse
import statistics
from dataclasses import dataclass
from pathlib import Path

from cupilot.evolve.folder import RunFolder
from cupilot.store import Row

STAGES = ("compile", "verify", "tune", "time")
COLUMNS = (
    "run",
    "candidates",
    "wall s",
    "ready s",
    *(f"{stage} s" for stage in STAGES),
    "race s",
    "outside s",
)


@dataclass(frozen=True)
class Account:
    """Seconds of one run, all its sessions together."""

    name: str
    candidates: int
    wall_s: float
    ready_s: float
    stages_s: dict[str, float]
    race_s: float

    @property
    def outside_s(self) -> float:
        return self.wall_s - self.ready_s - sum(self.stages_s.values()) - self.race_s

    @property
    def share(self) -> float:
        """Of what is neither preparation nor measured."""
        return self.outside_s / (self.wall_s - self.ready_s)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", help="run folders")
    accounts = [read(path) for path in parser.parse_args().runs]
    print(table(accounts))
    total = sum(a.outside_s for a in accounts) / sum(a.wall_s - a.ready_s for a in accounts)
    middle = statistics.median(a.share for a in accounts)
    print(f"\noutside, without getting ready: {total:.1%} of all runs together, {middle:.1%} in the median")


def read(path: Path) -> Account:
    with RunFolder.open(path, exclusive=False) as folder:
        rows = list(folder.store.rows())
    stages_s = dict.fromkeys(STAGES, 0.0)
    for row in rows:
        if row.kind in ("evaluate", "prove"):
            for stage, spent_s in row.answer["spent_s"].items():
                stages_s[stage] = stages_s.get(stage, 0.0) + spent_s
    return Account(
        name=path.name,
        candidates=sum(row.kind == "evaluate" for row in rows),
        wall_s=_wall_s(rows),
        ready_s=sum(row.cost_s for row in rows if row.kind in ("ready", "place")),
        stages_s=stages_s,
        race_s=sum(row.cost_s for row in rows if row.kind == "race"),
    )


def _wall_s(rows: list[Row]) -> float:
    """Of all sessions, each from its beginning to the last answer before the next one begins."""
    wall_s, began_s, last_s = 0.0, rows[0].asked_at, rows[0].asked_at
    for row in rows:
        if row.kind == "session":
            wall_s += last_s - began_s
            began_s = row.asked_at
        last_s = row.asked_at
    return wall_s + last_s - began_s


def table(accounts: list[Account]) -> str:
    lines = ["| " + " | ".join((*COLUMNS, "outside %")) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for a in accounts:
        seconds = [a.wall_s, a.ready_s, *(a.stages_s[stage] for stage in STAGES), a.race_s, a.outside_s]
        cells = [a.name, str(a.candidates), *(f"{s:.1f}" for s in seconds), f"{a.share:.1%}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
