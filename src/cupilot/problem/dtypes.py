"""Our element types and torch's, both ways; what has no counterpart is refused here."""

from __future__ import annotations

import torch

from cupilot.errors import ProblemError
from cupilot.types import DType

TORCH_DTYPES = {
    DType.F64: torch.float64, DType.F32: torch.float32, DType.F16: torch.float16, DType.BF16: torch.bfloat16,
    DType.I64: torch.int64, DType.I32: torch.int32, DType.I16: torch.int16, DType.I8: torch.int8,
    DType.U8: torch.uint8, DType.BOOL: torch.bool,
}  # fmt: skip
_DTYPES = {value: key for key, value in TORCH_DTYPES.items()}


def torch_dtype(dtype: DType) -> torch.dtype:
    return TORCH_DTYPES[dtype]


def dtype_of(tensor: torch.Tensor, name: str) -> DType:
    """The element type of a dense tensor; `name` is only for the message of the refusal."""
    if tensor.layout != torch.strided:
        raise ProblemError(
            f"{name} is a sparse tensor ({tensor.layout})", hint="use .to_dense() in the problem file"
        )
    if tensor.is_quantized or tensor.dtype not in _DTYPES:
        kind = str(tensor.dtype).removeprefix("torch.")
        raise ProblemError(
            f"{name} has element type {kind}, which kernels cannot be handed",
            hint="supported: "
            + ", ".join(DType)
            + "; a complex tensor can be passed as torch.view_as_real(x)",
        )
    return _DTYPES[tensor.dtype]
