"""The operator families the built-in author knows, in the order in which they are tried. A new one is a file
and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from cupilot.author.chains import Chains
from cupilot.author.family import Family
from cupilot.author.matrices import Products
from cupilot.author.singles import Singles

FAMILIES: Mapping[str, Family] = {
    "products": Products(),
    "scans": Singles("scan"),
    "pools": Singles("window"),
    "chains": Chains(),
}
