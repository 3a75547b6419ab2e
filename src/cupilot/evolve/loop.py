"""The loop: the only file that knows the order of things.

    first kernel -> (propose a strategy -> write -> evaluate -> repair -> align -> record)* -> race -> stop?

It is a pure function of the store's answers: every decision is drawn from `Random(seed, generation, slot)`,
and whatever is slow is asked of the evaluator or the author through the store. Running it again resumes it.

A model works ahead: within a generation a candidate is drafted while the one before it is measured, and so
knows what that one is, but not what became of it.
"""

from __future__ import annotations

import hashlib
from copy import copy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Protocol

from cupilot.brief import Author, Brief, Complaint, Declined, Parent, Refuted
from cupilot.budget import Amounts, Budget
from cupilot.evaluate.result import Evaluation, Interval, Verdict
from cupilot.evolve.ahead import Begun, Draft, Working
from cupilot.evolve.candidate import BASELINE, Candidate, Slot, fitter, ranked, trial
from cupilot.evolve.policies import Policy, Proposal, View, as_parent
from cupilot.kernel.file import KernelFile
from cupilot.ledger import NOTHING, Cell, Credit, Prior, Trial, credit
from cupilot.strategy.evidence import without_comments
from cupilot.strategy.strategy import Strategy
from cupilot.types import Stage

PROMOTION_GAIN = 1.03  # a challenger must be this much faster, raced directly
PROOFS = 3  # kernels that may try to stand the final proof
AT_THE_FLOOR = 0.05  # headroom below which nothing worth having is left
INTERRUPTED = "interrupted"
HOPELESS = 0.8  # times eager: the final proof takes longer and tunes more, but never changes that much
REPAIRABLE = frozenset({Stage.PARSE, Stage.COMPILE, Stage.INSPECT, Stage.LOAD, Stage.VERIFY})


class Evaluator(Protocol):
    """Compiles, verifies, tunes, times. Answers come from the store where it has them."""

    def evaluate(self, kernel: KernelFile) -> tuple[Evaluation, Amounts]: ...

    def race(self, challenger: Candidate, champion: Candidate) -> tuple[Interval | None, Amounts]:
        """How many times faster the challenger is, run beside the champion; None where undecidable."""

    def prove(self, champion: Candidate) -> tuple[Evaluation, Amounts]:
        """The champion again, from scratch: every check, every baseline, all threads."""


class Watcher(Protocol):
    """Who looks on: the terminal, the tests."""

    def trying(self, slot: Slot, what: str) -> None: ...

    def recorded(self, candidate: Candidate, champion: Candidate | None) -> None: ...

    def notice(self, what: str) -> None:
        """Something that takes long for a reason worth telling."""

    def stop_requested(self) -> bool: ...


@dataclass(frozen=True)
class Settings:
    """What the user may choose about the search."""

    seed: int = 0
    epochs: int = 4
    generations: int = 4
    population: int = 8
    patience: int = 3  # generations without a gain
    repairs: int = 2
    refinements: int = 1  # of a kernel that passed, by its own profile


@dataclass(frozen=True)
class Outcome:
    champion: Candidate | None  # None: nothing beat the reference
    proof: Evaluation | None
    reason: str  # why the search ended
    records: tuple[Candidate, ...]
    races: tuple[tuple[Slot, Slot, Interval], ...] = ()
    spent: Amounts = field(default_factory=Amounts)


