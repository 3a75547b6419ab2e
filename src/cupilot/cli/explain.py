"""`cupilot explain RUN`: what each tactic of the champion is worth, measured by leaving it out."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cupilot.evolve.explain import Explanation, Worth, explain
from cupilot.evolve.folder import find

CLEAR = 1.03  # slower by less is noise


def run(given: Path) -> int:
    progress = Console(stderr=True, highlight=False)
    with progress.status("reading the run") as status:
        found = explain(find(given), lambda what: status.update(what))
    Console(highlight=False).print(page(found))
    return 0


def page(found: Explanation) -> RenderableType:
    head = Text.assemble(
        (found.run.problem.name, "bold"), f"  {found.champion.slot}  {found.champion.speedup} over eager"
    )
    if not found.worths:
        return Group(head, Padding("the champion is the plain kernel: nothing can be left out", (1, 0)))
    table = Table(box=None, pad_edge=False, padding=(0, 2))
    table.add_column("without", no_wrap=True)
    for column in ("slower by", "", ""):
        table.add_column(column, overflow="fold")
    for worth in sorted(found.worths, key=lambda w: -(w.slowdown.ratio if w.slowdown else 0)):
        with_it = f"takes along {', '.join(worth.gone)}" if worth.gone else ""
        table.add_row(str(worth.use), *_figure(worth), with_it)
    return Group(head, Padding(table, (1, 0, 0, 0)))


def _figure(worth: Worth) -> tuple[Text, str]:
    if worth.slowdown is None:
        return Text("-", "dim"), worth.note
    slower = worth.slowdown
    if slower.low > 1 and slower.ratio >= CLEAR:
        return Text(str(slower), "bold"), ""
    if slower.high < 1 and slower.ratio <= 1 / CLEAR:
        return Text(str(slower), "yellow"), "the champion would be faster without it"
    return Text(str(slower), "dim"), "makes no difference here"
