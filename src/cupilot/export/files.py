"""Writes a proven champion for use elsewhere: a kernel file, a KernelBench file, a Python package.

None of the three needs cuPilot. The last two fall back to the reference wherever nothing was proven: other
shapes, types and devices, other constructor arguments, gradients, or no compiler.
"""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from cupilot.errors import UsageError
from cupilot.evaluate.result import Evaluation
from cupilot.export.native import Native, native_code
from cupilot.kernel.file import KernelFile, print_kernel
from cupilot.problem.dtypes import TORCH_DTYPES
from cupilot.problem.problem import Problem
from cupilot.types import TensorSpec

_TABLE_FILE = "proven.json"  # of a package
_MARKS = (b"/* cupilot 1", b"class ModelNew(")  # of a kernel file, of a model file


@dataclass(frozen=True)
class Exported:
    """A champion on its way out. `kernel` is signed: it says what it does and what was proven."""

    problem: Problem
    kernel: KernelFile
    proof: Evaluation

    def write_kernel(self, path: Path) -> Path:
        _spare(path)
        return _write(path, print_kernel(self.kernel))

    def write_model(self, path: Path) -> Path:
        """One file with `ModelNew`, as KernelBench wants it."""
        _spare(path)
        native = self._native()
        sources = ",\n".join(f"r'''{source}'''" for source in native.sources)
        if any("'''" in source for source in native.sources):
            sources = ", ".join(map(repr, native.sources))
        preamble = f"_TABLE = json.loads(r'''{json.dumps(self._table(native))}''')\n_SOURCES = [{sources}]\n"
        parts = [
            self.problem.source.rstrip(),
            "",
            "",
            self._runtime(preamble),
            self._model("Model", "ModelNew"),
        ]
        return _write(path, "\n".join(parts))

    def write_package(self, folder: Path) -> Path:
        """An importable folder: `from NAME import Model`."""
        _spare(folder)
        native = self._native()
        name = self.operator
        preamble = (
            "_HERE = Path(__file__).parent\n"
            '_TABLE = json.loads((_HERE / "proven.json").read_text())\n'
            f'_SOURCES = [(_HERE / f"kernel_{{i}}.cpp").read_text() for i in range({len(native.sources)})]\n'
        )
        runtime = self._runtime(preamble) + "\n\nfrom . import reference  # noqa: E402\n"
        _write(folder / "__init__.py", _template("package.py.in").replace("{operator}", name))
        _write(folder / "reference.py", self.problem.source)
        _write(folder / "optimised.py", runtime + self._model("reference.Model", "Model"))
        _write(folder / _TABLE_FILE, json.dumps(self._table(native), indent=1) + "\n")
        for index, source in enumerate(native.sources):
            _write(folder / f"kernel_{index}.cpp", source)
        self.write_kernel(folder / f"{self.problem.name}.cpp")
        return folder

    @property
    def operator(self) -> str:
        """The name of the custom operator, and of the package."""
        name = re.sub(r"\W+", "_", self.problem.name).strip("_").lower()
        return name if name and not name[0].isdigit() else f"op_{name}"

    def _native(self) -> Native:
        known = _plain_arguments(self.problem) | set(self.problem.program.state_paths)
        nested = [s.name for s in self.problem.target.tensors if s.name not in known]
        if nested:
            raise UsageError(
                f"forward takes nested arguments ({', '.join(nested)}), which only the kernel file supports",
                hint="export --as kernel, or give forward plain tensors",
            )
        return native_code(self.problem, self.kernel, self.proof)

    def _table(self, native: Native) -> dict[str, Any]:
        signature = self.problem.target
        return {
            "tensors": [spec.name for spec in signature.tensors],
            "state_paths": dict(self.problem.program.state_paths),
            "scalars": dict(signature.scalars),
            "proof": self.kernel.proof,
            "proven": [
                {
                    "inputs": [_described(s) for s in proven.case.signature.tensors],
                    "outputs": [_described(s) for s in proven.case.signature.outputs],
                    "source": proven.source,
                    "entry": proven.entry,
                    "scratch_bytes": list(proven.scratch_bytes),
                }
                for proven in native.proven
            ],
        }

    def _runtime(self, preamble: str) -> str:
        text = _template("runtime.py.in").replace("{operator}", self.operator)
        head, imports, body = text.partition("import torch\n")
        head = head.replace("import inspect\n", "import inspect\nimport json\n")
        return head + imports + "\n" + preamble + body

    def _model(self, reference: str, optimised: str) -> str:
        text = _template("model.py.in").replace("{operator}", self.operator)
        text = text.replace("{reference}", reference).replace("{optimised}", optimised)
        return text.replace("{returned}", _returned(self.problem))


def _plain_arguments(problem: Problem) -> set[str]:
    """Arguments of forward that are tensors themselves, not nests of them."""
    program = problem.program
    parameters = inspect.signature(program.skeleton.forward).parameters
    return {slot.name for slot in program.binding.template if hasattr(slot, "name")} & set(parameters)


def _returned(problem: Problem) -> str:
    """How the outputs come back: as one tensor, or in the tuple or list that the reference makes."""
    shapes = min(problem.shapes, key=lambda case: case.numel)
    tensors = {s.name: torch.zeros(s.shape, dtype=TORCH_DTYPES[s.dtype]) for s in shapes.signature.tensors}
    program = problem.program
    state = {path: tensors[name] for name, path in program.state_paths.items()}
    with torch.no_grad():
        value = torch.func.functional_call(program.skeleton, state, program.binding.rebuild(tensors))
    if isinstance(value, torch.Tensor):
        return "outputs[0]"
    if type(value) in (tuple, list) and all(isinstance(item, torch.Tensor) for item in value):
        return f"{type(value).__name__}(outputs)"
    raise UsageError(
        "forward returns a nest of outputs, which only the kernel file supports",
        hint="export --as kernel, or return a tensor or a tuple of tensors",
    )


def _described(spec: TensorSpec) -> list[Any]:
    return [list(spec.shape), str(TORCH_DTYPES[spec.dtype]).removeprefix("torch.")]


def _template(name: str) -> str:
    return files("cupilot.export").joinpath("templates", name).read_text(encoding="utf-8")


def _spare(path: Path) -> None:
    """Only what was exported earlier is written over."""
    if path.is_dir():
        ours = not any(path.iterdir()) or (path / _TABLE_FILE).exists()
    else:
        ours = not path.exists() or any(mark in path.read_bytes() for mark in _MARKS)
    if not ours:
        raise UsageError(f"{path} is not an export", hint="choose another place with --out")


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror}", hint="choose another place with --out"
        ) from error
    return path
