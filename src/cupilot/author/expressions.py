"""Program nodes as C++ expressions: over vectors or single elements, with calls or functions of our own.

What is used twice gets a name, all else is nested. The caller says how loads and reductions are spelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from cupilot.author.program import Program, literal

_INFIX = {
    "mul": ("*", 5), "div": ("/", 5), "add": ("+", 4), "sub": ("-", 4),
    "lt": ("<", 3), "le": ("<=", 3), "gt": (">", 3), "ge": (">=", 3), "eq": ("==", 2), "ne": ("!=", 2),
    "and": ("&", 1), "xor": ("^", 1), "or": ("|", 1),
}  # fmt: skip
_ATOM, _UNARY, _TERNARY = 9, 7, 0
OWN = frozenset({"exp", "log", "log1p", "expm1", "tanh", "erf"})  # have a fast_... of ours
_LIBRARY = {"abs": "fabs", "round": "nearbyint"}  # torch rounds halves to even


@dataclass(frozen=True)
class Text:
    """An expression with the strength of its outermost operator, and whether it is one for all lanes."""

    text: str
    strength: int = _ATOM
    scalar: bool = False

    def within(self, strength: int) -> str:
        return self.text if self.strength >= strength else f"({self.text})"


@dataclass
class Expressions:
    """Prints nodes of one program; remembers which snippets the text needs."""

    program: Program
    vector: bool  # else one element at a time
    own: bool  # our functions instead of the library's; in single precision only
    needs: set[str] = field(default_factory=set)

    def print(
        self, roots: Iterable[int], known: Mapping[int, Text], taken: Collection[str] = ()
    ) -> tuple[list[str], list[Text]]:
        """Statements that name what is used more than once, and the roots' expressions."""
        return _Printer(self, dict(known), set(taken)).run(tuple(roots))

    def single(self) -> Expressions:
        """The same for one element at a time, with the library's functions."""
        return replace(self, vector=False, own=False)

    def splat(self, value: Text, mask: bool = False) -> str:
        """As a vector where vectors are printed."""
        if not self.vector or not value.scalar:
            return value.text
        return f"({value.text} ? ivec{{}} - 1 : ivec{{}})" if mask else f"splat({value.text})"

    def value_type(self, scalar: bool, mask: bool) -> str:
        if mask:
            return "bool" if scalar or not self.vector else "ivec"
        return "real" if scalar or not self.vector else "vec"


class _Printer:
    def __init__(self, to: Expressions, known: dict[int, Text], taken: set[str]) -> None:
        self._to = to
        self._known = known
        self._taken = taken
        self._statements: list[str] = []

    def run(self, roots: tuple[int, ...]) -> tuple[list[str], list[Text]]:
        nodes = self._to.program.nodes
        todo = self._to.program.closure(roots, frozenset(self._known))
        uses = Counter(roots)
        for index in todo:
            if index not in self._known:
                uses.update(nodes[index].args)
        for index in todo:
            if index not in self._known:
                text = self._node(index)
                plain = nodes[index].op in ("number", "extent")
                self._known[index] = text if uses[index] < 2 or plain else self._named(index, text)
        return self._statements, [self._known[root] for root in roots]

    def _named(self, index: int, text: Text) -> Text:
        op, count = self._to.program.nodes[index].op, 1
        while f"{op}{count}" in self._taken:
            count += 1
        name = f"{op}{count}"
        self._taken.add(name)
        mask = self._to.program.kind(index) == "mask"
        kind = self._to.value_type(text.scalar, mask)
        self._statements.append(f"const {kind} {name} = {text.text};")
        return Text(name, scalar=text.scalar)

    def _node(self, index: int) -> Text:
        node, to = self._to.program.nodes[index], self._to
        if node.op == "number":
            return Text(literal(node.number, to.program.is_double), scalar=True)
        args = [self._known[a] for a in node.args]
        scalar = all(a.scalar for a in args) or not to.vector
        masks = [to.program.kind(a) == "mask" for a in node.args]
        if node.op in _INFIX:
            operator, strength = _INFIX[node.op]
            one, two = (
                Text(to.splat(a, True)) if m and a.scalar and not scalar else a
                for a, m in zip(args, masks, strict=True)
            )
            text = f"{one.within(strength)} {operator} {two.within(strength + 1)}"
            return Text(text, strength, scalar)
        match node.op:
            case "neg":
                return Text(f"-{args[0].within(_UNARY + 1)}", _UNARY, scalar)
            case "not":
                return Text(f"{args[0].within(3)} == 0", 2, scalar)
            case "select":
                arms = [a.within(1) if scalar else to.splat(a, masks[1]) for a in args[1:]]
                return Text(f"{args[0].within(1)} ? {arms[0]} : {arms[1]}", _TERNARY, scalar)
        return Text(self._call(node.op, args, scalar), scalar=scalar)

    def _call(self, op: str, args: list[Text], scalar: bool) -> str:
        to = self._to
        inside = ", ".join(a.text if scalar else to.splat(a) for a in args)
        vector = to.vector and not scalar
        match op:
            case "maximum" | "minimum":
                to.needs.add("extremes")
                return f"{'larger' if op == 'maximum' else 'smaller'}({inside})"
            case "rescale" | "inverse":
                to.needs.add("reciprocal")
                return f"{op}({inside})"
            case "rsqrt":
                return f"({literal(1.0, to.program.is_double)} / {self._call('sqrt', args, scalar)})"
            case "sqrt" | "abs" if vector:
                to.needs.add("root" if op == "sqrt" else "magnitude")
                return f"{'root' if op == 'sqrt' else 'magnitude'}({inside})"
        if op in OWN and to.own and not to.program.is_double and (vector or not to.vector):
            to.needs |= {op, "vector"}
            return f"fast_{op}({inside})"
        name = f"std::{_LIBRARY.get(op, op)}"
        if not vector:
            return f"{name}({inside})"
        to.needs.add("each" if len(args) == 1 else "each2")
        return f"each<{name}>({inside})"
