"""What a child process of the tests does: a whole run over a bench that only pretends."""

import time
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from cupilot.evaluate.result import Evaluation, Interval, Kind, Verdict
from cupilot.evolve.answers import code_hash
from cupilot.evolve.conduct import Finished, conduct
from cupilot.evolve.folder import Asked, RunFolder, is_run
from cupilot.evolve.watching import Silent
from cupilot.kernel.file import KernelFile
from cupilot.kernel.tunables import first_point
from cupilot.types import Stage

ASKED = Asked("suite:softmax", budget="40evals", pool=False, population=6, patience=9)


class Slow:
    """A bench whose answers follow from the kernel's text, after a while; notes every question."""

    def __init__(self, log: Path, pause_s: float) -> None:
        self.log, self.pause_s = log, pause_s

    def evaluate(self, kernel: KernelFile) -> Evaluation:
        return self._answer("evaluate", kernel)

    def prove(self, champion: tuple[KernelFile, Evaluation]) -> Evaluation:
        return self._answer("prove", champion[0])

    def race(self, challenger: Any, champion: Any) -> Interval:
        self._note("race")
        ratio = challenger[1].speedup["eager"].ratio / champion[1].speedup["eager"].ratio
        return Interval(ratio, ratio * 0.99, ratio * 1.01)

    def _answer(self, kind: str, kernel: KernelFile) -> Evaluation:
        self._note(kind)
        ratio = 0.5 + int(sha256(code_hash(kernel).encode()).hexdigest()[:4], 16) / 2**14
        interval = Interval(ratio, ratio * 0.99, ratio * 1.01)
        return Evaluation(
            Verdict.PASSED, Stage.TIME, "right", speedup={"eager": interval}, time_s=1 / ratio,
            attainable_s=0.01, kind=Kind.MEASURED, shapes=("target",), tuned=first_point(kernel),
        )  # fmt: skip

    def _note(self, kind: str) -> None:
        with self.log.open("a") as log:
            log.write(f"{kind}\n")
        time.sleep(self.pause_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def go_on(path: Path, log: Path, pause_s: float) -> Finished:
    opened = RunFolder.open(path, exclusive=True) if is_run(path) else RunFolder.create(path, ASKED)
    with opened as folder:
        return conduct(folder, None, lambda *_: Silent(), lambda *_: Slow(log, pause_s))
