"""Encodes one kernel of a PTX module. Called functions are inlined: the emulator has no call stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cupilot.device.cuda_emulated.encode import control
from cupilot.device.cuda_emulated.encode.builder import NEGATED, Builder, Source, UnsupportedError
from cupilot.device.cuda_emulated.encode.families import FAMILIES, JUMPS
from cupilot.device.cuda_emulated.encode.finish import finish
from cupilot.device.cuda_emulated.encode.frame import Frame, Names
from cupilot.device.cuda_emulated.encode.image import ModuleImage
from cupilot.device.cuda_emulated.encode.program import Program
from cupilot.device.cuda_emulated.ptx.model import (
    Function,
    Instruction,
    Label,
    Module,
    Place,
    Registers,
    Scope,
    Targets,
    Variable,
)
from cupilot.device.cuda_emulated.ptx.parser import PtxError

_MAX_INSTRUCTIONS = 100_000
_DYNAMIC_ALIGN = 16
_NOWHERE = Instruction(("ret",), (), "", Place(0))


def encode_kernel(module: Module, entry: str, image: ModuleImage) -> Program:
    """Raises UnsupportedError at the first instruction the emulator does not execute."""
    function = module.functions[entry]
    builder = Builder(current=_NOWHERE)
    shared = _place_shared(module, builder)
    offsets: dict[str, int] = {}
    spans, at = [], 0
    for parameter in function.parameters:
        at = -(-at // parameter.align) * parameter.align
        offsets[parameter.name] = at
        spans.append((at, parameter.size_bytes))
        at += parameter.size_bytes
    walker = _Walker(module, builder, image, shared)
    walker.body(function, Frame(builder, _Globals(image, shared), "", entry_parameters=offsets))
    builder.begin(_NOWHERE)
    builder.assist("exit")
    return finish(builder, entry, tuple(spans), function.max_threads)


def _place_shared(module: Module, builder: Builder) -> dict[str, int]:
    """Shared variables are one per block, wherever they are declared; what the launch adds follows."""
    declared = [v for v in module.variables.values() if v.space == "shared"]
    declared += [
        s
        for f in module.functions.values()
        for s in f.statements
        if isinstance(s, Variable) and s.space == "shared"
    ]
    placed = {v.name: builder.take_shared(v.size_bytes, v.align) for v in declared if v.size_bytes}
    dynamic = [v for v in declared if not v.size_bytes]
    start = builder.take_shared(0, max([_DYNAMIC_ALIGN, *(v.align for v in dynamic)])) if dynamic else 0
    return placed | {v.name: start for v in dynamic}


class _Globals(Mapping[str, tuple[str, int]]):
    """Module variables by name, given addresses when first asked for."""

    def __init__(self, image: ModuleImage, shared: Mapping[str, int]) -> None:
        self._image, self._shared = image, shared

    def __getitem__(self, name: str) -> tuple[str, int]:
        if name in self._shared:
            return "shared", self._shared[name]
        address = self._image.address(name)
        if address is None:
            raise KeyError(name)
        return "global", address

    def __iter__(self) -> Iterator[str]:
        return iter(self._image.variables)

    def __len__(self) -> int:
        return len(self._image.variables)


class _Walker:
    """Walks the statements of functions, following calls."""

    def __init__(
        self, module: Module, builder: Builder, image: ModuleImage, shared: Mapping[str, int]
    ) -> None:
        self._module, self._builder = module, builder
        self._globals = _Globals(image, shared)
        self._active: list[str] = []
        self._serial = 0

    def body(self, function: Function, frame: Frame) -> None:
        self._active.append(function.name)
        tables = {s.name: s.labels for s in function.statements if isinstance(s, Targets)}
        for statement in function.statements:
            match statement:
                case Instruction():
                    self._instruction(frame, statement, tables)
                case Label():
                    self._builder.label(frame.prefix + statement.name)
                case Registers():
                    frame.declare(statement)
                case Variable():
                    if statement.space != "shared":
                        frame.place(statement)
                case Scope(opens=True):
                    frame.scopes.append(Names())
                case Scope():
                    frame.scopes.pop()
                case Targets():
                    pass
        self._active.pop()

    def _instruction(self, frame: Frame, ins: Instruction, tables: Mapping[str, tuple[str, ...]]) -> None:
        builder, op = self._builder, ins.opcode[0]
        frame.instruction = ins
        builder.begin(ins)
        if len(builder.code) > _MAX_INSTRUCTIONS:
            raise PtxError(
                f"line {ins.place.line}: the kernel has more than {_MAX_INSTRUCTIONS} instructions once its "
                "calls are inlined, which the emulator does not take",
                hint="unroll less, or call fewer functions that call functions",
            )
        if op == "bra":
            return control.branch(frame, ins)
        if not ins.guard:
            return self._emit(frame, ins, tables)
        self._serial += 1
        around = f"around {self._serial}"
        if op in JUMPS:
            builder.hop("bra.if", around, a=frame.predicate(ins.guard) ^ NEGATED)
            self._emit(frame, ins, tables)
        else:
            builder.guard(frame.predicate(ins.guard), around)
            self._emit(frame, ins, tables)
            builder.unguard()
        return builder.label(around)

    def _emit(self, frame: Frame, ins: Instruction, tables: Mapping[str, tuple[str, ...]]) -> None:
        op = ins.opcode[0]
        if op == "call":
            self._call(frame, ins)
        elif op == "brx":
            control.jump_table(frame, ins, tables[ins.operands[1]])
        elif op == "ret" and frame.prefix:
            self._builder.jump("bra", f"{frame.prefix}end")
        elif op in FAMILIES:
            FAMILIES[op](frame, ins)
        else:
            raise UnsupportedError(ins)

    def _call(self, frame: Frame, ins: Instruction) -> None:
        groups = [
            [name.strip() for name in o.strip("() ").split(",")] for o in ins.operands if o.startswith("(")
        ]
        names = [o for o in ins.operands if not o.startswith("(")]
        callee = names[0]
        returns = groups[0] if ins.operands[0].startswith("(") else []
        arguments = groups[1 if returns else 0] if len(groups) > bool(returns) else []
        held = {name: frame.parameter(name) for name in (*returns, *arguments) if name}
        if callee in ("vprintf", "__assertfail"):
            passed = [found for a in arguments if (found := held[a]) is not None]
            return self._system_call(frame, callee, passed, returns)
        function = self._module.functions.get(callee)
        if function is None or not function.statements:
            raise UnsupportedError(ins, f"calls {callee}")
        if callee in self._active:
            raise UnsupportedError(ins, "recursion")
        self._serial += 1
        inner = Frame(self._builder, self._globals, f"{callee} {self._serial} ")
        formals = (*function.returns, *function.parameters)
        for formal, actual in zip(formals, (*filter(None, returns), *filter(None, arguments)), strict=True):
            value = held[actual]
            if value is None:
                raise UnsupportedError(ins, f"unknown parameter {actual}")
            inner.scopes[0].parameters[formal.name] = value
        self.body(function, inner)
        self._builder.begin(ins)
        return self._builder.label(f"{inner.prefix}end")

    def _system_call(
        self,
        frame: Frame,
        callee: str,
        arguments: list[dict[int, tuple[str, Source]]],
        returns: list[str],
    ) -> None:
        values = [held[0][1] for held in arguments]
        if callee == "__assertfail":
            return self._builder.emit("assert", a=values[0])
        result = self._builder.reg(False)
        for name in filter(None, returns):
            held = frame.parameter(name)
            if held is not None:
                held[0] = ("b32", result)
        return self._builder.emit("printf", dst=result, a=values[0], b=values[1])
