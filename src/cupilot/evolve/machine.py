"""What a run was done on and with, in words: recorded with every session."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from importlib import metadata
from pathlib import Path

from cupilot.device import native
from cupilot.evolve.folder import Session


def this_session() -> Session:
    command = shlex.join(["cupilot", *sys.argv[1:]]) if "cupilot" in Path(sys.argv[0]).name else "from Python"
    versions = {
        "cupilot": metadata.version("cupilot"),
        "torch": metadata.version("torch"),
        "python": platform.python_version(),
        "compiler": native.compiler().identity.splitlines()[0],
        "system": f"{platform.system()} {platform.release()}",
    }
    return Session(command, time.time(), f"{_processor()}, {os.cpu_count()} threads", versions)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
