"""What the system says to a kernel text: the real compiler, sandbox and verification, without timing."""

from __future__ import annotations

import functools

import torch
from benchmarks.false_verdicts.operator import Operator

from cupilot.device.base import Device, Session
from cupilot.errors import KernelSyntaxError
from cupilot.evaluate.built import BuiltKernel, build
from cupilot.evaluate.pipeline import VERIFY_RING
from cupilot.evaluate.reference_cache import ReferenceCache
from cupilot.evaluate.verify import Verified, verify
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.tunables import first_point
from cupilot.problem.cases import ShapeCase
from cupilot.problem.loading import from_function
from cupilot.problem.problem import Problem
from cupilot.types import Failed, Stage


@functools.cache
def problem_of(operator: Operator) -> Problem:
    torch.set_num_threads(1)
    return from_function(operator.function, operator.inputs, name=operator.name)


def built(operator: Operator, text: str, device: Device) -> BuiltKernel | Failed:
    try:
        kernel = parse_kernel(text)
        point = first_point(kernel)
    except KernelSyntaxError as error:
        return Failed(Stage.PARSE, error.message)
    return build(kernel, point, problem_of(operator).target, device)


def judge(operator: Operator, candidate: BuiltKernel) -> Verified | Failed:
    def opened(case: ShapeCase) -> Session | Failed:
        return candidate.open(case.signature, VERIFY_RING, 1)

    return verify(problem_of(operator), opened, VERIFY_RING, ReferenceCache())
