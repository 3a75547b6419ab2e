"""Writes a Python function or a module with its arguments as a problem file for other processes to load.

A function goes in as source, with what it refers to: modules, plain values, tensors, other such functions. A
module is pickled, so its class must be importable. Whatever cannot travel is refused with the way out.
"""

from __future__ import annotations

import inspect
import math
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import dedent
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch import nn

from cupilot.errors import UsageError

_WAY_OUT = "write a problem file with Model, get_inputs and get_init_inputs instead"
_HEAD = '''"""Written by cuPilot from a call of its Python API."""

import sys
from pathlib import Path

import torch

_HERE = Path(__file__).resolve().parent
_DATA = torch.load(_HERE / "data.pt", weights_only=False)
'''
_FUNCTION = """

class Model(torch.nn.Module):
    forward = staticmethod({name})
"""
_MODULE = """

def Model():
    return _DATA["module"]
"""
_TAIL = """

def get_inputs():
    return [x.clone() if isinstance(x, torch.Tensor) else x for x in _DATA["inputs"]]


def get_init_inputs():
    return []
"""


def save_problem(target: Callable[..., Any], inputs: Sequence[Any], folder: Path) -> Path:
    """`folder`/problem.py beside its data."""
    folder.mkdir(parents=True, exist_ok=True)
    data: dict[str, Any] = {"inputs": list(inputs), "values": {}}
    if isinstance(target, nn.Module):
        if type(target).__module__ == "__main__":
            raise UsageError(
                f"{type(target).__name__} is defined in the program itself, where no other process finds it",
                hint=f"move it into a module of its own, or {_WAY_OUT}",
            )
        data["module"] = target
        head = _HEAD.replace("_DATA =", f"sys.path[:0] = {[p for p in sys.path if p]!r}\n_DATA =")
        text = head + _MODULE + _TAIL
    else:
        lines = "\n\n".join(_Source(data["values"]).of(target))
        text = _HEAD + lines + _FUNCTION.format(name=getattr(target, "__name__", "")) + _TAIL
    try:
        torch.save(data, folder / "data.pt")
    except (pickle.PicklingError, AttributeError, TypeError, RuntimeError) as error:
        raise UsageError(f"the inputs or the module cannot be saved: {error}", hint=_WAY_OUT) from error
    path = folder / "problem.py"
    path.write_text(text, encoding="utf-8")
    return path


class _Source:
    """The source of functions with everything they refer to, each once, what is needed first."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values
        self._done: set[str] = set()

    def of(self, function: Any) -> Iterator[str]:
        if not isinstance(function, FunctionType) or function.__name__ == "<lambda>":
            what = getattr(function, "__name__", type(function).__name__)
            raise UsageError(f"{what} is no function defined with def", hint=_WAY_OUT)
        try:
            source = dedent(inspect.getsource(function))
        except (OSError, TypeError) as error:
            raise UsageError(f"no source of {function.__name__}: {error}", hint=_WAY_OUT) from None
        if source.startswith("@"):
            raise UsageError(f"{function.__name__} is decorated", hint=_WAY_OUT)
        found = inspect.getclosurevars(function)
        for name, value in {**found.globals, **found.nonlocals}.items():
            if name not in self._done:
                self._done.add(name)
                yield from self._value(name, value)
        yield source.rstrip()

    def _value(self, name: str, value: Any) -> Iterator[str]:
        if isinstance(value, ModuleType):
            yield f"import {value.__name__} as {name}"
        elif isinstance(value, torch.Tensor):
            self._values[name] = value.detach().clone()
            yield f'{name} = _DATA["values"]["{name}"]'
        elif value is None or isinstance(value, bool | int | str) or _is_finite(value):
            yield f"{name} = {value!r}"
        elif isinstance(value, FunctionType) and value.__name__ == name and value.__module__ != "torch":
            yield from self.of(value)
        elif getattr(sys.modules.get(str(getattr(value, "__module__", ""))), name, None) is value:
            yield f"from {value.__module__} import {name}"
        else:
            what = f"{name}, a {type(value).__name__},"
            raise UsageError(f"{what} cannot travel with the function", hint=_WAY_OUT)


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and math.isfinite(value)
