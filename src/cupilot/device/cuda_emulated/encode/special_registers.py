"""Special registers and the numbers by which the emulator knows them (native/control.cpp)."""

from __future__ import annotations

from collections.abc import Mapping

SPECIAL_REGISTERS: Mapping[str, int] = {
    "%tid.x": 0, "%tid.y": 1, "%tid.z": 2, "%ctaid.x": 3, "%ctaid.y": 4, "%ctaid.z": 5,
    "%ntid.x": 6, "%ntid.y": 7, "%ntid.z": 8, "%nctaid.x": 9, "%nctaid.y": 10, "%nctaid.z": 11,
    "%laneid": 12, "%warpid": 13, "%nwarpid": 14, "%smid": 15, "%nsmid": 16, "%gridid": 17,
    "%lanemask_eq": 18, "%lanemask_le": 19, "%lanemask_lt": 20, "%lanemask_ge": 21, "%lanemask_gt": 22,
    "%clock": 23, "%clock64": 23, "%clock_hi": 29, "%globaltimer": 24, "%globaltimer_lo": 24,
    "%dynamic_smem_size": 25, "%total_smem_size": 26, "%envreg2": 27, "%envreg1": 28,
}  # fmt: skip
