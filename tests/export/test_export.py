"""A champion leaves for a world without cuPilot: fresh processes import what was written."""

import subprocess
import sys
from pathlib import Path

import pytest

from cupilot.errors import UsageError
from cupilot.evaluate.preparation import planned_shapes
from cupilot.evaluate.result import Evaluation, Verdict
from cupilot.export.files import Exported
from cupilot.kernel.file import parse_kernel
from cupilot.kernel.tunables import first_point
from cupilot.problem.loading import load
from cupilot.types import Stage

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def __init__(self, columns, slope):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, columns))
        self.slope = slope

    def forward(self, x, y):
        scaled = x * self.weight
        return scaled + self.slope * y, scaled

def get_inputs():
    return [torch.randn(60, 33), torch.randn(60, 33)]

def get_init_inputs():
    return [33, 0.5]
"""
KERNEL = """/* cupilot 1
Scales a row a block.
tune:
    STEP = 2 | 1
launch:
    rows, cols = x.shape
    scale[cdiv(rows, STEP), 1](x, y, weight, out0, out1, rows, cols, self.slope)
proof:
    identity: none
*/
extern "C" void scale(long bx, long by, const float* x, const float* y, const float* w, float* sum,
                      float* scaled, long rows, long cols, float slope) {
    for (long r = bx * STEP; r < rows && r < (bx + 1) * STEP; ++r)
        for (long c = 0; c < cols; ++c) {
            long i = r * cols + c;
            scaled[i] = x[i] * w[c];
            sum[i] = scaled[i] + slope * y[i];
        }
}
"""
CHECK = """
import torch
{imports}
torch.manual_seed(0)
args = reference.get_inputs()
ours, theirs = Ours(33, 0.5), reference.Model(33, 0.5)
ours.load_state_dict(theirs.state_dict())
with torch.no_grad():
    assert {is_proven}(ours, *args)
    for a, b in zip(ours(*args), theirs(*args)):
        torch.testing.assert_close(a, b)
    longer = [torch.randn(61, 33), torch.randn(61, 33)]
    assert not {is_proven}(ours, *longer)
    torch.testing.assert_close(ours(*longer), theirs(*longer))
    apart = [torch.randn(33, 60).T, torch.randn(1 + 60 * 33)[1:].view(60, 33)]
    assert {is_proven}(ours, *apart)
    torch.testing.assert_close(ours(*apart), theirs(*apart))
    assert not {is_proven}(Ours(33, 0.25), *args)
ours(*args)[0].sum().backward()
assert ours.weight.grad is not None
tensors = [*args, ours.weight.detach()]
torch.library.opcheck({operator}, (tensors,), test_utils=("test_schema", "test_faketensor"))
print("fine")
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    path = tmp_path_factory.mktemp("problem") / "mixing.py"
    path.write_text(PROBLEM)
    problem, kernel = load(path), parse_kernel(KERNEL)
    shapes = tuple(case.name for case in planned_shapes(problem)[0])
    proof = Evaluation(Verdict.PASSED, Stage.TIME, "right", shapes=shapes, tuned=first_point(kernel))
    return Exported(problem, kernel, proof)


def run(code: str, folder: Path) -> str:
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"]
    environment = {"XDG_CACHE_HOME": str(folder / "cache"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_package_is_imported_by_a_fresh_process(exported: Exported, tmp_path: Path) -> None:
    exported.write_package(tmp_path / "mixing")
    imports = "import mixing\nfrom mixing import reference, Model as Ours"
    code = CHECK.format(imports=imports, is_proven="mixing.is_proven", operator="mixing.mixing")
    assert run(code, tmp_path) == "fine"
    assert "cupilot" not in (tmp_path / "mixing" / "reference.py").read_text()


def test_a_kernelbench_file_stands_alone(exported: Exported, tmp_path: Path) -> None:
    exported.write_model(tmp_path / "mixing_model.py")
    imports = "import mixing_model\nfrom mixing_model import ModelNew as Ours\nreference = mixing_model"
    code = CHECK.format(imports=imports, is_proven="mixing_model.is_proven", operator="mixing_model.mixing")
    assert run(code, tmp_path) == "fine"


def test_without_a_compiler_the_reference_answers(exported: Exported, tmp_path: Path) -> None:
    exported.write_package(tmp_path / "mixing")
    code = (
        "import os; os.environ['CXX'] = '/nowhere/g++'\nimport torch, mixing\nfrom mixing import reference\n"
        "m = mixing.Model(33, 0.5)\nargs = reference.get_inputs()\n"
        "with torch.no_grad():\n"
        "    assert not mixing.is_proven(m, *args)\n    print(tuple(m(*args)[0].shape))"
    )
    assert run(code, tmp_path) == "(60, 33)"


def test_a_kernel_file_carries_its_proof(exported: Exported, tmp_path: Path) -> None:
    path = exported.write_kernel(tmp_path / "mixing.cpp")
    assert parse_kernel(path.read_text()).proof == "identity: none"


def test_nested_arguments_are_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "nested.py"
    path.write_text(
        "import torch\nclass Model(torch.nn.Module):\n"
        "    def forward(self, xs):\n        return xs[0] + xs[1]\n"
        "def get_inputs():\n    return [[torch.randn(4, 4), torch.randn(4, 4)]]\n"
    )
    kernel = parse_kernel("/* cupilot 1\nlaunch:\n    k[1](xs0, xs1, out)\n*/\nvoid k();\n")
    proof = Evaluation(Verdict.PASSED, Stage.TIME, "right", shapes=("target",))
    with pytest.raises(UsageError, match="nested") as caught:
        Exported(load(path), kernel, proof).write_package(tmp_path / "out")
    assert "--as kernel" in caught.value.hint