class Search:
    """One run. The fields are the whole state; everything else is derived from them."""

    def __init__(
        self,
        brief: Brief,
        author: Author,
        evaluator: Evaluator,
        policy: Policy,
        settings: Settings,
        budget: Budget,
        watcher: Watcher,
        cell: Cell,
        prior: Prior = NOTHING,
        ahead: Working | None = None,
    ) -> None:
        self.brief, self.author, self.evaluator, self.policy = brief, author, evaluator, policy
        self.settings, self.budget, self.watcher, self.cell = settings, budget, watcher, cell
        self.prior, self.ahead = prior, ahead
        self._begun: Begun | None = None
        self._in_flight: Proposal | None = None
        self.records: tuple[Candidate, ...] = ()
        self._bases: tuple[Candidate, ...] = ()
        self.races: tuple[tuple[Slot, Slot, Interval], ...] = ()
        self.champion: Candidate | None = None

    @property
    def base(self) -> Candidate:
        """What new plans are written on: the first kernel, then the champion of the last epoch."""
        return self._bases[-1] if self._bases else self.records[0]

    def run(self) -> Outcome:
        return self.prove(self.search())

    def search(self) -> str:
        """Why it ended. The records, races and the champion are this object's fields."""
        return self._first() or self._generations()

    def prove(self, reason: str) -> Outcome:
        """The outcome with the champion's proof; a champion that falls is replaced by the next best."""
        if self.champion is not None and not worth_proving(self.champion):
            return self.outcome(reason)
        fallen: list[str] = []
        proof = None
        for champion in self._in_line():
            self.champion = champion
            self.watcher.trying(champion.slot, "final proof: every check and baseline, from scratch")
            proof, cost = self.evaluator.prove(champion)
            self.budget.spend(cost)
            if proof.passed or proof.verdict is Verdict.UNDECIDED:
                break
            fallen.append(f"; {champion.slot} did not stand the final proof: {proof.reason}")
        return self.outcome(reason + "".join(fallen), proof)

    def outcome(self, reason: str, proof: Evaluation | None = None) -> Outcome:
        shipped = self.champion if proof is not None and beats_the_reference(proof) else None
        return Outcome(shipped, proof, reason, self.records, self.races, self.budget.spent)

    def _in_line(self) -> list[Candidate]:
        """The champion, then those who would follow it."""
        if self.champion is None:
            return []
        others = [c for c in ranked(self.records) if c.slot != self.champion.slot]
        return [self.champion, *others][:PROOFS]

    def _first(self) -> str | None:
        """The plain kernel, from which everything descends. A reason where there is none."""
        kernel = self.author.generate(self.brief)
        if isinstance(kernel, Declined):
            return f"the author declined: {kernel.reason}"
        first = self._develop(Slot(0, 0), "first", Strategy(), kernel, None)
        self._record(first)
        if not first.passed:
            verdict = first.evaluation.verdict
            return f"the first kernel {verdict} at {first.evaluation.stage}: {first.evaluation.reason}"
        return None

    def _generations(self) -> str:
        best_at: list[float] = []
        for generation in range(self.settings.epochs * self.settings.generations):
            for index in range(self.settings.population):
                reason = self._stop_now()
                if reason is None and not self._slot(Slot(generation, index + 1)):
                    reason = "every strategy within reach has been tried"
                if reason is not None:
                    self._crown()
                    return reason
            self._crown()
            if self.champion is not None and (generation + 1) % self.settings.generations == 0:
                self._bases = (*self._bases, self.champion)
            best_at.append(self.champion.speedup.ratio if self.champion else 0.0)
            if generation >= self.settings.patience:
                earlier = best_at[generation - self.settings.patience]
                if best_at[generation] <= earlier * (PROMOTION_GAIN - 0.02):
                    return f"no gain in {self.settings.patience} generations"
        return "all generations are done"

    def _stop_now(self) -> str | None:
        if self.watcher.stop_requested():
            return INTERRUPTED
        if self.champion is not None:
            headroom = self.champion.evaluation.headroom
            if self._is_guided and headroom is not None and headroom < AT_THE_FLOOR:
                return f"at the floor: {headroom:.0%} headroom left"
        return self.budget.exhausted()

    def _slot(self, slot: Slot) -> bool:
        """Propose, develop and record one candidate; False when no untried strategy can be found."""
        self.watcher.trying(slot, "a proposal")
        draft = self._drafted(slot)
        if draft is None:
            return False
        if slot.index < self.settings.population:
            self._look_ahead(replace(slot, index=slot.index + 1), draft.proposal)
        proposal = draft.proposal
        candidate = self._develop(slot, proposal.origin, proposal.strategy, draft.kernel, proposal.base)
        self._record(replace(candidate, parents=tuple(c.slot for c in proposal.parents)))
        return True

    def _look_ahead(self, slot: Slot, in_flight: Proposal) -> None:
        """Begin the next draft, from the search as it stands now."""
        if self.ahead is None:
            return
        then = copy(self)
        then._in_flight, then._begun = in_flight, None

        def draft(author: Author) -> Draft | None:
            then.author = author
            return then._draft(slot)

        self._begun = Begun(slot, draft, self.ahead, self.budget)

    def _drafted(self, slot: Slot) -> Draft | None:
        """What was begun ahead, or a new draft."""
        begun, self._begun = self._begun, None
        if begun is None or begun.slot != slot:
            return self._draft(slot)
        return begun.result(self.author)

    def _draft(self, slot: Slot) -> Draft | None:
        rng = random_for(self.settings.seed, slot)
        proposal = self._propose(slot, rng)
        if proposal is None:
            return None
        if isinstance(proposal, Declined):
            return Draft(Proposal(Strategy(), "declined", self.records[0]), proposal)
        if proposal.origin == "merge":
            a, b = map(as_parent, proposal.parents)
            return Draft(proposal, self.author.merge(self._brief_now(), (a, b), rng))
        return Draft(
            proposal, self.author.write(self._brief_now(), proposal.strategy, as_parent(proposal.base))
        )

    def _propose(self, slot: Slot, rng: Random) -> Proposal | Declined | None:
        """Something untried; None where that cannot be found."""
        view = View(
            self._brief_now(),
            self.author,
            self.records,
            self.base,
            slot.generation,
            slot.index - 1,
            opens_epoch=slot.generation % self.settings.generations == 0,
        )
        for attempt in range(40):
            # A policy that repeats itself is asked again as if the initial population were over.
            asked = view if attempt < 10 else replace(view, generation=max(1, view.generation))
            proposal = self.policy(asked, rng)
            if isinstance(proposal, Declined) or self._is_new(proposal):
                return proposal
        return None

    def _is_new(self, proposal: Proposal) -> bool:
        other = self._in_flight
        if proposal.origin == "merge":
            pair = {c.slot for c in proposal.parents}
            tried = [set(c.parents) for c in self.records if c.origin == "merge"]
            tried += [{c.slot for c in other.parents}] if other and other.origin == "merge" else []
            return pair not in tried
        tried_hashes = {h for c in self.records for h in (c.intended.hash, c.strategy.hash)}
        return proposal.strategy.hash not in tried_hashes | ({other.strategy.hash} if other else set())

    def _develop(
        self,
        slot: Slot,
        origin: str,
        strategy: Strategy,
        kernel: KernelFile | Declined,
        base: Candidate | None,
    ) -> Candidate:
        """Evaluate, repair while that helps, align."""
        repairs = 0
        while True:
            if isinstance(kernel, Declined):
                evaluation = Evaluation(Verdict.FAILED, Stage.PARSE, f"the author declined: {kernel.reason}")
                kernel = self.records[0].kernel
                break
            self.watcher.trying(slot, f"{origin}: {strategy_words(strategy)}")
            evaluation, cost = self.evaluator.evaluate(kernel)
            self.budget.spend(cost)
            if not self._repairable(evaluation) or repairs == self.settings.repairs:
                break
            complaint = Complaint(evaluation.stage, evaluation.reason, evaluation.log)
            mended = self.author.repair(self._brief_now(), strategy, kernel, complaint)
            if isinstance(mended, Declined) or mended == kernel:
                break
            kernel, repairs = mended, repairs + 1
        aligned = strategy
        if evaluation.passed:
            if base is not None:
                kernel, evaluation = self._refine(slot, strategy, kernel, evaluation)
            facts = {**evaluation.facts, "code": without_comments(kernel.source)}
            aligned = self.author.align(self._brief_now(), strategy, kernel, facts)
        compared = base.slot if base else None
        return Candidate(slot, origin, strategy, aligned, kernel, evaluation, compared, repairs=repairs)

    def _refine(
        self, slot: Slot, strategy: Strategy, kernel: KernelFile, evaluation: Evaluation
    ) -> tuple[KernelFile, Evaluation]:
        """The kernel as the author betters it by its profile, as long as that makes it faster."""
        for _ in range(self.settings.refinements):
            if BASELINE not in evaluation.speedup or self.budget.exhausted() is not None:
                break
            ratio = evaluation.speedup[BASELINE].ratio
            current = Parent(strategy, kernel, ratio, evaluation.time_s, evaluation.advice)
            better = self.author.refine(self._brief_now(), current)
            if isinstance(better, Declined) or better == kernel:
                break
            self.watcher.trying(slot, f"refined: {strategy_words(strategy)}")
            refined, cost = self.evaluator.evaluate(better)
            self.budget.spend(cost)
            if BASELINE not in refined.speedup or refined.speedup[BASELINE].ratio <= ratio:
                break
            kernel, evaluation = better, refined
        return kernel, evaluation

    def _repairable(self, evaluation: Evaluation) -> bool:
        failed = evaluation.verdict is Verdict.FAILED and evaluation.stage in REPAIRABLE
        return failed and self.budget.exhausted() is None

    def _record(self, candidate: Candidate) -> None:
        self.records = (*self.records, candidate)
        if self.champion is None and candidate.passed:
            self.champion = candidate
        self.watcher.recorded(candidate, self.champion)

    def _crown(self) -> None:
        """Race the best few directly against the champion; only a clear winner takes its place."""
        if self.champion is None:
            return
        for challenger in ranked(self.records)[:3]:
            if challenger.slot == self.champion.slot or fitter(challenger, self.champion) is self.champion:
                continue
            if any({challenger.slot, self.champion.slot} == {a, b} for a, b, _ in self.races):
                continue
            self.watcher.trying(challenger.slot, f"race against {self.champion.slot}")
            interval, cost = self.evaluator.race(challenger, self.champion)
            self.budget.spend(cost)
            if interval is None:
                # The machine is too busy: what was stated against eager has to do, and the proof decides.
                if challenger.speedup.low > self.champion.speedup.high * PROMOTION_GAIN:
                    self.champion = challenger
                continue
            self.races = (*self.races, (challenger.slot, self.champion.slot, interval))
            if interval.ratio >= PROMOTION_GAIN and interval.low > 1:
                self.champion = challenger

    def _brief_now(self) -> Brief:
        refuted = tuple(Refuted(c.intended, self._why_not(c)) for c in self.records if _refutes(c))
        return replace(self.brief, credit=self.credit(), refuted=refuted[-8:])

    def credit(self) -> dict[str, Credit]:
        """What each tactic is worth here, after all that was measured and what the pool taught."""
        return credit(self.trials(), self.cell, self.prior)

    @property
    def _is_guided(self) -> bool:
        """Whether the search may know of the roofline."""
        return self.brief.placement is not None

    def _why_not(self, refuted: Candidate) -> str:
        """The reason it failed for; the floor is the roofline's, and not told where that is hidden."""
        hidden = refuted.evaluation.stage is Stage.FLOOR and not self._is_guided
        return "it was refused after it was timed" if hidden else refuted.evaluation.reason

    def trials(self) -> list[Trial]:
        """What the records say of tactics; what could not be decided says nothing."""
        by_slot = {c.slot: c for c in self.records}
        told = [c for c in self.records if c.evaluation.verdict is not Verdict.UNDECIDED]
        return [trial(c, by_slot[c.base], self.cell) for c in told if c.base is not None]


def _refutes(candidate: Candidate) -> bool:
    return candidate.evaluation.verdict is Verdict.FAILED and candidate.complexity > 0


def worth_proving(champion: Candidate) -> bool:
    return champion.speedup.high >= HOPELESS


def beats_the_reference(proof: Evaluation) -> bool:
    """Faster than eager beyond the stated interval; otherwise the reference wins."""
    return proof.passed and "eager" in proof.speedup and proof.speedup["eager"].low > 1


def random_for(seed: int, slot: Slot) -> Random:
    digest = hashlib.sha256(f"{seed}:{slot}".encode()).digest()
    return Random(int.from_bytes(digest[:8], "big"))


def strategy_words(strategy: Strategy) -> str:
    words = [str(use) for use in strategy.uses] + list(strategy.free_steps)
    return ", ".join(words) or "plain"
