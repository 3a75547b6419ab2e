"""`replay:RUN`: the answers that a recorded run was given, for questions about the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cupilot.errors import UsageError
from cupilot.lm.messages import EndpointError, Json, Reach, Reply, Request, Stop
from cupilot.store import Row, Store

KIND = "model"  # of the rows in the table of answers


@dataclass
class Replay:
    """See `messages.Endpoint`. Costs nothing; knows nothing that was not recorded."""

    name: str
    run: Path

    def check(self) -> None:
        with self._open():
            pass

    def _open(self) -> Store:
        table = self.run / "run.db" if self.run.is_dir() else self.run
        if not table.is_file():
            raise UsageError(f"there is no recorded run at {self.run}", hint="replay: takes a run folder")
        return Store(table, exclusive=False)

    def kept(self, what: str) -> Json | None:
        """The prompts or the cookbook that the recorded run began with."""
        with self._open() as store:
            row = store.get(what, {})
        return row.answer if row else None

    def complete(self, request: Request) -> Reply:
        with self._open() as store:
            row = recorded(store, request)
        if row is None or "failed" in row.answer:
            raise EndpointError(
                f"the recording {self.run} has no answer to this question of the {request.role}",
                reach=Reach.ENDPOINT,
                hint="it was made with other settings, or other measurements led the search elsewhere: "
                "replay with what it was made with, or give a --model that can answer",
            )
        return reply_of(row.answer)


def recorded(store: Store, request: Request) -> Row | None:
    """The answer to exactly this question; else to one about the same, with other words or figures."""
    row = store.get(KIND, request.to_json())
    if row is None and request.subject:
        row = next((other for other in store.rows(KIND) if _is_about(other.request, request)), None)
    return row


def _is_about(told: Json, request: Request) -> bool:
    same = told["role"] == request.role and told.get("subject") == request.subject
    return same and len(told["turns"]) == len(request.turns)


def reply_of(answer: Json) -> Reply:
    """A reply from its row in the table."""
    return Reply(answer["text"], Stop(answer["stop"]), answer["tokens_in"], answer["tokens_out"])
