"""Wrong kernels made from honest ones: one small change of the text each, named by what it does.

Every rule finds all places in a kernel file where its change applies. Deterministic: no randomness here.
A mutant need not compile, and may by accident compute the same function: both are for the caller to find out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_ROUNDINGS = """
static inline float as_half(float v) { return (float)(_Float16)v; }
static inline float as_bfloat(float v) {
    unsigned bits;
    memcpy(&bits, &v, 4);
    if (v == v) bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&v, &bits, 4);
    return v;
}
static inline float as_tf32(float v) {
    unsigned bits;
    memcpy(&bits, &v, 4);
    if (v == v) bits = (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000u;
    memcpy(&v, &bits, 4);
    return v;
}
"""
_FORMATS = ("half", "bfloat", "tf32")
_NAME = r"[A-Za-z_]\w*"
_ACCESS = rf"(?:{_NAME})\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]"  # an element, with at most one more inside


@dataclass(frozen=True)
class Mutant:
    """`rule` is the class of the change; `change` says what became what, and where."""

    rule: str
    change: str
    text: str


@dataclass(frozen=True)
class _Edit:
    start: int
    end: int
    new: str
    needs_roundings: bool = False


_Rule = Callable[[str, int], Iterator[_Edit]]  # (text, start of the source) -> edits


def mutants(text: str) -> Iterator[Mutant]:
    """All mutants of a kernel file, each with one change."""
    source = text.index("*/") + 2
    launch = text.index("launch:")
    seen = {text}
    for rule, find in _RULES.items():
        begin = launch if rule in _LAUNCH_RULES else source
        for edit in find(text, begin):
            changed = text[: edit.start] + edit.new + text[edit.end :]
            if edit.needs_roundings:
                changed = changed.replace("#include <cstring>\n", f"#include <cstring>\n{_ROUNDINGS}", 1)
            if changed in seen:
                continue
            seen.add(changed)
            yield Mutant(rule, _describe(text, edit), changed)


def _describe(text: str, edit: _Edit) -> str:
    """The words around the change, before and after it."""
    before = text[text.rfind("\n", 0, edit.start) + 1 : edit.start]
    left = re.search(r"[^;{]*$", before)
    prefix = left[0].lstrip() if left else ""
    rest = text[edit.end :].split("\n", 1)[0]
    suffix = re.match(r"[^;{]*", rest)
    tail = suffix[0] if suffix else ""
    line = text.count("\n", 0, edit.start) + 1
    old = " ".join((prefix + text[edit.start : edit.end] + tail).split())
    new = " ".join((prefix + edit.new + tail).split())
    return f"line {line}: `{old}` becomes `{new}`"


def _substitute(pattern: str, *news: str, outside_indices: bool = False) -> _Rule:
    """Replace each match by each template (`\\1` groups as in `re`)."""

    def find(text: str, begin: int) -> Iterator[_Edit]:
        for match in re.compile(pattern).finditer(text, begin):
            if outside_indices and _is_in_brackets(text, match.start()):
                continue
            for new in news:
                yield _Edit(match.start(), match.end(), match.expand(new))

    return find


def _in_indices(pattern: str, *news: str) -> _Rule:
    def find(text: str, begin: int) -> Iterator[_Edit]:
        for match in re.compile(pattern).finditer(text, begin):
            if _is_in_brackets(text, match.start()):
                for new in news:
                    yield _Edit(match.start(), match.end(), match.expand(new))

    return find


def _is_in_brackets(text: str, at: int) -> bool:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line.count("[") > line.count("]")


def _either(*rules: _Rule) -> _Rule:
    def find(text: str, begin: int) -> Iterator[_Edit]:
        for rule in rules:
            yield from rule(text, begin)

    return find


def _float_inputs(text: str) -> set[str]:
    return set(re.findall(rf"const float\* ({_NAME})", text))


def _float_outputs(text: str) -> set[str]:
    return set(re.findall(rf"(?<!const )float\* ({_NAME})", text))


def _rounded_inputs(text: str, begin: int) -> Iterator[_Edit]:
    names = _float_inputs(text)
    for match in re.compile(_ACCESS).finditer(text, begin):
        if re.split(r"\[", match[0], maxsplit=1)[0] in names:
            for name in _FORMATS:
                yield _Edit(match.start(), match.end(), f"as_{name}({match[0]})", True)


def _rounded_outputs(text: str, begin: int) -> Iterator[_Edit]:
    names = _float_outputs(text)
    for match in re.compile(rf"({_ACCESS}) = ([^;,]+|[^;]+)(?=;)").finditer(text, begin):
        if match[1].split("[", 1)[0] in names:
            for name in _FORMATS:
                yield _Edit(match.start(2), match.end(2), f"as_{name}({match[2]})", True)


def _rounded_sums(text: str, begin: int) -> Iterator[_Edit]:
    for match in re.compile(rf"({_NAME}(?:\[[^;=]*?\])*) \+= ([^;,]+)(?=;)").finditer(text, begin):
        if not re.search(rf"(?:float|double)[^;()]*\b{re.escape(match[1].split('[')[0])}\b", text):
            continue
        for name in _FORMATS:
            yield _Edit(
                match.start(), match.end(), f"{match[1]} = as_{name}({match[1]} + ({match[2]}))", True
            )


def _skipped_terms(text: str, begin: int) -> Iterator[_Edit]:
    """Some turns of a loop do nothing."""
    for match in re.compile(rf"for \(long ({_NAME}) = [^;]*; [^;]*; \1\+\+\) (?!for)").finditer(text, begin):
        for period in (100, 2):
            yield _Edit(match.end(), match.end(), f"if ({match[1]} % {period} != {period - 1}) ")


def _scaled_constants(text: str, begin: int) -> Iterator[_Edit]:
    for match in re.compile(r"(?<![\w.])\d+\.\d+(?:e-?\d+)?f?|(?<![\w.])\d+e-?\d+f?").finditer(text, begin):
        value, suffix = float(match[0].rstrip("f")), "f" if match[0].endswith("f") else ""
        for factor in (1.001, 2.0, 1.00001):
            yield _Edit(
                match.start(), match.end(), f"{value * factor:.10g}{suffix}".replace("inff", "INFINITY")
            )


def _swapped_arguments(text: str, begin: int) -> Iterator[_Edit]:
    """Two neighbouring extents change places in a launch."""
    end = text.index("*/")
    for match in re.compile(rf"(?<=[(, ])({_NAME}), ({_NAME})(?=[,)])").finditer(text, begin, end):
        yield _Edit(match.start(), match.end(), f"{match[2]}, {match[1]}")


def _smaller_grids(text: str, begin: int) -> Iterator[_Edit]:
    end = text.index("*/")
    for match in re.compile(rf"(?m)^    ({_NAME})\[([^\]\n]*)\]\(").finditer(text, begin, end):
        parts = re.split(r", (?![^(]*\))", match[2])
        for place, part in enumerate(parts):
            shrunk = [f"max({part} - 1, 1)", f"max(({part}) // 2, 1)"]
            if (division := re.fullmatch(r"cdiv\((.*), (.*)\)", part)) is not None:
                shrunk = [f"max({division[1]} // {division[2]}, 1)"]
            for new in shrunk:
                grid = ", ".join([*parts[:place], new, *parts[place + 1 :]])
                yield _Edit(match.start(2), match.end(2), grid)


_LAUNCH_RULES = {"wrong axis", "partial grid"}

_RULES: dict[str, _Rule] = {
    "bound": _either(
        _substitute(rf"for \(long ({_NAME}) = ([^;]*); \1 < ([^;]*);", r"for (long \1 = \2; \1 <= \3;",
                    r"for (long \1 = \2; \1 < \3 - 1;"),
        _substitute(rf"for \((?:long|int) ({_NAME}) = 0;", r"for (long \1 = 1;"),
        _substitute(rf"\b({_NAME}) >= 0;", r"\1 > 0;"),
        _substitute(r"std::min\(n, ([^;()]*)\)", r"std::min(n - 1, \1)"),
    ),
    "stride": _in_indices(rf"\* ({_NAME}|\d)(?![\w(*])", r"* (\1 - 1)", ""),
    "wrong axis": _swapped_arguments,
    "index": _either(
        _in_indices(rf"\b({_NAME}) \* ({_NAME}) \+ ({_NAME})\b", r"\3 * \2 + \1"),
        _substitute(rf"(?<=[=(+\-*/] )({_NAME})\[({_NAME})\]", r"\1[std::max<long>(\2 - 1, 0)]"),
        _in_indices(r"\+ 1\b", ""),
    ),
    "dropped term": _either(
        _substitute(rf" [+\-] (?:{_ACCESS}|{_NAME}|\d[\w.\-]*)(?=[;)])", "", outside_indices=True),
        _substitute(rf" [*/] (?:{_ACCESS}|{_NAME}|\d[\w.\-]*)(?=[;)])", "", outside_indices=True),
        _substitute(rf"(?<=[=(] )?\b(?:{_ACCESS}|{_NAME}) \* (?={_NAME})", "", outside_indices=True),
        _substitute(r"std::fabs", ""),
        _substitute(r"1 / std::sqrt", "std::sqrt"),
    ),
    "lost sum": _substitute(r" \+= (?!\d|\w+;|row|entry|\()", " = ", outside_indices=True),
    "sign": _either(
        _substitute(r"(?<=[\w\])]) \+ (?=[\w(])", " - ", outside_indices=True),
        _substitute(r"(?<=[\w\])]) - (?=[\w(])", " + ", outside_indices=True),
        _substitute(r" \+= (?=[a-z]+[\[;])", " -= "),
    ),
    "extremum": _either(
        _substitute(r"std::max(?=\((?:largest|total|low|high))", "std::min"),
        _substitute(r"(?<=\w) > (?=\w)(?![^\n]*; \w+\+\+)", " < "),
        _substitute(r"(?<=[\])]) ([<>]) (?=[a-z])", " == "),
    ),
    "initial value": _either(
        _substitute(r"= -INFINITY", "= 0", "= -10"),
        _substitute(r"((?:float|double) [^;]*?) = 0(?=[,;])", r"\1 = 1"),
        _substitute(r"(\w+) = x\[0\]", r"\1 = 0"),
        _substitute(r"product = 1", "product = 1.0001f"),
    ),
    "constant": _either(
        _scaled_constants,
        _substitute(r"(?<=[*/] )(\d)(?=[;)])", r"\1.001f", outside_indices=True),
        _substitute(r"squares / \(n - 1\)", "squares / n"),
        _substitute(r"squares / n\b", "squares / (n - 1)"),
    ),
    "skipped work": _skipped_terms,
    "partial grid": _smaller_grids,
    "approximation": _either(
        _substitute(r"std::exp\(([^;()]*(?:\([^()]*\))?[^;()]*)\)", r"(std::exp(\1) * 1.0001f)",
                    r"std::exp(std::max<float>(\1, -15))", r"std::pow(1 + (\1) / 1024, 1024.0f)"),
        _substitute(r"std::log1p\(", "std::log(1 + "),
        _substitute(r"std::expm1\(v\)", "(std::exp(v) - 1)", "(v + v * v / 2)"),
        _substitute(r"std::(tanh|erf)\(([^;]*?)\)(?=\))", r"std::\1(std::min<float>(\2, 2.5f))"),
        _substitute(r"std::sqrt\(", "(float)(_Float16)std::sqrt("),
        _substitute(r"std::(cos|sin)\((\w+\[\w+\])\)", r"std::\1(as_half(\2))",
                    r"std::\1(std::min(\2, 50.0f))"),
    ),
    "dropped guard": _either(
        _substitute(r"if \((at < 0 \|\| at >= n)\) continue;", ""),
        _substitute(rf" (?:\|\||&&) !?std::isnan\({_ACCESS}\)| \|\| std::isnan\({_NAME}\)", ""),
        _substitute(r"std::max\(0l, ([^;()]*)\)", r"(\1)"),
        _substitute(r"mask\[i\] \? [^:]*: ", ""),
        _substitute(r"if \(!mask\[i\]\) ", ""),
        _substitute(r"loss > 0 \|\| std::isnan\(loss\) \? loss : 0", "loss"),
    ),
    "narrowed input": _rounded_inputs,
    "narrowed output": _rounded_outputs,
    "narrowed sum": _rounded_sums,
    "narrowed index": _substitute(
        r"\b(index|target)\[([^\]]*(?:\[[^\]]*\])?[^\]]*)\]", r"(signed char)\1[\2]"
    ),
}  # fmt: skip
