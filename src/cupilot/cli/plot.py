"""A roofline in the terminal: logarithmic axes, lines of braille dots, one mark for the problem."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from rich.text import Text

from cupilot.cli.units import scaled
from cupilot.roofline import Placement

_WIDTH, _HEIGHT = 60, 13  # characters inside the axes
_DOTS_X, _DOTS_Y = 2, 4  # braille dots per character
_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_MARGIN = 9  # characters left of the axis
_LINE, _MATRIX_LINE, _MARK = "cyan", "magenta", "bold yellow"
_DECADES_LEFT, _DECADES_RIGHT, _DECADES_BELOW = 1.2, 0.9, 0.3


def roofline_plot(placement: Placement) -> Text:
    """The memory's slope, the plain cores' ceiling, the matrix units' above it, and the problem's mark."""
    canvas = _Canvas.around(placement)
    ceilings = [(placement.core_ops_per_s, _LINE)]
    if placement.matrix_ops_per_s > placement.core_ops_per_s:
        ceilings.append((placement.matrix_ops_per_s, _MATRIX_LINE))
    slope_end = ceilings[-1][0] / placement.bytes_per_s
    for x in range(_WIDTH * _DOTS_X):
        intensity = canvas.intensity(x)
        if intensity <= slope_end:
            canvas.dot(x, intensity * placement.bytes_per_s, _LINE)
        for ceiling, style in ceilings:
            if intensity * placement.bytes_per_s >= ceiling:
                canvas.dot(x, ceiling, style)
    if placement.intensity_ops_per_byte > 0:
        reached = min(placement.intensity_ops_per_byte * placement.bytes_per_s, ceilings[-1][0])
        canvas.mark(placement.intensity_ops_per_byte, reached)
    return canvas.text()


@dataclass
class _Canvas:
    """Decades shown on both axes, and what has been drawn: braille bits, styles and marks by cell."""

    left: float
    right: float
    bottom: float
    top: float
    bits: dict[tuple[int, int], int] = field(default_factory=dict)
    styles: dict[tuple[int, int], str] = field(default_factory=dict)
    marks: set[tuple[int, int]] = field(default_factory=set)

    @classmethod
    def around(cls, placement: Placement) -> _Canvas:
        """Both ridges and the problem are in sight."""
        ridges = [placement.core_ridge_ops_per_byte, placement.matrix_ridge_ops_per_byte]
        if placement.intensity_ops_per_byte > 0:
            ridges.append(placement.intensity_ops_per_byte)
        left = math.log10(min(ridges)) - _DECADES_LEFT
        right = math.log10(max(ridges)) + _DECADES_RIGHT
        bottom = left + math.log10(placement.bytes_per_s)
        return cls(left, right, bottom, math.log10(placement.matrix_ops_per_s) + _DECADES_BELOW)

    def intensity(self, dot: int) -> float:
        return float(10 ** (self.left + (self.right - self.left) * (dot + 0.5) / (_WIDTH * _DOTS_X)))

    def row(self, rate: float, rows: int) -> int:
        share = (math.log10(rate) - self.bottom) / (self.top - self.bottom)
        return min(rows - 1, max(0, int((1 - share) * rows)))

    def dot(self, x: int, rate: float, style: str) -> None:
        y = self.row(rate, _HEIGHT * _DOTS_Y)
        cell = (y // _DOTS_Y, x // _DOTS_X)
        self.bits[cell] = self.bits.get(cell, 0) | _BITS[y % _DOTS_Y][x % _DOTS_X]
        self.styles[cell] = style

    def mark(self, intensity: float, rate: float) -> None:
        share = (math.log10(intensity) - self.left) / (self.right - self.left)
        self.marks.add((self.row(rate, _HEIGHT), min(_WIDTH - 1, max(0, int(share * _WIDTH)))))

    def text(self) -> Text:
        labels = {
            self.row(10.0**d, _HEIGHT): d for d in range(math.ceil(self.bottom), math.floor(self.top) + 1)
        }
        text = Text()
        for row in range(_HEIGHT):
            label = scaled(10.0 ** labels[row], "op/s") if row in labels else ""
            text.append(f"{label:>{_MARGIN}} ", "dim")
            text.append("┤" if label else "│", "dim")
            for column in range(_WIDTH):
                self._cell(text, (row, column))
            text.append("\n")
        text.append(" " * (_MARGIN + 1) + "└" + self._axis() + "\n", "dim")
        text.append(" " * (_MARGIN + 2) + self._axis_labels() + " op/byte", "dim")
        return text

    def _cell(self, text: Text, cell: tuple[int, int]) -> None:
        if cell in self.marks:
            text.append("●", _MARK)
        else:
            text.append(
                chr(0x2800 + self.bits[cell]) if cell in self.bits else " ", self.styles.get(cell, "")
            )

    def _ticks(self) -> dict[int, int]:
        """Column -> decade."""
        width = self.right - self.left
        decades = range(math.ceil(self.left), math.floor(self.right) + 1)
        return {min(_WIDTH - 1, int((d - self.left) / width * _WIDTH)): d for d in decades}

    def _axis(self) -> str:
        ticks = self._ticks()
        return "".join("┬" if column in ticks else "─" for column in range(_WIDTH))

    def _axis_labels(self) -> str:
        line = ""
        for column, decade in sorted(self._ticks().items()):
            line = line.ljust(column) + f"{10.0**decade:g}"
        return line
