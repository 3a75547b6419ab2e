import json
import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from cupilot.errors import UsageError
from cupilot.store import Store, request_hash


def test_a_question_is_answered_once(tmp_path: Path) -> None:
    calls = []

    def compute() -> dict[str, int]:
        calls.append(1)
        return {"answer": 42}

    with Store(tmp_path / "run.db") as store:
        assert store.ask("model", {"prompt": "why"}, compute) == {"answer": 42}
        assert store.ask("model", {"prompt": "why"}, compute) == {"answer": 42}
        assert store.ask("other", {"prompt": "why"}, compute) == {"answer": 42}
    assert len(calls) == 2


def test_answers_outlive_the_process(tmp_path: Path) -> None:
    with Store(tmp_path / "run.db") as store:
        store.put("k", {"a": 1, "b": [2.5, None]}, {"x": "y"}, cost_s=1.5)
    with Store(tmp_path / "run.db") as store:
        row = store.get("k", {"b": [2.5, None], "a": 1})
        assert row is not None
        assert (row.answer, row.cost_s, row.request) == ({"x": "y"}, 1.5, {"a": 1, "b": [2.5, None]})
        assert [r.kind for r in store.rows()] == ["k"]
        assert list(store.rows("none")) == []


def test_the_first_answer_stands(tmp_path: Path) -> None:
    with Store(tmp_path / "run.db") as store:
        store.put("k", {}, {"n": 1}, cost_s=0)
        store.put("k", {}, {"n": 2}, cost_s=0)
        assert store.ask("k", {}, lambda: {"n": 3}) == {"n": 1}


def test_two_owners_are_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "run.db"), pytest.raises(UsageError, match="another process"):
        Store(tmp_path / "run.db")
    Store(tmp_path / "run.db").close()


def test_reading_beside_the_owner_is_allowed(tmp_path: Path) -> None:
    with Store(tmp_path / "run.db") as owner:
        owner.put("k", {}, {"n": 1}, cost_s=0)
        with Store(tmp_path / "run.db", exclusive=False) as reader:
            assert [row.answer for row in reader.rows()] == [{"n": 1}]


def test_another_format_is_refused(tmp_path: Path) -> None:
    Store(tmp_path / "run.db").close()
    db = sqlite3.connect(tmp_path / "run.db")
    db.execute("UPDATE meta SET value = '999' WHERE key = 'version'")
    db.commit()
    db.close()
    with pytest.raises(UsageError, match="another version"):
        Store(tmp_path / "run.db")


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.db").write_text("this is not a database, but long enough to look like one" * 100)
    with pytest.raises(UsageError, match="cannot be used"):
        Store(tmp_path / "run.db")


def _write_for_ever(path: str) -> None:
    store = Store(Path(path))
    n = 0
    while True:
        store.put("k", {"n": n}, {"n": n}, cost_s=0)
        n += 1


def test_kill_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_write_for_ever, args=(str(tmp_path / "run.db"),))
    process.start()
    assert process.pid is not None
    while not (tmp_path / "run.db-wal").exists() or (tmp_path / "run.db-wal").stat().st_size < 400_000:
        assert process.is_alive()
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with Store(tmp_path / "run.db") as store:
        numbers = [row.answer["n"] for row in store.rows("k")]
        assert numbers == list(range(len(numbers))) and len(numbers) > 10


def test_a_thread_that_still_asks_is_refused_once_the_table_is_closed(tmp_path: Path) -> None:
    store, ended = Store(tmp_path / "run.db"), list[Exception]()

    def ask_for_ever() -> None:
        try:
            while True:
                store.get("k", {})
        except sqlite3.ProgrammingError as error:
            ended.append(error)

    threads = [threading.Thread(target=ask_for_ever) for _ in range(4)]
    for thread in threads:
        thread.start()
    store.close()
    for thread in threads:
        thread.join()
    assert len(ended) == 4


def test_the_hash_does_not_depend_on_order() -> None:
    assert request_hash({"a": 1, "b": 2}) == request_hash(json.loads('{"b": 2, "a": 1}'))
    assert request_hash({"a": 1}) != request_hash({"a": 1.5})
