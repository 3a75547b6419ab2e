"""The attacks, one line each. What a kernel does stands in its own header (cheats/*.cpp)."""

from __future__ import annotations

import difflib

from cupilot.errors import UsageError
from cupilot.selftest.cheat import Cheat, Defence, Twin
from cupilot.selftest.objects import ask_for_another_library, hide_dynamic_section
from cupilot.types import Stage

_SOFT, _PRODUCT, _NORM = "softmax", "product", "normalize"
_POSITIVE, _POSITIONS = "positive", "positions"


def _parse(kernel: str, says: str) -> Cheat:
    return Cheat(kernel, _SOFT, Stage.PARSE, Defence.PARSER, says)


def _compile(kernel: str, says: str, defence: Defence = Defence.JAIL) -> Cheat:
    return Cheat(kernel, _SOFT, Stage.COMPILE, defence, says)


def _inspect(kernel: str, says: str) -> Cheat:
    return Cheat(kernel, _SOFT, Stage.INSPECT, Defence.INSPECTION, says)


def _walled(kernel: str, says: str, *, past_inspection: bool = False) -> Cheat:
    return Cheat(kernel, _SOFT, Stage.VERIFY, Defence.SANDBOX, says, past_inspection)


def _wrong(kernel: str, says: str, problem: str = _SOFT) -> Cheat:
    return Cheat(kernel, problem, Stage.VERIFY, Defence.VERIFICATION, says)


def _timed(kernel: str, says: str, problem: str = _SOFT) -> Cheat:
    return Cheat(kernel, problem, Stage.TIME, Defence.TIMING, says)


def _useless(kernel: str) -> Cheat:
    """Nobody can see it, and it is not worth doing."""
    return Cheat(kernel, _SOFT, None, Defence.TIMING, "times as fast as its honest twin")


_CALL = "made a system call"
_MEMORY = "touched memory outside its buffers, or used a forbidden instruction"
_ANOTHER = "than it gives for the same inputs in a new process"

