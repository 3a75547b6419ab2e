"""The pool: what earlier runs learned, for problems to come.

A record says which problem it was (by structure, never by name), where it was measured, the first and the
best kernel, and the strategy between them. Only results that passed the evaluator's contract get in.
Retrieval ranks by structure and by words, and fuses the two ranks; structure counts double. One SQLite
file (full-text search is SQLite's own); records travel as JSON lines.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cupilot.errors import UsageError
from cupilot.kinship import KIN, Structure, similarity
from cupilot.kinship import from_json as structure_from_json
from cupilot.ledger import Trial, trial_from_json, trial_to_json
from cupilot.strategy.strategy import Strategy, from_json, to_json

FORMAT = 1
_FUSION = 20  # of reciprocal ranks: how fast a worse rank loses weight
_STRUCTURE_WEIGHT = 2.0
_TRIALS_READ = 400  # of the nearest problems


@dataclass(frozen=True)
class Record:
    problem: str  # a name for people
    fingerprint: str  # without shapes
    structure: Structure
    device: str
    strategy: Strategy
    first_kernel: str
    best_kernel: str
    speedup: float  # over eager
    measurements: Mapping[str, Any]
    lineage: tuple[str, ...] = ()  # fingerprints of the problems whose records seeded the run

    @property
    def id(self) -> str:
        key = json.dumps([self.fingerprint, self.device, self.strategy.hash, self.best_kernel])
        return hashlib.sha256(key.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Lesson:
    """What one run tried, and on which problem."""

    fingerprint: str
    structure: Structure
    trials: tuple[Trial, ...]
    lineage: tuple[str, ...] = ()


@dataclass(frozen=True)
class Match:
    record: Record
    similarity: float  # by structure, 0 to 1


def default_path() -> Path:
    """CUPILOT_POOL, or a file in the user's data folder."""
    named = os.environ.get("CUPILOT_POOL")
    if named:
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "cupilot" / "pool.db"


