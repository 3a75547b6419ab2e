"""What is mistyped: found before torch is imported, said in words, and to programs as one object."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command_kit import Command

PROGRAM = """
import sys
from cupilot.cli.main import main
sys.argv = ["cupilot", *sys.argv[1:]]
try:
    main()
finally:
    assert "torch" not in sys.modules
"""


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--help"], 0, "Usage"),
        (["eval", "--help"], 0, "--json"),
        (["evall"], 2, "No such command"),
        (["eval", "none.py", "none.cpp"], 2, "no kernel file none.cpp"),
        (["eval", "none.py", "kernel.cpp"], 2, "none.py does not exist"),
        (["eval", "suite:sofmax", "kernel.cpp"], 2, "suite:softmax"),
        (["eval", "suite:softmax", "kernel.cpp", "--device", "tpu"], 2, "unknown device 'tpu'"),
        (["eval", "suite:softmax", "kernel.cpp", "--fast"], 2, "No such option"),
        (["eval", "suite:softmax"], 2, "Missing argument"),
        (["optimize", "none.py"], 2, "no problem file"),
        (["optimize", "suite:sofmax"], 2, "suite:softmax"),
        (["optimize", "suite:softmax", "--budget", "much"], 2, "much"),
        (["report", "nothing"], 2, "no run at nothing"),
        (["resume", "nothing"], 2, "no run at nothing"),
        (["explain", "nothing"], 2, "no run at nothing"),
        (["export", "nothing"], 2, "no run at nothing"),
        (["roofline", "none.py"], 2, "none.py does not exist"),
        (["roofline", "suite:softmax", "--device", "tpu"], 2, "names no GPU"),
        (["prompts", "generator", "--problem", "none.py"], 2, "none.py does not exist"),
        (["selftest", "--only", "no such attack"], 2, "no attack is called"),
        (["pool", "list", "--help"], 0, "All records"),
    ],
)
def test_what_can_be_found_wrong_at_once_needs_no_torch(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    (tmp_path / "kernel.cpp").write_text("")
    command = [sys.executable, "-c", PROGRAM, *arguments]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr
    assert words in " ".join((ran.stdout + ran.stderr).split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["eval", "none.py", "none.cpp", "--json"], "no kernel file none.cpp"),
        (["eval", "none.py", "--json"], "Missing argument"),
        (["eval", "none.py", "none.cpp", "--json", "--fast"], "No such option: --fast"),
        (["eval", "none.py", "none.cpp", "--json", "--threads", "0"], "--threads"),
        (["roofline", "none.py", "--json"], "does not exist"),
        (["selftest", "--only", "no such attack", "--json"], "no attack is called"),
    ],
)
def test_programs_get_one_object_whatever_happens(
    command: Command, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert command(*arguments) == 2
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    said = json.loads(out)
    assert said["verdict"] is None and words in said["error"] and said["hint"]
    assert " ".join(said["error"].split()) in " ".join(err.split())


def test_a_fault_of_ours_is_an_object_too(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("cupilot.cli.checks.check_evaluation", broken)
    assert command("eval", "suite:softmax", "kernel.cpp", "--json") == 2
    out, err = capsys.readouterr()
    assert "not a verdict" in json.loads(out)["error"] and "ZeroDivisionError" in err


def test_without_json_nothing_is_said_to_programs(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("eval", "none.py", "none.cpp") == 2
    assert capsys.readouterr().out == ""