CHEATS: tuple[Cheat, ...] = (
    # Text
    _parse("bidirectional", "U+202E cannot be seen"),
    _parse("escape_sequences", "U+001B cannot be seen"),
    _parse("header_splice", "ends with a backslash"),
    _parse("grid_bomb", "is too large"),
    _parse("grid_overflow", "is too large"),
    _parse("launch_bomb", "more than 1024 launches"),
    _parse("loop_bomb", "runs for too long"),
    _parse("python_in_launch", "'__class__' is not allowed"),
    _parse("scratch_bomb", "too much scratch memory"),
    _parse("tuning_bomb", "no valid combination of the tunables"),
    # Compiler
    _compile("constant_bomb", "limit"),
    _compile("enormous_log", "printed more than 1 MB"),
    _compile("huge_array", "reached a limit"),
    _compile("incbin", "/etc/passwd"),
    _compile("template_bomb", "template instantiation depth"),
    _compile("input_not_const", "by a pointer that can write", Defence.INSPECTION),
    _compile("wrong_type", "wrong element type", Defence.INSPECTION),
    # Host code
    _inspect("assembly", "contains assembly"),
    _inspect("assembly_between_digits", "contains assembly"),
    _inspect("assembly_in_a_name", "makes system calls"),
    _inspect("buried_instruction", "flushes caches"),
    _inspect("cache_flush", "flushes caches"),
    _inspect("clock", "calls `time`"),
    _inspect("cpu_number", "looks at the machine"),
    _inspect("dynamic_loading", "calls `dlopen`"),
    _inspect("embed", "includes something other"),
    _inspect("environment", "calls `getenv`"),
    _inspect("file", "calls `f"),
    _inspect("flush_to_zero", "changes how floating-point numbers are handled"),
    _inspect("forged_record", "no record of the parameters"),
    _inspect("fork", "calls `fork`"),
    _inspect("heap", "calls `malloc`"),
    _inspect("include_by_macro", "includes something other"),
    _inspect("include_by_splice", "includes something other"),
    _inspect("include_in_false_string", "includes something other"),
    _inspect("include_secrets", "includes something other"),
    _inspect("library_call", "calls `cblas_softmax`"),
    _inspect("pasted_assembly", "makes system calls"),
    _inspect("prefixed_call", "makes system calls"),
    _inspect("print_pass", "which it does not define"),
    _inspect("process_memory", "which it does not define"),
    _inspect("random_instruction", "rolls dice"),
    _inspect("renamed_function", "calls `fork`"),
    _inspect("rounding_mode", "calls `fesetround`"),
    _inspect("segment_limit", "looks at the machine"),
    _inspect("signal_handler", "calls `signal`"),
    _inspect("socket", "which it does not define"),
    _inspect("threads", "calls `pthread_create`"),
    _inspect("time_stamp", "reads the time-stamp counter"),
    _inspect("weak_reference", "calls `fork`"),
    # State and start-up
    _inspect("computed_global", "writable global"),
    _inspect("constructor", "has a constructor"),
    _inspect("forged_relocation", "write outside its tables"),
    _inspect("global_memory", "writable global (`last`)"),
    _inspect("ifunc", "ifunc"),
    _inspect("init_array", "runs code when it is loaded"),
    _inspect("init_function", "runs code when it is loaded"),
    _inspect("own_dynamic_entries", "asks the loader for something unusual"),
    _inspect("own_section", "writable global (`calls`)"),
    _inspect("pasted_constructor", "runs code when it is loaded"),
    _inspect("pasted_ifunc", "IFUNC"),
    _inspect("static_local", "writable global (`calls`)"),
    _inspect("thread_local", "thread-local state (`calls`)"),
    Cheat(
        "hidden_constructor", _SOFT, Stage.INSPECT, Defence.INSPECTION,
        "do not show the dynamic table", edit=hide_dynamic_section,
    ),
    Cheat(
        "foreign_library", _SOFT, Stage.INSPECT, Defence.INSPECTION,
        "asks for the library `libz.so.1`", edit=ask_for_another_library,
    ),
    # The kernel's process
    _walled("answers_and_dies", "ended its process"),
    _walled("coarse_clock", _MEMORY),
    _walled("crash", _MEMORY),
    _walled("deep_recursion", _MEMORY),
    _walled("early_reply", "spoke on the runner's pipe"),
    _walled("hang", "did not finish"),
    _walled("hidden_commands", "did not finish"),
    _walled("hidden_exit", "ended its process"),
    _walled("hidden_fork", _CALL),
    _walled("hidden_mapping", _CALL),
    _walled("hidden_pass", "spoke on the runner's pipe"),
    _walled("memory_search", _MEMORY),
    _walled("patched_runner", _MEMORY),
    _walled("search_below", _MEMORY),
    _walled("clock", _MEMORY, past_inspection=True),
    _walled("dynamic_loading", _CALL, past_inspection=True),
    _walled("file", _CALL, past_inspection=True),
    _walled("fork", _CALL, past_inspection=True),
    _walled("pasted_assembly", _CALL, past_inspection=True),
    _walled("print_pass", "", past_inspection=True),
    _walled("process_memory", _CALL, past_inspection=True),
    _walled("signal_handler", _CALL, past_inspection=True),
    _walled("socket", _CALL, past_inspection=True),
    _walled("threads", _CALL, past_inspection=True),
    _walled("time_stamp", _MEMORY, past_inspection=True),
    # Wrong results
    _wrong("clamped_exp", "expected"),
    _wrong("far_after", "wrote outside `out`"),
    _wrong("forged_types", "changed its input x"),
    _wrong("guarded_fast_path", "expected"),
    _wrong("half_storage", "expected"),
    _wrong("identity", "expected"),
    _wrong("is_it_right_already", "expected"),
    _wrong("mean", "expected"),
    _wrong("memo_by_fingerprint", "expected"),
    _wrong("no_launch", "unwritten"),
    _wrong("nothing", "unwritten"),
    _wrong("partial_grid", "unwritten"),
    _wrong("rough_exp", "expected"),
    _wrong("sampled_quarter", "expected"),
    _wrong("sampled_thousandth", "expected"),
    _wrong("starts_at_zero", "expected"),
    _wrong("swallowed_nan", "NaN"),
    _wrong("tame_data", "expected"),
    _wrong("wrong_when_tuned", "expected"),
    _wrong("zeros", "expected"),
    _wrong("bf16_product", "expected", _PRODUCT),
    _wrong("half_product", "expected", _PRODUCT),
    _wrong("hard_coded_blocks", "outside `out`", _PRODUCT),
    _wrong("hard_coded_shape", "out", _PRODUCT),
    _wrong("last_tile", "expected", _PRODUCT),
    _wrong("lucky_race", "order of blocks", _PRODUCT),
    _wrong("one_operand_bf16", "expected", _PRODUCT),
    _wrong("shortened_sum", "expected", _PRODUCT),
    _wrong("swapped_axes", "expected", _PRODUCT),
    _wrong("tf32_product", "expected", _PRODUCT),
    _wrong("two_k_unrolled", "expected", _PRODUCT),
    _wrong("changed_input", "changed its input x", _NORM),
    _wrong("changed_weight", "changed its input weight", _NORM),
    _wrong("ignored_argument", "expected", _NORM),
    _wrong("ignored_weight", "expected", _NORM),
    _wrong("one_after", "byte 0 past its end", _NORM),
    _wrong("one_before", "byte 4 before its start", _NORM),
    _wrong("reads_outside", "out", _NORM),
    _wrong("scratch_memory", "out", _NORM),
    _wrong("wrong_broadcast", "expected", _NORM),
    _wrong("true_left_unwritten", "unwritten", _POSITIVE),
    # Only timing tells
    _timed("changes_next_input", "changes its input"),
    _timed("counts_calls", _ANOTHER),
    _timed("counts_in_registers", _ANOTHER),
    _timed("earlier_output", _ANOTHER),
    _timed("every_fifth_call", _ANOTHER),
    _timed("last_tile_when_timed", _ANOTHER),
    _timed("memo_by_pointer", _ANOTHER),
    _timed("shortens_batch", _ANOTHER),
    _timed("slow_at_first", "it keeps something between calls"),
    _timed("table_kept", "it keeps something between calls", _POSITIONS),
    _timed("tells_by_address", _ANOTHER),
    _timed("tells_by_content", "was wrong"),
    _timed("tells_by_slot", _ANOTHER),
    _timed("tf32_when_timed", "was wrong", _PRODUCT),
    _useless("borrowed_guard"),
    _useless("borrowed_input"),
    _useless("hidden_flush"),
    _useless("memo_by_content"),
    _useless("next_input"),
)  # fmt: skip

