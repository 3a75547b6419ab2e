"""`cupilot export RUN`: the proven champion as a kernel file, a KernelBench file or a Python package."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cupilot.errors import UsageError
from cupilot.evolve.champion import signed
from cupilot.evolve.run import replay
from cupilot.export.files import Exported

FORMS = ("kernel", "model", "package")


def run(given: Path, form: str, out: Path | None) -> int:
    if form not in FORMS:
        raise UsageError(f"unknown form {form!r}", hint=f"--as one of: {', '.join(FORMS)}")
    written = export(given, form, out)
    Console(highlight=False).print(f"{form}  {written}", soft_wrap=True)
    return 0


def export(given: Path, form: str, out: Path | None) -> Path:
    replayed = replay(given)
    champion, proof = replayed.outcome.champion, replayed.outcome.proof
    if champion is None or proof is None:
        raise UsageError(
            f"{given} has no proven champion: {replayed.outcome.reason}",
            hint="`cupilot resume` goes on with an unfinished run; where the reference won there is none",
        )
    run = replayed.run
    exported = Exported(run.problem, signed(champion, proof, run.problem), proof)
    folder = run.folder.path / "export"
    if form == "kernel":
        return exported.write_kernel(out or folder / f"{run.problem.name}.{run.search.brief.language}")
    if run.search.brief.language != "cpp":
        raise UsageError("only CPU kernels can be exported as Python", hint="--as kernel works")
    if form == "model":
        return exported.write_model(out or folder / f"{exported.operator}_model.py")
    return exported.write_package(out or folder / exported.operator)
