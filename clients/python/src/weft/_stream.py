"""Lines of the control protocol (docs/control.md) over a Unix socket, or over a child's standard input and output."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _program
from .errors import BadAnswer, LaboratoryGone, NoAnswer, Refused, WeftError

VERSION = 1
REPLY_BYTES_MAX = 16 << 20
PIECE = 1 << 16
# How long a child may take to end once its standard input is closed.
CHILD_ENDS_S = 5.0


class Conversation:
    """One connection: requests out, replies in. It is not for several threads at once."""

    def __init__(self, read_fd: int, write_fd: int, end: Callable[[], WeftError]) -> None:
        """``end`` closes both files, and tells why there is nothing more to read."""
        self._read_fd, self._write_fd, self._end = read_fd, write_fd, end
        for fd in (read_fd, write_fd):
            os.set_blocking(fd, False)
        self._buffer = bytearray()
        self._searched = 0
        self._next_id = 1
        self.closed = False

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._end()

    def send(self, request: dict[str, Any], timeout: float) -> int:
        """Send a request, and return its number."""
        number, self._next_id = self._next_id, self._next_id + 1
        line = json.dumps({"v": VERSION, "id": number, "request": request}, allow_nan=False).encode() + b"\n"
        deadline = time.monotonic() + timeout
        rest = memoryview(line)
        while rest:
            try:
                rest = rest[os.write(self._write_fd, rest) :]
            except BlockingIOError:
                self._wait(self._write_fd, select.POLLOUT, deadline)
            except OSError:
                raise self._gone() from None
        return number

    def receive(self, timeout: float | None) -> dict[str, Any]:
        """The next reply. Without ``timeout`` it waits without bound."""
        line = self._line(None if timeout is None else time.monotonic() + timeout)
        try:
            reply = json.loads(line, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise self._broken(f"a line is no JSON: {error}") from None
        kinds = {"answer", "error", "event", "captured"}
        if not isinstance(reply, dict) or reply.get("v") != VERSION or len(kinds & reply.keys()) != 1:
            raise self._broken("a line is no reply of version 1 of the protocol")
        (kind,) = kinds & reply.keys()
        if not isinstance(reply[kind], dict) or not isinstance(reply.get("id"), int | None):
            raise self._broken("a reply has another form")
        return reply

    def answer(self, number: int, timeout: float) -> dict[str, Any]:
        """The answer to a request. Answers come in the order of requests, so no other answer comes before."""
        reply = self.receive(timeout)
        if reply["id"] not in (number, None) or "event" in reply or "captured" in reply:
            raise self._broken("a reply is for another request")
        if "error" in reply:
            raise refused(reply["error"])
        answer: dict[str, Any] = reply["answer"]
        return answer

    def _line(self, deadline: float | None) -> bytes:
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                if len(line) > REPLY_BYTES_MAX:
                    raise self._broken(f"a line is longer than {REPLY_BYTES_MAX} bytes")
                if line.strip():
                    return line
                continue
            self._searched = len(self._buffer)
            if self._searched > REPLY_BYTES_MAX:
                raise self._broken(f"a line is longer than {REPLY_BYTES_MAX} bytes")
            try:
                piece = os.read(self._read_fd, PIECE)
            except BlockingIOError:
                self._wait(self._read_fd, select.POLLIN, deadline)
                continue
            except OSError:
                piece = b""
            if not piece:
                raise self._gone()
            self._buffer += piece

    def _wait(self, fd: int, event: int, deadline: float | None) -> None:
        poll = select.poll()
        poll.register(fd, event)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not poll.poll(None if left is None else left * 1000):
            raise NoAnswer("no answer in time", "`weft ps` lists the processes, `weft fault ls` the frozen ones")

    def _gone(self) -> WeftError:
        self.closed = True
        return self._end()

    def _broken(self, why: str) -> BadAnswer:
        """Where one line makes no sense, nothing tells where the next begins."""
        self.close()
        return BadAnswer(why, "the laboratory may run another version of weft")


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def refused(error: dict[str, Any]) -> Refused:
    return Refused(str(error.get("code")), str(error.get("message")), error.get("hint"))


def over_socket(path: Path) -> Conversation:
    """A conversation with a process of this machine."""
    own = socket.socket(socket.AF_UNIX)
    try:
        own.settimeout(CHILD_ENDS_S)
        own.connect(os.fspath(path))
    except OSError as error:
        own.close()
        what = f"the hub of laboratory `{path.parent.parent.name}` does not answer: {error.strerror or error}"
        hint = "start a hub with `weft hub --detached`, or end what is left with `weft down`"
        raise LaboratoryGone(what, hint) from None

    def end() -> WeftError:
        own.close()
        return LaboratoryGone("the hub closed the connection", "`weft ps` tells what of the laboratory runs")

    return Conversation(own.fileno(), own.fileno(), end)


def over_child(command: list[str]) -> Conversation:
    """A conversation by way of ``weft --at … relay``."""
    errors = tempfile.TemporaryFile()
    child = _program.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
    stdin, stdout = child.stdin, child.stdout
    assert stdin and stdout

    def end() -> WeftError:
        for pipe in (stdin, stdout):
            try:
                pipe.close()
            except OSError:
                pass  # What it does not take any more is lost with it.
        try:
            child.wait(CHILD_ENDS_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        with errors:
            errors.seek(0)
            message, hint = _program.said(errors.read(PIECE))
        return LaboratoryGone(message or "the way to the laboratory ended", hint)

    return Conversation(stdout.fileno(), stdin.fileno(), end)
