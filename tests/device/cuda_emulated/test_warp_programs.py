"""Random programs of what the lanes of a warp do together, against the same steps on numpy arrays."""

from __future__ import annotations

from random import Random

import emu_kit
import numpy as np
import pytest

from cupilot.device.base import Array
from cupilot.types import DType

WARPS, VALUES = 4, 4
LANES = np.arange(32)
_NUMBERS = 1 << LANES.astype(np.uint64)


class _Program:
    """C++ and its meaning, grown step by step; `state` holds the variables v0 ... v3 of all lanes."""

    def __init__(self, rng: Random, x: Array) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.state = [(x * (3 * k + 1) + k).astype(np.uint32) for k in range(VALUES)]

    def step(self) -> None:
        kind = self.rng.choice(
            (self.arithmetic, self.shuffle, self.vote, self.reduce, self.match, self.split)
        )
        kind()

    def pick(self) -> tuple[int, Array]:
        number = self.rng.randrange(VALUES)
        return number, self.state[number]

    def put(self, text: str, value: Array, where: Array | None = None) -> None:
        number, old = self.pick()
        value = value.astype(np.uint32)
        self.state[number] = value if where is None else np.where(where, value, old)
        self.lines.append(text.format(t=f"v{number}"))

    def condition(self) -> tuple[str, Array]:
        number, value = self.pick()
        divisor = self.rng.choice((2, 3, 5))
        return f"v{number} % {divisor} == 0", value % np.uint32(divisor) == 0

    def arithmetic(self) -> None:
        (a, x), (b, y) = self.pick(), self.pick()
        if self.rng.random() < 0.5:
            self.put(f"{{t}} = v{a} * 5 + v{b};", x * np.uint32(5) + y)
        else:
            self.put(f"{{t}} = v{a} ^ (v{b} >> 3);", x ^ (y >> np.uint32(3)))

    def shuffle(self) -> None:
        (a, x), width = self.pick(), self.rng.choice((32, 16, 8))
        by = self.rng.randrange(width)
        base, within = LANES // width * width, LANES % width
        name, source = self.rng.choice((
            ("down", np.where(within + by < width, LANES + by, LANES)),
            ("up", np.where(within >= by, LANES - by, LANES)),
            ("xor", LANES ^ by),
            ("", base + by),
        ))  # fmt: skip
        call = f"__shfl_{name}_sync" if name else "__shfl_sync"
        self.put(f"{{t}} = {call}(~0u, v{a}, {by}, {width});", x[:, source])

    def vote(self) -> None:
        text, holds = self.condition()
        ballots = (holds * _NUMBERS).sum(axis=1).astype(np.uint32)[:, None]
        name, value = self.rng.choice((
            ("ballot", ballots), ("any", ballots != 0), ("all", ballots == 0xFFFFFFFF),
        ))  # fmt: skip
        self.put(f"{{t}} = __{name}_sync(~0u, {text});", np.broadcast_to(value, (WARPS, 32)))

    def reduce(self) -> None:
        a, x = self.pick()
        name, value = self.rng.choice((
            ("add", x.sum(axis=1, dtype=np.uint32)), ("min", x.min(axis=1)), ("max", x.max(axis=1)),
            ("and", np.bitwise_and.reduce(x, axis=1)), ("or", np.bitwise_or.reduce(x, axis=1)),
            ("xor", np.bitwise_xor.reduce(x, axis=1)),
        ))  # fmt: skip
        self.put(f"{{t}} = __reduce_{name}_sync(~0u, v{a});", np.repeat(value[:, None], 32, axis=1))

    def match(self) -> None:
        a, x = self.pick()
        few = x % np.uint32(4)
        equal = ((few[:, :, None] == few[:, None, :]) * _NUMBERS).sum(axis=2)
        self.put(f"{{t}} = __match_any_sync(~0u, v{a} % 4);", equal)

    def split(self) -> None:
        """Some lanes reduce among themselves while the others do something else."""
        text, holds = self.condition()
        a, x = self.pick()
        sums = np.where(holds, x, 0).sum(axis=1, dtype=np.uint32)[:, None]
        number, old = self.pick()
        self.state[number] = np.where(holds, sums, old + np.uint32(7)).astype(np.uint32)
        self.lines.append(
            f"{{ const unsigned m = __ballot_sync(~0u, {text}); "
            f"if (m >> lane & 1) v{number} = __reduce_add_sync(m, v{a}); else v{number} += 7; }}"
        )


@pytest.mark.parametrize("seed", range(8))
def test_lanes_together_compute_what_numpy_does(seed: int) -> None:
    x = np.random.default_rng(seed).integers(0, 2**32, (WARPS, 32), dtype=np.uint32)
    program = _Program(Random(seed), x)
    for _ in range(40):
        program.step()
    start = "".join(f"unsigned v{k} = given * {3 * k + 1} + {k};\n" for k in range(VALUES))
    body = "\n".join(program.lines)
    code = f"""__global__ void k(const int* x, int* out) {{
        const int lane = threadIdx.x % 32;
        const unsigned given = x[threadIdx.x];
        {start}{body}
        out[4 * threadIdx.x] = v0; out[4 * threadIdx.x + 1] = v1;
        out[4 * threadIdx.x + 2] = v2; out[4 * threadIdx.x + 3] = v3;
    }}"""
    given = {"x": x.reshape(-1).view(np.int32)}
    out = {"out": ((WARPS * 32 * VALUES,), DType.I32)}
    found = emu_kit.compute(code, f"k[1, {WARPS * 32}](x, out)", given, out)["out"].view(np.uint32)
    wanted = np.stack(program.state, axis=-1).reshape(-1)
    assert np.array_equal(found, wanted), program.lines
