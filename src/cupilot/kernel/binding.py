"""What the names in a launch program stand for: tensors and numbers of a problem, and one tuning point."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping

from cupilot.errors import ProblemError
from cupilot.kernel.expressions import RESERVED
from cupilot.kernel.file import KernelFile
from cupilot.kernel.nodes import mistake
from cupilot.kernel.values import Value
from cupilot.types import Signature

_NAME = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*")
_MODULE_NUMBER = re.compile(r"self(\.(?!__)[A-Za-z_][A-Za-z0-9_]*)+")
_OUTPUT = re.compile(r"out\d*")


def bind(file: KernelFile, signature: Signature, point: Mapping[str, int]) -> dict[str, Value]:
    """The bindings of `launch.run`. Two meanings for one name are an error."""
    bindings: dict[str, Value] = {}
    for name, value in _problem_names(signature):
        if name in bindings:
            raise ProblemError(f"the problem has two things called '{name}'", hint="rename one of them")
        bindings[name] = value
    for tunable in file.tune:
        if tunable.name in bindings:
            message = f"'{tunable.name}' is a tunable and a name of the problem"
            raise mistake(message, tunable.at, "rename the tunable")
        bindings[tunable.name] = point[tunable.name]
    return bindings


def _problem_names(signature: Signature) -> Iterator[tuple[str, Value]]:
    for tensor in signature.tensors:
        _check(tensor.name)
        yield tensor.name, tensor
    for name, number in signature.scalars.items():
        if not _MODULE_NUMBER.fullmatch(name):
            _check(name)
        yield name, number
    yield from ((output.name, output) for output in signature.outputs)


def _check(name: str) -> None:
    """That an input can be named in the launch language."""
    if name in RESERVED or _OUTPUT.fullmatch(name):
        message = f"the problem's '{name}' has a meaning of its own in kernel files"
        raise ProblemError(message, hint="rename the argument of forward (or the parameter)")
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise ProblemError(f"'{name}' cannot be a name in a kernel file", hint="use letters, digits and _")
