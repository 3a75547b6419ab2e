"""How reductions gather: where each starts, how it takes one more value, and where an extremum stands."""

from __future__ import annotations

_START = {
    "sum": "0",
    "mean": "0",
    "prod": "1",
    "max": "-(real)__builtin_inf()",
    "min": "(real)__builtin_inf()",
}
_FOLD = {"sum": "total", "mean": "total", "prod": "product", "max": "highest", "min": "lowest"}


def is_place(op: str) -> bool:
    """Whether the reduction asks where, not what."""
    return op in ("argmax", "argmin")


def start(op: str) -> str:
    """What leaves every value as it is."""
    return _START[op.removeprefix("arg")]


def is_wide(op: str) -> bool:
    """Whether rounding adds up, so that totals are kept in double precision."""
    return op in ("sum", "mean", "prod")


def scalar_type(op: str) -> str:
    if is_place(op):
        return f"Extreme<{str(op == 'argmax').lower()}, real, long>"
    return "double" if is_wide(op) else "real"


def vector_type(op: str) -> str:
    return f"Extreme<{str(op == 'argmax').lower()}, vec, ivec>" if is_place(op) else "vec"


def initial(op: str, vector: bool) -> str:
    value = f"splat({start(op)})" if vector else start(op)
    return f"{{{value}, {'ivec{}' if vector else '0'}}}" if is_place(op) else value


def taken(op: str, target: str, value: str, where: str, needs: set[str]) -> str:
    """The statement by which `target` takes in a value; `where` it stands matters to places only."""
    if is_place(op):
        needs.add("extreme")
        return f"{target}.add({value}, {where});"
    return f"{target} = {combined(op, target, value, needs)};"


def combined(op: str, one: str, two: str, needs: set[str]) -> str:
    match op:
        case "sum" | "mean":
            return f"{one} + {two}"
        case "prod":
            return f"{one} * ({two})"
        case "peak":  # a maximum that need not see NaN
            return f"above({two}, {one})"
    needs.add("extremes")
    return f"{'larger' if op == 'max' else 'smaller'}({two}, {one})"


def folded(op: str, part: str, needs: set[str]) -> str:
    """One vector's lanes as one value."""
    needs.add("highest" if op in ("max", "min") else "horizontal")
    return f"{_FOLD[op]}({part})"
