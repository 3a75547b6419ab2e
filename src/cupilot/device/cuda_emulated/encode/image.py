"""The module's variables as one block of read-only bytes, holding only what its kernels refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cupilot.device.cuda_emulated.encode.frame import MODULE_BUFFER, buffer_address
from cupilot.device.cuda_emulated.ptx.model import Variable

_ALIGN = 256


@dataclass
class ModuleImage:
    """Hands out addresses on demand; `data` is complete once all kernels are encoded."""

    variables: Mapping[str, Variable]
    data: bytearray = field(default_factory=bytearray)
    addresses: dict[str, int] = field(default_factory=dict)

    def address(self, name: str) -> int | None:
        variable = self.variables.get(name)
        if variable is None or variable.space == "shared":
            return None
        if name not in self.addresses:
            self._place(variable)
        return self.addresses[name]

    def _place(self, variable: Variable) -> None:
        start = -(-len(self.data) // _ALIGN) * _ALIGN
        self.data.extend(bytes(start - len(self.data) + variable.size_bytes))
        self.addresses[variable.name] = buffer_address(MODULE_BUFFER) + start
        if isinstance(variable.initial, bytes):
            self.data[start : start + len(variable.initial)] = variable.initial
            return
        for offset, symbol in variable.initial:
            target = self.address(symbol) or 0
            self.data[start + offset : start + offset + 8] = target.to_bytes(8, "little")
