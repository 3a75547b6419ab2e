"""Matrix product, bias and ReLU, which one kernel can fuse."""

import torch


class Model(torch.nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.matmul(A, B) + bias)


def get_inputs(m: int = 500, k: int = 760, n: int = 640) -> list[torch.Tensor]:
    return [torch.randn(m, k), torch.randn(k, n), torch.randn(n)]


def get_init_inputs() -> list[object]:
    return []


SIZES = {"paper": {"m": 4096, "k": 4096, "n": 8192}}
