"""Linear layer: a product with a weight stored transposed, and a bias."""

import torch


class Model(torch.nn.Module):
    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.linear(x)
        return y


def get_inputs(rows: int = 450, in_features: int = 800, out_features: int = 720) -> list[torch.Tensor]:
    return [torch.randn(rows, in_features)]


def get_init_inputs(in_features: int = 800, out_features: int = 720) -> list[int]:
    return [in_features, out_features]


SIZES = {"paper": {"rows": 8192, "in_features": 4096, "out_features": 4096}}
