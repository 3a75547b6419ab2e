"""What a compiled candidate may consist of: code and constants. Refuses memory between calls and host code.

This is lint with good messages, and keeps honest mistakes out. The boundary is the runner's process: its
system-call filter, and data it has not seen before.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

from cupilot.device import elf
from cupilot.device.base import ElementKind, Parameter
from cupilot.device.elf import Elf, ElfError, Section
from cupilot.device.jail import run_jailed

_MATH = (
    r"acosh?|asinh?|atan[2h]?|cbrt|ceil|copysign|cosh?|erfc?|exp(?:10|2|m1)?|fabs|fdim|floor|fma|fmax|fmin|fmod|"
    r"frexp|hypot|ilogb|j[01]|ldexp|lgamma|l?l?rint|l?l?round|log(?:10|1p|2|b)?|modf|nearbyint|nextafter|pow|"
    r"remainder|remquo|roundeven|scalbl?n|sincos|sinh?|sqrt|tanh?|tgamma|trunc|y[01]"
)
_MEMORY = {"memcpy", "memset", "memmove", "memcmp"}
_LIBRARY = re.compile(rf"(?:{_MATH})[fl]?|lgammaf?_r|_ZGV[bcde]N\d+v+_\w+")
_DT_INIT, _DT_FINI, _DT_TEXTREL, _DT_INIT_ARRAY, _DT_FINI_ARRAY, _DT_FLAGS = 12, 13, 22, 25, 26, 30
_DF_TEXTREL = 4
_PAGE = 4096
# What an ordinary library says to the loader: its tables, its flags, the libraries it needs. No search paths,
# no filters, no relocations in other forms.
_PLAIN_TAGS = frozenset({*range(1, 12), 20, 22, 23, 24, 30, 0x6FFFFEF5, *range(0x6FFFFFF0, 0x70000000)})
_NEEDED = frozenset({"libm.so.6", "libmvec.so.1", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"})
_R_X86_64_COPY, _R_X86_64_IRELATIVE = 5, 37
_WORD_BYTES = 8
_LISTING_BYTES = 64 << 20  # a disassembly longer than that belongs to no kernel
_SPELLINGS = {
    "_Znwm": "operator new",
    "_Znam": "operator new[]",
    "_ZdlPv": "operator delete",
    "_ZdlPvm": "operator delete",
}
_LINKERS_OWN = {"_DYNAMIC", "_GLOBAL_OFFSET_TABLE_"}
_WEAK_NOTHINGS = {"__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable"}
_PREFIXES = frozenset(
    ("lock", "rep", "repz", "repnz", "data16", "addr32", "bnd", "notrack", "cs", "ds", "es", "fs", "gs", "ss")
)
_TIME, _DICE = "measures time", "rolls dice: a kernel gives the same result every time"
_MODE, _CACHE = "changes how floating-point numbers are handled", "flushes caches"
_FORBIDDEN_INSTRUCTIONS = {
    "syscall": "makes system calls",
    "sysenter": "makes system calls",
    "vmcall": "makes system calls",
    "vmmcall": "makes system calls",
    "int": "raises interrupts",
    "rdtsc": "reads the time-stamp counter",
    "rdtscp": "reads the time-stamp counter",
    "rdpmc": "reads performance counters",
    "wrpkru": "changes memory protection",
    "wrfsbase": "changes the thread's registers",
    "wrgsbase": "changes the thread's registers",
    "xbegin": "starts memory transactions",
    **dict.fromkeys(("umonitor", "umwait", "tpause", "monitorx", "mwaitx", "rdpru"), _TIME),
    **dict.fromkeys(("rdrand", "rdseed"), _DICE),
    **dict.fromkeys(("ldmxcsr", "vldmxcsr", "fldcw", "fldenv", "frstor", "fxrstor", "xrstor"), _MODE),
    **dict.fromkeys(("xrstor64", "fxrstor64", "popf", "popfq", "popfw"), _MODE),
    **dict.fromkeys(("clflush", "clflushopt", "clwb", "cldemote", "wbnoinvd"), _CACHE),
    **dict.fromkeys(
        ("cpuid", "rdpid", "xgetbv", "sidt", "sgdt", "sldt", "str", "smsw", "lsl", "lar", "verr", "verw"),
        "looks at the machine it runs on",
    ),
}


def inspect_elf(data: bytes) -> str | None:
    """None, or why the library is refused, completing the sentence "the kernel ..."."""
    try:
        library = elf.read_elf(data)
        library.check_agreement()
        return _state(library) or _start_up(library) or _loader_tricks(library) or _foreign_calls(library)
    except ElfError as error:
        return f"compiles to a file that cannot be inspected ({error})"


def _state(library: Elf) -> str | None:
    if any(s.type == elf.PT_TLS for s in library.segments):
        names = _names_in(library, lambda s: bool(s.flags & elf.SHF_TLS), elf.STT_TLS)
        return f"keeps thread-local state{names}: kernels have no memory between calls; use scratch()"
    relro = [s for s in library.segments if s.type == elf.PT_GNU_RELRO]
    protected = [(s.address, (s.address + s.memory_bytes) & -_PAGE) for s in relro]  # as the loader rounds
    for segment in library.segments:
        if segment.type != elf.PT_LOAD or not segment.flags & elf.PF_W:
            continue
        if segment.flags & elf.PF_X:
            return "has memory that is both writable and executable"
        end = segment.address + segment.memory_bytes
        if not any(low <= segment.address and end <= high for low, high in protected):
            names = _names_in(library, lambda s: _is_writable(s, protected), elf.STT_OBJECT)
            return f"keeps a writable global{names}: kernels have no memory between calls; use scratch()"
    return None


def _is_writable(section: Section, protected: list[tuple[int, int]]) -> bool:
    inside = any(low <= section.address and section.address + section.size <= high for low, high in protected)
    return bool(section.flags & elf.SHF_WRITE) and not inside


def _names_in(library: Elf, wanted: Callable[[Section], bool], kind: int) -> str:
    """The symbols of one kind that lie in the wanted sections, as " (`a`, `b`)"."""
    sections = [s for s in library.sections if wanted(s)]
    names = [
        _readable(symbol.name)
        for symbol in library.symbols(elf.SHT_SYMTAB)
        if symbol.type == kind
        and symbol.name
        and symbol.name not in _LINKERS_OWN
        and (kind == elf.STT_TLS or any(s.address <= symbol.address < s.address + s.size for s in sections))
    ]
    return f" (`{'`, `'.join(sorted(set(names))[:3])}`)" if names else ""


def _start_up(library: Elf) -> str | None:
    tags = {tag for tag, _ in library.dynamic()}
    if tags & {_DT_INIT, _DT_INIT_ARRAY}:
        return "runs code when it is loaded (a constructor, or a global with a computed value)"
    if tags & {_DT_FINI, _DT_FINI_ARRAY}:
        return "runs code when it is unloaded (a destructor)"
    return None


def _loader_tricks(library: Elf) -> str | None:
    symbols = library.symbols(elf.SHT_SYMTAB) + library.symbols(elf.SHT_DYNSYM)
    relocations = library.relocations()
    types = {kind for _, kind in relocations}
    if _R_X86_64_IRELATIVE in types or any(s.type == elf.STT_GNU_IFUNC for s in symbols):
        return "chooses functions while it is loaded (IFUNC)"
    dynamic = library.dynamic()
    if any(tag == _DT_TEXTREL or (tag == _DT_FLAGS and value & _DF_TEXTREL) for tag, value in dynamic):
        return "has code that is rewritten while it is loaded (text relocations)"
    strange = {tag for tag, _ in dynamic} - _PLAIN_TAGS
    if strange:
        return f"asks the loader for something unusual (dynamic tag {min(strange):#x})"
    unknown = library.needed() - _NEEDED
    if unknown:
        return f"asks for the library `{min(unknown)}`: only mathematics can be called"
    if _R_X86_64_COPY in types:
        return "copies data out of another library"
    if not all(_may_be_filled_in(library, at) for at, _ in relocations):
        return "would have the loader write outside its tables of addresses (a relocation of its own)"
    if any(s.type == elf.PT_GNU_STACK and s.flags & elf.PF_X for s in library.segments):
        return "asks for an executable stack"
    return None


def _may_be_filled_in(library: Elf, at: int) -> bool:
    """Whether the loader may write a word there: into the library, and not into what steers the loader."""
    spans = {
        kind: [(s.address, s.address + s.memory_bytes) for s in library.segments if s.type == kind]
        for kind in (elf.PT_GNU_RELRO, elf.PT_DYNAMIC)
    }
    inside = any(low <= at and at + _WORD_BYTES <= high for low, high in spans[elf.PT_GNU_RELRO])
    return inside and not any(low < at + _WORD_BYTES and at < high for low, high in spans[elf.PT_DYNAMIC])


def _foreign_calls(library: Elf) -> str | None:
    for symbol in library.symbols(elf.SHT_DYNSYM):
        if symbol.is_defined or not symbol.name or symbol.name in _MEMORY | _WEAK_NOTHINGS:
            continue
        if symbol.type == elf.STT_OBJECT or not _LIBRARY.fullmatch(symbol.name):
            return (
                f"calls `{_readable(symbol.name)}`, which it does not define: "
                "only mathematics and memcpy, memset, memmove, memcmp can be called"
            )
    return None


def _readable(symbol: str) -> str:
    """The plain part of a mangled name, where it is simple; the symbol otherwise."""
    match = re.fullmatch(r"_ZN?L?(\d+)(\w+)|_ZZ.*EL?(\d+)(\w+)", symbol)
    if match is None:
        return _SPELLINGS.get(symbol, symbol)
    length, text = match.groups()[:2] if match[1] else match.groups()[2:]
    return text[: int(length)]


def read_parameters(data: bytes, kernel: str) -> tuple[Parameter, ...]:
    """What the compiler recorded about a kernel's parameters. Raises ElfError when there is no record."""
    library = elf.read_elf(data)
    for symbol in library.symbols(elf.SHT_DYNSYM):
        if symbol.name == f"cupilot_parameters_{kernel}" and symbol.is_defined:
            record = library.at(symbol.address, symbol.size)
            count = int.from_bytes(record[:4], "little")
            if 4 + 4 * count > len(record):
                raise ElfError("a record of parameters is cut short")
            return tuple(_parameter(record[4 + 4 * i : 8 + 4 * i]) for i in range(count))
    raise ElfError(f"no record of the parameters of {kernel}")


def _parameter(record: bytes) -> Parameter:
    kinds = {kind.value: kind for kind in ElementKind}
    if record[0] not in kinds:
        raise ElfError("a record of parameters is damaged")
    return Parameter(kinds[record[0]], record[1], bool(record[2]), bool(record[3]))


def inspect_instructions(library: Path, work: Path) -> str | None:
    """None, or the first forbidden instruction that the disassembler sees, if there is a disassembler."""
    objdump = shutil.which("objdump")
    if objdump is None:
        return None
    command = [objdump, "-d", "--no-show-raw-insn", "--no-addresses", str(library)]
    listing = run_jailed(command, work, read=[library], most_bytes=_LISTING_BYTES)
    if listing.ended is not None:
        return f"cannot be looked through: disassembling it {listing.ended}"
    for line in listing.output.splitlines():
        if line[:1] != "\t":
            continue
        words = line.split()
        plain = (word for word in words if word not in _PREFIXES and not word.startswith("rex"))
        mnemonic = next(plain, "")
        if mnemonic in _FORBIDDEN_INSTRUCTIONS:
            return f"{_FORBIDDEN_INSTRUCTIONS[mnemonic]} (`{mnemonic}`): a kernel computes, and nothing else"
    return None
