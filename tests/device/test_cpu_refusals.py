# ruff: noqa: E501 (kernels are quoted on one line)
from __future__ import annotations

import pytest
from cpu_kit import compile_kernel, kernel, plan_of, refusal, tensor

from cupilot.device.base import Compiled, Ring
from cupilot.device.cpu import Cpu
from cupilot.types import DType, Failed, Signature, Stage

HEAD = 'extern "C" void k(long b, const float* x, float* out)'

INSPECTED = {
    "a counter": (f"static int counter; {HEAD} {{ out[b] = x[b] + counter++; }}", "writable global (`counter`)"),
    "a static local": (f"{HEAD} {{ static float last = 1; out[b] = last; last = x[b]; }}", "(`last`)"),
    "thread-local state": (f"static thread_local int c; {HEAD} {{ out[b] = c++; }}", "thread-local state (`c`)"),
    "a section of its own": (
        f'__attribute__((section(".odd"))) int z = 3; {HEAD} {{ out[b] = z++; }}', "writable global (`z`)"
    ),
    "a constructor": (f"__attribute__((constructor)) static void f() {{}} {HEAD} {{}}", "constructor"),
    "a hidden constructor": (
        f'#define C(a, b) a##b\n__attribute__((C(const, ructor))) static void f() {{ volatile int a = 1; }} {HEAD} {{}}', "when it is loaded"
    ),
    "a computed global": (f"#include <cmath>\nfloat v = expf(2.f); {HEAD} {{ out[b] = v; }}", "writable global (`v`)"),
    "printing": (f'#include <cstdio>\n{HEAD} {{ printf("PASS"); }}', "calls `printf`"),
    "fork": (f"#include <unistd.h>\n{HEAD} {{ fork(); }}", "calls `fork`"),
    "the environment": (f"extern char** environ; {HEAD} {{ out[b] = environ[0][0]; }}", "`environ`"),
    "a vector": (f"#include <vector>\n{HEAD} {{ std::vector<float> v(b + 5); out[0] = v[b]; }}", "`operator new`"),
    "the rounding mode": (f"#include <cfenv>\n{HEAD} {{ fesetround(FE_UPWARD); }}", "calls `fesetround`"),
    "assembly": (f'{HEAD} {{ asm volatile("nop"); }}', "line 5: the code contains assembly (`asm`)"),
    "a hidden system call": (
        f'#define A(a, b) a##b\n{HEAD} {{ A(as, m) volatile("syscall"); }}', "makes system calls (`syscall`)"
    ),
    "a 32-bit system call": (f'#define A(a, b) a##b\n{HEAD} {{ A(as, m)("int $0x80"); }}', "raises interrupts (`int`)"),
    "the time-stamp counter": (f"{HEAD} {{ out[b] = __builtin_ia32_rdtsc(); }}", "time-stamp counter (`rdtsc`)"),
    "ifunc": (
        "extern \"C\" { static void f() {} static void* pick() { return (void*)f; } "
        f'void q() __attribute__((ifunc("pick"))); }} {HEAD} {{ q(); }}', "(ifunc)"
    ),
    "a hidden ifunc": (
        "#define I(a, b) a##b\nextern \"C\" { static void f() {} static void* pick() { return (void*)f; } "
        f'void q() __attribute__((I(if, unc)("pick"))); }} {HEAD} {{ q(); }}', "while it is loaded (IFUNC)"
    ),
    "the user's files": (f'#include "/etc/passwd"\n{HEAD} {{}}', "line 5: the code includes something other"),
    "files by macro": (f'#define F "/etc/passwd"\n#include F\n{HEAD} {{}}', "line 6: the code includes something"),
    "files by digraph": (f'%:include "/etc/passwd"\n{HEAD} {{}}', "includes something other"),
    "files by line splice": (f'#inc\\\nlude "/etc/passwd"\n{HEAD} {{}}', "includes something other"),
    "files one folder up": (f"#include <../../etc/passwd>\n{HEAD} {{}}", "includes something other"),
}  # fmt: skip


@pytest.mark.parametrize("name", INSPECTED)
def test_host_code_and_memory_between_calls_are_refused(name):
    code, reason = INSPECTED[name]
    failed = refusal(code)
    assert failed.stage is Stage.INSPECT
    assert reason in failed.reason


