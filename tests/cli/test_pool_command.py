"""`cupilot pool`: records of a run are listed, searched, shown, carried elsewhere and forgotten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_kit import Command, Measured

Said = pytest.CaptureFixture[str]


@pytest.fixture
def filled(command: Command, measured_by: Measured, capsys: Said) -> Command:
    """After one run that found something."""
    assert command("optimize", "suite:softmax", "--budget", "6evals") == 0
    capsys.readouterr()
    return command


def ids(command: Command, capsys: Said) -> list[str]:
    assert command("pool", "export") == 0
    count = len(capsys.readouterr().out.splitlines())
    assert command("pool", "list") == 0
    return [line.split()[0] for line in capsys.readouterr().out.splitlines() if "softmax" in line][:count]


def test_an_empty_pool_says_how_it_fills(command: Command, capsys: Said) -> None:
    for arguments in (("list",), ("search", "softmax")):
        assert command("pool", *arguments) == 0
        assert "every proven champion leaves one" in " ".join(capsys.readouterr().out.split())


def test_a_champion_can_be_found_and_shown(filled: Command, capsys: Said) -> None:
    (found,) = ids(filled, capsys)
    assert filled("pool", "search", "softmax") == 0
    assert found in capsys.readouterr().out
    assert filled("pool", "search", "zebra") == 0
    assert "none of 1 records" in capsys.readouterr().out
    assert filled("pool", "show", found[:6]) == 0
    shown = capsys.readouterr().out
    assert "/* cupilot 1" in shown and "over eager" in shown


def test_records_travel_and_can_be_forgotten(filled: Command, capsys: Said) -> None:
    (found,) = ids(filled, capsys)
    assert filled("pool", "export", "records.jsonl") == 0
    assert json.loads(Path("records.jsonl").read_text())["problem"] == "softmax"
    assert filled("pool", "forget", found) == 0
    assert ids(filled, capsys) == []
    assert filled("pool", "import", "records.jsonl") == 0
    assert "1 added, 0 known already" in capsys.readouterr().out
    assert filled("pool", "import", "records.jsonl") == 0
    assert "0 added, 1 known already" in capsys.readouterr().out


def test_a_later_run_is_seeded_unless_it_is_held_out(filled: Command) -> None:
    assert filled("optimize", "suite:softmax", "--budget", "3evals", "--name", "seeded") == 0
    assert filled("optimize", "suite:softmax", "--budget", "3evals", "--name", "apart", "--hold-out") == 0
    assert "Learned from kin in the pool: softmax" in Path("runs/seeded/report.html").read_text()
    assert "Learned from kin" not in Path("runs/apart/report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "expected", "hint"),
    [
        (("show", "zzz"), "'zzz' is not in the pool", "pool list"),
        (("forget", "zzz"), "'zzz' is not in the pool", "pool list"),
        (("import", "none.jsonl"), "cannot be read: No such file", "pool export"),
        (("import", "garbage.jsonl"), "line 1 is no pool record", "pool export"),
        (("import", "binary"), "is not text", "pool export"),
        (("export", "no/such/folder"), "cannot write no/such/folder", "another file"),
    ],
)
def test_what_cannot_be_used_is_a_message_and_a_hint(
    command: Command, capsys: Said, arguments: tuple[str, ...], expected: str, hint: str
) -> None:
    Path("garbage.jsonl").write_text("# not JSON\n")
    Path("binary").write_bytes(b"\xff\xfe\x00")
    assert command("pool", *arguments) == 2
    first, _, second = capsys.readouterr().err.partition(" hint ")
    assert expected in first and hint in second


def test_a_pool_that_is_no_database_is_named(
    command: Command, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("text").write_text("this is not a database, but long enough to look like one" * 100)
    monkeypatch.setenv("CUPILOT_POOL", "text")
    assert command("pool", "list") == 2
    assert "the pool text cannot be opened" in capsys.readouterr().err
