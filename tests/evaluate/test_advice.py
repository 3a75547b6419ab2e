from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cupilot.device.assembly import Loop
from cupilot.evaluate.advice import IDEAS, Action, Advice, Severity, Tactic, action_words, to_json
from cupilot.evaluate.causes import Observed, advise
from cupilot.kernel.plan import Launch, Plan, ScratchSpec, TensorArg, Zero
from cupilot.problem.operators import Operation
from cupilot.problem.precision import Arithmetic
from cupilot.roofline import DevicePeaks, Format, MemoryLevel, Pattern, Source, Work, place
from cupilot.strategy.tactics import load_cookbook
from cupilot.types import DType, Role, Signature, TensorSpec

GB = 1e9
PEAKS = DevicePeaks(
    device="cpu",
    source=Source.MEASURED,
    threads=1,
    levels=(
        MemoryLevel("L1", 32 << 10, dict.fromkeys(Pattern, 200 * GB)),
        MemoryLevel("L2", 1 << 20, dict.fromkeys(Pattern, 100 * GB)),
        MemoryLevel("DRAM", None, dict.fromkeys(Pattern, 30 * GB) | {Pattern.STREAM_COPY: 45 * GB}),
    ),
    core_ops_per_s={Format.F32: 100e9},
    matrix_ops_per_s={},
    special_per_s=5e9,
    launch_s=1e-7,
)
N = 16 << 20
STREAMING = Work(4.0 * N, 4.0 * N, {Operation.ARITHMETIC: 1.0 * N})
PRODUCT = Work(8e6, 4e6, {Operation.CONTRACTION: 2e9})
SIGNATURE = Signature(
    tensors=(TensorSpec("x", (N,), DType.F32, Role.INPUT),),
    scalars={},
    outputs=(TensorSpec("out", (N,), DType.F32, Role.OUTPUT),),
)
LOOP = Loop(
    function="kernel", address=0, depth=1, instructions=6, vector_bits=256, packed=2, scalar=0, fused=0,
    divides=0, gathers=0, streaming_stores=1, spills=0, loads=1, stores=1, accumulators=0, chain=0, calls=(),
    operations=frozenset({"mul"}),
)  # fmt: skip


def launch(*names: str, blocks: int = 64) -> Launch:
    return Launch("kernel", (blocks,), None, tuple(map(TensorArg, names)))


def observe(work: Work = STREAMING, *, slower: float = 4.0, **changes: object) -> Observed:
    """A clean kernel that takes `slower` times what is attainable."""
    placement = place(work, PEAKS, Arithmetic.F32, 1 << 30)
    observed = Observed(
        time_s=slower * placement.attainable_s,
        work=work,
        placement=placement,
        peaks=PEAKS,
        plan=Plan((), (launch("x", "out"),)),
        signature=SIGNATURE,
        loops=(LOOP,),
    )
    return replace(observed, **changes)


def tactics(observed: Observed) -> list[Tactic]:
    return [action.tactic for advice in advise(observed) for action in advice.actions]


def test_at_the_floor_nothing_is_left() -> None:
    (advice,) = advise(observe(slower=1.02, loops=(replace(LOOP, spills=3),)))
    assert advice.severity is Severity.DONE
    assert not advice.actions


def test_two_passes_over_the_input_are_seen_in_the_plan() -> None:
    plan = Plan(
        (ScratchSpec("stats", (64,), DType.F32),), (launch("x", "stats"), launch("x", "stats", "out"))
    )
    (advice,) = advise(observe(plan=plan))
    assert advice.cause == "moves 1.5x the bytes it must: 2 steps walk x again"
    assert [a.tactic for a in advice.actions] == [Tactic.FUSE_PASSES, Tactic.ONLINE_REDUCTION]
    assert advice.expected_gain == pytest.approx(1.5)


def test_large_scratch_is_traffic_and_small_scratch_is_not() -> None:
    small = Plan((ScratchSpec("t", (1024,), DType.F32),), (launch("x", "t", "out"),))
    large = Plan((ScratchSpec("t", (N,), DType.F32),), (launch("x", "t"), launch("t", "out")))
    assert Tactic.FUSE_PASSES not in tactics(observe(plan=small))
    (advice,) = advise(observe(plan=large))
    assert "walk t again" in advice.cause
    assert advice.expected_gain == pytest.approx(2.0)


def test_clearing_the_output_first_is_a_pass() -> None:
    plan = Plan((), (Zero("out"), launch("x", "out")))
    assert "walk out again" in advise(observe(plan=plan))[0].cause


def test_short_work_in_many_launches() -> None:
    tiny = Work(400, 400, {})
    plan = Plan((), (launch("x", "out"),) * 3)
    assert tactics(observe(tiny, slower=10, plan=plan)) == [Tactic.FUSE_PASSES]


