"""What models did in recorded runs: validity by role, kernels by outcome, speedups, retention, tokens.

python benchmarks/agents_table.py RUN...      (default: all under examples/recorded/)
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from pathlib import Path

from cupilot.agents.answers import InvalidAnswerError, read_kernel
from cupilot.agents.author import ModelAuthor
from cupilot.agents.roles import ROLES
from cupilot.evolve.answers import code_hash
from cupilot.evolve.candidate import Candidate
from cupilot.evolve.folder import RunFolder
from cupilot.evolve.retention import Retention, retentions
from cupilot.evolve.run import Replay, replay
from cupilot.lm.replay import KIND
from cupilot.store import Row

HERE = Path(__file__).parent.parent / "examples" / "recorded"


def main() -> None:
    paths = [Path(name) for name in sys.argv[1:]] or sorted(db.parent for db in HERE.rglob("run.db"))
    runs = {_name(path): replay(path) for path in paths}
    rows = {}
    tally: Counter[tuple[str, str]] = Counter()
    for path, (name, found) in zip(paths, runs.items(), strict=True):
        author = found.run.search.author
        assert isinstance(author, ModelAuthor), "a run without a model"
        tally += author.tally
        rows[name] = [row for row in _asked(path) if row.hash in author.charged]
    validity(tally)
    kernels(runs, rows)
    outcomes(runs)
    costs(runs, rows)


def _name(path: Path) -> str:
    return path.relative_to(HERE).as_posix() if path.is_relative_to(HERE) else path.name


def _asked(path: Path) -> list[Row]:
    with RunFolder.open(path, exclusive=False) as folder:
        return list(folder.store.rows(KIND))


def validity(tally: Counter[tuple[str, str]]) -> None:
    """Whether answers could be read and kept the rules of strategies and of the kernel file."""
    print("| role | questions | valid at first try | after correction | refused or given up |")
    print("| --- | --- | --- | --- | --- |")
    for role in ROLES:
        first, corrected = tally[role, "first try"], tally[role, "corrected"]
        lost = tally[role, "refused"] + tally[role, "given up"]
        if asked := first + corrected + lost:
            print(f"| {role} | {asked} | {first} | {corrected} | {lost} |")
    print()


def kernels(runs: dict[str, Replay], rows: dict[str, list[Row]]) -> None:
    """Whether kernels that could be read computed the right thing, and whether refinements were kept."""
    print("| kernels | written | right at once | right after repair | never right | undecided |")
    print("| --- | --- | --- | --- | --- | --- |")
    every = [c for found in runs.values() for c in found.outcome.records if c.origin != "declined"]
    kinds = {"first": "generator", "merge": "code-crossover"}
    for role in ("generator", "translator", "code-crossover"):
        written = [c for c in every if kinds.get(c.origin, "translator") == role]
        if written:
            print(f"| {role} | {len(written)} | {' | '.join(map(str, _fates(written)))} |")
    fates: Counter[str] = Counter()
    for name, found in runs.items():
        final = {code_hash(c.kernel) for c in found.outcome.records}
        written = {role: _hashes(found, rows[name], role) for role in ROLES}
        refined = written.pop("revisor-performance")
        before = {code for codes in written.values() for code in codes}
        fates += Counter("same" if c in before else "kept" if c in final else "slower" for c in refined)
    print(
        f"\nRefinements of kernels that were right: {fates.total()} written; {fates['kept']} kept as faster,"
        f" {fates['slower']} not, {fates['same']} the same kernel again.\n"
    )


def _hashes(found: Replay, rows: list[Row], role: str) -> list[str]:
    """Of the kernels that a role wrote."""
    target, language = found.run.problem.target, found.run.search.brief.language
    written = []
    for row in rows:
        if row.request["role"] == role and row.request["schema"] is None and "text" in row.answer:
            with contextlib.suppress(InvalidAnswerError):
                written.append(code_hash(read_kernel(row.answer["text"], target, language)))
    return written


def _fates(written: list[Candidate]) -> tuple[int, int, int, int]:
    right = sum(c.passed and not c.repairs for c in written)
    mended = sum(c.passed and c.repairs > 0 for c in written)
    undecided = sum(c.evaluation.verdict == "undecided" for c in written)
    return right, mended, len(written) - right - mended - undecided, undecided


def outcomes(runs: dict[str, Replay]) -> None:
    print("| run | policy | candidates | passed | best while searching | proof against eager | ended |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, found in runs.items():
        records, proof = found.outcome.records, found.outcome.proof
        passed = [c for c in records if c.passed]
        best = max(passed, key=lambda c: c.speedup.ratio, default=None)
        shown = proof.speedup.get("eager") if proof else None
        verdict = shown or (proof.reason if proof else "none")
        policy = found.run.asked.policy + ("" if found.run.asked.roofline else ", no roofline")
        print(
            f"| {name} | {policy} | {len(records)} | {len(passed)} | {best.speedup if best else 'none'} |"
            f" {verdict} | {found.outcome.reason} |"
        )


def costs(runs: dict[str, Replay], rows: dict[str, list[Row]]) -> None:
    print("\n| run | questions | tokens in | tokens out | crossed children | tactics kept | kept all |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, found in runs.items():
        brief = found.run.search.brief
        kept = [r for _, r in retentions(found.outcome.records, brief.cookbook, brief.language)]
        total = sum(kept, Retention(0, 0))
        whole = sum(r.whole for r in kept)
        answered = [row.answer for row in rows[name] if "text" in row.answer]
        came, went = (sum(a[f"tokens_{way}"] for a in answered) for way in ("in", "out"))
        print(
            f"| {name} | {len(answered)} | {came} | {went} | {len(kept)} | {total.kept} of {total.of} |"
            f" {whole} of {len(kept)} |"
        )


if __name__ == "__main__":
    main()
