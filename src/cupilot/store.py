"""One table of answers: whatever is slow or uncertain is a question, asked once and kept.

A row is (kind, hash of the request) -> answer. Running the loop again over the same table is how a run is
resumed, replayed and studied: recorded questions are answered at once, only new ones cost anything.
The table is append-only and in WAL mode, so kill -9 loses only what was in flight.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cupilot.errors import UsageError

VERSION = 1

Json = Mapping[str, Any]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    seq      INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL,
    hash     TEXT NOT NULL,
    request  TEXT NOT NULL,
    answer   TEXT NOT NULL,
    cost_s   REAL NOT NULL,
    asked_at REAL NOT NULL,
    UNIQUE (kind, hash)
);
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class UnansweredError(Exception):
    """A question that the table cannot answer was asked where nothing may be computed."""


@dataclass(frozen=True)
class Row:
    seq: int
    kind: str
    hash: str
    request: Json
    answer: Json
    cost_s: float
    asked_at: float


def request_hash(request: Json) -> str:
    """Stable over processes: canonical JSON, so equal requests are equal whoever asks."""
    text = json.dumps(request, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Store:
    """The table of one run. Thread-safe; one process at a time owns it."""

    def __init__(self, path: Path, *, exclusive: bool = True) -> None:
        self.path = path
        self._lock_file = _own(path) if exclusive else None
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            self._release()
            raise UsageError(
                f"{path} cannot be used: {error}",
                hint="check that the disk has space and that the file is a run",
            ) from error
        self._check_version()

    def _check_version(self) -> None:
        self._db.execute("INSERT OR IGNORE INTO meta VALUES ('version', ?)", (str(VERSION),))
        found = self.meta("version")
        if found != str(VERSION):
            self.close()
            raise UsageError(
                f"{self.path} was written by another version (format {found}, this is {VERSION})",
                hint="start a new run, or use the version of cuPilot that made it",
            )

    def ask(self, kind: str, request: Json, compute: Callable[[], Json]) -> Json:
        """The recorded answer, or `compute()`'s, recorded before it is returned."""
        known = self.get(kind, request)
        if known is not None:
            return known.answer
        start = time.monotonic()
        answer = compute()
        self.put(kind, request, answer, cost_s=time.monotonic() - start)
        return answer

    def get(self, kind: str, request: Json) -> Row | None:
        rows = list(self._rows("WHERE kind = ? AND hash = ?", (kind, request_hash(request))))
        return rows[0] if rows else None

    def put(self, kind: str, request: Json, answer: Json, *, cost_s: float) -> None:
        row = (kind, request_hash(request), json.dumps(request), json.dumps(answer), cost_s, time.time())
        with self._lock:
            try:
                self._db.execute(
                    "INSERT OR IGNORE INTO answers (kind, hash, request, answer, cost_s, asked_at)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    row,
                )
            except sqlite3.OperationalError as error:
                raise UsageError(
                    f"{self.path}: cannot write: {error}",
                    hint="free some disk space, then `cupilot resume` the run: nothing recorded is lost",
                ) from error

    def rows(self, kind: str | None = None) -> Iterator[Row]:
        """In the order in which they were asked."""
        if kind is None:
            return self._rows("ORDER BY seq", ())
        return self._rows("WHERE kind = ? ORDER BY seq", (kind,))

    def _rows(self, where: str, values: tuple[str, ...]) -> Iterator[Row]:
        query = f"SELECT seq, kind, hash, request, answer, cost_s, asked_at FROM answers {where}"
        with self._lock:
            found = self._db.execute(query, values).fetchall()
        for seq, kind, key, request, answer, cost_s, asked_at in found:
            yield Row(seq, kind, key, json.loads(request), json.loads(answer), cost_s, asked_at)

    def meta(self, key: str) -> str | None:
        with self._lock:
            row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        with self._lock:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def close(self) -> None:
        with self._lock:  # a draft that nobody takes may still be asking in its thread
            self._db.close()
        self._release()

    @property
    def owned(self) -> bool:
        return self._lock_file is not None

    def _release(self) -> None:
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _own(path: Path) -> int:
    """An exclusive lock that the kernel drops with the process, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise UsageError(
            f"another process is working on {path.parent}", hint="wait for it or stop it, then try again"
        ) from error
    return handle
