"""The tensors and numbers a module brings along: parameters, buffers, and the settings of its layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from cupilot.errors import ProblemError
from cupilot.types import Role, Scalar


def adopt_plain_tensors(module: nn.Module) -> None:
    """Make tensors that the user stored as plain attributes buffers: a kernel must be handed them too."""
    for submodule in module.modules():
        plain = [name for name, value in vars(submodule).items() if isinstance(value, torch.Tensor)]
        for name in plain:
            tensor = vars(submodule).pop(name)
            submodule.register_buffer(name, tensor, persistent=False)


def state_tensors(module: nn.Module) -> dict[str, tuple[str, Role, torch.Tensor]]:
    """Parameters, then buffers: dotted name by the name a kernel file uses. Tied ones appear once."""
    found: dict[str, tuple[str, Role, torch.Tensor]] = {}
    entries: list[tuple[str, Role, torch.Tensor]] = []
    entries += [(path, Role.PARAMETER, tensor) for path, tensor in module.named_parameters()]
    entries += [(path, Role.BUFFER, tensor) for path, tensor in module.named_buffers()]
    for path, role, tensor in entries:
        name = _identifier(path)
        if name in found:
            raise ProblemError(
                f"{found[name][0]} and {path} of the module would both be called {name} in a kernel file",
                hint="rename one of the two attributes in Model",
            )
        found[name] = (path, role, tensor)
    return found


def module_scalars(module: nn.Module) -> dict[str, Scalar]:
    """The module's numbers as `self.eps`, a submodule's as `self.norm_eps`, tuples as `self.kernel_size_0`.

    Private attributes and the training flag are left out; a name that two numbers would share is an error.
    """
    found: dict[str, Scalar] = {}
    for path, submodule in module.named_modules():
        prefix = path.replace(".", "_") + "_" if path else ""
        for name, value in _settings(submodule):
            for leaf, number in _numbers(f"self.{prefix}{name}", value):
                if leaf in found:
                    raise ProblemError(
                        f"two settings of the module would both be called {leaf} in a kernel file",
                        hint="rename one of the two attributes in Model",
                    )
                found[leaf] = number
    return found


def _settings(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Attributes of the instance, then those the user's classes define."""
    seen = {"training"}
    classes = type(module).__mro__
    for namespace in (vars(module), *(vars(cls) for cls in classes[: classes.index(nn.Module)])):
        for name, value in namespace.items():
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, value


def _numbers(name: str, value: Any) -> Iterator[tuple[str, Scalar]]:
    if isinstance(value, bool | int | float):
        yield name, value
    elif isinstance(value, tuple | list) and all(isinstance(item, bool | int | float) for item in value):
        for index, item in enumerate(value):
            yield f"{name}_{index}", item


def _identifier(path: str) -> str:
    name = path.replace(".", "_")
    return f"_{name}" if name[:1].isdigit() else name
