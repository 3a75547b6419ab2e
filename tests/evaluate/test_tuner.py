from collections.abc import Callable, Mapping, Sequence
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cupilot.evaluate import tuner
from cupilot.evaluate.tuner import Point, Tuned
from cupilot.kernel.file import KernelFile, parse_kernel
from cupilot.kernel.tunables import first_point, is_valid
from cupilot.types import Failed, Stage

SMALL = "A = 1 | 2 | 4", "B = 1 | 2", "A * B <= 4"
LARGE = "A = 1|2|3|4|5|6|7|8|9|10", "B = 1|2|3|4|5|6|7|8|9|10", "A + B <= 15"


def kernel(a: str, b: str, where: str) -> KernelFile:
    return parse_kernel(
        f"/* cupilot 1\ntune:\n    {a}\n    {b}\nwhere:\n    {where}\nlaunch:\n    k[1](x, out)\n*/\ncode\n"
    )


def tune(
    file: KernelFile, cost: Callable[[Point], float | Failed], tries: int, rng: Random
) -> Tuned | Failed:
    def costs(points: Sequence[Point]) -> list[float | Failed]:
        return [cost(point) for point in points]

    return tuner.tune(file, first_point(file), costs, tries, rng)


def bowl(point: Mapping[str, int]) -> float:
    return 1 + (point["A"] - 7) ** 2 + (point["B"] - 3) ** 2


def test_a_small_space_is_measured_whole() -> None:
    tried = []

    def cost(point: Mapping[str, int]) -> float:
        tried.append(dict(point))
        return 10 - point["A"] * point["B"] + point["B"] / 10

    found = tune(kernel(*SMALL), cost, 20, Random(0))
    assert isinstance(found, Tuned)
    assert found.point == {"A": 4, "B": 1} and len(tried) == 5
    assert found.gain > 1


def test_a_large_space_is_climbed() -> None:
    found = tune(kernel(*LARGE), bowl, 40, Random(0))
    assert isinstance(found, Tuned)
    assert found.point == {"A": 7, "B": 3}
    assert len(found.costs) <= 40


@given(st.integers(1, 60), st.integers(0, 1000))
def test_only_valid_points_and_never_more_than_allowed(tries: int, seed: int) -> None:
    file = kernel(*LARGE)
    tried = []

    def cost(point: Mapping[str, int]) -> float:
        tried.append(dict(point))
        return bowl(point)

    tune(file, cost, tries, Random(seed))
    assert len(tried) <= tries
    assert all(is_valid(file, point) for point in tried)
    assert len({tuple(sorted(p.items())) for p in tried}) == len(tried)


def test_a_wrong_point_is_dropped_and_named() -> None:
    def cost(point: Mapping[str, int]) -> float | Failed:
        return Failed(Stage.COMPILE, "too many registers") if point["A"] == 4 else 1 / point["A"]

    found = tune(kernel(*SMALL), cost, 20, Random(0))
    assert isinstance(found, Tuned)
    assert found.point["A"] == 2
    assert found.dropped == (({"A": 4, "B": 1}, "too many registers"),)
    assert found.ranking == [{"A": 2, "B": 1}, {"A": 2, "B": 2}, {"A": 1, "B": 1}, {"A": 1, "B": 2}]


def test_a_wrong_first_point_fails_the_kernel() -> None:
    found = tune(kernel(*SMALL), lambda _: Failed(Stage.LOAD, "no"), 20, Random(0))
    assert found == Failed(Stage.LOAD, "no")


def test_tuning_begins_where_it_is_told_to() -> None:
    asked: list[Point] = []

    def costs(points: Sequence[Point]) -> list[float]:
        asked.extend(points)
        return [bowl(point) for point in points]

    found = tuner.tune(kernel(*LARGE), {"A": 6, "B": 3}, costs, 5, Random(0))
    assert isinstance(found, Tuned)
    assert asked[0] == {"A": 6, "B": 3} and found.point == {"A": 7, "B": 3}
