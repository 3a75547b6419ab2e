"""The program of a baseline: torch in processes of its own, threads and memory as a candidate's.

Started by `baseline.py` as a host: it loads torch and the problem once, then forks a fresh process for
every race. The host never computes with more than one thread, because a process that has used OpenMP cannot
be forked. The user's module runs here unrestricted: it is the reference, not a suspect.
"""

from __future__ import annotations

import copy
import gc
import json
import math
import mmap
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from cupilot.evaluate.library_route import LibraryBackend
from cupilot.problem.dtypes import torch_dtype
from cupilot.problem.loading import load
from cupilot.problem.program import Program, build_model
from cupilot.problem.usercode import seeded
from cupilot.types import DType

_COMMAND = struct.Struct("<QQQQ")
_HUGE_PAGE = 2 << 20
_MADV_HUGEPAGE = 14

Call = Callable[[], Any]


def main() -> None:
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.set_grad_enabled(False)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forked ones
    control = socket.socket(fileno=int(sys.argv[1]))
    module = _Module(load(sys.argv[2], sys.argv[3] or None).program)
    gc.collect()
    gc.freeze()
    control.send(b"ready")
    while True:
        message, ends, _, _ = socket.recv_fds(control, 1 << 20, 2)
        if not message:
            return
        request = json.loads(message)
        refusal = module.prepare(request)
        pid = os.fork()
        if pid == 0:
            control.close()
            _race(module, request, refusal, *ends)
        for end in ends:
            os.close(end)
        control.send(struct.pack("<Q", pid))


def _race(module: _Module, request: Mapping[str, Any], refusal: str, commands: int, answers: int) -> None:
    """One process: set up, say where its inputs lie, then run batches until the pipe closes."""
    base = 0
    torch.set_num_threads(request["threads"])
    if not refusal:
        try:
            base, calls = _set_up(module, request)
            outputs = [calls[index % len(calls)]() for index in range(request["outputs"])]
        except Exception as error:  # noqa: BLE001 (whatever the user's module raises is reported)
            refusal = _explain(error)
    words = refusal.encode()
    os.write(answers, struct.pack("<QQQ", 1 if refusal else 0, base, len(words)) + words)
    if not refusal:
        gc.collect()
        gc.freeze()
        gc.disable()
        _serve(calls, outputs, commands, answers)
    os._exit(0)


def _explain(error: Exception) -> str:
    cause = getattr(error, "inner_exception", error)  # what torch.compile wraps
    return f"{type(cause).__name__}: {cause}".splitlines()[0][:500]


class _Module:
    """The user's module, and its compiled forms, made once in the host and inherited by every fork."""

    def __init__(self, program: Program) -> None:
        self.program = program
        with seeded(0):
            self.model = build_model(program.make_model, program.path)
        self._compiled: dict[str, tuple[Any, str]] = {}  # with the reason why there is none

    def prepare(self, request: Mapping[str, Any]) -> str:
        """Compile for the kind and shapes that are asked for; "" or why that cannot be."""
        if request["kind"] == "eager":
            return ""
        key = self._key(request)
        if key not in self._compiled:
            self._compiled[key] = self._compile(request)
        return self._compiled[key][1]

    def _compile(self, request: Mapping[str, Any]) -> tuple[Any, str]:
        model, library = self.model, LibraryBackend()

        def functional(state: dict[str, torch.Tensor], arguments: tuple[Any, ...]) -> Any:
            return torch.func.functional_call(model, state, arguments)

        backend = "inductor" if request["kind"] == "compile" else library
        compiled = torch.compile(functional, backend=backend, dynamic=False)
        region = _reserve(request["bytes"])
        try:
            self.compiled_call(compiled, _slot(region, 0, request))()
        except Exception as error:  # noqa: BLE001 (whatever torch.compile raises is reported)
            return None, _explain(error)
        if request["kind"] == "library" and not library.swapped:
            return None, "no operator of this problem has a better route than eager takes"
        return compiled, ""

    def calls(self, request: Mapping[str, Any], slots: list[dict[str, torch.Tensor]]) -> list[Call]:
        if request["kind"] == "eager":
            return [self._eager_call(copy.deepcopy(self.model), tensors) for tensors in slots]
        compiled, _ = self._compiled[self._key(request)]
        return [self.compiled_call(compiled, tensors) for tensors in slots]

    def _eager_call(self, model: nn.Module, tensors: Mapping[str, torch.Tensor]) -> Call:
        """The module itself, its weights replaced by those of the slot."""
        places = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        for name, path in self.program.state_paths.items():
            places[path].data = tensors[name]
        arguments = self.program.binding.rebuild(tensors)
        return lambda: model(*arguments)

    def compiled_call(self, compiled: Any, tensors: Mapping[str, torch.Tensor]) -> Call:
        state = {path: tensors[name] for name, path in self.program.state_paths.items()}
        arguments = self.program.binding.rebuild(tensors)
        return lambda: compiled(state, arguments)

    @staticmethod
    def _key(request: Mapping[str, Any]) -> str:
        return json.dumps([request["kind"], [tensor[1:3] for tensor in request["tensors"]]])


def _serve(calls: Sequence[Call], outputs: list[Any], commands: int, answers: int) -> None:
    slots, ring = len(calls), len(outputs)
    while len(command := os.read(commands, _COMMAND.size)) == _COMMAND.size:
        token, first, count, _ = _COMMAND.unpack(command)
        for index in range(first, first + count):
            outputs[index % ring] = None  # what it held is free for this call's result
            outputs[index % ring] = calls[index % slots]()
        os.write(answers, token.to_bytes(8, "little"))


def _set_up(module: _Module, request: Mapping[str, Any]) -> tuple[int, list[Call]]:
    region = _reserve(request["bytes"] + _HUGE_PAGE)
    start = torch.frombuffer(region, dtype=torch.uint8).data_ptr()
    base = -(-start // _HUGE_PAGE) * _HUGE_PAGE
    slots = [
        _slot(region, base - start + index * request["stride"], request) for index in range(request["inputs"])
    ]
    for tensors in slots:
        for tensor in tensors.values():
            tensor.fill_(1)  # claims the pages
    return base, module.calls(request, slots)


def _reserve(size: int) -> mmap.mmap:
    """Private memory: what `mmap` gives by default is shared, and shared memory gets no huge pages."""
    region = mmap.mmap(-1, max(size, mmap.PAGESIZE), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    region.madvise(_MADV_HUGEPAGE)
    return region


def _slot(region: mmap.mmap, start: int, request: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {
        name: _tensor(region, start + offset, torch_dtype(DType(dtype)), tuple(shape))
        for name, dtype, shape, offset in request["tensors"]
    }


def _tensor(region: mmap.mmap, offset: int, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    count = math.prod(shape)
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(region, dtype=dtype, count=count, offset=offset).view(shape)


if __name__ == "__main__":
    main()
