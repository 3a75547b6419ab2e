"""The devices there are. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cupilot.device.base import Device
from cupilot.device.cpu import Cpu

DEVICES: Mapping[str, Callable[[], Device]] = {"cpu": Cpu}