MISMATCHES = {
    "element type": ("const double* x, float* out", "parameter 2 of `k` has the wrong element type for `x` (f32): declare it `const float*`"),
    "same width, other kind": ("const int* x, float* out", "wrong element type for `x`"),
    "void": ("const void* x, float* out", "wrong element type for `x`"),
    "input not const": ("float* x, float* out", "takes the input `x` by a pointer that can write"),
    "one too many": ("const float* x, float* out, int n", "`k` has 4 parameters but is launched with a block number and 2 arguments"),
    "number for a tensor": ("long x, float* out", "parameter 2 of `k` is a number but receives the tensor `x`"),
    "a struct": ("const float* x, struct Two { double a, b; } out", "a number or a pointer"),
    "a reference": ("const float* x, float& out", "a number or a pointer, not a reference"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISMATCHES)
def test_arguments_that_do_not_fit_are_named(name):
    parameters, reason = MISMATCHES[name]
    two = "struct Two { double a, b; };" if "Two" in parameters else ""
    parameters = parameters.replace("struct Two { double a, b; }", "Two")
    failed = refusal(f'{two} extern "C" void k(long b, {parameters}) {{}}')
    assert failed.stage is Stage.COMPILE
    assert reason in failed.reason


@pytest.mark.parametrize(
    ("parameter", "value", "reason"),
    [
        ("int", "2147483648", "too narrow for 2147483648"),
        ("unsigned", "-1", "too narrow for -1"),
        ("bool", "2", "too narrow for 2"),
        ("int", "1.5", "is an integer but receives 1.5"),
        ("const float*", "3", "is a pointer but receives the number 3"),
    ],
)
def test_numbers_that_do_not_fit_are_named(parameter, value, reason):
    code = f'extern "C" void k(long b, const float* x, float* out, {parameter} n) {{}}'
    failed = refusal(code, f"k[4](x, out, {value})")
    assert failed.stage is Stage.COMPILE
    assert reason in failed.reason


@pytest.mark.parametrize("block", ["float b", "short b", "const float* b"])
def test_block_numbers_are_integers(block):
    assert (
        "declare it `long`" in refusal(f'extern "C" void k({block}, const float* x, float* out) {{}}').reason
    )


def test_compiler_errors_carry_the_line_of_the_kernel_file():
    failed = refusal(f"{HEAD} {{\n  out[b] = y[b];\n}}")
    assert failed.stage is Stage.COMPILE
    assert failed.reason == "line 6: 'y' was not declared in this scope"
    assert "kernel:6:" in failed.log


def test_a_launch_of_nothing_is_named():
    assert refusal('extern "C" void other(long b) {}').reason == (
        "the launch names `k`, but the code defines no such function"
    )


def test_a_launch_program_that_goes_wrong_is_a_verdict():
    failed = refusal(f"{HEAD} {{}}", "k[2 ** 60](x, out)")
    assert failed.stage is Stage.PARSE
    assert failed.reason.startswith("line 3: ")


BOMBS = {
    "recursive templates": (
        f"template <int N> struct T {{ static const int v = T<N - 1>::v; }}; {HEAD} {{ out[0] = T<100000>::v; }}",
        "template instantiation depth",
    ),
    "a huge constant": (f"const char a[1u << 30] = {{1}}; {HEAD} {{ out[0] = a[b]; }}", "reached a limit"),
    "a long constant loop": (
        f"constexpr long f() {{ long s = 0; for (long i = 0; i < 1L << 40; ++i) s += i; return s; }} {HEAD} {{ constexpr long v = f(); out[0] = v; }}",
        "line 5: ",
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_end_soon(name):
    code, reason = BOMBS[name]
    failed = refusal(code)
    assert failed.stage is Stage.COMPILE
    assert reason in failed.reason
    assert len(failed.log) < 7000


def test_an_enormous_log_is_trimmed():
    code = "\n".join(f'#warning "{"w" * 200} {i}"' for i in range(400)) + f"\n{HEAD} {{}}"
    outcome = compile_kernel(kernel(code))
    assert isinstance(outcome, Compiled)
    assert len(outcome.log) < 7000
    assert "characters left out" in outcome.log


def test_tables_of_constants_and_pointers_to_them_are_fine():
    code = (
        "static const int one[2] = {1, 2}; static const int* const both[2] = {one, one + 1};"
        f"{HEAD} {{ out[b] = x[b] * *both[b & 1]; }} /* asm */ // asm"
    )
    assert isinstance(compile_kernel(kernel(code)), Compiled)


def test_a_second_shape_is_checked_against_the_same_types():
    file = kernel(f"{HEAD} {{ out[b] = x[b]; }}", "k[x.numel](x, out)")
    compiled = compile_kernel(file)
    assert isinstance(compiled, Compiled)
    other = Signature((tensor("x", (8,), DType.F64),), {}, (tensor("out", (8,)),))
    assert isinstance(Cpu().open(compiled, plan_of(file, other), other, Ring(1, 1)), Failed)
