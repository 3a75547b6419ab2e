"""The pieces under the CPU device: cache, jail, reader of libraries, layout of memory, probes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cpu_kit import compile_kernel, kernel, unchecked
from hypothesis import given
from hypothesis import strategies as st

from cupilot.device import elf, native, sandbox
from cupilot.device.base import Compiled, Ring
from cupilot.device.inspection import inspect_elf
from cupilot.device.jail import run_jailed
from cupilot.device.layout import HUGE_PAGE, PAGE, lay_out
from cupilot.errors import DeviceUnavailable
from cupilot.kernel.plan import Plan, ScratchSpec
from cupilot.types import DType, Role, Signature, TensorSpec

PLAIN = 'extern "C" void k(long b, const float* x, float* out) { out[b] = x[b]; }'


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A kernel cache of the test's own; the programs we ship are built once and shared."""
    (tmp_path / "programs").symlink_to(native.program("jail").parent)
    monkeypatch.setenv("CUPILOT_CACHE", str(tmp_path))
    return tmp_path


def test_a_kernel_is_compiled_once(own_cache):
    first = compile_kernel(kernel(PLAIN))
    assert isinstance(first, Compiled)
    made = first.library.stat().st_mtime_ns
    again = compile_kernel(kernel(PLAIN))
    assert isinstance(again, Compiled) and again == first
    assert again.library.stat().st_mtime_ns == made
    other = compile_kernel(kernel(PLAIN.replace("x[b]", "x[b] + 1")))
    assert isinstance(other, Compiled) and other.library != first.library


def test_what_comes_from_the_cache_is_inspected(own_cache):
    first = compile_kernel(kernel(PLAIN))
    assert isinstance(first, Compiled)
    bad = unchecked(kernel(f"static int counter; {PLAIN.replace('x[b]', 'x[b] + counter++')}"))
    first.library.write_bytes(bad.library.read_bytes())
    assert not isinstance(compile_kernel(kernel(PLAIN)), Compiled)


def test_nothing_is_left_in_the_cache_by_a_failure(own_cache):
    compile_kernel(kernel("nonsense"))
    assert list((own_cache / "kernels").iterdir()) == []


def test_a_missing_compiler_is_a_fault_with_a_hint(monkeypatch):
    monkeypatch.setenv("CUPILOT_CXX", "no-such-compiler")
    with pytest.raises(DeviceUnavailable, match="CUPILOT_CXX"):
        compile_kernel(kernel(PLAIN))


def test_an_unwritable_cache_is_a_fault_with_a_hint(monkeypatch):
    monkeypatch.setenv("CUPILOT_CACHE", "/proc/nowhere")
    with pytest.raises(DeviceUnavailable, match="CUPILOT_CACHE"):
        native.cache_dir()


@pytest.fixture
def secret(tmp_path_factory):
    path = tmp_path_factory.mktemp("elsewhere") / "secret.h"
    path.write_text("hunter2_secret here;\n")
    return path


@pytest.mark.parametrize(
    "text",
    ['#include "{}"', 'asm(".incbin \\"{}\\"");', 'asm(".include \\"{}\\"");', '#pragma GCC dependency "{}"'],
)
def test_the_compiler_cannot_read_what_is_not_its_business(text, secret, tmp_path):
    (tmp_path / "a.cpp").write_text(text.format(secret))
    answer = run_jailed([str(native.compiler().path), "-c", "a.cpp"], tmp_path)
    assert answer.status != 0
    assert "hunter2" not in answer.output
    assert not (tmp_path / "a.o").exists()


def test_the_jail_has_no_environment_network_or_reach(tmp_path, monkeypatch):
    monkeypatch.setenv("API_KEY", "hunter2")
    assert "hunter2" not in run_jailed(["/usr/bin/env"], tmp_path).output
    tries = "cat /proc/self/environ; echo x > /tmp/cupilot-escaped; "
    tries += f"ls {Path.home()} && echo reached; kill -0 {os.getpid()} && echo reached"
    answer = run_jailed(["/bin/sh", "-c", tries], tmp_path)
    assert "reached" not in answer.output
    assert "hunter2" not in answer.output
    assert not Path("/tmp/cupilot-escaped").exists()


