"""How the dimensions of a tensor correspond across operators that move data but compute nothing."""

from __future__ import annotations

Shape = tuple[int, ...]


def reshaped(before: Shape, after: Shape) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Which dimensions of `before` became which of `after`: the finest grouping with equal extents."""
    groups = []
    left = right = 0
    while left < len(before) or right < len(after):
        start_left, start_right = left, right
        size_left = size_right = 1
        while True:
            if (
                size_left <= size_right
                and left < len(before)
                and (size_left < size_right or left == start_left)
            ):
                size_left *= before[left]
                left += 1
            elif right < len(after) and (size_right < size_left or right == start_right):
                size_right *= after[right]
                right += 1
            else:
                break
        groups.append((tuple(range(start_left, left)), tuple(range(start_right, right))))
        if left == start_left and right == start_right:
            break
    return groups


def broadcast_dims(inner: Shape, outer: Shape) -> tuple[int | None, ...]:
    """For each dimension of `inner`, the one of `outer` it runs along; None where it is repeated."""
    shift = len(outer) - len(inner)
    return tuple(
        dim + shift if extent == outer[dim + shift] or extent != 1 else None
        for dim, extent in enumerate(inner)
    )
