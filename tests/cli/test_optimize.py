"""`cupilot optimize`, `resume`, `report`, `explain`, `export`: what comes out, and with which exit code."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from command_kit import Command, Measured
from killable import Slow

from cupilot.evaluate.result import Evaluation, Interval, Verdict
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.types import Stage

Said = pytest.CaptureFixture[str]

CONVOLUTION = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Conv2d(2, 2, 3)
    def forward(self, x):
        return self.layer(x)
def get_inputs():
    return [torch.randn(1, 2, 8, 8)]
"""


class Scaled(Slow):
    """Every kernel is slower by a factor; `log` holds the questions."""

    def __init__(self, log: Path, factor: float) -> None:
        super().__init__(log, 0)
        self.factor = factor

    def _answer(self, kind: str, kernel: KernelFile) -> Evaluation:
        found = super()._answer(kind, kernel)
        ratio = min(found.speedup["eager"].ratio * self.factor, 0.95)
        return replace(found, speedup={"eager": Interval(ratio, ratio * 0.99, ratio * 1.01)})


class Busy(Slow):
    """The machine is too busy for the final proof."""

    def prove(self, champion: tuple[KernelFile, Evaluation]) -> Evaluation:
        self._note("prove")
        return Evaluation(Verdict.UNDECIDED, Stage.TIME, "something else is using the memory")


class Interrupting(Slow):
    """The user presses Ctrl-C while the third kernel is measured, so many times."""

    def __init__(self, log: Path, times: int) -> None:
        super().__init__(log, 0)
        self.times = times

    def evaluate(self, kernel: KernelFile) -> Evaluation:
        if self.log.exists() and self.log.read_text().count("evaluate") == 2:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)
        return super().evaluate(kernel)


def optimize(command: Command, *more: str) -> int:
    return command("optimize", "suite:softmax", "--budget", "8evals", "--no-pool", *more)


def words(said: Said) -> str:
    """Without what depends on the width of the terminal."""
    return " ".join(said.readouterr().out.split())


def test_a_faster_kernel_is_shown_with_its_proof_and_what_to_do_next(
    command: Command, measured_by: Measured, capsys: Said
) -> None:
    assert optimize(command) == 0
    out = words(capsys)
    for expected in (
        "✔ softmax:",
        "faster than PyTorch eager, proven",
        "right, in fresh processes",
        "strategy",
        "8 candidates",
        "the evaluations are used up",
        "cupilot eval suite:softmax runs/softmax/champion/softmax.cpp",
        "cupilot export runs/softmax",
        "runs/softmax/report.html",
    ):
        assert expected in out
    assert "faster than PyTorch eager" in Path("runs/softmax/report.html").read_text()
    kernel = parse_kernel(Path("runs/softmax/champion/softmax.cpp").read_text())
    assert "identity:" in kernel.proof and kernel.strategy


def test_a_second_run_gets_its_own_folder_and_a_named_one_its_name(
    command: Command, measured_by: Measured
) -> None:
    assert optimize(command) == optimize(command) == optimize(command, "--name", "deep/one") == 0
    assert all(Path("runs", name, "run.db").exists() for name in ("softmax", "softmax-2", "deep/one"))


def test_where_nothing_is_faster_the_reference_wins(
    command: Command, measured_by: Measured, tmp_path: Path, capsys: Said
) -> None:
    measured_by(lambda *_: Scaled(tmp_path / "log", 0.9))
    assert optimize(command) == 1
    assert "the reference wins" in words(capsys)
    assert "keep the reference" in Path("runs/softmax/report.html").read_text()
    assert not Path("runs/softmax/champion").exists()
    assert command("export", "softmax") == 2
    assert "nothing beat the reference" in capsys.readouterr().err


def test_what_is_far_slower_than_the_reference_is_not_proven_at_length(
    command: Command, measured_by: Measured, tmp_path: Path
) -> None:
    measured_by(lambda *_: Scaled(tmp_path / "log", 0.1))
    assert optimize(command) == 1
    assert "prove" not in (tmp_path / "log").read_text()
    assert "keep the reference" in Path("runs/softmax/report.html").read_text()


