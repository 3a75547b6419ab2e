"""Every cheat is refused at its stage with its reason; every honest twin passes.

Of the cheats that gain nothing, and are not refused, one is timed here; `cupilot selftest` times them all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cupilot.selftest.catalogue import CHEATS, TWINS
from cupilot.selftest.cheat import Cheat, Twin, is_stopped
from cupilot.selftest.mounting import Yard


@pytest.fixture(scope="module")
def yard() -> Iterator[Yard]:
    with Yard() as yard:
        yield yard


MOUNTED = [cheat for cheat in CHEATS if cheat.stage is not None or cheat.kernel == "memo_by_content"]


@pytest.mark.parametrize("cheat", MOUNTED, ids=lambda cheat: cheat.name)
def test_the_cheat_is_refused_with_its_reason(yard: Yard, cheat: Cheat) -> None:
    outcome = yard.mount(cheat)
    assert outcome.stage is cheat.stage, outcome.reason
    assert cheat.says in outcome.reason
    assert is_stopped(cheat, outcome), outcome.reason


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_the_honest_twin_passes(yard: Yard, twin: Twin) -> None:
    outcome = yard.mount(twin)
    assert outcome.stage is None, outcome.reason
    assert outcome.gain > 0
