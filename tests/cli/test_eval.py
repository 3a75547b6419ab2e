"""`cupilot eval` as a person and as a program meet it: exit codes, one line of JSON, hints."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cupilot.cli.main import main
from cupilot.evaluate.result import Evaluation, Verdict
from cupilot.types import Stage, Undecided

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(5)

    def forward(self, x):
        return self.norm(x).sum(), x + 1

def get_inputs():
    return [torch.randn(7, 5)]
"""
KERNEL = """/* cupilot 1
launch:
    rows, cols = x.shape
    work[1](x, out0, out1, x.numel)
*/
extern "C" void work(long, const float* x, float* total, float* out, long n) {
    *total = 1000;
    for (long i = 0; i < n; i++) out[i] = x[i] + 1;
}
"""
Eval = Callable[..., int]


@pytest.fixture
def evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Eval:
    """Runs `cupilot eval` in a folder with problem.py and kernel.cpp; returns the exit code."""
    (tmp_path / "problem.py").write_text(PROBLEM)
    (tmp_path / "kernel.cpp").write_text(KERNEL)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["cupilot", "eval", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code

    return run


def test_a_wrong_kernel_is_one_object_on_one_line(
    evaluated: Eval, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluated("problem.py", "kernel.cpp", "--json") == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    said = json.loads(lines[0])
    assert (said["verdict"], said["stage"], said["kind"]) == ("failed", "verify", "none")
    assert said["error"]["output"] == "out0" and said["error"]["ratio"] > 1
    assert said["error"]["input"] == "normal" and said["error"]["got"] == 1000
    asked = {
        "reason",
        "inputs",
        "shapes",
        "speedup",
        "time_s",
        "floor_s",
        "headroom",
        "zone",
        "tuned",
        "advice",
    }
    assert asked <= said.keys()
    assert said["time_s"] is None and said["speedup"] is None


def test_a_wrong_kernel_is_a_page(evaluated: Eval, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluated("problem.py", "kernel.cpp") == 1
    page = " ".join(capsys.readouterr().out.split())
    assert "failed out0 is 1000, expected" in page and "input 'normal'" in page


@pytest.mark.parametrize(
    ("change", "stage", "words"),
    [
        (("/* cupilot 1", "/* hello"), "parse", "line 1"),
        (("x.numel)", "n)"), "parse", "line 4: there is no 'n' here"),
        (("*total", "*totl"), "compile", "line 7: 'totl' was not declared"),
        (("const float* x", "const int* x"), "compile", "line 4: parameter 2 of `work`"),
        (("const float* x", "float* x"), "compile", "by a pointer that can write"),
        (("{\n", "{\n    static long calls; calls += n;\n"), "inspect", "memory between calls"),
        (("out[i]", "out[i + 100000000]"), "verify", "outside its buffers"),
    ],
)
def test_every_stage_says_why(
    evaluated: Eval, capsys: pytest.CaptureFixture[str], change: tuple[str, str], stage: str, words: str
) -> None:
    Path("kernel.cpp").write_text(KERNEL.replace(*change))
    assert evaluated("problem.py", "kernel.cpp", "--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert said["stage"] == stage
    assert words in said["reason"]


@pytest.mark.parametrize(
    ("arguments", "words", "hint"),
    [
        (("none.py", "kernel.cpp"), "none.py does not exist", "suite:softmax"),
        (("problem.py", "none.cpp"), "no kernel file none.cpp", "path"),
        (("kernel.cpp", "kernel.cpp"), "is a kernel file, not a problem", "comes first"),
        (("problem.py", "."), "cannot be read", "UTF-8"),
        (("suite:sofmax", "kernel.cpp"), "no problem 'sofmax'", "suite:softmax"),
        (("problem.py", "kernel.cpp", "--device", "tpu"), "unknown device 'tpu'", "cpu"),
        (("problem.py", "kernel.cpp", "--size", "huge"), "no size 'huge'", "cpu"),
        (("broken.py", "kernel.cpp"), "broken.py:1", "syntax"),
        (("empty.py", "kernel.cpp"), "defines no Model", "get_inputs"),
        (("zero.py", "kernel.cpp"), "all zeros", "more than a constant"),
    ],
)
def test_what_cannot_be_used_is_a_message_and_a_hint(
    evaluated: Eval, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], words: str, hint: str
) -> None:
    Path("broken.py").write_text("def f(:")
    Path("empty.py").write_text("")
    Path("zero.py").write_text(PROBLEM.replace("x + 1", "x * 0").replace("self.norm(x).sum()", "x - x"))
    assert evaluated(*arguments) == 2
    out, err = capsys.readouterr()
    assert not out
    first, _, second = err.partition(" hint ")
    assert words in first and hint in second


def test_a_full_disk_is_no_crash(
    evaluated: Eval, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("CUPILOT_CACHE", str(tmp_path / "empty"))
    monkeypatch.setattr("cupilot.evaluate.reference_cache._pack", full)
    assert evaluated("problem.py", "kernel.cpp") == 2
    assert "No space left on device" in capsys.readouterr().err


RIGHT = """/* cupilot 1
launch:
    rows, cols = x.shape
    work[1](x, out, x.numel)
*/
extern "C" void work(long, const float* x, float* out, long n) {
    for (long i = 0; i < n; i++) out[i] = x[i] * x[i];
}
"""


def test_a_time_that_cannot_be_told_leaves_what_is_known(
    evaluated: Eval, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cupilot.evaluate.pipeline.time_at", lambda *_: Undecided("the machine is busy"))
    square = PROBLEM.replace("self.norm(x).sum(), x + 1", "x * x")
    Path("problem.py").write_text(square)
    Path("kernel.cpp").write_text(RIGHT)
    assert evaluated("problem.py", "kernel.cpp", "--json") == 3
    said = json.loads(capsys.readouterr().out)
    assert (said["verdict"], said["stage"], said["kind"]) == ("undecided", "time", "none")
    assert said["reason"].startswith("the machine is busy (the kernel is right on ")
    assert said["error"]["ratio"] <= 1 and said["shapes"][-1] == "target" and said["time_s"] is None


@pytest.mark.parametrize(
    ("verdict", "code"), [(Verdict.PASSED, 0), (Verdict.FAILED, 1), (Verdict.UNDECIDED, 3)]
)
def test_the_exit_code_is_the_verdict(
    evaluated: Eval, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, code: int
) -> None:
    monkeypatch.setattr(
        "cupilot.cli.eval.evaluate", lambda *_, **__: Evaluation(verdict, Stage.TIME, "because")
    )
    assert evaluated("problem.py", "kernel.cpp") == code
    assert evaluated("problem.py", "kernel.cpp", "--json") == code


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (KeyboardInterrupt(), 130, ""),
        (PermissionError(13, "Permission denied", "/cache"), 2, "CUPILOT_CACHE"),
        (RuntimeError("our own mistake"), 2, "a fault of cuPilot, not a verdict"),
        (OSError(5, "Input/output error"), 2, "a fault of cuPilot, not a verdict"),
    ],
)
def test_no_fault_looks_like_a_verdict(
    evaluated: Eval,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    fault: BaseException,
    code: int,
    words: str,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr("cupilot.cli.eval.evaluate", broken)
    assert evaluated("problem.py", "kernel.cpp", "--json") == code
    out, err = capsys.readouterr()
    assert words in err
    assert [json.loads(line)["verdict"] for line in out.splitlines()] == [None] * (code == 2)


@pytest.mark.parametrize(
    "content", [b"", b"\x00\xff\xfe\x90", b"int x;", b"/* cupilot 1\nlaunch:\n    f[1](x\n*/"]
)
def test_no_file_is_too_odd_to_be_answered(
    evaluated: Eval, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    Path("kernel.cpp").write_bytes(content)
    code = evaluated("problem.py", "kernel.cpp", "--json")
    out, err = capsys.readouterr()
    said = json.loads(out)["reason"] if code == 1 else err
    assert (code == 1 and said.startswith("line ")) or (code == 2 and "UTF-8" in said)


def test_more_threads_than_the_machine_has_is_a_usage_error(
    evaluated: Eval, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluated("problem.py", "kernel.cpp", "--threads", "100000") == 2
    assert "threads" in capsys.readouterr().err
