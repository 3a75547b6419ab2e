"""Prompts are Markdown files. `{{name}}` stands for a value, `{{> _part.md}}` for another file.

Every placeholder must be given a value and every value must be used: a mistake is an error, not a gap in
a prompt that nobody notices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

_PART = re.compile(r"\{\{>\s*([\w-]+\.md)\s*\}\}")
_VALUE = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True)
class Prompts:
    """A set of prompt files. A run keeps the set it began with, so that its questions stay the same."""

    files: Mapping[str, str]

    def text(self, name: str) -> str:
        """The file with its parts put in."""
        return _PART.sub(lambda match: self.text(match[1]).strip(), self.files[name])

    def placeholders(self, name: str) -> frozenset[str]:
        return frozenset(_VALUE.findall(self.text(name)))

    def render(self, name: str, values: Mapping[str, str]) -> str:
        wanted = self.placeholders(name)
        if wanted != values.keys():
            missing, spare = sorted(wanted - values.keys()), sorted(values.keys() - wanted)
            raise ValueError(f"{name}: no value for {missing}, no place for {spare}")
        text = _VALUE.sub(lambda match: values[match[1]].strip(), self.text(name))
        return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


@cache
def shipped_prompts() -> Prompts:
    folder = resources.files("cupilot.agents") / "prompts"
    found = {entry.name: entry.read_text(encoding="utf-8") for entry in folder.iterdir()}
    return Prompts({name: text for name, text in sorted(found.items()) if name.endswith(".md")})