def test_who_was_stopped_meanwhile_still_gets_the_answer(tmp_path):
    """The time limit passes while nobody can listen: the program was done in time all the same."""
    code = f"""
from pathlib import Path
from cupilot.device.jail import run_jailed
print("begun", flush=True)
print(run_jailed(["/bin/sh", "-c", "sleep 0.8; echo done"], Path({str(tmp_path)!r}), limit_s=1.2))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.2)
        process.send_signal(signal.SIGCONT)
        assert "output='done\\n', ended=None" in process.stdout.read()


def test_the_jail_stops_what_lasts_or_talks_too_long(tmp_path):
    assert (
        run_jailed(["/bin/sh", "-c", "while :; do :; done"], tmp_path, limit_s=0.3).ended
        == "took longer than 0.3 s"
    )
    assert run_jailed(["/usr/bin/yes"], tmp_path).ended == "printed more than 1 MB"
    left = run_jailed(["/bin/sh", "-c", "sleep 60 & echo $!; exec >&- 2>&-"], tmp_path, limit_s=0.3)
    child = int(left.output)
    deadline = time.monotonic() + 5
    while Path(f"/proc/{child}/exe").exists():
        assert time.monotonic() < deadline, "a process the jail started is still running"


def test_damaged_libraries_are_refused_and_never_crash_the_reader():
    data = unchecked(kernel(PLAIN)).library.read_bytes()
    assert inspect_elf(data) is None
    assert "cannot be inspected" in (inspect_elf(data[:100]) or "")
    assert "cannot be inspected" in (inspect_elf(b"MZ" + data) or "")


@given(st.data())
def test_any_damage_is_an_elf_error_or_a_verdict(data):
    library = bytearray(_library())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(library) - 1))
        library[at] = data.draw(st.integers(0, 255))
    inspect_elf(bytes(library))
    try:
        for section in elf.read_elf(bytes(library)).sections:
            assert section.name is not None
    except elf.ElfError:
        pass


def _library(found: list[bytes] = []) -> bytes:  # noqa: B006 (compiled once)
    if not found:
        found.append(unchecked(kernel(PLAIN)).library.read_bytes())
    return found[0]


sizes = st.lists(st.integers(0, 3 * PAGE), min_size=0, max_size=4)


@given(sizes, sizes, sizes, st.integers(1, 4), st.integers(1, 4))
def test_every_tensor_has_a_page_of_guard_on_both_sides(ins, outs, scratch, inputs, outputs):
    signature = Signature(
        tuple(TensorSpec(f"i{n}", (size,), DType.U8, Role.INPUT) for n, size in enumerate(ins)),
        {},
        tuple(TensorSpec(f"o{n}", (size,), DType.U8, Role.OUTPUT) for n, size in enumerate(outs)),
    )
    plan = Plan(tuple(ScratchSpec(f"s{n}", (size,), DType.U8) for n, size in enumerate(scratch)), ())
    layout = lay_out(signature, plan, Ring(inputs, outputs))
    spans = [(g.offset, g.offset + g.size, "guard") for g in layout.guards]
    for place in (*layout.inputs, *layout.outputs, *layout.scratch):
        assert place.offset % 64 == 0
        for slot in range(place.slots):
            start = place.offset + slot * place.stride
            spans.append((start, start + place.size, "tensor"))
    spans.sort()
    assert all(end - start >= PAGE for start, end, what in spans if what == "guard")
    assert [start for start, _, _ in spans] == [0, *[end for _, end, _ in spans[:-1]]]  # no gap, no overlap
    assert spans[-1][1] == layout.size
    assert layout.size % HUGE_PAGE == 0  # what the runner claims: none of it is left unwatched


def test_a_program_is_found_in_a_process_that_was_only_just_begun():
    """Right after the start there is a stack and no program yet, more often on a busy machine."""
    for _ in range(20):
        assert sandbox._reaches_memory()


def test_the_probes_agree_with_what_the_other_tests_rely_on():
    layers = {layer.name: layer for layer in sandbox.probe()}
    assert all(layer.works for layer in layers.values() if layer.is_required)
    assert all(layer.covers and layer.fix for layer in layers.values())


def test_a_missing_layer_is_seen(monkeypatch):
    monkeypatch.setattr(sandbox, "_jail", lambda *command, read=(): (0, ""))
    layers = {layer.name: layer.works for layer in sandbox.probe()}
    assert not layers["file access (Landlock)"]
    assert not layers["resource limits"]
