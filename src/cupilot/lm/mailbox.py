"""`mailbox:FOLDER`: questions as files, answered by a person or another agent, at any time.

`ROLE-NAME.question.md` appears whole or not at all; whoever answers writes `ROLE-NAME.answer.md` (best under
another name first, then renamed). The name is made of the question's content: after an interruption the same
question is found again, with its answer if there is one.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cupilot.lm.messages import EndpointError, Reach, Reply, Request, Stop, estimated_tokens
from cupilot.lm.program import as_text

_POLL_S = 0.25
_REMIND_S = 30.0

Notice = Callable[[str], None]


@dataclass
class Mailbox:
    """See `messages.Endpoint`. While it waits it says for what; after `patience_s` it gives up."""

    name: str
    folder: Path
    patience_s: float = 24 * 3600.0
    notice: Notice = lambda _: None
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def check(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EndpointError(
                f"the mailbox {self.folder} cannot be used: {error.strerror}",
                reach=Reach.ENDPOINT,
                hint="name a folder that you can write to",
            ) from error

    def complete(self, request: Request) -> Reply:
        self.check()
        text = as_text(request)
        stem = f"{request.role}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        question, answer = self.folder / f"{stem}.question.md", self.folder / f"{stem}.answer.md"
        if not question.exists():
            self._write(question, text)
        said = self._wait(question, answer)
        return Reply(said, Stop.DONE, estimated_tokens(text), estimated_tokens(said))

    def _write(self, path: Path, text: str) -> None:
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
        except OSError as error:
            raise EndpointError(
                f"the mailbox {self.folder} cannot be written: {error.strerror}", reach=Reach.ENDPOINT
            ) from error

    def _wait(self, question: Path, answer: Path) -> str:
        start = self.clock()
        reminded, seen = -_REMIND_S, ""
        while True:
            text = _read(answer)
            if text.strip() and text == seen:  # written in place perhaps: wait until it stops growing
                return text
            seen = text
            waited = self.clock() - start
            if waited >= self.patience_s:
                raise EndpointError(
                    f"nobody answered {question} within {waited:.0f} s",
                    reach=Reach.ENDPOINT,
                    hint=f"write {answer.name} beside it, then `cupilot resume` the run",
                )
            if waited - reminded >= _REMIND_S:
                reminded = waited
                self.notice(f"waiting for {answer} since {waited:.0f} s")
            self.sleep(_POLL_S)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise EndpointError(f"{path} cannot be read: {error.strerror}", reach=Reach.ENDPOINT) from error
