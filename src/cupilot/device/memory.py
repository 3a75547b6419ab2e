"""Reads and writes another process's memory, and makes the patterns that show what was touched.

The other process takes no part: no shared pages, no call of its own.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from cupilot.device.base import Array
from cupilot.errors import CupilotError, DeviceUnavailable

_MOST_PIECES = 1024  # IOV_MAX
_MOST_BYTES = 1 << 30  # in one call


class SessionOverError(CupilotError):
    """The process whose memory is wanted is gone."""


class _Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


_libc = ctypes.CDLL(None, use_errno=True)
_SIGNATURE = (
    ctypes.c_int,
    ctypes.POINTER(_Piece),
    ctypes.c_ulong,
    ctypes.POINTER(_Piece),
    ctypes.c_ulong,
    ctypes.c_ulong,
)
for _name in ("process_vm_writev", "process_vm_readv"):
    _function = getattr(_libc, _name)
    _function.argtypes = _SIGNATURE
    _function.restype = ctypes.c_ssize_t

Span = tuple[int, int]  # address, size in bytes


def write_memory(pid: int, local: Sequence[Span], remote: Sequence[Span]) -> None:
    """Copy the local spans, one after the other, over the remote ones; both are equally long in all."""
    _move(_libc.process_vm_writev, pid, local, remote)


def read_memory(pid: int, local: Sequence[Span], remote: Sequence[Span]) -> None:
    _move(_libc.process_vm_readv, pid, local, remote)


def span_of(array: Array) -> Span:
    if not array.flags.c_contiguous:
        raise ValueError("an array for another process must be contiguous")
    return array.ctypes.data, array.nbytes


def _move(function: Callable[..., int], pid: int, local: Sequence[Span], remote: Sequence[Span]) -> None:
    for here, there in _batches(local, remote):
        size = sum(length for _, length in there)
        mine = _pieces(here)
        theirs = _pieces(there)
        moved = function(pid, mine, len(here), theirs, len(there), 0)
        if moved == size:
            continue
        code = ctypes.get_errno()
        if moved < 0 and code not in (errno.ESRCH, errno.EFAULT):
            message = f"cannot reach the runner's memory: {os.strerror(code)}"
            raise DeviceUnavailable(message, hint="run cupilot doctor")
        raise SessionOverError("the runner's process is gone")


def _pieces(spans: Sequence[Span]) -> ctypes.Array[_Piece]:
    return (_Piece * len(spans))(*(_Piece(base, size) for base, size in spans))


def _batches(local: Sequence[Span], remote: Sequence[Span]) -> Iterator[tuple[list[Span], list[Span]]]:
    """Cut both sides into equal pieces, and those into calls that the system accepts."""
    here: list[Span] = []
    there: list[Span] = []
    size = 0
    for mine, theirs in _pairs(local, remote):
        here.append(mine)
        there.append(theirs)
        size += mine[1]
        if len(here) == _MOST_PIECES or size >= _MOST_BYTES:
            yield here, there
            here, there, size = [], [], 0
    if here:
        yield here, there


def _pairs(local: Sequence[Span], remote: Sequence[Span]) -> Iterator[tuple[Span, Span]]:
    sources = iter(local)
    mine, available = 0, 0
    for theirs, wanted in remote:
        while wanted:
            if not available:
                mine, available = next(sources)
                continue
            size = min(available, wanted, _MOST_BYTES)
            yield (mine, size), (theirs, size)
            mine, available = mine + size, available - size
            theirs, wanted = theirs + size, wanted - size


class Poison:
    """Random bytes that are NaN in every floating type and far out of range as integers, to fill memory with.

    Each 16-bit word is ±0x7ff0 to ±0x7fff: a NaN in f16, bf16, f32 and f64 alike. Different for every fill.
    """

    def __init__(self) -> None:
        words = np.random.default_rng(secrets.randbits(128)).integers(0, 32, 1 << 19, dtype=np.uint16)
        self._words = (words & 15) | ((words & 16) << 11) | np.uint16(0x7FF0)

    def spans(self, size: int) -> list[Span]:
        """Local spans of `size` bytes in all, beginning at a random place of the pattern."""
        address, length = span_of(self._words)
        skip = secrets.randbelow(length // 2) & ~7
        spans = []
        while size > 0:
            part = min(size, length - skip)
            spans.append((address + skip, part))
            size -= part
            skip = 0
        return spans

    def take(self, size: int) -> Array:
        """The same, as an array of bytes."""
        skip = secrets.randbelow(self._words.nbytes // 2) & ~7
        return np.resize(np.roll(self._words.view(np.uint8), -skip), size)
