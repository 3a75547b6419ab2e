"""What models did in recorded runs: validity by role, kernels by outcome, speedups, retention, tokens.

python benchmarks/agents_table.py RUN...      (default: all under examples/recorded/)
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from cupilot.agents.author import ModelAuthor
from cupilot.agents.roles import ROLES
from cupilot.evolve.retention import Retention, retentions
from cupilot.evolve.run import Replay, replay

HERE = Path(__file__).parent.parent / "examples" / "recorded"


def main() -> None:
    paths = [Path(name) for name in sys.argv[1:]] or sorted(db.parent for db in HERE.glob("*/run.db"))
    tally: Counter[tuple[str, str]] = Counter()
    runs = {path.name: replay(path) for path in paths}
    for found in runs.values():
        author = found.run.search.author
        assert isinstance(author, ModelAuthor), "a run without a model"
        tally += author.tally
    validity(tally)
    outcomes(runs)


def validity(tally: Counter[tuple[str, str]]) -> None:
    print("| role | questions | valid at first try | after correction | refused or given up |")
    print("| --- | --- | --- | --- | --- |")
    for role in ROLES:
        first, corrected = tally[role, "first try"], tally[role, "corrected"]
        lost = tally[role, "refused"] + tally[role, "given up"]
        if asked := first + corrected + lost:
            print(f"| {role} | {asked} | {first} | {corrected} | {lost} |")
    print()


def outcomes(runs: dict[str, Replay]) -> None:
    print("| run | policy | candidates | right at once | after repair | failed | best | proof | ended |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, found in runs.items():
        records, proof = found.outcome.records, found.outcome.proof
        right = sum(c.passed and not c.repairs for c in records)
        mended = sum(c.passed and c.repairs > 0 for c in records)
        best = max((c.speedup.ratio for c in records if c.passed), default=0.0)
        shown = proof.speedup.get("eager") if proof else None
        verdict = shown or (proof.reason if proof else "none")
        print(
            f"| {name} | {found.run.asked.policy} | {len(records)} | {right} | {mended} |"
            f" {len(records) - right - mended} | {best:.2f}x | {verdict} | {found.outcome.reason} |"
        )
    print("\n| run | crossed children | tactics kept | kept all | tokens |")
    print("| --- | --- | --- | --- | --- |")
    for name, found in runs.items():
        brief = found.run.search.brief
        kept = [r for _, r in retentions(found.outcome.records, brief.cookbook, brief.language)]
        total = sum(kept, Retention(0, 0))
        tokens = found.run.search.budget.spent.tokens
        whole = sum(r.whole for r in kept)
        print(
            f"| {name} | {len(kept)} | {total.kept} of {total.of} | {whole} of {len(kept)} | {tokens:.0f} |"
        )


if __name__ == "__main__":
    main()
