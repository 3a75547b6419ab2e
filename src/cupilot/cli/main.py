"""The command line: reads arguments, calls one function per command, turns faults into exit codes.

Exit codes: 0 passed, 1 failed, 2 usage or environment, 3 undecided. What can be found wrong without torch is
found before it is imported. With --json a fault is an object: {"verdict": null, "error": ..., "hint": ...}.
"""

from __future__ import annotations

import errno
import json as json_module
import os
import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cupilot.cli import pool
from cupilot.errors import CupilotError, UsageError

app = typer.Typer(
    name="cupilot",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Evolves faster kernels for PyTorch references, and proves them.",
)

app.add_typer(pool.app, name="pool")

FAULT = 2

ProblemArgument = Annotated[
    str, typer.Argument(help="A problem file, or a member of the suite such as suite:softmax.")
]
RunArgument = Annotated[Path, typer.Argument(help="A run's folder, or its name under runs/.")]
SizeOption = Annotated[str | None, typer.Option(help="A named size of the problem, such as paper.")]
DeviceOption = Annotated[str, typer.Option(help="Where kernels run.")]
ArchOption = Annotated[str | None, typer.Option(help="The GPU to compile for, such as sm_80.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on one line.")]


@app.command()
def optimize(
    problem: ProblemArgument,
    budget: Annotated[
        str, typer.Option(help="What the run may spend, such as 3min,200evals,5usd,200ktok.")
    ] = "3min",
    device: DeviceOption = "cpu",
    size: SizeOption = None,
    model: Annotated[
        str | None, typer.Option(help="A language model as the author, such as anthropic:NAME.")
    ] = None,
    policy: Annotated[str, typer.Option(help="sce, code-crossover, best-of-n or random.")] = "sce",
    seed: Annotated[int, typer.Option(help="Of every random decision.")] = 0,
    name: Annotated[str | None, typer.Option(help="The run's folder under runs/, or a whole path.")] = None,
    no_roofline: Annotated[
        bool, typer.Option("--no-roofline", help="Do not let the roofline guide the search.")
    ] = False,
    no_pool: Annotated[bool, typer.Option("--no-pool", help="Take nothing from earlier runs.")] = False,
    hold_out: Annotated[
        bool, typer.Option("--hold-out", help="Take nothing from earlier runs of this very problem.")
    ] = False,
    epochs: Annotated[int, typer.Option(min=1, help="Epochs at most.")] = 4,
    generations: Annotated[int, typer.Option(min=1, help="Generations in an epoch.")] = 4,
    population: Annotated[int, typer.Option(min=1, help="Candidates in a generation.")] = 8,
    patience: Annotated[int, typer.Option(min=1, help="Generations without a gain that end the run.")] = 3,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only say what the models would be asked, and the price."),
    ] = False,
) -> None:
    """Evolve a faster kernel for a problem, live, and prove it.

    Ctrl-C ends the search gracefully: the best kernel so far is proven. Exit codes: 0 faster and proven,
    1 the reference wins, 2 something is missing or mistyped, 3 not proven.
    """
    from cupilot.cli.optimize import absolute, run
    from cupilot.evolve.folder import Asked

    asked = Asked(
        problem=absolute(problem),
        size=size,
        device=device,
        policy=policy,
        model=model,
        seed=seed,
        budget=budget,
        epochs=epochs,
        generations=generations,
        population=population,
        patience=patience,
        roofline=not no_roofline,
        pool=not no_pool,
        ahead=model is not None,
        hold_out=hold_out,
    )
    if dry_run:
        from cupilot.cli.dry_run import run as foresee

        raise typer.Exit(foresee(asked))
    raise typer.Exit(run(asked, name))


@app.command()
def resume(
    run: RunArgument,
    budget: Annotated[str | None, typer.Option(help="What the run may spend in all, from now on.")] = None,
) -> None:
    """Go on with a run where it stopped, however it stopped."""
    from cupilot.cli.optimize import resume

    raise typer.Exit(resume(run, budget))


@app.command()
def report(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="The file to write, if not in the run's folder.")] = None,
) -> None:
    """Write the report of a run: one self-contained HTML file."""
    _find(run)
    from cupilot.cli.report import run as write

    raise typer.Exit(write(run, out))


@app.command()
def explain(run: RunArgument) -> None:
    """What each tactic of the champion is worth, by leaving it out."""
    _find(run)
    from cupilot.cli.explain import run as explain_run

    raise typer.Exit(explain_run(run))


@app.command()
def export(
    run: RunArgument,
    form: Annotated[str, typer.Option("--as", help="kernel, model (KernelBench) or package.")] = "package",
    out: Annotated[Path | None, typer.Option(help="Where to write; RUN/export/ by default.")] = None,
) -> None:
    """Write the proven champion as a kernel, a module or a package."""
    _find(run)
    from cupilot.cli.export import run as export_run

    raise typer.Exit(export_run(run, form, out))


