"""`cupilot export RUN`: the proven champion as a kernel file, a KernelBench file or a Python package."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from cupilot.errors import UsageError
from cupilot.evolve.champion import signed
from cupilot.evolve.ending import Ending, ending_of
from cupilot.evolve.run import Replay, replay
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
        raise _nothing_proven(given, replayed)
    run = replayed.run
    exported = Exported(run.problem, signed(champion, proof, run.problem), proof)
    folder = run.folder.path / "export"
    if form == "kernel":
        return exported.write_kernel(_place(out, folder, f"{run.problem.name}.{run.search.brief.language}"))
    if run.search.brief.language != "cpp":
        raise UsageError("only CPU kernels can be exported as Python", hint="--as kernel works")
    if form == "model":
        return exported.write_model(_place(out, folder, f"{exported.operator}_model.py"))
    return exported.write_package(out or folder / exported.operator)


def _place(out: Path | None, folder: Path, name: str) -> Path:
    """A file: as asked, in the folder that was asked for, or in the run's."""
    if out is None:
        return folder / name
    return out / name if out.is_dir() else out


def _nothing_proven(given: Path, replayed: Replay) -> UsageError:
    outcome = replayed.outcome
    ending = ending_of(outcome, replayed.run.search.champion)
    if ending is Ending.REFERENCE_WINS:
        why, hint = "nothing beat the reference", f"search longer: cupilot resume {given} --budget 10min"
    elif ending is Ending.UNPROVEN:
        why, hint = "its best kernel is not proven yet", f"prove it: cupilot resume {given}"
    else:
        why, hint = f"no kernel passed; {outcome.reason}", "see its report"
    return UsageError(f"{given} has no champion to export: {why}", hint=hint)
