"""Inputs and references on disk, so that a candidate pays for comparing only.

One file for each entry, in a folder only its owner can read: its seeds and expected values are secret from
candidates. Files appear whole or not at all, a damaged one counts as absent, the oldest make room.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from cupilot.device.native import cache_dir
from cupilot.evaluate.reference import Array, Choice, OutputReference, Reference

CAP_BYTES = 6 << 30
_MAGIC = b"cupilot reference 1\n"


@dataclass(frozen=True)
class Entry:
    """Named arrays with whatever JSON describes them."""

    meta: dict[str, Any]
    arrays: dict[str, Array]


class ReferenceCache:
    """A folder of entries by key, least recently used first to go."""

    def __init__(self, folder: Path | None = None, cap_bytes: int = CAP_BYTES) -> None:
        root = folder or cache_dir()
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = root / "references"
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._folder.chmod(0o700)
        self._cap_bytes = cap_bytes
        self.base_seed = _secret_seed(self._folder / "seed")

    def get(self, key: str) -> Entry | None:
        path = self._folder / f"{key}.ref"
        try:
            entry = _unpack(np.fromfile(path, dtype=np.uint8))
            os.utime(path)
        except FileNotFoundError:
            return None
        if entry is None:
            path.unlink(missing_ok=True)
        return entry

    def put(self, key: str, entry: Entry) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=self._folder, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                _pack(entry, file)
            os.replace(temporary, self._folder / f"{key}.ref")
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        self._make_room()

    def _make_room(self) -> None:
        known = []
        for item in os.scandir(self._folder):
            with contextlib.suppress(FileNotFoundError):  # another process makes room too
                known.append((item.stat().st_mtime, item.stat().st_size, item.path))
        total = sum(size for _, size, _ in known)
        for used, size, path in sorted(known):
            abandoned = path.endswith(".part") and time.time() - used > 3600
            if abandoned or (total > self._cap_bytes and path.endswith(".ref")):
                Path(path).unlink(missing_ok=True)
                total -= size


def _secret_seed(path: Path) -> int:
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(16))
    return int.from_bytes(path.read_bytes(), "big")


def _pack(entry: Entry, file: Any) -> None:
    offset, index, check = 0, {}, 0
    data = {name: np.ascontiguousarray(array).reshape(-1) for name, array in entry.arrays.items()}
    for name, array in data.items():
        shape = list(entry.arrays[name].shape)
        index[name] = {"dtype": array.dtype.str, "shape": shape, "offset": offset, "bytes": array.nbytes}
        offset += array.nbytes + _padding(array.nbytes)
        check = zlib.crc32(array.view(np.uint8).data, check)
    header = json.dumps({"meta": entry.meta, "arrays": index, "crc32": check}).encode()
    header += b" " * _padding(len(_MAGIC) + 8 + len(header))
    file.write(_MAGIC + len(header).to_bytes(8, "little") + header)
    for array in data.values():
        file.write(array.view(np.uint8).data)
        file.write(bytes(_padding(array.nbytes)))


def _padding(size: int) -> int:
    return -size % 64


def _unpack(raw: Array) -> Entry | None:
    """The entry, its arrays views into `raw`, or None when the bytes are not what was written."""
    start = len(_MAGIC) + 8
    if raw[: len(_MAGIC)].tobytes() != _MAGIC or len(raw) < start:
        return None
    length = int.from_bytes(raw[len(_MAGIC) : start].tobytes(), "little")
    try:
        header = json.loads(raw[start : start + length].tobytes())
    except ValueError:
        return None
    payload, check = raw[start + length :], 0
    arrays = {}
    for name, place in header["arrays"].items():
        part = payload[place["offset"] : place["offset"] + place["bytes"]]
        if len(part) != place["bytes"]:
            return None
        check = zlib.crc32(part.data, check)
        arrays[name] = part.view(np.dtype(place["dtype"])).reshape(place["shape"])
    return Entry(header["meta"], arrays) if check == header["crc32"] else None


def pack_reference(reference: Reference) -> Entry:
    arrays: dict[str, Array] = {}
    outputs = []
    for place, output in enumerate(reference.outputs):
        described: dict[str, Any] = {"name": output.name, "largest": output.largest}
        for name in _ARRAYS:
            if (array := getattr(output, name)) is not None:
                arrays[f"{place}.{name}"] = array
        if output.choice is not None:
            choice = output.choice
            arrays[f"{place}.choice"] = choice.values
            if choice.allowed is not None:
                arrays[f"{place}.choice_allowed"] = choice.allowed
            described["choice"] = {
                "dim": choice.dim,
                "shape": list(choice.shape),
                "distinct": choice.distinct,
            }
        outputs.append(described)
    meta = {"outputs": outputs, "sketched": list(reference.sketched)}
    return Entry(meta, arrays)


def unpack_reference(entry: Entry) -> Reference:
    return Reference(
        tuple(
            _output(place, described, entry.arrays) for place, described in enumerate(entry.meta["outputs"])
        ),
        tuple(entry.meta["sketched"]),
    )


def _output(place: int, described: Mapping[str, Any], arrays: Mapping[str, Array]) -> OutputReference:
    choice = None
    if (kept := described.get("choice")) is not None:
        allowed = arrays.get(f"{place}.choice_allowed")
        values = arrays[f"{place}.choice"]
        choice = Choice(values, allowed, kept["dim"], tuple(kept["shape"]), kept["distinct"])
    parts = {name: arrays.get(f"{place}.{name}") for name in _ARRAYS}
    return OutputReference(described["name"], largest=described["largest"], choice=choice, **parts)  # type: ignore[arg-type]


_ARRAYS = tuple(f.name for f in fields(OutputReference) if f.name not in ("name", "largest", "choice"))
