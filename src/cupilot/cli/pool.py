"""`cupilot pool ...`: look into what earlier runs left, forget records, carry them elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from cupilot.errors import UsageError

if TYPE_CHECKING:  # numpy would slow every command down, --help among them
    from cupilot.pool import Pool, Record

app = typer.Typer(
    no_args_is_help=True, help="What earlier runs learned: proven kernels with their strategies."
)

RecordArgument = Annotated[str, typer.Argument(help="A record's id, or the beginning of it.")]


@contextmanager
def _opened() -> Iterator[Pool]:
    from cupilot.pool import Pool, default_path

    with closing(Pool(default_path())) as pool:
        yield pool


@app.command("list")
def list_records() -> None:
    """All records, one a line."""
    with _opened() as pool:
        _print(list(pool), pool)


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(help="Operators, families, tactics, problems.")],
) -> None:
    """Records that share words with the question, best match first."""
    with _opened() as pool:
        found = [pool.get(record_id) for record_id in pool.matching_words(" ".join(words))]
        if len(pool) and not found:
            Console(highlight=False).print(f"none of {len(pool)} records has such words", soft_wrap=True)
            return
        _print(found, pool)


@app.command()
def show(record: RecordArgument) -> None:
    """One record: what it was, how fast, the strategy and the kernel."""
    with _opened() as pool:
        found = pool.get(record)
    console = Console(highlight=False)
    structure = found.structure
    console.print(f"[bold]{found.problem}[/]  {found.id}  {found.device}  {found.speedup:.2f}x over eager")
    console.print(f"[dim]operators[/]  {' '.join(structure.operators)}  ({structure.family})")
    console.print(
        f"[dim]where[/]      {structure.zone}-bound, {structure.intensity_ops_per_byte:.3g} op/byte, "
        f"{structure.elements} elements"
    )
    console.print(str(found.strategy), markup=False)
    console.print(found.best_kernel, markup=False, soft_wrap=True)


@app.command()
def forget(record: RecordArgument) -> None:
    """Remove one record."""
    with _opened() as pool:
        gone = pool.forget(record)
    Console(highlight=False).print(f"forgot {gone.id} ({gone.problem})")


@app.command("export")
def export_records(
    out: Annotated[Path | None, typer.Argument(help="A file; standard output without one.")] = None,
) -> None:
    """Write all records as JSON lines."""
    with _opened() as pool:
        lines = list(pool.export())
    if out is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return
    try:
        out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror}", hint="choose another file") from error
    Console(highlight=False).print(f"{len(lines)} records  {out}")


@app.command("import")
def import_records(
    source: Annotated[Path, typer.Argument(help="A file that `cupilot pool export` wrote.")],
) -> None:
    """Add records from JSON lines; all of them, or none when a line is unusable."""
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(
            f"{source} cannot be read: {why}", hint="give a file that `cupilot pool export` wrote"
        ) from error
    with _opened() as pool:
        added, known = pool.load(text.splitlines())
    Console(highlight=False).print(f"{added} added, {known} known already")


def _print(records: list[Record], pool: Pool) -> None:
    console = Console(highlight=False)
    if not records:
        console.print(f"no records in {pool.path}; every proven champion leaves one", soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for column in ("id", "problem", "device", "over eager", "zone", "strategy"):
        table.add_column(column, overflow="fold")
    for record in records:
        uses = ", ".join(map(str, record.strategy.uses)) or "plain"
        zone = str(record.structure.zone)
        table.add_row(record.id, record.problem, record.device, f"{record.speedup:.2f}x", zone, uses)
    console.print(table)
