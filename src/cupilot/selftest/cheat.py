"""What a cheat is, who has to stop it, and what came of mounting it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cupilot.types import Stage

_FOLDER = Path(__file__).parent


class Defence(StrEnum):
    """The layers of docs/trust.md."""

    PARSER = "parser"
    JAIL = "compiler's jail"
    INSPECTION = "inspection"
    SANDBOX = "kernel's sandbox"
    VERIFICATION = "verification"
    TIMING = "timing"


@dataclass(frozen=True)
class Cheat:
    """`says` is part of the reason people are given. A stage of None: never wrong, and it gains nothing."""

    kernel: str  # a file in cheats/
    problem: str
    stage: Stage | None
    defence: Defence
    says: str
    past_inspection: bool = False  # mounted as if nobody had looked at its text and its library
    edit: Callable[[bytes], bytes] | None = None  # made to its library, which no compiler would produce so

    @property
    def name(self) -> str:
        return self.kernel.replace("_", " ") + (", past inspection" if self.past_inspection else "")

    @property
    def text(self) -> str:
        return (_FOLDER / "cheats" / f"{self.kernel}.cpp").read_text()


@dataclass(frozen=True)
class Twin:
    """An honest kernel close to some of the cheats: it must pass, or refusing the cheats proves nothing."""

    kernel: str  # a file in twins/
    problem: str

    @property
    def name(self) -> str:
        return f"{self.kernel.replace('_', ' ')} (honest)"

    @property
    def text(self) -> str:
        return (_FOLDER / "twins" / f"{self.kernel}.cpp").read_text()


def problem_path(name: str) -> Path:
    return _FOLDER / "problems" / f"{name}.py"


@dataclass(frozen=True)
class Outcome:
    """What became of a kernel that was mounted. A stage of None: it is right, and nobody refused it."""

    stage: Stage | None
    reason: str
    gain: float = 0.0  # over the plain twin, where it was timed


_WORTHWHILE_GAIN = 1.15  # what noise cannot explain on a busy machine


def is_stopped(cheat: Cheat, outcome: Outcome) -> bool:
    """Whether it was refused; one that is never wrong need only have gained nothing."""
    return outcome.stage is not None or (cheat.stage is None and outcome.gain < _WORTHWHILE_GAIN)