def test_an_undecided_proof_is_asked_again_by_resume(
    command: Command, measured_by: Measured, tmp_path: Path, capsys: Said
) -> None:
    measured_by(lambda *_: Busy(tmp_path / "log", 0))
    assert optimize(command) == 3
    out = words(capsys)
    assert "not proven" in out and "something else is using the memory" in out
    assert "cupilot resume runs/softmax" in out
    assert "undecided" in Path("runs/softmax/report.html").read_text()
    assert command("export", "softmax") == 2 and "prove it: cupilot resume" in capsys.readouterr().err
    before = (tmp_path / "log").read_text()

    measured_by(lambda *_: Slow(tmp_path / "log", 0))
    assert command("resume", "softmax") == 0
    assert (tmp_path / "log").read_text() == before + "prove\n"


def test_a_problem_outside_the_families_says_what_to_do(
    command: Command, measured_by: Measured, tmp_path: Path, capsys: Said
) -> None:
    Path("mine.py").write_text(CONVOLUTION)
    assert command("optimize", "mine.py", "--budget", "5evals") == 3
    out = words(capsys)
    assert "no family for mine (convolution)" in out and "--model" in out
    assert not (tmp_path / "log").exists()
    assert "no family for mine" in Path("runs/mine/report.html").read_text()
    assert command("export", "mine") == 2 and command("explain", "mine") == 2


@pytest.mark.parametrize(
    ("arguments", "expected", "hint"),
    [
        (("suite:softmax", "--budget", "3parsecs"), "'3parsecs' is not understood", "3min"),
        (("suite:softmax", "--budget", "0s"), "leaves nothing to spend", "no limit"),
        (("suite:softmax", "--policy", "guess"), "unknown policy 'guess'", "best-of-n"),
        (("suite:softmax", "--device", "tpu"), "unknown device 'tpu'", "cpu"),
        (("suite:softmax", "--size", "huge"), "no size 'huge'", "cpu"),
        (("suite:softmax", "--name", "../out"), "leads out of runs/", "plain name"),
        (("suite:softmax", "--name", "/proc/x"), "cannot make /proc/x", "--name"),
        (("suite:softmx",), "no problem 'softmx'", "suite:softmax"),
        (("none.py",), "no problem file", "suite:softmax"),
        (("folder",), "no problem file", "folder/problem.py"),
        (("broken.py",), "broken.py:3", "syntax"),
        (("zeros.py",), "all zeros", "more than a constant"),
    ],
)
def test_what_cannot_be_used_is_a_message_and_leaves_no_run(
    command: Command, capsys: Said, arguments: tuple[str, ...], expected: str, hint: str
) -> None:
    Path("folder").mkdir()
    Path("folder/problem.py").write_text(CONVOLUTION)
    Path("broken.py").write_text(CONVOLUTION.replace("class Model(torch.nn.Module):", "class Model(:"))
    constant = CONVOLUTION.replace("self.layer(x)", "torch.relu(x) * 0")
    Path("zeros.py").write_text(constant)
    assert command("optimize", *arguments) == 2
    first, _, second = capsys.readouterr().err.partition(" hint ")
    assert expected in first and hint in second
    assert not list(Path().glob("runs/*"))


def test_a_run_that_could_not_begin_spares_what_lay_in_its_folder(command: Command) -> None:
    Path("runs/mine/kernels").mkdir(parents=True)
    mine = [Path("runs/mine/run.py"), Path("runs/mine/kernels/own.cpp")]
    for path in mine:
        path.write_text("precious")
    assert command("optimize", "suite:softmax", "--size", "huge", "--name", "mine") == 2
    assert sorted(p for p in Path("runs").rglob("*") if p.is_file()) == sorted(mine)


