"""The command line: reads arguments, calls one function per command, turns faults into exit codes.

Exit codes: 0 passed, 1 failed, 2 usage or environment, 3 undecided.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cupilot.errors import CupilotError

app = typer.Typer(
    name="cupilot",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Evolves faster kernels for PyTorch references, and proves them.",
)

FAULT = 2

ProblemArgument = Annotated[
    str, typer.Argument(help="A problem file, or a member of the suite such as suite:softmax.")
]
SizeOption = Annotated[str | None, typer.Option(help="A named size of the problem, such as paper.")]
DeviceOption = Annotated[str, typer.Option(help="Where kernels run.")]
ArchOption = Annotated[str | None, typer.Option(help="The GPU to compile for, such as sm_80.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on one line.")]


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
    from cupilot.cli.eval import run

    raise typer.Exit(
        run(
            problem,
            kernel,
            device=device,
            arch=arch,
            size=size,
            threads=threads,
            quick=quick,
            json=json,
        )
    )


@app.command()
def roofline(
    problem: ProblemArgument, device: DeviceOption = "cpu", size: SizeOption = None, json: JsonOption = False
) -> None:
    """Zone, floors and what binds the problem: no kernel needed."""
    from cupilot.cli.roofline import run

    raise typer.Exit(run(problem, size=size, device=device, json=json))


@app.command()
def doctor() -> None:
    """What this machine offers: compiler, torch, sandbox layers, clock; and how to mend what is missing."""
    from cupilot.cli.doctor import run

    raise typer.Exit(run())


def main() -> None:
    """The entry point: the one place where a fault becomes a message."""
    try:
        app()
    except CupilotError as error:
        _complain(error)
        sys.exit(FAULT)
    except KeyboardInterrupt:
        Console(stderr=True).print("interrupted")
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away (`cupilot ... | head`): not our fault, and nothing to say it to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _complain(error: CupilotError) -> None:
    console = Console(stderr=True, highlight=False)
    head, _, hint = str(error).partition("\n  hint: ")
    console.print(f"[bold red]error[/] {_plain(head)}", soft_wrap=True)
    if hint:
        console.print(f" [bold]hint[/] {_plain(hint)}", soft_wrap=True)


def _plain(text: str) -> str:
    return text.replace("[", r"\[")