# The plain one of each problem has the problem's name: it is what others are timed against.
TWINS: tuple[Twin, ...] = (
    Twin("softmax", _SOFT),
    Twin("one_block", _SOFT),
    Twin("checked_fast_path", _SOFT),
    Twin("constants", _SOFT),
    Twin("literals", _SOFT),
    Twin("streaming_stores", _SOFT),
    Twin("tunable", _SOFT),
    Twin("product", _PRODUCT),
    Twin("tiles", _PRODUCT),
    Twin("large_frame", _PRODUCT),
    Twin("partial_sums", _PRODUCT),
    Twin("normalize", _NORM),
    Twin("scratch", _NORM),
    Twin("positive", _POSITIVE),
    Twin("positions", _POSITIONS),
)


def named(part: str | None) -> list[Cheat | Twin]:
    """Those with `part` in their name, or all."""
    everything: list[Cheat | Twin] = [*TWINS, *CHEATS]
    subjects = [each for each in everything if part is None or part in each.name]
    if not subjects:
        near = difflib.get_close_matches(part or "", [each.name for each in everything], 4, 0.3)
        hint = f"the nearest names: {', '.join(near)}" if near else "cupilot selftest prints all names"
        raise UsageError(f"no attack is called {part!r}", hint=hint)
    return subjects
