"""Numbers as people write them (see `cupilot.units`)."""

from cupilot.units import scaled, seconds

__all__ = ["scaled", "seconds"]
