"""Skips this folder where the extra `cuda` is not installed."""

from __future__ import annotations

import pytest

from cupilot.device.cuda_emulated.wheels import find_toolkit
from cupilot.errors import DeviceUnavailable


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    try:
        find_toolkit()
    except DeviceUnavailable as missing:
        skip = pytest.mark.skip(reason=str(missing))
        for item in items:
            if "cuda_emulated" in item.nodeid:
                item.add_marker(skip)
