"""An onlooker for programs: sees nothing, stops nothing."""

from __future__ import annotations

from cupilot.evolve.candidate import Candidate, Slot


class Silent:
    """See `loop.Watcher`."""

    def trying(self, slot: Slot, what: str) -> None: ...

    def recorded(self, candidate: Candidate, champion: Candidate | None) -> None: ...

    def notice(self, what: str) -> None: ...

    def stop_requested(self) -> bool:
        return False
