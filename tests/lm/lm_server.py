"""A local server that answers from a script, in the forms of the providers, and misbehaves on request.

A script is a list of moves; each request takes the next one, and the last one stays.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Move = Callable[["Handler", dict[str, Any]], None]


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Server:
    script: list[Move]
    url: str = ""
    received: list[Received] = field(default_factory=list)

    def next(self) -> Move:
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.owner.received.append(Received(self.path, dict(self.headers), body))
        try:
            self.owner.next()(self, body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None: ...

    def whole(self, value: object, status: int = 200, **headers: str) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(data)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, value: object) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()


@contextmanager
def serving(*script: Move) -> Iterator[Server]:
    server = Server(list(script))
    http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"owner": server}))
    http.daemon_threads = True
    server.url = f"http://127.0.0.1:{http.server_port}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


# -- moves ---------------------------------------------------------------------------------------------


def says(text: str, finish: str = "stop", tokens: tuple[int, int] = (100, 20)) -> Move:
    """The OpenAI form, streamed or whole as asked; a tool call where one is demanded."""

    def move(handler: Handler, body: dict[str, Any]) -> None:
        usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
        if not body["stream"]:
            message = _content(text, body)
            handler.whole({"choices": [{"message": message, "finish_reason": finish}], "usage": usage})
            return
        handler.begin_stream()
        for piece in (text[:7], text[7:]):
            handler.event({"choices": [{"delta": _content(piece, body), "finish_reason": None}]})
        handler.event({"choices": [{"delta": {}, "finish_reason": finish}]})
        handler.event({"choices": [], "usage": usage})
        handler.event("[DONE]")

    return move


def _content(text: str, body: dict[str, Any]) -> dict[str, Any]:
    if "tools" in body:
        return {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}
    return {"content": text}


def refuses(status: int, message: str = "no", **headers: str) -> Move:
    return lambda handler, _: handler.whole({"error": {"message": message}}, status, **headers)


def cuts_the_stream(text: str) -> Move:
    def move(handler: Handler, body: dict[str, Any]) -> None:
        handler.begin_stream()
        handler.event({"choices": [{"delta": {"content": text}, "finish_reason": None}]})

    return move


def is_silent(for_s: float) -> Move:
    return lambda handler, _: time.sleep(for_s)


def never_ends(handler: Handler, body: dict[str, Any]) -> None:
    handler.begin_stream()
    for _ in range(100_000):
        handler.event({"choices": [{"delta": {"content": "and " * 50}, "finish_reason": None}]})


def sends(data: bytes) -> Move:
    return lambda handler, _: handler.whole(data)


def streams(*events: object) -> Move:
    """Exactly these events, in any provider's form."""

    def move(handler: Handler, body: dict[str, Any]) -> None:
        handler.begin_stream()
        for event in events:
            handler.event(event)

    return move


def objects_to(field: str, then: Move, message: str | None = None) -> Move:
    """As servers that do not know a field of the request."""

    def move(handler: Handler, body: dict[str, Any]) -> None:
        if field in body:
            handler.whole({"error": {"message": message or f"Unsupported parameter: '{field}'"}}, 400)
        else:
            then(handler, body)

    return move
