"""What is not there, and what answers nonsense."""

import json
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import weft

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
HELLO = {"v": 1, "id": 1, "answer": {"type": "hello", "lab": "fake"}}


def line(reply: object) -> bytes:
    return json.dumps(reply).encode() + b"\n"


@contextmanager
def fake_hub(home: Path, *replies: bytes | None, name: str = "fake") -> Iterator[None]:
    """A folder such as a laboratory has, and at its socket these bytes, one for each request; None hangs up."""
    folder = home / name
    (folder / "control").mkdir(parents=True)
    (folder / "weft-lab").touch()
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.fspath(folder / "control" / "hub"))
    server.listen()
    conversations = []

    def serve() -> None:
        left = iter(replies)
        while True:
            try:
                own, _ = server.accept()
            except OSError:
                return
            conversations.append(own)
            with own.makefile("rb") as requests:
                for _ in requests:
                    reply = next(left, b"")
                    if reply is None:
                        own.shutdown(socket.SHUT_RDWR)
                        break
                    try:
                        own.sendall(reply)
                    except OSError:
                        break  # The client does not want to hear more of it.

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for own in conversations:
            with suppress(OSError):
                own.shutdown(socket.SHUT_RDWR)
            own.close()
        thread.join(10)
        (folder / "control" / "hub").unlink()
        (folder / "control").rmdir()
        (folder / "weft-lab").unlink()
        folder.rmdir()


def fake_program(folder: Path, script: str) -> Path:
    path = folder / "weft"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_no_laboratory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path / "nothing"))
    with pytest.raises(weft.NoLaboratory, match="no laboratory is running") as missing:
        weft.connect()
    assert missing.value.hint and "weft up" in missing.value.hint
    with pytest.raises(weft.NoLaboratory, match="no laboratory `x` is running"):
        weft.connect("x")


def test_several_laboratories(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    with fake_hub(tmp_path, line(HELLO), name="one"), fake_hub(tmp_path, line(HELLO), name="two"):
        with pytest.raises(weft.NoLaboratory, match="several") as several:
            weft.connect()
        assert several.value.hint == "say which with lab=: one, two"
        assert weft.connect("two").name == "fake"
        with pytest.raises(weft.NoLaboratory, match="running: one, two"):
            weft.connect("three")


def test_no_program(tmp_path: Path) -> None:
    with pytest.raises(weft.NoProgram, match=r"WEFT_PROGRAM"):
        weft.up("x.topo", program="no-such-weft")
    with pytest.raises(weft.NoProgram):
        weft.connect(at="127.0.0.1:1", identity="x.pem", program=tmp_path / "weft")


def test_a_topology_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(weft.CommandFailed, match="no-such-file"):
        weft.up("no-such-file.topo")
    with pytest.raises(weft.CommandFailed) as failed:
        weft.up(TOPOLOGIES / "ring-4.topo", no_such_option=True)
    assert failed.value.exit_code == 2


def test_no_hub_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(weft.NoLaboratory, match=r"nowhere\.pem"):
        weft.connect(at="127.0.0.1:1", identity="/nowhere.pem")
    with pytest.raises(weft.NoLaboratory) as missing:
        weft.connect(at="127.0.0.1:1")
    assert missing.value.hint and "--identity" in missing.value.hint
    for wrong in ({"lab": "x", "at": "127.0.0.1:1"}, {"identity": "x.pem"}):
        with pytest.raises(ValueError):
            weft.connect(**wrong)


NONSENSE: dict[str, bytes] = {
    "no JSON": b"hello\n",
    "no UTF-8": b'{"v":1,"id":2,"answer":{"type":"\xff"}}\n',
    "NaN": b'{"v":1,"id":2,"answer":{"x":NaN}}\n',
    "a list": b"[1]\n",
    "a number": b"7\n",
    "no reply": line({"v": 1, "id": 2}),
    "two replies": line({"v": 1, "id": 2, "answer": {}, "error": {}}),
    "version 2": line({"v": 2, "id": 2, "answer": {}}),
    "an answer that is a text": line({"v": 1, "id": 2, "answer": "yes"}),
    "an id that is a text": line({"v": 1, "id": "2", "answer": {}}),
    "another id": line({"v": 1, "id": 3, "answer": {}}),
    "an event": line({"v": 1, "id": 2, "event": {"area": "sm", "event": "quiet"}}),
    "deep": b'{"v":1,"id":2,"answer":' + b"[" * 200_000 + b"\n",
    "many digits": b'{"v":1,"id":2,"answer":{"x":' + b"9" * 10_000 + b"}}\n",
    "long": b"x" * ((16 << 20) + 2),
}


@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_is_no_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, nonsense: bytes) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    again = line({"v": 1, "id": 1, "answer": {"type": "done"}})
    with fake_hub(tmp_path, line(HELLO), nonsense, again):
        lab = weft.connect()
        with pytest.raises(weft.BadAnswer):
            lab.ask("hub", "hello")
        # What follows nonsense is not read: the next request has a connection of its own.
        assert lab.ask("hub", "hello") == {"type": "done"}


