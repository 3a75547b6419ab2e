"""The language-model author: fills the roles by asking models, and believes only answers that can be read.

An answer that breaks the rules goes back with the exact error; after TRIES the author declines and the
candidate fails as a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from random import Random
from typing import TypeVar

from cupilot.agents import roles
from cupilot.agents.answers import InvalidAnswerError, read_kernel, read_strategy
from cupilot.agents.roles import Task
from cupilot.agents.templates import Prompts
from cupilot.brief import Brief, Complaint, Declined, Parent
from cupilot.budget import Budget
from cupilot.kernel.file import KernelFile
from cupilot.lm.asking import Asking, NoReply
from cupilot.lm.messages import Request, Stop
from cupilot.problem.problem import Problem
from cupilot.strategy.align import align, evidence
from cupilot.strategy.evidence import Evidence, Fact
from cupilot.strategy.strategy import Strategy
from cupilot.strategy.tactics import Cookbook

TRIES = 3  # a first answer and two corrections
_SAMPLES = 1 << 20

T = TypeVar("T")

# The operators that decide a problem's family, the weightiest first; everything else is pointwise.
_FAMILIES: Mapping[str, frozenset[str]] = {
    "attention": frozenset({"scaled_dot_product_attention"}),
    "convolution": frozenset({"convolution"}),
    "product": frozenset({"mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "mv", "dot", "einsum"}),
    "scan": frozenset({"cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"}),
    "softmax": frozenset({"softmax", "log_softmax"}),
    "norm": frozenset({"layer_norm", "group_norm", "batch_norm", "rms_norm", "norm"}),
    "reduction": frozenset({"sum", "mean", "amax", "amin", "argmax", "argmin", "var", "std", "logsumexp"}),
}


class ModelAuthor:
    """See `brief.Author`. `tally` counts answers by role and by what became of them."""

    def __init__(
        self,
        name: str,
        asking: Asking,
        cookbook: Cookbook,
        prompts: Prompts,
        *,
        most_tokens: int = roles.CODE_TOKENS,
    ) -> None:
        self.name = name
        self._asking = asking
        self._cookbook = cookbook
        self._prompts = prompts
        self._most_tokens = most_tokens
        self.tally: Counter[tuple[str, str]] = Counter()

    @property
    def charged(self) -> frozenset[str]:
        """The answers that it was given, by their hashes in the table."""
        return frozenset(self._asking.charged)

    def beside(self, budget: Budget) -> ModelAuthor:
        """The same author for work at the same time, which spends from a budget of its own."""
        other = copy(self)
        other._asking = self._asking.beside(budget)
        return other

    def family(self, problem: Problem) -> str | Declined:
        """Any problem will do; credit is shared by the weightiest operator."""
        operators = {node.op for node in problem.graph.nodes}
        return next((name for name, ops in _FAMILIES.items() if ops & operators), "pointwise")

    def cookbook(self, problem: Problem) -> Cookbook:
        return self._cookbook

    def generate(self, brief: Brief) -> KernelFile | Declined:
        return self._kernel(brief, roles.generate(brief))

    def plan(self, brief: Brief, rng: Random) -> Strategy | Declined:
        return self._strategy(brief, roles.plan(brief, rng.randrange(_SAMPLES)))

    def cross(self, brief: Brief, parents: tuple[Parent, Parent], rng: Random) -> Strategy | Declined:
        lineage = tuple(parent.strategy.hash for parent in parents)
        return self._strategy(brief, roles.cross(brief, parents, rng.randrange(_SAMPLES)), lineage)

    def merge(self, brief: Brief, parents: tuple[Parent, Parent], rng: Random) -> KernelFile | Declined:
        return self._kernel(brief, roles.merge(brief, parents, rng.randrange(_SAMPLES)))

    def write(self, brief: Brief, strategy: Strategy, base: Parent) -> KernelFile | Declined:
        return self._kernel(brief, roles.translate(brief, strategy, base))

    def repair(
        self, brief: Brief, strategy: Strategy, kernel: KernelFile, complaint: Complaint
    ) -> KernelFile | Declined:
        return self._kernel(brief, roles.repair(brief, strategy, kernel, complaint))

    def refine(self, brief: Brief, current: Parent) -> KernelFile | Declined:
        """Faster by what was measured of it; declined where its profile leaves nothing to do.

        Without the roofline there is no profile, and nothing that could say so.
        """
        if brief.placement is not None and not any(advice.get("actions") for advice in current.advice):
            return Declined("the profile names nothing to do")
        return self._kernel(brief, roles.refine(brief, current))

    def align(
        self, brief: Brief, strategy: Strategy, kernel: KernelFile, facts: Mapping[str, Fact]
    ) -> Strategy:
        """By evidence; a model is asked only about claims that evidence cannot settle. Evidence wins."""
        aligned = align(strategy, brief.cookbook, facts, brief.language)
        found = evidence(brief.cookbook, facts, brief.language)
        open_claims = [use for use in aligned.uses if found[use.tactic] is Evidence.UNVERIFIABLE]
        if not open_claims and not aligned.free_steps:
            return aligned
        said = self._strategy(brief, roles.align(brief, aligned, kernel), strategy.parents)
        if isinstance(said, Declined):
            return aligned
        said = replace(said, rationale=strategy.rationale, expected=strategy.expected)
        return align(said, brief.cookbook, facts, brief.language)

    def _kernel(self, brief: Brief, task: Task) -> KernelFile | Declined:
        target = brief.problem.target
        return self._insist(brief, task, lambda text: read_kernel(text, target, brief.language))

    def _strategy(self, brief: Brief, task: Task, parents: tuple[str, ...] = ()) -> Strategy | Declined:
        return self._insist(brief, task, lambda text: read_strategy(text, brief.cookbook, parents))

    def _insist(self, brief: Brief, task: Task, read: Callable[[str], T]) -> T | Declined:
        """Ask until the answer can be read."""
        request = roles.request(task, brief, self._prompts)
        request = replace(request, max_tokens=min(request.max_tokens, self._most_tokens))
        error = ""
        for attempt in range(TRIES):
            reply = self._asking.ask(request)
            if isinstance(reply, NoReply):
                return self._decline(request, "no reply", reply.reason)
            if reply.stop is Stop.REFUSED:
                words = " ".join(reply.text.split())[:300]
                return self._decline(request, "refused", f"the model refused: {words or 'without a word'}")
            try:
                if reply.stop is Stop.LENGTH:
                    raise InvalidAnswerError(f"it was cut off after {request.max_tokens} tokens: be brief")
                answer = read(reply.text)
            except InvalidAnswerError as invalid:
                error = str(invalid)
                self.tally[request.role, "invalid"] += 1
                request = roles.corrected(request, reply.text, error, self._prompts)
            else:
                self.tally[request.role, "first try" if attempt == 0 else "corrected"] += 1
                return answer
        return self._decline(
            request, "given up", f"{TRIES} answers of the {request.role} were unusable, the last: {error}"
        )

    def _decline(self, request: Request, how: str, reason: str) -> Declined:
        self.tally[request.role, how] += 1
        return Declined(reason)