@pytest.mark.parametrize(
    ("changes", "tactic"),
    [
        ({"packed": 0, "scalar": 2, "vector_bits": 0}, Tactic.VECTORIZE),
        (
            {"packed": 0, "scalar": 2, "vector_bits": 0, "accumulators": 1, "chain": 2},
            Tactic.MULTIPLE_ACCUMULATORS,
        ),
        ({"vector_bits": 128}, Tactic.VECTORIZE),
        ({"calls": ("expf",), "packed": 0}, Tactic.INLINE_TRANSCENDENTALS),
        ({"calls": ("fmaxf",), "spills": 4, "packed": 0}, Tactic.VECTORIZE),
        ({"spills": 2}, Tactic.REGISTER_TILE),
        ({"divides": 1}, Tactic.AVOID_DIVISION),
        ({"gathers": 1}, Tactic.CONTIGUOUS_ACCESS),
        ({"accumulators": 1, "chain": 1}, Tactic.MULTIPLE_ACCUMULATORS),
    ],
)
def test_what_is_wrong_in_a_loop(changes: dict[str, object], tactic: Tactic) -> None:
    clean, wrong = observe(), observe(loops=(replace(LOOP, **changes),))
    assert tactic not in tactics(clean)
    assert advise(wrong)[0].actions[0].tactic is tactic
    assert "the loop of kernel" in advise(wrong)[0].cause


def test_block_copies_and_what_calls_save_are_no_cause() -> None:
    assert tactics(observe(slower=1.2, loops=(replace(LOOP, calls=("memcpy",), spills=3),))) == []


def test_enough_accumulators_do_not_wait() -> None:
    unrolled = replace(LOOP, packed=8, instructions=20, accumulators=8, chain=1)
    assert Tactic.MULTIPLE_ACCUMULATORS not in tactics(observe(loops=(unrolled,)))


def test_a_product_that_loads_as_often_as_it_multiplies_needs_register_blocks() -> None:
    naive = replace(LOOP, fused=1, packed=1, loads=2)
    blocked = replace(LOOP, fused=24, packed=24, loads=7, instructions=40)
    assert tactics(observe(PRODUCT, loops=(naive,)))[0] is Tactic.REGISTER_TILE
    assert "loads" not in advise(observe(PRODUCT, loops=(blocked,)))[0].cause


def test_plain_stores_to_memory_read_what_they_overwrite() -> None:
    plain = replace(LOOP, streaming_stores=0)
    (advice,) = advise(observe(slower=1.4, loops=(plain,)))
    assert advice.actions[0].tactic is Tactic.NON_TEMPORAL_STORES
    assert advice.expected_gain == pytest.approx(1.4)
    assert Tactic.NON_TEMPORAL_STORES not in tactics(observe(loops=None)), "nothing is known of the stores"


def test_gains_never_exceed_what_the_roofline_leaves() -> None:
    (advice,) = advise(observe(slower=1.5, loops=(replace(LOOP, calls=("expf",)),)))
    assert advice.expected_gain == pytest.approx(1.5)


def test_the_largest_gain_comes_first() -> None:
    gains = [
        a.expected_gain
        for a in advise(observe(slower=20, loops=(replace(LOOP, gathers=1, calls=("expf",), divides=1),)))
    ]
    assert len(gains) == 3
    assert gains == sorted(gains, reverse=True)


def test_fewer_blocks_than_threads() -> None:
    plan = Plan((), (launch("x", "out", blocks=1),))
    advice = advise(observe(slower=1.0, plan=plan, threads=2))
    assert [a.tactic for a in advice[0].actions] == [Tactic.PARALLEL_GRID]
    assert advice[0].expected_gain == 2.0


def test_poor_scaling_is_named_and_good_scaling_is_not() -> None:
    observed = observe(slower=1.0, threads=4)
    observed = replace(observed, threaded_attainable_s=observed.time_s / 4)
    poor = replace(observed, threaded_time_s=observed.time_s / 1.5)
    good = replace(observed, threaded_time_s=observed.time_s / 3.5)
    assert tactics(poor) == [Tactic.PARALLEL_GRID]
    assert tactics(good) == []


def test_far_from_the_roofline_without_a_visible_reason() -> None:
    (advice,) = advise(observe(PRODUCT, slower=5))
    assert "no reason that shows" in advice.cause
    assert [a.tactic for a in advice.actions] == [Tactic.REGISTER_TILE, Tactic.EXPLOIT_STRUCTURE]
    assert advise(observe(PRODUCT, slower=1.2)) == ()


def test_severity_follows_from_the_gain_and_survives_json() -> None:
    (advice,) = advise(observe(PRODUCT, slower=5))
    data = json.loads(json.dumps(to_json(advice)))
    assert data["severity"] == "high"
    assert data["actions"][0] == {
        "tactic": "register-tile",
        "why": advice.actions[0].why,
        "expected_gain": 5.0,
    }
    assert data["actions"][1]["tactic"] is None and "symmetry" in data["actions"][1]["why"]
    assert Advice("done").severity is Severity.DONE


@pytest.mark.parametrize("tactic", Tactic)
def test_advice_names_a_tactic_of_the_cookbook_or_none(tactic: Tactic) -> None:
    """What is named can be taken up in a strategy; an idea that the cookbook gained should be named by it."""
    cookbook = load_cookbook()
    (action,) = to_json(Advice("a cause", (Action(tactic, "do this", 2.0),)))["actions"]
    if tactic in IDEAS:
        assert tactic.value not in cookbook
        assert action["tactic"] is None and action_words(action) == "do this"
    else:
        assert action["tactic"] in cookbook and action_words(action) == f"{action['tactic']}: do this"
