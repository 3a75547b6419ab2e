"""What the launch language refuses to read: whatever could reach Python, and whatever is too large."""

from __future__ import annotations

import ast
import re

import pytest

from cupilot.errors import KernelSyntaxError
from cupilot.kernel.expressions import read_expr
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.syntax import Section


def parse(program: str) -> None:
    body = "".join(f"    {line}\n" for line in program.split("\n"))
    parse_kernel(f"/* cupilot 1\nlaunch:\n{body}*/\nvoid k() {{}}\n")


def error_of(program: str) -> KernelSyntaxError:
    with pytest.raises(KernelSyntaxError) as caught:
        parse(program)
    assert caught.value.hint
    assert 3 <= caught.value.line <= 3 + program.count("\n")
    return caught.value


# Python or nearly so, none of it ours; lines and two blanks part the programs.
FOREIGN = """
x.__class__  ().__class__  x.shape.__class__  self.__class__  self.eps.__class__  __import__(1)
a = __builtins__  __x__ = 1  k[1](__x__)  self.__dict__ = 1  x.shape.count(1)  x.numel()  x.size(0)
x.data  x.shape.real  (1).real  a.b.c  open(1)  print(x)  len(x.shape)  int(1)  abs(1)  a = open(1)
a = eval(x)  a = exec(x)  a = getattr(x, y)  a = k(1, 2)  import os  from os import path  a = lambda: 1
a = (lambda x: x)(1)  def f(): x = 1  class A: x = 1  return 1  yield 1  a = [i for i in x.shape]
a = (i for i in x.shape)  k[1](i for i in x.shape)  a = {1: 2}  a = {1}  a = {**x}  a = 'text'  a = "text"
a = f'{x}'  a = b'1'  a = ...  a = None  a = 1j  a = ()  a = (b := 1)  a = *x  a, *b = x.shape
a = x.shape[1:]  a = x.shape[:]  a = x.shape[0, 1]  k[1](*x.shape)  k[1](**x)  k[1](a=1, a=2)  x[0] = 1
x.shape = 1  x.shape[0] += 1  a = b = 1  a: int = 1  del x  global a  nonlocal a  assert x  raise x  pass
break  continue  while 1: k[1]()  with x: k[1]()  try: k[1]()\\nexcept: k[1]()  async def f(): k[1]()
await x  a = await x  match x:\\n case 1: k[1]()  @x\\ndef f(): k[1]()  for i in x.shape: k[1]()
for i in (1, 2): k[1]()  for i, j in range(2): k[1]()  for i in range(2): k[1]()\\nelse: k[1]()
for x.y in range(2): k[1]()  for i in range(): k[1]()  for i in range(1, 2, 3, 4): k[1]()
for i in range(n=1): k[1]()  for i in range(*x.shape): k[1]()  a = range(3)  a = 1 if 2 else range
a = 1 << 2  a = 1 >> 2  a = 1 & 2  a = 1 | 2  a = ~1  a = 1 ^ 2  a = x @ y  a = +1  a = 1 is 1  a = 1 in x
a = 1 not in x  a <<= 1  a @= 1  a = 1; b = 2  1  x  x.shape  min(1, 2)  k  k[1]  k(x)  k[1](x)(x)
k[1][2](x)  k.j[1](x)  x.shape[0](1)  k[()](x)  a = k[1](x)  a = k[1](x) + 1  a, b = k[1](x), 1
scratch(4, f32)  a = scratch(4)  a = scratch(4, f32, 1)  a = scratch(4, dtype=f32)  a = scratch(4, f23)
a = scratch(4, float)  a = scratch(4, 'f32')  a, b = scratch(4, f32), 1  a = scratch(4, f32) + 1
a = 1 + scratch(4, f32)  k[1](scratch(4, f32))  zero()  zero(x, out)  zero(1)  zero(x.shape)  zero(t=x)
zero[1](x)  a = zero(x)  k[1](zero(x))  scratch[1](x)  f32[1](x)  min = 1  scratch = 1  f32 = 1  self = 1
range = 1  zero, a = x.shape  for max in range(2): k[1]()  a = min  a = f32  a = self  a = min(1)
a = max()  a = cdiv(1)  a = cdiv(1, 2, 3)  a = min(1, key=2)  a = min(*x.shape)  a = max(1, 2, default=3)
a = 9223372036854775808  a = 0xfffffffffffffffff  a = 1e999  a = 1_000  a = 0b1  a = 0o7  a = 0777
a = 1if 2else 3  a = 1.2.3
"""


