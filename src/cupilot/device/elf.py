"""Reads 64-bit little-endian ELF libraries as data: segments, sections, symbols. Never maps or runs them.

The file comes from an untrusted source: everything out of range is `ElfError`, nothing else can happen.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise, takewhile

PT_LOAD, PT_DYNAMIC, PT_TLS, PT_GNU_STACK, PT_GNU_RELRO = 1, 2, 7, 0x6474E551, 0x6474E552
PF_X, PF_W = 1, 2
SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_DYNAMIC, SHT_NOBITS, SHT_DYNSYM = 2, 3, 4, 6, 8, 11
DT_NEEDED, DT_PLTRELSZ, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_JMPREL = 1, 2, 5, 6, 7, 8, 23
SHF_WRITE, SHF_EXECINSTR, SHF_TLS = 1, 4, 0x400
STT_OBJECT, STT_FUNC, STT_TLS, STT_GNU_IFUNC = 1, 2, 6, 10
_MAX_ENTRIES = 100_000


class ElfError(Exception):
    """Not an ELF library we can read."""


@dataclass(frozen=True)
class Segment:
    type: int
    flags: int
    offset: int
    address: int
    file_bytes: int
    memory_bytes: int


@dataclass(frozen=True)
class Section:
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    entry_bytes: int


@dataclass(frozen=True)
class Symbol:
    name: str
    type: int
    is_defined: bool
    is_weak: bool
    address: int
    size: int


@dataclass(frozen=True)
class Elf:
    data: bytes
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...]

    def symbols(self, table: int) -> tuple[Symbol, ...]:
        """The dynamic symbols (SHT_DYNSYM) or all of them (SHT_SYMTAB)."""
        return tuple(s for section in self.sections if section.type == table for s in self._symbols(section))

    def _symbols(self, section: Section) -> list[Symbol]:
        if not 0 <= section.link < len(self.sections):
            raise ElfError("a symbol table names no string table")
        names = self.contents(self.sections[section.link])
        found = []
        for name, info, _, index, address, size in _table(self.contents(section), "<IBBHQQ"):
            found.append(Symbol(_text(names, name), info & 15, index != 0, info >> 4 == 2, address, size))
        return found

    def dynamic(self) -> list[tuple[int, int]]:
        """Tags and values of the dynamic table, as the loader finds it: through the segments."""
        entries: list[tuple[int, int]] = []
        for segment in self.segments:
            if segment.type == PT_DYNAMIC:
                table = _table(self.mapped(segment.address, segment.file_bytes), "<QQ")
                entries += [(tag, value) for tag, value in takewhile(lambda entry: entry[0] != 0, table)]
        return entries

    def needed(self) -> set[str]:
        """The names of the libraries it asks for."""
        (names,) = (s for s in self.sections if s.address == self.tag(DT_STRTAB) and s.type == SHT_STRTAB)
        return {_text(self.contents(names), value) for tag, value in self.dynamic() if tag == DT_NEEDED}

    def tag(self, wanted: int) -> int | None:
        values = [value for tag, value in self.dynamic() if tag == wanted]
        if len(values) > 1:
            raise ElfError("a dynamic tag is there twice")
        return values[0] if values else None

    def check_agreement(self) -> None:
        """`ElfError` where the loader, which goes by segments and tags, would find other tables than we."""
        loads = [s for s in self.segments if s.type == PT_LOAD]
        if any(a.address + a.memory_bytes > b.address for a, b in pairwise(loads)):
            raise ElfError("segments overlap")
        tables = (SHT_DYNAMIC, SHT_DYNSYM, SHT_RELA, SHT_STRTAB)
        for s in self.sections:
            if s.type in tables and s.address and self.mapped(s.address, s.size) != self.contents(s):
                raise ElfError("a section lies elsewhere than it says")
        found = {kind: [s for s in self.sections if s.type == kind and s.address] for kind in tables}
        dynamic = [(s.address, s.file_bytes) for s in self.segments if s.type == PT_DYNAMIC]
        symbols = found[SHT_DYNSYM]
        if len(dynamic) != 1 or dynamic != [(s.address, s.size) for s in found[SHT_DYNAMIC]]:
            raise ElfError("the sections do not show the dynamic table that the loader reads")
        if [s.address for s in symbols] != [self.tag(DT_SYMTAB)]:
            raise ElfError("the sections do not show the symbols that the loader reads")
        if [s.address for s in found[SHT_STRTAB]] != [self.tag(DT_STRTAB)] or (
            self.sections[symbols[0].link] is not found[SHT_STRTAB][0]
        ):
            raise ElfError("the sections do not show the names that the loader reads")
        relocations = {s.address: s.size for s in found[SHT_RELA]}
        for start, size in ((DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)):
            at, left = self.tag(start) or 0, self.tag(size) or 0
            while left > 0:
                if at not in relocations or relocations[at] == 0:
                    raise ElfError("the sections do not show the relocations that the loader applies")
                left -= relocations[at]
                at += relocations[at]

    def relocations(self) -> list[tuple[int, int]]:
        """Where the loader will write, and the type of what it will write there."""
        tables = [self.contents(section) for section in self.sections if section.type == SHT_RELA]
        return [(at, info & 0xFFFFFFFF) for table in tables for at, info, _ in _table(table, "<QQq")]

    def contents(self, section: Section) -> bytes:
        if section.type == SHT_NOBITS:
            return b""
        return _slice(self.data, section.offset, section.size)

    def mapped(self, address: int, size: int) -> bytes:
        """What the loader puts at an address."""
        for s in self.segments:
            if s.type == PT_LOAD and s.address <= address and address + size <= s.address + s.file_bytes:
                return _slice(self.data, s.offset + address - s.address, size)
        raise ElfError("an address lies in no segment")

    def at(self, address: int, size: int) -> bytes:
        """Constant data at an address, as the loader would map it: from a segment that is never writable."""
        for s in self.segments:
            inside = s.address <= address and address + size <= s.address + s.file_bytes
            if s.type == PT_LOAD and not s.flags & PF_W and inside:
                return _slice(self.data, s.offset + address - s.address, size)
        raise ElfError("an address lies in no read-only segment")


def read_elf(data: bytes) -> Elf:
    header = _slice(data, 0, 64)
    if header[:7] != b"\x7fELF\x02\x01\x01":
        raise ElfError("not a 64-bit little-endian ELF file")
    (ph_offset, sh_offset) = struct.unpack_from("<QQ", header, 32)
    ph_size, ph_count, sh_size, sh_count, names_index = struct.unpack_from("<HHHHH", header, 54)
    if ph_size != 56 or sh_size != 64 or names_index >= sh_count:
        raise ElfError("unusual header sizes")
    segments = tuple(
        Segment(kind, flags, offset, address, file_bytes, memory_bytes)
        for kind, flags, offset, address, _, file_bytes, memory_bytes, _ in _table(
            _slice(data, ph_offset, ph_size * ph_count), "<IIQQQQQQ"
        )
    )
    raw = _table(_slice(data, sh_offset, sh_size * sh_count), "<IIQQQQIIQQ")
    names = _slice(data, raw[names_index][4], raw[names_index][5])
    sections = tuple(
        Section(_text(names, name), kind, flags, address, offset, size, link, entry)
        for name, kind, flags, address, offset, size, link, _, _, entry in raw
    )
    return Elf(data, segments, sections)


def _slice(data: bytes, offset: int, size: int) -> bytes:
    if offset < 0 or size < 0 or offset + size > len(data):
        raise ElfError("a table lies outside the file")
    return data[offset : offset + size]


def _table(data: bytes, layout: str) -> list[tuple[int, ...]]:
    if len(data) // struct.calcsize(layout) > _MAX_ENTRIES:
        raise ElfError("a table is too long")
    usable = len(data) - len(data) % struct.calcsize(layout)
    return list(struct.iter_unpack(layout, data[:usable]))


def _text(names: bytes, offset: int) -> str:
    end = names.find(b"\0", offset)
    if not 0 <= offset <= len(names) or end < 0:
        raise ElfError("a name lies outside its table")
    return names[offset:end].decode(errors="replace")
