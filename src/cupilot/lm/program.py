"""`command:PROGRAM`: any program that reads a prompt on its input and writes the answer on its output."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from dataclasses import dataclass

from cupilot.lm.dialect import prompted
from cupilot.lm.messages import (
    EndpointError,
    Reach,
    Reply,
    Request,
    Stop,
    estimated_tokens,
)

_SAID_CHARS = 300
_KEPT_CHARS_PER_TOKEN = 16


@dataclass
class Program:
    """See `messages.Endpoint`. The program runs with the user's environment: it is the user's own."""

    name: str
    command: str
    limit_s: float = 1200.0

    def check(self) -> None:
        words = self._words()
        if shutil.which(words[0]) is None:
            raise EndpointError(
                f"there is no program {words[0]!r}",
                reach=Reach.ENDPOINT,
                hint="write command: and a program with its arguments, as in command:'llm -m gpt-5'",
            )

    def _words(self) -> list[str]:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            words = []
            why = f" ({error})"
        else:
            why = ""
        if not words:
            raise EndpointError(
                f"{self.name} names no program{why}",
                reach=Reach.ENDPOINT,
                hint="write command:PROGRAM ARGUMENTS",
            )
        return words

    def complete(self, request: Request) -> Reply:
        self.check()
        prompt = as_text(request)
        with subprocess.Popen(
            self._words(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            try:
                said, complaint = process.communicate(prompt.encode(), timeout=self.limit_s)
            except subprocess.TimeoutExpired:
                message = f"{self.name} was still working after {self.limit_s:g} s and was stopped"
                raise EndpointError(message, reach=Reach.PASSING) from None
            finally:
                _end(process)
        if process.returncode != 0:
            words = " ".join(complaint.decode(errors="replace").split())[-_SAID_CHARS:]
            raise EndpointError(
                f"{self.name} ended with status {process.returncode}: {words or 'no message'}",
                reach=Reach.PASSING,
                hint="run the program by hand with a prompt on its input",
            )
        text = said.decode(errors="replace")
        most = request.max_tokens * _KEPT_CHARS_PER_TOKEN
        stop = Stop.LENGTH if len(text) > most else Stop.DONE
        return Reply(text[:most], stop, estimated_tokens(prompt), estimated_tokens(text[:most]))


def _end(process: subprocess.Popen[bytes]) -> None:
    """With whatever it started: it leads a process group of its own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def as_text(request: Request) -> str:
    """A whole conversation as one text, for readers without turns."""
    request = prompted(request)
    parts = [request.system]
    for turn in request.turns:
        parts.append(turn.text if turn.speaker == "user" else f"Your earlier answer was:\n\n{turn.text}")
    return "\n\n---\n\n".join(parts) + "\n"