@pytest.mark.parametrize(
    "program", [program.replace("\\n", "\n") for program in re.split("  |\n", FOREIGN.strip())]
)
def test_python_that_is_not_the_launch_language(program):
    error_of(program)


BROKEN = {
    "a = ": (8, "not valid"),
    "a = 1 2": (11, "not valid"),
    "  a = 1\nb = 2": (None, "not valid"),
    "if 1:\nk[1]()": (None, "not valid"),
    "else:\n    k[1]()": (5, "not valid"),
    "a = (1": (9, "never closed"),
    "a = 1)": (10, "closes nothing"),
    "a = (1]": (11, "closes nothing"),
    "a = 1 $ 2": (11, "'$' has no meaning"),
    "a = é": (9, "has no meaning"),
    "a = 1\x0b": (10, "U+000B cannot be seen"),
    "a = ٣": (9, "has no meaning"),
    "a = 1 \\\n + 2": (11, "ends with a backslash"),
    "a = x.shpae": (9, "no '.shpae'"),
    "a = cdvi(1, 2)": (9, "not a function"),
    "ws = scratch(1, f23)": (21, "not an element type"),
}


@pytest.mark.parametrize("program", BROKEN)
def test_broken_text_has_its_place(program):
    column, message = BROKEN[program]
    error = error_of(program)
    assert message in error.message
    if column is not None:
        assert error.column == column


def test_names_are_suggested():
    assert error_of("a = x.shpae").hint == "did you mean 'shape'?"
    assert error_of("a = cdvi(1, 2)").hint == "did you mean 'cdiv'?"
    assert error_of("ws = scratch(1, f23)").hint == "did you mean 'f32'?"


def nested_blocks(depth: int) -> str:
    return "\n".join(" " * level + "if 1:" for level in range(depth)) + "\n" + " " * depth + "a = 1"


BOMBS = {
    "parentheses": "a = " + "(" * 100_000,
    "closed parentheses": "a = " + "(" * 50_000 + "1" + ")" * 50_000,
    "calls": "a = " + "min(1, " * 10_000 + "1" + ")" * 10_000,
    "indices": "a = " + "x[" * 10_000 + "1" + "]" * 10_000,
    "signs": "a = " + "-" * 100_000 + "1",
    "signs over lines": "a = (" + "-\n" * 10_000 + "1)",
    "nots": "a = " + "not " * 40_000 + "1",
    "powers": "a = " + "2 ** " * 40_000 + "2",
    "sums": "a = " + "1 + " * 40_000 + "1",
    "a sum of 100": "a = " + "1 + " * 100 + "1",
    "comparisons": "a = " + "1 < " * 40_000 + "1",
    "choices": "a = " + "1 if 1 else " * 10_000 + "1",
    "attributes": "a = x" + ".shape" * 40_000,
    "launches of launches": "k" + "[1]" * 40_000 + "()",
    "arguments": "k[1](" + "1, " * 300 + "1)",
    "names": "a = " + "b" * 200_000 + ".x",
    "digits": "a = " + "9" * 200_000,
    "hexadecimal digits": "a = 0x" + "f" * 200_000,
    "blocks": nested_blocks(9),
    "deep blocks": nested_blocks(300),
    "branches": "if 1:\n a = 1\n" + "elif 1:\n a = 1\n" * 64 + "a = 1",
    "many branches": "if 1:\n a = 1\n" + "elif 1:\n a = 1\n" * 2_000 + "a = 1",
    "branches in a line": "if 1: a = 1\n" + "elif 1: a = 1\n" * 2_400 + "a = 1",
    "statements": "a = 1\n" * 10_000,
    "lambdas": "a = " + "lambda: " * 10_000 + "1",
    "mistakes in parentheses": "a = " + "(" * 12 + "1 1" + ")" * 12,  # Python's parser tries many ways
    "mistakes in calls": "a = " + "min(1, " * 12 + "1 1" + ")" * 12,
    "mistakes in choices": "a = " + "(1 if " * 12 + "1 1" + " else 1)" * 12,
    "unfinished lists": "a = " + "[1, " * 10_000,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs_are_refused(bomb):
    error_of(BOMBS[bomb])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_kinds_of_expression_we_do_not_name_are_refused():
    """Also those that Python will get."""
    ours = {
        ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.UnaryOp, ast.BinOp,
        ast.BoolOp, ast.Compare, ast.IfExp, ast.Call,
    }  # fmt: skip
    for kind in {*ast.expr.__subclasses__()} - ours:
        with pytest.raises(KernelSyntaxError, match="not part of the launch language"):
            read_expr(kind(), Section((), 1))
