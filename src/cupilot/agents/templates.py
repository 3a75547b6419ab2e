"""Prompts are Markdown files. `{{name}}` stands for a value, `{{> _part.md}}` for another file.

Every placeholder must be given a value and every value must be used: a mistake is an error, not a gap in
a prompt that nobody notices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

_PART = re.compile(r"\{\{>\s*([\w-]+\.md)\s*\}\}")
_VALUE = re.compile(r"\{\{(\w+)\}\}")


@cache
def template(name: str) -> str:
    """The file with its parts put in."""
    text = resources.files("cupilot.agents").joinpath("prompts", name).read_text(encoding="utf-8")
    return _PART.sub(lambda match: template(match[1]).strip(), text)


def placeholders(name: str) -> frozenset[str]:
    return frozenset(_VALUE.findall(template(name)))


def render(name: str, values: Mapping[str, str]) -> str:
    wanted = placeholders(name)
    if wanted != values.keys():
        missing, spare = sorted(wanted - values.keys()), sorted(values.keys() - wanted)
        raise ValueError(f"{name}: no value for {missing}, no place for {spare}")
    text = _VALUE.sub(lambda match: values[match[1]].strip(), template(name))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
