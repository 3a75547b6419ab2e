import pytest
import torch
from torch import fx, nn
from torch.nn import functional

from cupilot.evaluate.library_route import LibraryBackend, linear, product


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((5, 7), (7, 3)),
        ((2, 5, 7), (7, 3)),
        ((5, 7), (7,)),
        ((7,), (7,)),
        ((2, 5, 7), (2, 7, 3)),
        ((7,), (7, 3)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_product_stays_the_product(
    left: tuple[int, ...], right: tuple[int, ...], dtype: torch.dtype
) -> None:
    a, b = torch.randn(left, dtype=dtype), torch.randn(right, dtype=dtype)
    found = product(a, b)
    assert found.dtype is dtype
    torch.testing.assert_close(found, a @ b)


@pytest.mark.parametrize("bias", [None, torch.randn(3)])
def test_a_linear_layer_stays_the_same(bias: torch.Tensor | None) -> None:
    x, weight = torch.randn(4, 5, 7), torch.randn(3, 7)
    torch.testing.assert_close(linear(x, weight, bias), functional.linear(x, weight, bias))


class Products(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        x = (a @ b) + torch.mm(a, b) + a.matmul(b) + functional.linear(a, b.mT)
        return torch.relu(x)


class Pointwise(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.softmax(a + b, -1)


def test_every_way_to_write_a_product_is_swapped_and_counted() -> None:
    backend = LibraryBackend()
    a, b = torch.randn(6, 6), torch.randn(6, 6)
    swapped = backend(fx.symbolic_trace(Products()), [a, b])
    assert backend.swapped == 4
    torch.testing.assert_close(swapped(a, b), Products()(a, b))


def test_without_a_product_there_is_no_better_route() -> None:
    backend = LibraryBackend()
    a, b = torch.randn(6, 6), torch.randn(6, 6)
    torch.testing.assert_close(
        backend(fx.symbolic_trace(Pointwise()), [a, b])(a, b), torch.softmax(a + b, -1)
    )
    assert backend.swapped == 0
