"""Peaks of GPUs by name, from their data sheets (`datasheet.toml`): to place a problem on a device one does
not have. Everything computed from these is a prediction."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from cupilot.errors import UsageError
from cupilot.roofline import DevicePeaks, Format, MemoryLevel, Pattern, Source

# Per multiprocessor and clock, all generations here: the widest path to the L2 cache, and special functions.
_L2_BYTES_PER_CLOCK = 64
_SPECIAL_PER_CLOCK = 16
_LAUNCH_S = 3e-6  # an empty kernel from launch to end, about the same since Volta


@dataclass(frozen=True)
class Gpu:
    name: str
    multiprocessors: int
    cores: int
    clock_hz: float
    memory_bytes: int
    memory_bytes_per_s: float
    l2_bytes: int
    core_ops_per_s: Mapping[Format, float]
    matrix_ops_per_s: Mapping[Format, float]


@cache
def gpus() -> tuple[Gpu, ...]:
    text = (resources.files("cupilot.device") / "datasheet.toml").read_text(encoding="utf-8")
    return tuple(_gpu(name, table) for name, table in tomllib.loads(text).items())


def _gpu(name: str, table: Mapping[str, Any]) -> Gpu:
    rates = {
        unit: {Format(text): float(rate) for text, rate in table[unit].items()}
        for unit in ("core_ops_per_s", "matrix_ops_per_s")
    }
    return Gpu(name=name, **{**table, **rates})


def find_gpu(text: str) -> Gpu:
    """By name, without regard to case, spaces and vendor: "h100 sxm", "NVIDIA A100-SXM4-80GB", "RTX4090"."""
    wanted = _words(text)
    alike = [(gpu, _words(gpu.name)) for gpu in gpus()]
    alike = [(gpu, words) for gpu, words in alike if wanted and (wanted <= words or words <= wanted)]
    exact = [gpu for gpu, words in alike if words == wanted]
    most = max((len(words & wanted) for _, words in alike), default=0)
    found = exact or [gpu for gpu, words in alike if len(words & wanted) == most]
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"{text!r} names {'several GPUs' if found else 'no GPU of the table'}",
        hint=f"one of: {', '.join(gpu.name for gpu in (found or gpus()))}",
    )


def _words(text: str) -> frozenset[str]:
    text = re.sub(r"nvidia|tesla|geforce", " ", text.lower())
    text = re.sub(
        r"sxm\d?|hbm3e?", " sxm ", text
    )  # the driver calls the SXM boards of the H series by their memory
    return frozenset(re.findall(r"rtx|[a-z]*\d+(?:gb)?|[a-z]+", text))


def gpu_peaks(gpu: Gpu) -> DevicePeaks:
    every = (Pattern.READ, Pattern.WRITE, Pattern.COPY)
    l2_bytes_per_s = gpu.multiprocessors * _L2_BYTES_PER_CLOCK * gpu.clock_hz
    return DevicePeaks(
        device=gpu.name,
        source=Source.DATASHEET,
        threads=0,
        levels=(
            MemoryLevel("L2", gpu.l2_bytes, dict.fromkeys(every, l2_bytes_per_s)),
            MemoryLevel("DRAM", None, dict.fromkeys(every, gpu.memory_bytes_per_s)),
        ),
        core_ops_per_s=gpu.core_ops_per_s,
        matrix_ops_per_s=gpu.matrix_ops_per_s,
        special_per_s=gpu.multiprocessors * _SPECIAL_PER_CLOCK * gpu.clock_hz,
        launch_s=_LAUNCH_S,
    )
