# ruff: noqa: E501 (kernels are quoted on one line)
"""The runner's walls, tried from inside by kernels that no check has looked at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cpu_kit import VECTOR, N, death, kernel, plan_of, session, unchecked

from cupilot.device.base import Died, Ran, Ring
from cupilot.device.cpu import Cpu
from cupilot.device.memory import SessionOverError
from cupilot.types import Failed, Stage

HEAD = 'extern "C" void k(long b, const float* x, float* out)'


def system_call(number: int, first: int = 0, second: str = "out", third: int = 8) -> str:
    return (
        f'{HEAD} {{ long r; asm volatile("syscall" : "=a"(r) : "a"({number}L), "D"({first}L), "S"({second}), '
        f'"d"({third}L) : "rcx", "r11", "memory"); }}'
    )


@pytest.mark.parametrize(
    "number",
    [2, 3, 9, 10, 13, 14, 24, 35, 39, 41, 56, 57, 58, 59, 62, 186, 202, 203, 257, 310, 311, 317, 321, 435],
    ids=[
        "open",
        "close",
        "mmap",
        "mprotect",
        "sigaction",
        "sigprocmask",
        "yield",
        "nanosleep",
        "getpid",
        "socket",
        "clone",
        "fork",
        "vfork",
        "exec",
        "kill",
        "gettid",
        "futex",
        "setaffinity",
        "openat",
        "vm_readv",
        "vm_writev",
        "seccomp",
        "bpf",
        "clone3",
    ],
)
def test_every_other_system_call_kills(number):
    assert "made a system call" in death(system_call(number)).reason


@pytest.mark.parametrize("assembly", ["int $0x80", "sysenter"])
def test_the_32_bit_entries_are_closed_too(assembly):
    assert death(f'{HEAD} {{ asm volatile("{assembly}" :: "a"(20L) : "rcx", "r11", "memory"); }}').reason


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (system_call(231), "ended its process"),
        (system_call(1, first=1), "spoke on the runner's pipe"),
        (system_call(1, first=2), "made a system call"),
        (system_call(0, first=1), "made a system call"),
        (f"{HEAD} {{ *(volatile int*)0 = 1; }}", "SIGSEGV"),
        (f"{HEAD} {{ out[1 << 24] = 1; }}", "SIGSEGV"),
        (f"{HEAD} {{ out[b] = __builtin_ia32_rdtsc(); }}", "SIGSEGV"),
        (f"{HEAD} {{ __builtin_trap(); }}", "SIGILL"),
        (f"{HEAD} {{ volatile int zero = 0; out[b] = 1 % zero; asm(\"div %0\" :: \"r\"(0L)); }}", "SIGFPE"),
        (f"{HEAD} {{ for (;;) asm volatile(\"\"); }}", "did not finish within 0.3 s"),
        (system_call(0, first=0), "did not finish within 0.3 s"),
        (
            f"int f(int n) {{ volatile char a[4096]; a[n & 4095] = n; return n > 1 << 30 ? 0 : f(n + 1) + a[5]; }} {HEAD} {{ out[b] = f(0); }}",
            "SIGSEGV",
        ),
    ],
)  # fmt: skip
def test_how_a_kernel_ended_is_said_in_words(code, reason):
    assert reason in death(code, limit_s=0.3).reason


def test_a_constructor_dies_while_the_library_is_loaded():
    file = kernel(
        f'__attribute__((constructor)) static void f() {{ asm volatile("syscall" :: "a"(57)); }} {HEAD} {{}}'
    )
    outcome = Cpu().open(unchecked(file), plan_of(file, VECTOR), VECTOR, Ring(1, 1))
    assert isinstance(outcome, Failed)
    assert outcome.stage is Stage.LOAD
    assert "made a system call" in outcome.reason


def test_a_library_that_cannot_be_loaded_is_a_verdict():
    file = kernel(f"extern int absent(); {HEAD} {{ absent(); }}")
    outcome = Cpu().open(unchecked(file), plan_of(file, VECTOR), VECTOR, Ring(1, 1))
    assert isinstance(outcome, Failed)
    assert "undefined symbol" in outcome.reason


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        (N, "outside `out`: byte 0 past its end"),
        (N + 1000, "outside `out`: byte 4000 past its end"),
        (N + 100_000, "outside `out`: byte 400000 past its end"),
        (-1, "outside `out`: byte 4 before its start"),
    ],
)
def test_one_element_outside_is_noticed(index, reason):
    file = kernel(f"{HEAD} {{ out[{index}] = 1; }}")
    with session(file) as opened:
        opened.write(0, {"x": np.zeros(N, np.float32)})
        assert isinstance(opened.run(0, 1), Ran)
        assert reason in (opened.check_guards() or "")


def test_reading_outside_gives_nan():
    file = kernel(f"{HEAD} {{ out[0] = x[-1]; out[1] = x[{N}]; out[2] = ((const double*)x)[{N // 2}]; }}")
    with session(file) as opened:
        opened.write(0, {"x": np.zeros(N, np.float32)})
        opened.run(0, 1)
        assert np.isnan(opened.read(0)["out"]).all()  # what was never written is NaN as well


def test_writing_an_input_shows():
    with session(kernel(f"{HEAD} {{ const_cast<float*>(x)[b] = 7; }}")) as opened:
        opened.write(0, {"x": np.zeros(N, np.float32)})
        opened.run(0, 1)
        assert opened.read_inputs(0)["x"][:5].tolist() == [7, 7, 7, 7, 0]


def test_floating_point_state_is_reset_before_every_launch():
    set_and_get = (
        f"#include <immintrin.h>\n{HEAD} {{ unsigned short control; asm volatile(\"fnstcw %0\" : \"=m\"(control));"
        " if (b == 0) { out[0] = _mm_getcsr(); out[1] = control; }"
        " control = 0x7f; if (b == 3) { _mm_setcsr(0xffc0); asm volatile(\"fldcw %0; std\" :: \"m\"(control)); } }"
    )  # fmt: skip
    file = kernel(set_and_get)
    with session(file, compiled=unchecked(file)) as opened:
        opened.write(0, {"x": np.zeros(N, np.float32)})
        for count in (1, 2):
            assert isinstance(opened.run(0, count), Ran)
            assert opened.read(0)["out"][:2].tolist() == [0x1F80, 0x37F]


def test_outputs_and_scratch_are_poisoned_anew_each_time():
    file = kernel(
        f"{HEAD[:-1]}, const int* s) {{ out[b] = s[b]; }}", "s = scratch((4,), i32)\nk[4](x, out, s)"
    )
    with session(file) as opened:
        opened.write(0, {"x": np.zeros(N, np.float32)})
        seen = []
        for _ in range(3):
            opened.poison(0)
            opened.run(0, 1)
            seen.append(opened.read(0)["out"].copy())
        assert not np.array_equal(seen[0][:4], seen[1][:4])
        assert np.isnan(seen[0][4:]).all()
        assert not np.array_equal(seen[1][4:].view(np.int32), seen[2][4:].view(np.int32))


def test_after_death_the_session_answers_with_errors_not_data():
    file = kernel(f"{HEAD} {{ __builtin_trap(); }}")
    with session(file) as opened:
        assert isinstance(opened.run(0, 1), Died)
        with pytest.raises(SessionOverError):
            opened.read(0)
        assert isinstance(opened.run(0, 1), Died)


def test_no_process_is_left_behind():
    hang = kernel(f'{HEAD} {{ for (;;) asm volatile(""); }}')
    with session(hang, compiled=unchecked(hang)) as opened:
        pid = opened.pid
        assert isinstance(opened.run(0, 1, limit_s=0.1), Died)
    assert not Path(f"/proc/{pid}").exists()


def test_the_runner_dies_with_its_parent(tmp_path):
    script = tmp_path / "parent.py"
    here = Path(__file__).parent
    script.write_text(
        f"import sys; sys.path.insert(0, {str(here)!r})\n"
        "from cpu_kit import kernel, session\n"
        f"opened = session(kernel('''{HEAD} {{ }}'''))\n"
        "print(opened.pid, flush=True)\n"
        "import time; time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    runner = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while Path(f"/proc/{runner}/stat").exists() and time.monotonic() < deadline:
        if Path(f"/proc/{runner}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
            break  # dead; whoever adopted it has not collected it yet
        time.sleep(0.01)
    else:
        assert not Path(f"/proc/{runner}").exists()
