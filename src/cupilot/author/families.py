"""The operator families the built-in author knows, in the order in which they are tried. A new one is a file
and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from cupilot.author.family import Family

FAMILIES: Mapping[str, Family] = {}