class Pool:
    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, record TEXT NOT NULL)")
            self._db.execute("CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(id UNINDEXED, text)")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS trials (run TEXT NOT NULL, fingerprint TEXT NOT NULL,"
                " number INTEGER NOT NULL, trial TEXT NOT NULL, UNIQUE (run, number))"
            )
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, fingerprint TEXT NOT NULL,"
                " structure TEXT NOT NULL, lineage TEXT NOT NULL)"
            )
        except (OSError, sqlite3.DatabaseError) as error:
            raise UsageError(
                f"the pool {path} cannot be opened: {error}", hint="set CUPILOT_POOL to another file"
            ) from error

    def add(self, record: Record) -> bool:
        """False when it is known already."""
        text = json.dumps(record_to_json(record))
        with self._writing():
            known = self._db.execute("SELECT 1 FROM records WHERE id = ?", (record.id,)).fetchone()
            if known is None:
                self._db.execute("INSERT INTO records VALUES (?, ?)", (record.id, text))
                self._db.execute("INSERT INTO words VALUES (?, ?)", (record.id, _words(record)))
        return known is None

    def __iter__(self) -> Iterator[Record]:
        for (text,) in self._db.execute("SELECT record FROM records ORDER BY id").fetchall():
            yield record_from_json(json.loads(text))

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM records").fetchone()[0])

    def get(self, record_id: str) -> Record:
        """By id or an unambiguous beginning of it."""
        found = self._db.execute(
            "SELECT record FROM records WHERE substr(id, 1, ?) = ?", (len(record_id), record_id)
        ).fetchall()
        if len(found) != 1 or not record_id:
            what = "is ambiguous" if found else "is not in the pool"
            raise UsageError(f"record {record_id!r} {what}", hint="`cupilot pool list` shows all ids")
        return record_from_json(json.loads(found[0][0]))

    def forget(self, record_id: str) -> Record:
        record = self.get(record_id)
        with self._writing():
            self._db.execute("DELETE FROM records WHERE id = ?", (record.id,))
            self._db.execute("DELETE FROM words WHERE id = ?", (record.id,))
        return record

    def similar(
        self, structure: Structure, device: str, count: int, *, hold_out: str | None = None, words: str = ""
    ) -> list[Match]:
        """The best matches, most useful first.

        `hold_out` is a shape-free fingerprint: its own records and all that descend from them are left out.
        """
        records = [r for r in self if hold_out is None or not _descends(r, hold_out)]
        by_structure = sorted(records, key=lambda r: (-_worth(r, structure, device), r.id))
        ranks = {r.id: _STRUCTURE_WEIGHT / (_FUSION + i) for i, r in enumerate(by_structure)}
        query = words or " ".join((*structure.operators, *structure.work, structure.family))
        for i, record_id in enumerate(self.matching_words(query)):
            if record_id in ranks:
                ranks[record_id] += 1 / (_FUSION + i)
        best = sorted(records, key=lambda r: (-ranks[r.id], r.id))[:count]
        return [Match(record, similarity(record.structure, structure)) for record in best]

    def matching_words(self, text: str) -> list[str]:
        """Ids of records that share a word with the text, best match first."""
        terms = dict.fromkeys(re.findall(r"[a-z0-9_]+", text.lower()))
        if not terms:
            return []
        query = " OR ".join(f'"{term}"' for term in terms)
        rows = self._db.execute("SELECT id FROM words WHERE words MATCH ? ORDER BY rank, id", (query,))
        return [row[0] for row in rows.fetchall()]

    def learn(self, run: str, lesson: Lesson) -> None:
        """What a run tried, for the credit of tactics in later ones; what it told before is replaced."""
        trials = [
            (run, lesson.fingerprint, number, json.dumps(trial_to_json(trial)))
            for number, trial in enumerate(lesson.trials)
        ]
        about = json.dumps(asdict(lesson.structure)), json.dumps(lesson.lineage)
        with self._writing():
            self._db.execute("DELETE FROM trials WHERE run = ?", (run,))
            self._db.executemany("INSERT INTO trials VALUES (?, ?, ?, ?)", trials)
            self._db.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", (run, lesson.fingerprint, *about)
            )

    def lessons(
        self, structure: Structure, device: str, *, hold_out: str | None = None, least: float = KIN
    ) -> list[Lesson]:
        """Of earlier runs on this device, on problems at least so alike, the most alike first.

        No more than can be weighed quickly; `hold_out` as for `similar`.
        """
        rows = self._db.execute(
            "SELECT run, fingerprint, structure, lineage FROM runs ORDER BY run"
        ).fetchall()
        told = [
            (run, Lesson(name, structure_from_json(json.loads(about)), (), tuple(json.loads(lineage))))
            for run, name, about, lineage in rows
        ]
        alike = [(similarity(lesson.structure, structure), run, lesson) for run, lesson in told]
        found: list[Lesson] = []
        for likeness, run, lesson in sorted(alike, key=lambda entry: (-entry[0], entry[1])):
            room = _TRIALS_READ - sum(len(other.trials) for other in found)
            if likeness < least or room <= 0:
                break
            if hold_out is None or not _descends(lesson, hold_out):
                trials = [trial for trial in self._trials(run) if trial.cell.device == device]
                found.append(replace(lesson, trials=tuple(trials[:room])))
        return [lesson for lesson in found if lesson.trials]

    def _trials(self, run: str) -> list[Trial]:
        rows = self._db.execute("SELECT trial FROM trials WHERE run = ? ORDER BY number", (run,))
        return [trial_from_json(json.loads(text)) for (text,) in rows.fetchall()]

    def export(self) -> Iterator[str]:
        """One JSON object a line."""
        for record in self:
            yield json.dumps(record_to_json(record), sort_keys=True)

    def load(self, lines: Iterable[str]) -> tuple[int, int]:
        """Adds exported lines; (added, known already). Nothing is added when one line is unusable."""
        records = [_parse_line(number, line) for number, line in enumerate(lines, 1) if line.strip()]
        added = sum(self.add(record) for record in records)
        return added, len(records) - added

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """All or nothing; a pool that cannot be written is named."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
        except sqlite3.OperationalError as error:
            raise UsageError(
                f"the pool {self.path} cannot be written: {error}",
                hint="free disk space, or set CUPILOT_POOL to another file",
            ) from error

    def close(self) -> None:
        self._db.close()


def _worth(record: Record, structure: Structure, device: str) -> float:
    """Similarity, a little more where the record is from this device and where it brought much."""
    gain = min(math.log2(max(record.speedup, 1.0)), 4.0) / 4
    return similarity(record.structure, structure) + 0.05 * (record.device == device) + 0.03 * gain


def _descends(kept: Record | Lesson, fingerprint: str) -> bool:
    return kept.fingerprint == fingerprint or fingerprint in kept.lineage


def lesson_to_json(lesson: Lesson) -> dict[str, Any]:
    return {
        "fingerprint": lesson.fingerprint,
        "structure": asdict(lesson.structure),
        "trials": [trial_to_json(trial) for trial in lesson.trials],
        "lineage": list(lesson.lineage),
    }


def lesson_from_json(data: Mapping[str, Any]) -> Lesson:
    return Lesson(
        str(data["fingerprint"]),
        structure_from_json(data["structure"]),
        tuple(map(trial_from_json, data["trials"])),
        tuple(data["lineage"]),
    )


def _words(record: Record) -> str:
    steps = " ".join((*map(str, record.strategy.uses), *record.strategy.free_steps))
    return " ".join(
        (
            record.problem,
            record.structure.family,
            *record.structure.operators,
            *record.structure.work,
            steps,
            record.strategy.rationale,
        )
    )


def record_to_json(record: Record) -> dict[str, Any]:
    return {
        **asdict(replace(record, strategy=Strategy())),
        "strategy": to_json(record.strategy),
        "format": FORMAT,
    }


def record_from_json(data: Mapping[str, Any]) -> Record:
    return Record(
        problem=str(data["problem"]),
        fingerprint=str(data["fingerprint"]),
        structure=structure_from_json(data["structure"]),
        device=str(data["device"]),
        strategy=from_json(data["strategy"]),
        first_kernel=str(data["first_kernel"]),
        best_kernel=str(data["best_kernel"]),
        speedup=float(data["speedup"]),
        measurements=dict(data["measurements"]),
        lineage=tuple(data["lineage"]),
    )


def _parse_line(number: int, line: str) -> Record:
    try:
        data = json.loads(line)
        if data["format"] != FORMAT:
            raise UsageError(
                f"line {number}: written by another version (format {data['format']}, this is {FORMAT})"
            )
        return record_from_json(data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"line {number} is no pool record ({type(error).__name__}: {error})",
            hint="use a file that `cupilot pool export` wrote",
        ) from error
