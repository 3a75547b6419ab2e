"""Which PTX instructions the emulator executes, which tests compare with something else, which it refuses.

    python benchmarks/ptx_table.py [FOLDER]

Computed: "executed" is what the encoder takes, "tested" what it encodes while tests run that compare results
or expect a certain fault, "refused" what it refuses when asked. Only the list of the ISA's opcodes is written
by hand (PTX ISA 9). Writes FOLDER/ptx.json when a folder is given.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cupilot.device.cuda_emulated import device
from cupilot.device.cuda_emulated.encode.families import FAMILIES
from cupilot.device.cuda_emulated.process import EmulatorProcess
from cupilot.device.cuda_emulated.ptx.model import Instruction, Module

TESTS = Path(__file__).parents[1] / "tests" / "device" / "cuda_emulated"
sys.path.insert(0, str(TESTS))

import forms_kit  # noqa: E402

COMPARING = (
    "integer", "floating", "arithmetic", "comparing", "conversions", "halves", "memory", "spaces", "atomics",
    "warp", "warp_programs", "matrix", "asynchronous", "differential", "forms", "planted", "refusals",
    "examples",
)  # fmt: skip
_IN_KERNEL = frozenset({"call", "brx"})  # encode/kernel.py

ISA = {
    "integer": "add sub mul mad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi bmsk "
    "szext dp4a dp2a addc subc madc",
    "floating point": "testp copysign fma rcp sqrt rsqrt sin cos lg2 ex2 tanh",
    "comparison and selection": "set setp selp slct",
    "logic and shift": "and or xor not cnot lop3 shf shl shr",
    "data movement": "mov shfl prmt ld ldu st multimem prefetch prefetchu applypriority discard createpolicy "
    "isspacep istypep cvta cvt mapa getctarank cp",
    "textures and surfaces": "tex tld4 txq istypep suld sust sured suq",
    "control flow": "bra brx call ret exit",
    "barriers, atomics, warps": "bar barrier membar fence atom red vote match activemask redux elect "
    "mbarrier griddepcontrol tensormap clusterlaunchcontrol",
    "matrices": "wmma mma ldmatrix stmatrix movmatrix wgmma tcgen05",
    "stack": "stacksave stackrestore alloca",
    "video": "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 "
    "vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4",
    "miscellaneous": "brkpt nanosleep pmevent trap setmaxnreg",
}


class Recorder:
    """Notes what is encoded while tests run."""

    def __init__(self) -> None:
        self.operations: set[str] = set()
        self.spellings: set[str] = set()

    def pytest_configure(self) -> None:
        encode = device.encode_kernel

        def noting(module: Module, entry: str, image: Any) -> Any:
            program = encode(module, entry, image)
            self.operations |= set(program.names)
            for function in module.functions.values():
                for each in function.statements:
                    if isinstance(each, Instruction):
                        self.spellings.add(".".join(each.opcode))
            return program

        device.encode_kernel = noting


def record() -> Recorder:
    recorder = Recorder()
    files = [str(TESTS / f"test_{name}.py") for name in COMPARING]
    status = pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *files], plugins=[recorder])
    if status != 0:
        raise SystemExit("the tests fail: nothing counts as tested")
    return recorder


def refused_forms() -> Counter[str]:
    """Forms that are refused by name, counted by opcode."""
    found: Counter[str] = Counter()
    for arch, texts in forms_kit.REFUSED.items():
        for text in texts:
            refused = forms_kit.refusal(text, arch)
            assert refused is not None and forms_kit.opcode(text) in refused.reason, text
            found[forms_kit.opcode(text).split(".")[0]] += 1
    return found


def words(names: Iterable[str]) -> str:
    return " ".join(names) or "-"


def main() -> int:
    executed = set(FAMILIES) | _IN_KERNEL
    recorder, refused = record(), refused_forms()
    tested = {spelling.split(".")[0] for spelling in recorder.spellings}
    print("\n| family | executed and tested | executed, not tested | not executed |")
    print("| --- | --- | --- | --- |")
    for family, text in ISA.items():
        names = text.split()
        both = [n for n in names if n in executed and n in tested]
        only = [n for n in names if n in executed and n not in tested]
        missing = [n for n in names if n not in executed]
        print(f"| {family} | {words(both)} | {words(only)} | {words(missing)} |")
    strangers = executed - {name for text in ISA.values() for name in text.split()}
    assert not strangers, f"not in the list of the ISA: {strangers}"
    with EmulatorProcess() as process:
        operations = process.operations()
    left = sorted(operations - recorder.operations)
    print(
        f"\n{len(recorder.spellings)} spellings of {len(tested & executed)} opcodes were compared in tests."
    )
    done = len(operations) - len(left)
    print(f"Of {len(operations)} operations of the interpreter {done} were executed there;")
    print(f"the others: {words(left)}")
    print(f"\n{sum(refused.values())} forms of opcodes, known and unknown, were refused by name: ", end="")
    print(", ".join(f"{name} {count}" for name, count in sorted(refused.items())))
    if len(sys.argv) > 1:
        answer = {"spellings": sorted(recorder.spellings), "operations": sorted(recorder.operations)}
        (Path(sys.argv[1]) / "ptx.json").write_text(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
