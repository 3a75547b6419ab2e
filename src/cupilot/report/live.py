"""What a person sees while a search runs: one small panel that redraws itself, or plain lines.

A `Watcher` of the loop. The first Ctrl-C asks the search to end gracefully; the second one interrupts it.
"""

from __future__ import annotations

import signal
import sys
import termios
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from cupilot.budget import Amounts, Budget
from cupilot.evaluate.result import Verdict
from cupilot.evolve.candidate import Candidate, Slot
from cupilot.report.view import words
from cupilot.units import seconds

_RECENT = 6
_BARS = "▁▂▃▄▅▆▇█"
_SPARK = 40
_MOST_CHARS = 200  # of a candidate's line where there is no terminal to say how wide it is


class LiveDisplay:
    """`with LiveDisplay(...) as watcher: Search(..., watcher=watcher)`"""

    def __init__(
        self, console: Console, problem: str, budget: Budget, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.console, self.problem, self.budget, self.clock = console, problem, budget, clock
        self.started_s = clock()
        self.records: list[Candidate] = []
        self.now = "reading the problem"
        self.finished_s: dict[Slot, float] = {}
        self._stop = False
        self._live = Live(
            get_renderable=self.renderable, console=console, refresh_per_second=4, transient=True
        )
        self._before: Any = None
        self._terminal: list[Any] | None = None  # how it was set

    def __enter__(self) -> LiveDisplay:
        self._before = signal.signal(signal.SIGINT, self._interrupted)
        if self.console.is_terminal:
            self._terminal = _without_echo_of_control()
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)
        if self.console.is_terminal:
            self._live.stop()
            if self._terminal is not None:
                _set_terminal(self._terminal)

    def trying(self, slot: Slot, what: str) -> None:
        self.now = f"{slot}  {what}"

    def recorded(self, candidate: Candidate, champion: Candidate | None) -> None:
        self.records.append(candidate)
        self.finished_s.setdefault(candidate.slot, self.clock() - self.started_s)
        if not self.console.is_terminal:
            line = _line(candidate)
            line.truncate(_MOST_CHARS, overflow="ellipsis")  # a model's steps are whole sentences
            self.console.print(line, soft_wrap=True)

    def notice(self, what: str) -> None:
        self.now = what
        if not self.console.is_terminal:
            self.console.print(Text(what, "dim"))

    def stop_requested(self) -> bool:
        return self._stop

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self._stop:
            raise KeyboardInterrupt
        self._stop = True
        self.now = "ending: the candidate in flight, then the final proof (Ctrl-C again to stop at once)"

    def renderable(self) -> Panel:
        facts = Table.grid(padding=(0, 2))
        facts.add_column(style="dim", no_wrap=True)
        facts.add_column(overflow="ellipsis")
        facts.add_row("best", self._best())
        if self.records:
            facts.add_row("search", self._spark())
        facts.add_row("now", Text(self.now, overflow="ellipsis", no_wrap=True))
        facts.add_row("budget", self._budget())
        recent = [_line(c) for c in self.records[-_RECENT:]]
        generation = self.records[-1].slot.generation if self.records else 0
        title = Text.assemble((self.problem, "bold"), f"  generation {generation}")
        return Panel(Group(facts, *recent), title=title, title_align="left", border_style="cyan")

    def _best(self) -> Text:
        """The fastest so far; races at the end of a generation make it champion, or not."""
        best = max((c for c in self.records if c.passed), key=lambda c: c.speedup.ratio, default=None)
        if best is None:
            return Text("no kernel has passed yet", "dim")
        found = best.evaluation
        headroom = "" if found.headroom is None else f"   {found.headroom:.0%} headroom"
        time_s = "" if found.time_s is None else f"   {seconds(found.time_s)}"
        ratio = Text(f"{best.speedup.ratio:.2f}x", "bold green")
        return ratio + Text(
            f" over eager [{best.speedup.low:.2f}, {best.speedup.high:.2f}]{time_s}{headroom}   {best.slot}",
            "dim",
        )

    def _spark(self) -> Text:
        ratios = [c.speedup.ratio if c.passed else 0.0 for c in self.records[-_SPARK:]]
        top = max(ratios) or 1.0
        bars = "".join(_BARS[min(7, int(r / top * 7.99))] if r else "×" for r in ratios)
        passed = sum(c.passed for c in self.records)
        return Text.assemble((bars, "cyan"), (f"  {passed} of {len(self.records)} passed", "dim"))

    def _budget(self) -> Text:
        elapsed = self.clock() - self.started_s
        parts = [f"{elapsed:.0f} s elapsed"]
        parts += _used(self.budget.spent, self.budget.limits)
        return Text("   ".join(parts), "dim")


def _without_echo_of_control() -> list[Any] | None:
    """A terminal that wrote ^C where it is pressed would tear the panel; returns how it was set."""
    if not sys.stdin.isatty():
        return None
    before = termios.tcgetattr(sys.stdin)
    quiet = [*before]
    quiet[3] &= ~termios.ECHOCTL
    _set_terminal(quiet)
    return before


def _set_terminal(attributes: list[Any]) -> None:
    """Also from the background, where it would otherwise stop the process."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    termios.tcsetattr(sys.stdin, termios.TCSANOW, attributes)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _used(spent: Amounts, limits: Amounts) -> list[str]:
    named = {
        "s searched": (spent.time_s, limits.time_s),
        "evaluations": (spent.evaluations, limits.evaluations),
        "tokens": (spent.tokens, limits.tokens),
        "usd": (spent.money_usd, limits.money_usd),
    }
    return [
        f"{used:.0f}{'' if limit == float('inf') else f'/{limit:g}'} {name}"
        for name, (used, limit) in named.items()
        if used or limit != float("inf")
    ]


def _line(candidate: Candidate) -> Text:
    if candidate.passed:
        outcome = Text(f"{candidate.speedup.ratio:6.2f}x ", "green")
    elif candidate.evaluation.verdict is Verdict.UNDECIDED:
        outcome = Text("noise ".rjust(8), "yellow")  # the machine was too busy to time it
    else:
        outcome = Text(f"{candidate.evaluation.stage:>7} ", "red")
    strategy = words(candidate.strategy if candidate.passed else candidate.intended)
    line = Text.assemble((f"{candidate.slot!s:>6} ", "dim"), outcome, f"{candidate.origin:<9}", strategy)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line
