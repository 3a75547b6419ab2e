"""Edits to compiled libraries: what an attacker could hand over who does not need our compiler."""

from __future__ import annotations

import struct

from cupilot.device.elf import SHT_DYNAMIC

_SECTION_BYTES = 64


def hide_dynamic_section(data: bytes) -> bytes:
    """The section headers no longer show the dynamic table; the loader goes by segments and does not mind."""
    edited = bytearray(data)
    (offset,) = struct.unpack_from("<Q", data, 40)
    (count,) = struct.unpack_from("<H", data, 60)
    for place in range(offset, offset + count * _SECTION_BYTES, _SECTION_BYTES):
        (kind,) = struct.unpack_from("<I", data, place + 4)
        if kind == SHT_DYNAMIC:
            struct.pack_into("<I", edited, place + 4, 1)  # ordinary data, for who reads the sections
    return bytes(edited)


def ask_for_another_library(data: bytes) -> bytes:
    return data.replace(b"\0libm.so.6\0", b"\0libz.so.1\0")
