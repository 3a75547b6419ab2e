"""What an author is told, and what an author is: the seam between the loop and whoever fills the roles.

The built-in author and the language-model authors get the same brief and give the same answers. An author
never measures anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from cupilot.kernel.file import KernelFile
from cupilot.ledger import Credit
from cupilot.problem.problem import Problem
from cupilot.roofline import Placement
from cupilot.strategy.evidence import Fact
from cupilot.strategy.strategy import Strategy
from cupilot.strategy.tactics import Cookbook


@dataclass(frozen=True)
class Refuted:
    """A strategy that was tried and did not pay, with the reason in words."""

    strategy: Strategy
    reason: str


@dataclass(frozen=True)
class Brief:
    """The facts of one moment of one run. `placement` is None where roofline guidance is switched off."""

    problem: Problem
    device: str
    language: str
    cookbook: Cookbook  # what may be proposed here
    placement: Placement | None
    credit: Mapping[str, Credit] = field(default_factory=dict)
    similar: tuple[Strategy, ...] = ()  # from the pool, best match first
    refuted: tuple[Refuted, ...] = ()


@dataclass(frozen=True)
class Parent:
    """A strategy with the kernel that realises it and what was measured of exactly that kernel."""

    strategy: Strategy
    kernel: KernelFile
    speedup: float
    time_s: float | None = None
    advice: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Complaint:
    """Why a kernel did not pass: the stage, a sentence and the evidence."""

    stage: str
    reason: str
    log: str = ""


@dataclass(frozen=True)
class Declined:
    """The author cannot do what was asked; `reason` says what to do instead."""

    reason: str


class Author(Protocol):
    """Who fills the paper's roles. Deterministic given the brief, the arguments and `rng`."""

    @property
    def name(self) -> str: ...

    def family(self, problem: Problem) -> str | Declined:
        """The operator family whose credit the problem shares, or why the author cannot work on it."""

    def cookbook(self, problem: Problem) -> Cookbook:
        """The tactics this author can apply to the problem."""

    def generate(self, brief: Brief) -> KernelFile | Declined:
        """The first kernel: plain and correct."""

    def plan(self, brief: Brief, rng: Random) -> Strategy | Declined:
        """A strategy from nothing but the brief."""

    def cross(self, brief: Brief, parents: tuple[Parent, Parent], rng: Random) -> Strategy | Declined:
        """One child strategy of two parents."""

    def write(self, brief: Brief, strategy: Strategy, base: Parent) -> KernelFile | Declined:
        """The kernel that realises the strategy."""

    def repair(
        self, brief: Brief, strategy: Strategy, kernel: KernelFile, complaint: Complaint
    ) -> KernelFile | Declined:
        """The kernel mended after a failed compilation, check or launch."""

    def refine(self, brief: Brief, current: Parent) -> KernelFile | Declined:
        """The same strategy written better, after a look at what was measured."""

    def merge(self, brief: Brief, parents: tuple[Parent, Parent], rng: Random) -> KernelFile | Declined:
        """One kernel out of two, without a strategy: the usual design, to compare with."""

    def align(
        self, brief: Brief, strategy: Strategy, kernel: KernelFile, facts: Mapping[str, Fact]
    ) -> Strategy:
        """The strategy rewritten to what the finished kernel does."""
