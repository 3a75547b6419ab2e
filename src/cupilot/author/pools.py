"""Kernels of pools: the maximum or the mean of every window, with elementwise operators before and behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from cupilot.author.expressions import Text
from cupilot.author.layout import Place
from cupilot.author.maps import finish, store_all
from cupilot.author.program import literal
from cupilot.author.walks import Walk, Written

STRIP = "STRIP = 256 | 64 | 1024"


def write_pool(walk: Walk) -> Written:
    return _Pooling(walk).write()


class _Pooling:
    def __init__(self, walk: Walk) -> None:
        self.walk, self.frame, self.vector = walk, walk.frame, walk.style.vector
        self.index = walk.stage.rounds[0][0]
        node = self.node = walk.frame.node(self.index)
        self.source, self.is_max = node.args[0], node.name == "max"
        self.over = [(axis,) for axis in node.over]  # of the tensor, slowest first
        self.out = [(axis,) for axis in node.order]  # of the result
        self.frame.fine += self.over
        self.frame.name_extents(zip(self.over, ("depth", "height", "width")[-len(self.over) :], strict=True))
        self.start = "-(real)__builtin_inf()" if self.is_max else "0"
        self.frame.local |= {
            "found",
            "tap",
            "line",
            "first",
            "l",
            "t",
            "here",
            "begin",
            "end",
            "origin",
            "span",
            "at",
        }
        if self.is_max:
            self.frame.needs.add("extremes")
        self.x = self.frame.local_name("x")

    def write(self) -> Written:
        walk, lane = self.walk, self.out[-1]
        with walk.items([g for g in walk.kept if g != lane], self.frame.extent(lane)) as (places, grid):
            if walk.style.separable:
                self._by_lines(places)
            elif self.vector:
                self._by_vectors(places)
            else:
                walk.lanes(lane, "0", self.frame.extent(lane), lambda place: self._element([*places, place]))
        finish(walk)
        return walk.written(["block"], grid)

    # -- what all have in common ---------------------------------------------------------------------------

    def _joined(self, one: str, two: str) -> str:
        return f"larger({two}, {one})" if self.is_max else f"{one} + {two}"

    @contextmanager
    def _taps(self, places: Sequence[Place], count: int, *, inside: bool = False) -> Iterator[list[Place]]:
        """Loops over the first `count` dimensions of the window; what lies outside is passed over, unless
        everything is known to lie inside."""
        frame, taps = self.frame, list[Place]()
        with ExitStack() as stack:
            for at in range(count):
                size, stride, padding, dilation = self.node.geometry[at]
                tap, name = "abc"[at], frame.local_name("zyx"[-len(self.over) :][at])
                tap = frame.local_name(tap)
                stack.enter_context(frame.block(f"for (long {tap} = 0; {tap} < {size}; {tap}++)"))
                here = next(p.variable for p in places if p.group == self.out[at])
                frame.line(f"const long {name} = {_affine(here, stride, padding, tap, dilation)};")
                if not inside:
                    frame.line(f"if ({name} < 0 || {name} >= {frame.extent(self.over[at])}) continue;")
                taps.append(Place(self.over[at], name))
            yield [*(p for p in places if p.group not in self.out), *taps]

    def _element(self, places: Sequence[Place]) -> None:
        """One element of the result by itself."""
        frame = self.frame
        frame.line(f"real found = {self.start};")
        with self._taps(places, len(self.over)) as taps:
            value = self.walk.bodies.values([self.source], {}, taps, None)[0]
            frame.line(f"found = {self._joined('found', value.within(5))};")
        self._store(places, None)

    def _store(self, places: Sequence[Place], lane: Place | None) -> None:
        vector = lane is not None and self.vector
        if not self.is_max:
            self.frame.line(f"found = found / {self._divisor(places, lane)};")
        stores = self.walk.stage.stores
        store_all(self.walk, stores, {self.index: Text("found", scalar=not vector)}, places, lane)

    def _divisor(self, places: Sequence[Place], lane: Place | None) -> str:
        """How many elements a mean counts: a number, or a product over the dimensions."""
        frame, double = self.frame, self.frame.program.is_double
        if self.node.number:
            return literal(self.node.number, double)
        ceil, padded = "ceil" in self.node.name, "padded" in self.node.name
        factors, number = [], 1
        for at, (size, stride, padding, _) in enumerate(self.node.geometry):
            if not padding and not ceil:
                number *= size
                continue
            place = next(p for p in [*places, *([lane] if lane else [])] if p.group == self.out[at])
            vector = lane is not None and self.vector and place == lane
            counted = frame.local_name("counted")
            extent = frame.extent(self.over[at])
            if padded and not ceil:
                number *= size
                continue
            frame.needs.add("counted")
            arguments = f"{size}, {padding if padded else 0}, {extent}"
            first = f"{place.variable} * {stride} - {padding}"
            if vector:
                frame.line(f"vec {counted};")
                step = f"{counted}[l] = counted({first} + l * {stride}, {arguments});"
                frame.line(f"for (int l = 0; l < LANES; l++) {step}")
            else:
                frame.line(f"const real {counted} = counted({first}, {arguments});")
            factors.append(counted)
        if number > 1 or not factors:
            factors.append(literal(number, double))
        return f"({' * '.join(factors)})" if len(factors) > 1 else factors[0]

    # -- vectors of windows --------------------------------------------------------------------------------

    def _by_vectors(self, places: Sequence[Place]) -> None:
        """Neighbouring windows side by side where they lie inside; those at the edges one by one."""
        frame, lane = self.frame, self.out[-1]
        size, stride, padding, dilation = self.node.geometry[-1]
        extent, width = frame.extent(lane), frame.extent(self.over[-1])
        reach = (size - 1) * dilation
        frame.line(
            f"const long begin = {-(-padding // stride)} < {extent} ? {-(-padding // stride)} : {extent};"
        )
        frame.line(f"const long inside = ({width} + {padding} - {reach} + {stride - 1}) / {stride};")
        frame.line(f"const long end = inside < begin ? begin : inside < {extent} ? inside : {extent};")
        for low, high in (("0", "begin"), ("end", extent)):
            with frame.block(f"for (long j = {low}; j < {high}; j++)"):
                self._element([*places, Place(lane, "j")])

        def body(place: Place) -> None:
            frame.line(f"vec found = splat({self.start});")
            with (
                self._taps(places, len(self.over) - 1) as taps,
                frame.block(f"for (long t = 0; t < {size}; t++)"),
            ):
                frame.line(
                    f"const long {self.x} = {_affine(place.variable, stride, padding, 't', dilation)};"
                )
                tap = self._neighbours(taps, stride)
                frame.line(f"found = {self._joined('found', tap)};")
            self._store(places, place)

        self.walk.lanes(lane, "begin", "end", body)

    def _neighbours(self, taps: Sequence[Place], stride: int) -> str:
        """A vector of elements `stride` apart, from x on."""
        frame = self.frame
        if stride == 1:
            value = self.walk.bodies.values([self.source], {}, taps, Place(self.over[-1], self.x))[0]
            return frame.expressions.splat(value)
        frame.needs.add("span")
        frame.line("vec tap = {};")
        with frame.block("for (long l = 0; l < span(rest...); l++)"):
            here = Place(self.over[-1], f"({self.x} + l * {stride})")
            value = self.walk.bodies.values([self.source], {}, [*taps, here], None)[0]
            frame.line(f"tap[l] = {value.text};")
        return "tap"

    # -- separable windows ---------------------------------------------------------------------------------

    def _by_lines(self, places: Sequence[Place]) -> None:
        """All dimensions but the last first, into a line of the first-level cache; then along the line."""
        frame, walk, lane = self.frame, self.walk, self.out[-1]
        size, stride, padding, dilation = self.node.geometry[-1]
        strip, extent, width = walk.tune(STRIP), frame.extent(lane), frame.extent(self.over[-1])
        reach = (size - 1) * dilation
        slack = " + LANES" if self.vector else ""
        frame.line(f"real line[({strip} - 1) * {stride} + {reach + 1}{slack}];")
        with frame.block(f"for (long first = 0; first < {extent}; first += {strip})"):
            frame.line(f"const long last = first + {strip} < {extent} ? first + {strip} : {extent};")
            frame.line(
                f"const long origin = first * {stride} - {padding}, span = (last - first - 1) * {stride} + 1;"
            )
            frame.line("const long begin = origin < 0 ? 0 : origin;")
            stop = f"origin + span + {reach}"
            frame.line(f"const long end = {stop} < {width} ? {stop} : {width};")
            frame.line(f"for (long l = 0; l < begin - origin; l++) line[l] = {self.start};")
            behind = f"span + {reach}{slack}"
            frame.line(f"for (long l = end - origin; l < {behind}; l++) line[l] = {self.start};")
            self._lines(places)
            self._along_line(size, dilation, stride)
            walk.lanes(lane, "first", "last", lambda place: self._from_line(places, place))

    def _lines(self, places: Sequence[Place]) -> None:
        """The line, without questions where the windows reach over no edge but those of the line."""
        frame, tests = self.frame, list[str]()
        for at, (size, stride, padding, dilation) in enumerate(self.node.geometry[:-1]):
            here = next(p.variable for p in places if p.group == self.out[at])
            first = _affine(here, stride, padding, "0", dilation)
            last = f"{first} + {(size - 1) * dilation} < {frame.extent(self.over[at])}"
            tests += [f"{first} >= 0"] if padding else []
            tests.append(
                last
            )  # without padding, too: rounded up, the last window begins inside and ends outside
        for inside in (True, False) if tests else (True,):
            with ExitStack() as stack:
                if tests:
                    stack.enter_context(frame.block(f"if ({' && '.join(tests)})" if inside else "else"))
                self.walk.lanes(self.over[-1], "begin", "end", partial(self._into_line, places, inside))

    def _into_line(self, places: Sequence[Place], inside: bool, place: Place) -> None:
        """What the window covers above each other; it becomes one place of the line."""
        frame, at = self.frame, f"line + ({place.variable} - origin)"
        frame.line(f"vec found = splat({self.start});" if self.vector else f"real found = {self.start};")
        with self._taps(places, len(self.over) - 1, inside=inside) as taps:
            value = self.walk.bodies.values([self.source], {}, taps, place)[0]
            text = frame.expressions.splat(value) if self.vector else value.within(5)
            frame.line(f"found = {self._joined('found', text)};")
        if self.vector:
            frame.needs |= {"load", "store"}
        frame.line(f"store({at}, found, rest...);" if self.vector else f"*({at}) = found;")

    def _along_line(self, size: int, dilation: int, stride: int) -> None:
        """Every place of the line becomes the result of the window that begins there."""
        steps = _doubling(size) if self.is_max and self.walk.style.doubling else None
        if (steps is None and stride == 1) or size == 1:
            return
        if steps is None:
            self._sweep(size, dilation, range(1, size), size)
        for away, covered in steps or ():
            self._sweep(covered, dilation, [away], size)

    def _sweep(self, remaining: int, dilation: int, taps: Sequence[int] | range, size: int) -> None:
        frame = self.frame
        longer = f" + {(size - remaining) * dilation}" if size > remaining else ""
        step = "LANES" if self.vector else "1"
        with frame.block(f"for (long at = 0; at < span{longer}; at += {step})"):
            get: Callable[[str], str] = (
                (lambda at: f"load(line + {at})") if self.vector else (lambda at: f"line[{at}]")
            )
            frame.line(f"{'vec' if self.vector else 'real'} found = {get('at')};")
            if len(taps) == 1:
                frame.line(f"found = {self._joined('found', get(f'at + {taps[0] * dilation}'))};")
            else:
                offset = _times("t", dilation)
                tap = self._joined("found", get(f"at + {offset}"))
                frame.line(f"for (long t = 1; t < {size}; t++) found = {tap};")
            frame.line("store(line + at, found);" if self.vector else "line[at] = found;")

    def _from_line(self, places: Sequence[Place], place: Place) -> None:
        frame, (size, stride, _, dilation) = self.frame, self.node.geometry[-1]
        done = stride > 1 or (self.is_max and self.walk.style.doubling) or size == 1
        at = _times(f"({place.variable} - first)", stride)
        if not self.vector:
            frame.line(f"real found = line[{at}];")
        elif stride > 1:
            frame.needs.add("load_strided")
            frame.line(f"vec found = load_strided(line + {at}, {stride}, rest...);")
        else:
            frame.line(f"vec found = load(line + {at});")
        if not done:
            offset = f"{at} + {_times('t', dilation)}"
            tap = f"load(line + {offset})" if self.vector else f"line[{offset}]"
            frame.line(f"for (long t = 1; t < {size}; t++) found = {self._joined('found', tap)};")
        self._store(places if self.vector else [*places, place], place if self.vector else None)


def _doubling(size: int) -> list[tuple[int, int]]:
    """Steps to maxima of `size` neighbours: how far away the other one is, how many are covered then."""
    steps, covered = [], 1
    while covered < size:
        away = min(covered, size - covered)
        covered += away
        steps.append((away, covered))
    return steps


def _affine(index: str, stride: int, padding: int, tap: str, dilation: int) -> str:
    first = _times(index, stride) + (f" - {padding}" if padding else "")
    return f"{first} + {_times(tap, dilation)}"


def _times(variable: str, factor: int) -> str:
    return variable if factor == 1 else f"{variable} * {factor}"
