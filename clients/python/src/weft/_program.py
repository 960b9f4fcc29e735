"""The program ``weft`` as a child, for what takes more than a request."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from typing import IO, Any

from .errors import BadAnswer, CommandFailed, NoAnswer, NoProgram

OUTPUT_BYTES_MAX = 256 << 20
# How long a child that was interrupted may take to put things in order.
PATIENCE_S = 15.0


def find(program: str | os.PathLike[str] | None) -> str:
    """The program: the one named, ``$WEFT_PROGRAM``, or ``weft`` on the PATH."""
    wanted = os.fspath(program) if program else os.environ.get("WEFT_PROGRAM") or "weft"
    found = shutil.which(wanted)
    if found is None:
        hint = "put weft into a folder of the PATH, or name it by program= or $WEFT_PROGRAM"
        raise NoProgram(f"there is no program `{wanted}`", hint)
    return found


def options(given: dict[str, Any]) -> list[str]:
    """Options of the command line: ``hub_door=7443`` is ``--hub-door 7443``, True a switch, a list several."""
    words = []
    for name, value in given.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        for item in value if isinstance(value, list | tuple) else [value]:
            if item is True:
                words.append(flag)
            elif item is not None and item is not False:
                words.append(f"{flag}={os.fspath(item) if isinstance(item, os.PathLike) else item}")
    return words


def duration(seconds: float) -> str:
    """As weft reads it, to the millisecond."""
    return f"{round(seconds * 1000)}ms"


def start(command: list[str], **pipes: Any) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, **pipes)
    except OSError as error:
        raise NoProgram(f"cannot run `{command[0]}`: {error.strerror or error}") from None


def said(stderr: bytes) -> tuple[str, str | None]:
    """The message and the hint in what weft says on standard error."""
    lines = stderr.decode(errors="replace").splitlines()
    messages = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    hints = [line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")]
    return (messages or lines or [""])[-1], hints[-1] if hints else None


def run(command: list[str], timeout: float, good: Iterable[int] = (0,)) -> tuple[bytes, bytes]:
    """What a command writes to standard output and standard error. It reads at most 256 MiB."""
    child = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout and child.stderr
    try:
        with child.stdout, child.stderr:
            outputs = _read(child.stdout, child.stderr, time.monotonic() + timeout)
        code = child.wait(PATIENCE_S)
    except BaseException as error:
        _end(child)
        if isinstance(error, subprocess.TimeoutExpired | TimeoutError):
            raise NoAnswer(f"`{' '.join(command)}` did not end within {timeout:g} s") from None
        raise
    if code not in good:
        message, hint = said(outputs[1])
        raise CommandFailed(message or f"`{' '.join(command)}` ended with {code}", hint, code)
    return outputs


def run_json(command: list[str], timeout: float, good: Iterable[int] = (0,)) -> Any:
    """What a command prints as JSON."""
    stdout, stderr = run(command, timeout, good)
    try:
        return json.loads(stdout)
    except (ValueError, RecursionError) as error:
        message, hint = said(stderr)
        raise BadAnswer(message or f"`{' '.join(command)}` printed no JSON: {error}", hint) from None


def _read(stdout: IO[bytes], stderr: IO[bytes], deadline: float) -> tuple[bytes, bytes]:
    read: dict[int, bytearray] = {stdout.fileno(): bytearray(), stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as selector:
        for fd in read:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                piece = os.read(key.fd, 1 << 16)
                read[key.fd] += piece
                if not piece:
                    selector.unregister(key.fd)
                if len(read[key.fd]) > OUTPUT_BYTES_MAX:
                    raise BadAnswer(f"a command printed more than {OUTPUT_BYTES_MAX} bytes")
    return bytes(read[stdout.fileno()]), bytes(read[stderr.fileno()])


def _end(child: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C does, which also takes down a laboratory that is coming up."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
