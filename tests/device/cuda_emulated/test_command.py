"""`cupilot` on the emulated device, as a person meets it: the page, what is refused, what to do then."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cupilot.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples" / "cuda"
PROBLEM = str(EXAMPLES / "vector_add" / "problem.py")
KERNEL = str(EXAMPLES / "vector_add" / "plain.cu")
EMULATED = ("--device", "cuda-emulated")
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["cupilot", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, " ".join(out.split()), " ".join(err.split())

    return call


def test_the_page_says_what_the_kernel_takes_and_what_was_counted(run: Run) -> None:
    code, page, _ = run("eval", PROBLEM, KERNEL, *EMULATED, "--arch", "sm_90")
    assert code == 0
    for words in (
        "passed", "cuda-emulated, sm_90", "registers", "nothing spilled", "bytes shared per block",
        "bytes of stack per thread", "0 barriers", "occupancy 100%, limited by", "SASS", "FADD", "LDG",
        "counters (emulated, one call)", "sectors of 32 bytes per request", "no time is measured",
        "(emulated)", "wide-loads:",
    ):  # fmt: skip
        assert words in page, words


def test_the_same_as_json(run: Run) -> None:
    code, out, _ = run("eval", PROBLEM, KERNEL, *EMULATED, "--json")
    said = json.loads(out)
    assert code == 0 and said["kind"] == "none" and said["time_s"] is None
    assert said["facts"]["counted"] == "emulated, one call"
    assert said["facts"]["add: registers"] > 0 and said["facts"]["add: spilled bytes"] == 0


def test_a_kernel_for_another_device_is_told_apart_by_its_suffix(run: Run) -> None:
    code, _, err = run("eval", PROBLEM, KERNEL)
    assert code == 2 and "for another device" in err and "--device cuda-emulated" in err


def test_without_the_extra_the_message_says_how_to_install_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nvidia", None)  # type: ignore[arg-type]
    code, _, err = run("eval", PROBLEM, KERNEL, *EMULATED)
    assert code == 2 and "is not installed" in err and "cupilot[cuda]" in err


def test_what_has_no_clock_is_not_raced(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run("optimize", PROBLEM, *EMULATED)
    assert code == 2 and "has no clock" in err and "cupilot eval" in err
    assert not any(tmp_path.iterdir())
    code, _, err = run("roofline", PROBLEM, *EMULATED)
    assert code == 2 and "has no peaks" in err and "H100 SXM" in err


def test_an_unknown_architecture_is_answered_with_the_known_ones(run: Run) -> None:
    code, _, err = run("eval", PROBLEM, KERNEL, *EMULATED, "--arch", "sm_42")
    assert code == 2 and "'sm_42'" in err and "sm_100a" in err
