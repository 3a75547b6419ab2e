"""Tactics: single ideas that can be applied to a kernel, and the cookbook that holds them.

A tactic is data (`cookbook/*.toml`). It says what the idea does, which resource it moves, where it pays,
what it needs and what it excludes, and how to see in a finished kernel whether it is there. It does not
say how to write the code: that is the author's work.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from cupilot.errors import CupilotError
from cupilot.roofline import Zone
from cupilot.strategy.evidence import Condition, parse_condition


class CookbookError(CupilotError):
    """A cookbook file contradicts itself; the message names the file and the tactic."""


class Resource(StrEnum):
    """What a tactic relieves."""

    BYTES = "bytes"
    OPERATIONS = "operations"
    LATENCY = "latency"
    PARALLELISM = "parallelism"
    PRECISION = "precision"
    LAUNCHES = "launches"


@dataclass(frozen=True)
class Parameter:
    """A choice inside a tactic. Structural ones only: numbers that merely need tuning belong in `tune:`."""

    name: str
    values: tuple[int | str, ...]


@dataclass(frozen=True)
class Tactic:
    id: str
    title: str
    does: str
    moves: Resource
    zones: frozenset[Zone]
    requires: frozenset[str]
    conflicts: frozenset[str]
    parameters: tuple[Parameter, ...]
    hints: Mapping[str, str]  # by language: "cpp", "cu"
    evidence: Mapping[str, tuple[Condition, ...]]  # by language; all must hold
    tested: str  # the pair of kernel files that shows its effect, or "" for untested
    language: str = "cpp"  # of the kernels it is for: "cpp" or "cu"

    def parameter(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)


class Cookbook:
    """All tactics by id; conflicts are symmetric and every reference is checked."""

    def __init__(self, tactics: Iterable[Tactic]) -> None:
        self._tactics: dict[str, Tactic] = {}
        for tactic in tactics:
            if tactic.id in self._tactics:
                raise CookbookError(f"tactic {tactic.id!r} is defined twice")
            self._tactics[tactic.id] = tactic
        for tactic in self:
            for other in tactic.requires | tactic.conflicts:
                if other not in self._tactics:
                    raise CookbookError(f"tactic {tactic.id!r} names {other!r}, which does not exist")
            if tactic.requires & tactic.conflicts:
                raise CookbookError(f"tactic {tactic.id!r} both requires and excludes another")

    def __iter__(self) -> Iterator[Tactic]:
        return iter(self._tactics.values())

    def __len__(self) -> int:
        return len(self._tactics)

    def __contains__(self, tactic_id: str) -> bool:
        return tactic_id in self._tactics

    def __getitem__(self, tactic_id: str) -> Tactic:
        return self._tactics[tactic_id]

    def conflict(self, a: str, b: str) -> bool:
        return b in self[a].conflicts or a in self[b].conflicts

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Tables as in a cookbook file, by tactic; `recorded_cookbook` reads them."""
        return {tactic.id: _table(tactic) for tactic in self}

    def written_in(self, language: str) -> Cookbook:
        """The tactics for kernels of this language."""
        return self.restricted(tactic.id for tactic in self if tactic.language == language)

    def restricted(self, ids: Iterable[str]) -> Cookbook:
        """The tactics that an author can realise; a tactic whose requirement is left out goes too."""
        keep = set(ids) & set(self._tactics)
        while lacking := {i for i in keep if not self[i].requires <= keep}:
            keep -= lacking
        return Cookbook(replace(t, conflicts=t.conflicts & keep) for t in self if t.id in keep)


def recorded_cookbook(tables: Mapping[str, Mapping[str, Any]]) -> Cookbook:
    """The inverse of `Cookbook.to_json`; the language is not part of it."""
    return Cookbook(_tactic("a recorded cookbook", name, table) for name, table in tables.items())


@cache
def load_cookbook() -> Cookbook:
    """The cookbook that ships with cuPilot."""
    folder = resources.files("cupilot.strategy") / "cookbook"
    tactics: list[Tactic] = []
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".toml"):
            tables = tomllib.loads(entry.read_text(encoding="utf-8"))
            found = [_tactic(entry.name, tactic_id, table) for tactic_id, table in tables.items()]
            language = "cu" if entry.name.startswith("cuda") else "cpp"
            tactics += [replace(tactic, language=language) for tactic in found]
    return Cookbook(tactics)


_KEYS = {
    "title",
    "does",
    "moves",
    "zones",
    "requires",
    "conflicts",
    "parameters",
    "hints",
    "evidence",
    "tested",
}


def _tactic(file: str, tactic_id: str, table: Mapping[str, Any]) -> Tactic:
    if unknown := set(table) - _KEYS:
        raise CookbookError(f"{file}: tactic {tactic_id!r} has unknown keys {sorted(unknown)}")
    try:
        return Tactic(
            id=tactic_id,
            title=table["title"],
            does=" ".join(table["does"].split()),
            moves=Resource(table["moves"]),
            zones=frozenset(Zone(z) for z in table["zones"]),
            requires=frozenset(table.get("requires", ())),
            conflicts=frozenset(table.get("conflicts", ())),
            parameters=tuple(Parameter(n, tuple(v)) for n, v in table.get("parameters", {}).items()),
            hints={k: " ".join(v.split()) for k, v in table.get("hints", {}).items()},
            evidence={k: tuple(parse_condition(c) for c in v) for k, v in table.get("evidence", {}).items()},
            tested=table.get("tested", ""),
        )
    except (KeyError, ValueError) as error:
        raise CookbookError(f"{file}: tactic {tactic_id!r}: {error}") from error


def _table(tactic: Tactic) -> dict[str, Any]:
    return {
        "title": tactic.title,
        "does": tactic.does,
        "moves": tactic.moves.value,
        "zones": sorted(tactic.zones),
        "requires": sorted(tactic.requires),
        "conflicts": sorted(tactic.conflicts),
        "parameters": {p.name: list(p.values) for p in tactic.parameters},
        "hints": dict(tactic.hints),
        "evidence": {name: [str(c) for c in conditions] for name, conditions in tactic.evidence.items()},
        "tested": tactic.tested,
    }