def test_large_numbers_stay_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    largest = 2**64 - 1
    with fake_hub(tmp_path, line(HELLO), line({"v": 1, "id": 2, "answer": {"count": largest}})):
        count = weft.connect().ask("hub", "clients")["count"]
    assert count == largest and isinstance(count, int)


def test_answers_in_pieces_are_put_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    long = {"v": 1, "id": 2, "answer": {"text": "x" * (3 << 20)}}
    with fake_hub(tmp_path, b"\n\r\n" + line(HELLO), line(long)):
        assert weft.connect().ask("hub", "metrics") == long["answer"]


def test_silence_and_hanging_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    subscribed = line({"v": 1, "id": 1, "answer": {"type": "subscribed", "incarnation": "1", "next": 0}})
    with fake_hub(tmp_path, line(HELLO), b"", None, subscribed + b'{"half', None):
        lab = weft.connect(timeout=0.1)
        with pytest.raises(weft.NoAnswer) as silent:
            lab.ask("hub", "hello")
        assert isinstance(silent.value, TimeoutError)
        with pytest.raises(weft.LaboratoryGone):
            lab.ask("hub", "hello")
        with pytest.raises(weft.NoAnswer):
            next(lab.events(timeout=0.05))


def test_a_laboratory_that_is_taken_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    program = fake_program(tmp_path, "echo 'error: no laboratory `fake` is running' >&2; exit 1")
    with fake_hub(tmp_path, line(HELLO)):
        lab = weft.connect(program=program)
    calls: list[Callable[[], object]] = [lab.status, lab.counters, lab.events, lambda: lab.faults.kill("sm")]
    for call in calls:
        with pytest.raises(weft.LaboratoryGone):
            call()


def test_programs_that_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    scripts: list[tuple[str, type[weft.WeftError], str]] = [
        ("echo nonsense", weft.BadAnswer, "no JSON"),
        ("exit 0", weft.BadAnswer, "no JSON"),
        ("echo words >&2; exit 3", weft.CommandFailed, "words"),
        ("exit 3", weft.CommandFailed, "ended with 3"),
        ("printf 'error: bad\\nhint: better\\n' >&2; exit 2", weft.CommandFailed, r"bad \(hint: better\)"),
        ("exec sleep 60", weft.NoAnswer, "did not end within 0.2 s"),
    ]
    with fake_hub(tmp_path, line(HELLO)):
        lab = weft.connect(program=tmp_path / "weft")
        for script, kind, says in scripts:
            fake_program(tmp_path, script)
            lab.command_timeout = 0.2 if "sleep" in script else 30.0
            with pytest.raises(kind, match=says):
                lab.status()


def test_a_program_that_prints_without_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_HOME", str(tmp_path))
    monkeypatch.setattr(weft._program, "OUTPUT_BYTES_MAX", 1 << 20)
    with fake_hub(tmp_path, line(HELLO)):
        lab = weft.connect(program=fake_program(tmp_path, "exec yes"))
        with pytest.raises(weft.BadAnswer, match="more than"):
            lab.status()
