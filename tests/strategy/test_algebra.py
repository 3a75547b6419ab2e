"""The laws of the algebra, over random cookbooks and random strategies."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cupilot.roofline import Zone
from cupilot.strategy.algebra import (
    best_of_both,
    clusters,
    crossover,
    diff,
    distance,
    mutate,
    neighbours,
    random_strategy,
)
from cupilot.strategy.strategy import (
    Effect,
    Strategy,
    StrategyError,
    TacticUse,
    check,
    from_json,
    is_valid,
    to_json,
)
from cupilot.strategy.tactics import Cookbook, CookbookError, Parameter, Resource, Tactic, load_cookbook

NAMES = "abcdefgh"


def tactic(
    name: str,
    requires: frozenset[str] = frozenset(),
    conflicts: frozenset[str] = frozenset(),
    parameters: tuple[Parameter, ...] = (),
) -> Tactic:
    return Tactic(
        name, name, name, Resource.BYTES, frozenset(Zone), requires, conflicts, parameters, {}, {}, ""
    )


@st.composite
def cookbooks(draw: st.DrawFn) -> Cookbook:
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    tactics = []
    for i, name in enumerate(names):
        requires = frozenset(draw(st.sets(st.sampled_from(names[:i]), max_size=2))) if i else frozenset[str]()
        others = [n for n in names[:i] if n not in requires]
        conflicts = frozenset(draw(st.sets(st.sampled_from(others), max_size=2)) if others else ())
        values = tuple(range(draw(st.integers(0, 3))))
        tactics.append(tactic(name, requires, conflicts, (Parameter("p", values),) if values else ()))
    return Cookbook(tactics)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Cookbook, Strategy, Strategy, Random]:
    cookbook = draw(cookbooks())
    rng = Random(draw(st.integers(0, 2**32)))
    return cookbook, random_strategy(cookbook, rng), random_strategy(cookbook, rng), rng


@given(worlds())
def test_no_operator_produces_an_invalid_strategy(world: tuple[Cookbook, Strategy, Strategy, Random]) -> None:
    cookbook, a, b, rng = world
    credit = {name: rng.gauss(0, 1) for name in NAMES}
    weights = {name: rng.random() * 3 for name in NAMES}
    check(a, cookbook)
    check(crossover(a, b, cookbook, rng), cookbook)
    check(best_of_both(a, b, credit, cookbook), cookbook)
    check(mutate(a, cookbook, rng, weights), cookbook)
    for neighbour in neighbours(a, cookbook):
        check(neighbour, cookbook)


@given(worlds())
def test_a_child_has_only_what_a_parent_had(world: tuple[Cookbook, Strategy, Strategy, Random]) -> None:
    cookbook, a, b, rng = world
    inherited = {*a.uses, *b.uses}
    assert set(crossover(a, b, cookbook, rng).uses) <= inherited
    assert set(best_of_both(a, b, {}, cookbook).uses) <= inherited


@given(worlds())
def test_what_does_not_conflict_can_survive(world: tuple[Cookbook, Strategy, Strategy, Random]) -> None:
    cookbook, a, b, rng = world
    union = {u.tactic for u in (*a.uses, *b.uses)}
    if not any(cookbook.conflict(x, y) for x in union for y in union):
        assert best_of_both(a, b, {}, cookbook).tactics == union
    for use in a.uses:
        if all(not cookbook.conflict(use.tactic, other) for other in union):
            assert any(use.tactic in crossover(a, b, cookbook, rng) for _ in range(200))


@given(worlds())
def test_agreement_of_the_parents_is_kept(world: tuple[Cookbook, Strategy, Strategy, Random]) -> None:
    cookbook, a, b, rng = world
    child = crossover(a, b, cookbook, rng)
    for name in a.tactics & b.tactics:
        required = cookbook[name].requires
        if required <= child.tactics:
            assert name in child


@given(worlds())
def test_a_strategy_is_no_neighbour_of_itself_and_neighbours_differ(
    world: tuple[Cookbook, Strategy, Strategy, Random],
) -> None:
    cookbook, a, _, _ = world
    near = neighbours(a, cookbook)
    assert a.hash not in {n.hash for n in near}
    assert len({n.hash for n in near}) == len(near)


@given(worlds())
def test_distance_is_a_symmetric_share(world: tuple[Cookbook, Strategy, Strategy, Random]) -> None:
    _, a, b, _ = world
    assert distance(a, a) == 0
    assert distance(a, b) == distance(b, a)
    assert 0 <= distance(a, b) <= 1
    assert (distance(a, b) == 0) == (a.hash == b.hash)


@given(worlds())
def test_diff_leads_from_one_to_the_other(world: tuple[Cookbook, Strategy, Strategy, Random]) -> None:
    _, a, b, _ = world
    change = diff(a, b)
    rebuilt = ({*a.uses} - {*change.dropped} - {old for old, _ in change.changed}) | {*change.added}
    assert rebuilt | {new for _, new in change.changed} == {*b.uses}


@given(worlds())
def test_json_keeps_everything(world: tuple[Cookbook, Strategy, Strategy, Random]) -> None:
    _, a, _, _ = world
    rich = Strategy(a.uses, ("do x",), "since y", Effect(Resource.BYTES, 2.0), ("p",))
    back = from_json(to_json(rich))
    assert back == rich and str(back) == str(rich) and back.hash == rich.hash


def test_a_strategy_prints_in_ten_lines() -> None:
    strategy = Strategy(
        tuple(TacticUse.of(n) for n in NAMES),
        tuple(f"step {i}" for i in range(20)),
        "because",
        Effect(Resource.BYTES, 2),
        ("x", "y"),
    )
    assert len(str(strategy).splitlines()) <= 10


def test_clusters_gather_what_is_near() -> None:
    a = Strategy((TacticUse.of("a"), TacticUse.of("b"), TacticUse.of("c")))
    near = Strategy((TacticUse.of("a"), TacticUse.of("b")))
    far = Strategy((TacticUse.of("d"),))
    assert clusters([a, far, near], 0.4) == [0, 1, 0]


@pytest.mark.parametrize(
    ("uses", "message"),
    [
        ((TacticUse.of("zzz"),), "unknown tactic"),
        ((TacticUse.of("a"), TacticUse.of("a")), "twice"),
        ((TacticUse.of("b"),), "requires a"),
        ((TacticUse.of("a"), TacticUse.of("c", n=1)), "exclude each other"),
        ((TacticUse.of("c"),), "gives no value for n"),
        ((TacticUse.of("c", n=7),), "must be one of"),
        ((TacticUse.of("a", q=7),), "no parameter 'q'"),
    ],
)
def test_each_rule_is_named_when_broken(uses: tuple[TacticUse, ...], message: str) -> None:
    cookbook = Cookbook(
        [
            tactic("a"),
            tactic("b", requires=frozenset("a")),
            tactic("c", conflicts=frozenset("a"), parameters=(Parameter("n", (1, 2)),)),
        ]
    )
    with pytest.raises(StrategyError, match=message):
        check(Strategy(uses), cookbook)
    assert not is_valid(Strategy(uses), cookbook)


def test_a_cookbook_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(CookbookError, match="does not exist"):
        Cookbook([tactic("a", requires=frozenset("x"))])
    with pytest.raises(CookbookError, match="twice"):
        Cookbook([tactic("a"), tactic("a")])


def test_the_shipped_cookbook_loads_and_every_tactic_is_usable() -> None:
    cookbook = load_cookbook()
    for found in cookbook:
        assert found.does and found.zones, found.id
        assert any(found.id in n for n in neighbours(Strategy(), cookbook)), found.id
