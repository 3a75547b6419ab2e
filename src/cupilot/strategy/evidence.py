"""Evidence: does the finished kernel do what its strategy says?

Facts come from the compiler and the source (vector width in loops, calls, number of launches, ...), never
from comments. A condition is one comparison over the facts, `vector_bits >= 128`, or a pattern that the
code without comments must contain, `code ~ "__builtin_nontemporal_store|_mm512_stream"`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

Fact = float | str


class Evidence(StrEnum):
    EVIDENT = "evident"
    ABSENT = "absent"
    UNVERIFIABLE = "unverifiable"


_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
_CONDITION = re.compile(r"^(\w+)\s*(>=|<=|==|>|<|!~|~)\s*(.+)$", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    fact: str
    relation: str
    value: str

    def __str__(self) -> str:
        return f"{self.fact} {self.relation} {self.value}"

    def holds(self, facts: Mapping[str, Fact]) -> bool | None:
        """None where the fact is not known."""
        fact = facts.get(self.fact)
        if fact is None:
            return None
        if self.relation in ("~", "!~"):
            found = re.search(self.value, str(fact)) is not None
            return found == (self.relation == "~")
        return _COMPARISONS[self.relation](float(fact), float(self.value))


def parse_condition(text: str) -> Condition:
    match = _CONDITION.match(text.strip())
    if not match:
        raise ValueError(f"{text!r} is no condition such as 'vector_bits >= 128' or 'code ~ \"pattern\"'")
    fact, relation, value = match.groups()
    if relation in ("~", "!~"):
        value = value.strip().strip('"')
        re.compile(value)
    else:
        float(value)
    return Condition(fact, relation, value)


def judge(conditions: Iterable[Condition], facts: Mapping[str, Fact]) -> Evidence:
    """Absent as soon as one condition fails; evident only if every one is known to hold."""
    verdicts = [condition.holds(facts) for condition in conditions]
    if False in verdicts:
        return Evidence.ABSENT
    return Evidence.EVIDENT if verdicts and None not in verdicts else Evidence.UNVERIFIABLE


_TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def without_comments(source: str) -> str:
    """C-like code with comments blanked and string literals kept."""
    return _TOKEN.sub(lambda m: " " if m[0].startswith("/") else m[0], source)
