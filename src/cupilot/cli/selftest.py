"""`cupilot selftest`: mounts every attack we know on this machine, and says which layer stopped it."""

from __future__ import annotations

import json as json_module
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cupilot.device.sandbox import Layer, probe
from cupilot.selftest.cheat import Cheat, Defence, Outcome, Twin, is_stopped
from cupilot.selftest.mounting import Yard


@dataclass(frozen=True)
class Mounted:
    subject: Cheat | Twin
    outcome: Outcome

    @property
    def is_good(self) -> bool:
        """A cheat was refused or gained nothing; an honest twin was not refused."""
        if isinstance(self.subject, Twin):
            return self.outcome.stage is None
        return is_stopped(self.subject, self.outcome)

    @property
    def caught_by(self) -> str:
        """The layer that was expected to stop it, if it did; otherwise whoever did."""
        if not isinstance(self.subject, Cheat) or not self.is_good:
            return ""
        if self.outcome.stage is self.subject.stage:
            return self.subject.defence.value
        return f"stage {self.outcome.stage}"


def run(subjects: Sequence[Cheat | Twin], *, json: bool) -> int:
    """0 when nothing gets through and every honest twin passes, 1 otherwise."""
    began_s = time.monotonic()
    layers = probe()
    console = Console(highlight=False, quiet=json)
    _print_layers(console, layers)
    mounted = []
    spinning = console if console.is_terminal and not json else Console(stderr=True)
    with Yard() as yard, spinning.status("") as status:
        for place, subject in enumerate(subjects, 1):
            status.update(f"{place} of {len(subjects)}: {subject.name}")
            mounted.append(Mounted(subject, yard.mount(subject)))
            _print_one(console, mounted[-1])
    took_s = time.monotonic() - began_s
    if json:
        print(json_module.dumps(_as_json(layers, mounted, took_s)))
    _print_summary(console, mounted, took_s)
    return 0 if all(each.is_good for each in mounted) else 1


def _print_layers(console: Console, layers: tuple[Layer, ...]) -> None:
    table = Table.grid(padding=(0, 2))
    for layer in layers:
        mark = Text("✔ holds", "green") if layer.works else Text("✘ missing", "red")
        table.add_row(mark, Text(layer.name, "bold"), layer.covers if layer.works else f"to fix: {layer.fix}")
    console.print("The layers on this machine", style="bold")
    console.print(table)
    console.print()


def _print_one(console: Console, mounted: Mounted) -> None:
    """One line in a terminal, cut where it ends; the whole reason in a file, and where something is amiss."""
    subject, outcome = mounted.subject, mounted.outcome
    mark = Text("✔ ", "green") if mounted.is_good else Text("✘ ", "red")
    if isinstance(subject, Twin):
        says = outcome.reason if mounted.is_good else f"refused, but honest: {outcome.reason}"
    elif not mounted.is_good:
        says = f"GOT THROUGH: {outcome.reason}"
    else:
        says = f"{mounted.caught_by}: {outcome.reason}"
    line = Text.assemble(mark, f"{subject.name:33} ", (says, "dim"))
    if console.is_terminal and mounted.is_good:
        line.truncate(console.width, overflow="ellipsis")
    console.print(line, soft_wrap=True)


def _print_summary(console: Console, mounted: list[Mounted], took_s: float) -> None:
    cheats = [each for each in mounted if isinstance(each.subject, Cheat)]
    twins = [each for each in mounted if isinstance(each.subject, Twin)]
    caught = Counter(each.caught_by for each in cheats if each.is_good)
    console.print()
    for defence in Defence:
        if caught[defence.value]:
            console.print(f"{caught[defence.value]:5}  stopped by the {defence.value}")
    refused, passed = sum(each.is_good for each in cheats), sum(each.is_good for each in twins)
    good = refused == len(cheats) and passed == len(twins)
    console.print(
        f"\n{len(cheats)} attacks mounted, {refused} stopped; {len(twins)} honest twins, {passed} passed; "
        f"{took_s:.0f} s",
        style="bold green" if good else "bold red",
    )
    if not good:
        console.print("please report what got through: docs/trust.md says how")


def _as_json(layers: tuple[Layer, ...], mounted: list[Mounted], took_s: float) -> dict[str, object]:
    return {
        "layers": {layer.name: layer.works for layer in layers},
        "attacks": [
            {
                "name": each.subject.name,
                "stopped": each.is_good,
                "by": each.caught_by,
                "stage": each.outcome.stage,
                "reason": each.outcome.reason,
            }
            for each in mounted
            if isinstance(each.subject, Cheat)
        ],
        "twins": [
            {"name": each.subject.name, "passed": each.is_good, "reason": each.outcome.reason}
            for each in mounted
            if isinstance(each.subject, Twin)
        ],
        "took_s": round(took_s, 1),
    }