@app.command("eval")
def eval_command(
    problem: ProblemArgument,
    kernel: Annotated[Path, typer.Argument(help="A kernel file (.cpp or .cu).")],
    device: DeviceOption = "cpu",
    arch: ArchOption = None,
    size: SizeOption = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads the kernel may use.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter timing; correctness stays whole.")] = False,
    json: JsonOption = False,
) -> None:
    """Is this kernel correct, how fast is it, how far from the floor, and what to do next."""
    from cupilot.cli.checks import check_evaluation

    text, opened = check_evaluation(problem, kernel, device, arch, threads)
    from cupilot.cli.eval import run

    raise typer.Exit(run(problem, kernel, text, opened, size=size, threads=threads, quick=quick, json=json))


@app.command()
def roofline(
    problem: ProblemArgument,
    device: Annotated[
        str, typer.Option(help='cpu, a GPU such as "H100 SXM" on paper, or several with commas.')
    ] = "cpu",
    size: SizeOption = None,
    json: JsonOption = False,
) -> None:
    """Zone, floors and what binds the problem: no kernel needed."""
    from cupilot.cli.checks import check_places

    check_places(problem, device)
    from cupilot.cli.roofline import run

    raise typer.Exit(run(problem, size=size, device=device, json=json))


@app.command()
def prompts(
    role: Annotated[str, typer.Argument(help="Such as generator, manager-plan or translator.")],
    problem: Annotated[str | None, typer.Option(help="A problem file, or suite:NAME.")] = None,
    run: Annotated[Path | None, typer.Option(help="A recorded run, to see what it asked.")] = None,
    kernel: Annotated[list[Path] | None, typer.Option(help="A kernel that the prompt shows.")] = None,
    strategy: Annotated[list[str] | None, typer.Option(help='As in "vectorize; a step in words".')] = None,
    device: DeviceOption = "cpu",
    size: SizeOption = None,
    no_roofline: Annotated[bool, typer.Option("--no-roofline", help="Without its digest.")] = False,
) -> None:
    """What a language model is told in a role, exactly as it is sent."""
    if run is not None:
        _find(run)
    elif problem is not None:
        from cupilot.problem.locating import locate

        locate(problem)
    from cupilot.cli.prompts import Wanted
    from cupilot.cli.prompts import run as show

    wanted = Wanted(
        role, problem, run, tuple(kernel or ()), tuple(strategy or ()), device, size, not no_roofline
    )
    raise typer.Exit(show(wanted))


@app.command()
def selftest(
    only: Annotated[str | None, typer.Option(help="Only attacks with this in their name.")] = None,
    json: JsonOption = False,
) -> None:
    """Attack the evaluator on this machine: more than a hundred cheating kernels, none may get through."""
    from cupilot.selftest.catalogue import named

    subjects = named(only)
    from cupilot.cli.selftest import run

    raise typer.Exit(run(subjects, json=json))


@app.command()
def doctor() -> None:
    """What this machine offers: compiler, torch, sandbox layers, clock; and how to mend what is missing."""
    from cupilot.cli.doctor import run

    raise typer.Exit(run())


def main() -> None:
    """The entry point: the one place where a fault becomes a message."""
    try:
        app()
    except SystemExit as ended:
        if ended.code == FAULT:  # the command line itself is wrong: typer has said so on standard error
            said = getattr(ended.__context__, "format_message", None)
            _answer(said() if said else "the command cannot be understood", "add --help")
        raise
    except CupilotError as error:
        _complain(error)
        sys.exit(FAULT)
    except BrokenPipeError:
        # The reader went away (`cupilot ... | head`): not our fault, and nothing to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            hint = "free some room, or set CUPILOT_CACHE to a folder on a disk that has some"
            _complain(UsageError(f"cannot write: {error}", hint=hint))
        else:
            _own_fault()
        sys.exit(FAULT)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        sys.exit(130)
    except Exception:  # noqa: BLE001  the one broad catch: exit code 1 would read as a verdict
        _own_fault()
        sys.exit(FAULT)


def _own_fault() -> None:
    """Says what is being handled, in full."""
    traceback.print_exc()
    _complain(CupilotError("a fault of cuPilot, not a verdict", hint="please report the lines above"))


def _find(run: Path) -> None:
    """Complains about a run that is not there before torch is imported, which takes seconds."""
    from cupilot.evolve.folder import find

    find(run)


def _answer(error: str, hint: str) -> None:
    """For programs: who asks for JSON gets one object whatever happens."""
    if "--json" in sys.argv:
        print(json_module.dumps({"verdict": None, "error": error, "hint": hint}), flush=True)


def _complain(error: CupilotError) -> None:
    console = Console(stderr=True, highlight=False)
    head, _, hint = str(error).partition("\n  hint: ")
    console.print(f"[bold red]error[/] {_plain(head)}", soft_wrap=True)
    if hint:
        console.print(f" [bold]hint[/] {_plain(hint)}", soft_wrap=True)
    _answer(head, hint)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
