"""What each tactic of a champion is worth: the champion without it, written, verified and raced against it.

Leaving one out takes along what requires it, and shows what the tactic adds to the others, not what it is
worth alone. Measured answers go to the run's table, so explaining twice costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from cupilot.brief import Author, Declined
from cupilot.budget import UNLIMITED, Budget
from cupilot.device.registry import open_device
from cupilot.errors import UsageError
from cupilot.evaluate.result import Interval
from cupilot.evolve.answers import Answers, code_hash
from cupilot.evolve.authors import make_author
from cupilot.evolve.candidate import Candidate
from cupilot.evolve.folder import RunFolder
from cupilot.evolve.measuring import Measurer
from cupilot.evolve.policies import as_parent
from cupilot.evolve.run import Run, replay_in
from cupilot.strategy.algebra import settle
from cupilot.strategy.strategy import Strategy, TacticUse


@dataclass(frozen=True)
class Worth:
    """How many times slower the champion is without the tactic; `note` says why there is no figure."""

    use: TacticUse
    gone: tuple[str, ...]  # what went with it
    slowdown: Interval | None
    note: str = ""


@dataclass(frozen=True)
class Explanation:
    run: Run
    champion: Candidate
    worths: tuple[Worth, ...]


def explain(path: Path, progress: Callable[[str], None] = lambda _: None) -> Explanation:
    """Needs the ownership of the run: new measurements are recorded."""
    with RunFolder.open(path, exclusive=True) as folder:
        run = replay_in(folder).run
        champion = run.search.champion
        if champion is None or not champion.passed:
            raise UsageError(f"{path} has no kernel to explain", hint="cupilot resume goes on with the run")
        author = make_author(run.asked, folder.store, Budget(UNLIMITED), offline=False)
        language = run.search.brief.language
        with Measurer(run.problem, open_device(run.asked.device)) as bench:
            answers = Answers(
                folder.store, lambda: bench, lambda n, text: folder.keep_kernel(n, language, text)
            )
            worths = []
            for use in champion.strategy.uses:
                progress(f"without {use}")
                worths.append(_worth(run, author, champion, use, answers))
            return Explanation(run, champion, tuple(worths))


def _worth(run: Run, author: Author, champion: Candidate, use: TacticUse, answers: Answers) -> Worth:
    brief, strategy = run.search.brief, champion.strategy
    kept = settle((other for other in strategy.uses if other != use), brief.cookbook)
    gone = tuple(u.tactic for u in strategy.uses if u not in kept and u != use)
    without = Strategy(tuple(kept), strategy.free_steps, parents=(strategy.hash,))
    kernel = author.write(brief, without, as_parent(champion))
    if isinstance(kernel, Declined):
        return Worth(use, gone, None, f"not written: {kernel.reason}")
    if code_hash(kernel) == code_hash(champion.kernel):
        return Worth(use, gone, None, "the same code")
    evaluation, _ = answers.evaluate(kernel)
    if not evaluation.passed:
        return Worth(use, gone, None, f"{evaluation.verdict} at {evaluation.stage}: {evaluation.reason}")
    other = replace(champion, strategy=without, kernel=kernel, evaluation=evaluation)
    slowdown, _ = answers.race(champion, other)
    return Worth(use, gone, slowdown, "" if slowdown else "the race was undecided")