def test_a_run_is_not_overwritten(command: Command, measured_by: Measured, capsys: Said) -> None:
    assert optimize(command, "--name", "mine") == 0
    assert optimize(command, "--name", "mine") == 2
    assert "cupilot resume runs/mine" in capsys.readouterr().err


def test_the_first_interrupt_ends_the_run_with_its_champion_proven(
    command: Command, measured_by: Measured, tmp_path: Path, capsys: Said
) -> None:
    measured_by(lambda *_: Interrupting(tmp_path / "log", 1))
    assert optimize(command) == 0
    assert "3 candidates" in (out := words(capsys)) and "interrupted" in out
    questions = (tmp_path / "log").read_text().split()
    assert questions.count("evaluate") == 3 and questions[-1] == "prove"


def test_the_second_interrupt_ends_it_at_once_and_resume_goes_on(
    command: Command, measured_by: Measured, tmp_path: Path, capsys: Said
) -> None:
    measured_by(lambda *_: Interrupting(tmp_path / "log", 2))
    assert optimize(command) == 130
    assert "cupilot resume runs/softmax" in capsys.readouterr().out
    assert command("report", "softmax") == 0
    assert "no final proof yet" in Path("runs/softmax/report.html").read_text()

    measured_by(lambda *_: Slow(tmp_path / "log", 0))
    assert command("resume", "softmax") == 0
    assert "8 candidates" in words(capsys)
    assert (tmp_path / "log").read_text().count("evaluate") == 8


def test_a_finished_run_is_shown_again_and_goes_on_with_a_larger_budget(
    command: Command, measured_by: Measured, tmp_path: Path, capsys: Said
) -> None:
    assert optimize(command) == 0
    before = (tmp_path / "log").read_text()
    assert command("resume", "softmax") == 0
    assert (tmp_path / "log").read_text() == before
    assert command("resume", "softmax", "--budget", "11evals") == 0
    assert "11 candidates" in words(capsys)


@pytest.mark.parametrize("name", ["resume", "report", "explain", "export"])
def test_an_unknown_run_lists_the_known_ones(
    command: Command, measured_by: Measured, capsys: Said, name: str
) -> None:
    assert command(name, "nowhere") == 2
    assert "cupilot optimize" in capsys.readouterr().err
    assert optimize(command) == 0
    assert command(name, "nowhere") == 2
    assert "there are: softmax" in capsys.readouterr().err


def test_explain_measures_every_tactic_once(
    command: Command, measured_by: Measured, tmp_path: Path, capsys: Said
) -> None:
    assert optimize(command) == 0
    kernel = parse_kernel(Path("runs/softmax/champion/softmax.cpp").read_text())
    capsys.readouterr()
    assert command("explain", "softmax") == 0
    out = words(capsys)
    assert "without slower by" in out and all(use in out for use in kernel.strategy.split("\n"))
    asked = (tmp_path / "log").read_text()
    assert command("explain", "softmax") == 0
    assert words(capsys) == out and (tmp_path / "log").read_text() == asked


def test_export_writes_all_forms_and_spares_what_is_not_its_own(
    command: Command, measured_by: Measured, capsys: Said
) -> None:
    assert optimize(command) == 0
    assert [command("export", "softmax", "--as", form) for form in ("kernel", "model", "package")] == [0] * 3
    assert command("export", "softmax") == 0  # once more, over its own
    export = Path("runs/softmax/export")
    assert {p.name for p in export.iterdir()} == {"softmax.cpp", "softmax_model.py", "softmax"}

    Path("mine").mkdir()
    Path("mine/__init__.py").write_text("precious")
    assert command("export", "softmax", "--out", "mine") == 2
    assert command("export", "softmax", "--as", "model", "--out", "mine/__init__.py") == 2
    assert "is not an export" in capsys.readouterr().err
    assert Path("mine/__init__.py").read_text() == "precious"
    assert command("export", "softmax", "--as", "kernel", "--out", "mine") == 0
    assert Path("mine/softmax.cpp").exists()
    assert command("export", "softmax", "--as", "pdf") == 2
    assert "kernel, model, package" in capsys.readouterr().err
