"""A laboratory that runs: here, on other hosts, or behind its hub's door."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from . import _program, _stream
from ._events import Events, Since
from ._faults import Faults
from ._flows import Flows
from ._stream import Conversation
from ._types import Check, Process, Table, pm_row, port_row
from ._vms import Vms
from .errors import BadAnswer, CommandFailed, LaboratoryGone, NoAnswer, NoLaboratory, Refused, WeftError

File = str | os.PathLike[str]

ASK_S = 30.0
UP_S = 3600.0
# Items that are asked for at once.
PAGE = 1024


class Laboratory:
    """A laboratory, from :func:`connect` or :func:`up`. It is a context manager.

    ``timeout`` bounds a request, in seconds; ``command_timeout`` bounds what runs ``weft`` as a child: faults, checks,
    virtual machines. Threads may share a laboratory: requests take turns. An :class:`Events` is for one thread.
    """

    def __init__(
        self,
        lab: str | None,
        at: str | None,
        identity: File | None,
        program: File | None,
        timeout: float,
        command_timeout: float,
        takes_down: bool = False,
    ) -> None:
        self.timeout, self.command_timeout = timeout, command_timeout
        self._at, self._program, self._takes_down = at, program, takes_down
        self._lock = threading.Lock()
        self._conversation: Conversation | None = None
        self._descriptions: dict[str, str] = {}
        self.faults, self.flows, self.vms = Faults(self), Flows(self), Vms(self)
        if at is None:
            if identity is not None:
                raise ValueError("identity= goes with at=")
            self._folder = _select(lab)
            self._way = ["--lab", self._folder.name]
        else:
            if lab is not None:
                raise ValueError("lab= and at= name different laboratories")
            self._folder = Path()
            self._way = ["--at", at] + (["--identity", os.fspath(identity)] if identity else [])
        try:
            self.name: str = self.ask("hub", "hello")["lab"]
        except LaboratoryGone as error:
            raise NoLaboratory(error.message, error.hint) from None

    def __repr__(self) -> str:
        return f"<weft laboratory {self.name}{f' at {self._at}' if self._at else ''}>"

    def close(self) -> None:
        """Close the connection. The laboratory runs on; the next request opens another connection."""
        with self._lock:
            if self._conversation is not None:
                self._conversation.close()
                self._conversation = None

    def down(self) -> None:
        """Stop the laboratory and leave nothing behind."""
        self.close()
        self.run("down")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection. A laboratory that :func:`up` started is taken down, unless it has gone already."""
        self.close()
        if self._takes_down and self._folder.exists():
            self.down()

    def status(self) -> dict[str, Any]:
        """Return the managers' state, and the processes by state (docs/schemas/status.schema.json)."""
        status: dict[str, Any] = self.run_json("status")
        return status

    def processes(self) -> list[Process]:
        """List the processes with their devices, also dead ones."""
        return [Process.of(raw) for raw in self.run_json("ps")]

    def check(self, **options: Any) -> Check:
        """Verify that every host reaches every other. Options are those of ``weft check --help``."""
        return Check.of(self.run_json("check", *_program.options(options), good=(0, 1)))

    def routes(self, source: str, destination: str) -> list[dict[str, Any]]:
        """Return the path between two nodes by the switches' tables: hops with ``node``, ``in_port``, ``out_port``."""
        hops: list[dict[str, Any]] = self.run_json("trace", source, destination)["hops"]
        return hops

    def events(
        self,
        kinds: Iterable[str] | None = None,
        sources: Iterable[str] | None = None,
        since: Since = "now",
        past_only: bool = False,
        timeout: float | None = None,
    ) -> Events:
        """Follow events, optionally only these kinds and those of these processes.

        ``since`` is "now", "start", a time with its zone, or an event of an earlier stream, to continue behind it.
        With ``past_only`` the stream ends after what the hub remembers now. ``timeout``: seconds to wait for an event.
        """
        return Events(self._open, kinds, sources, since, past_only, timeout)

    def counters(self) -> Table:
        """Return state and counters of every port: a row each, with units in the names of columns.

        Agents count since their devices were switched on. Agents that do not answer are in ``silent``.
        """
        table = Table()
        silent = []
        for process in self._pages("hub", "lab-status", "processes", lambda item: item["name"]):
            if process["kind"] != "agent":
                continue
            name = process["name"]
            try:
                ports = self._pages(name, "ports", "ports", lambda item: item["end"])
                if any(port["end"]["node"] not in self._descriptions for port in ports):
                    devices = self._pages(name, "devices", "devices", lambda item: {"node": item["node"], "port": 0})
                    self._descriptions |= {device["node"]: device["description"] for device in devices}
            except (Refused, NoAnswer):
                silent.append(name)
                continue
            table += [port_row(port, self._descriptions.get(port["end"]["node"], "")) for port in ports]
        table.silent = tuple(silent)
        return table

    def pm_ports(self, pm: str = "pm") -> Table:
        """Return what a performance manager (``up(…, pm=True)``) knows of every port: a row each, with rates."""
        ports = self._pages(pm, "pm-ports", "ports", lambda item: {"node": item["node_guid"], "port": item["port"]})
        return Table(map(pm_row, ports), (port["name"] for port in ports if port["silent"]))

    def ask(self, process: str, request: str, **fields: Any) -> dict[str, Any]:
        """Send a request to a process, and return the answer: ``lab.ask("sm", "sm-status")`` (docs/control.md)."""
        inner = {"type": request, **fields}
        if request in ("events", "capture", "cancel"):
            raise ValueError(f"`{request}` has more than an answer; lab.events() follows events")
        return self._request(inner if process == "hub" else {"type": "relay", "process": process, "request": inner})

    def run(self, verb: str, *words: str, good: Iterable[int] = (0,)) -> tuple[bytes, bytes]:
        """Run a verb of ``weft`` here. Return standard output and error; ``good`` exit codes are no failure."""
        try:
            return _program.run(self._command(verb, *words), self.command_timeout, good)
        except CommandFailed as error:
            raise self._or_gone(error) from None

    def run_json(self, verb: str, *words: str, good: Iterable[int] = (0,)) -> Any:
        """Run a verb with ``--json``, and return what it prints."""
        try:
            return _program.run_json(self._command(verb, *words, "--json"), self.command_timeout, good)
        except (CommandFailed, BadAnswer) as error:
            raise self._or_gone(error) from None

    def _command(self, *words: str) -> list[str]:
        return [_program.find(self._program), *self._way, *words]

    def _or_gone(self, error: WeftError) -> WeftError:
        if self._at is None and not self._folder.exists():
            return LaboratoryGone(f"laboratory `{self._folder.name}` has been taken down")
        return error

    def _request(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            if self._conversation is None or self._conversation.closed:
                self._conversation = self._open()
            conversation, is_answered = self._conversation, False
            try:
                answer = conversation.answer(conversation.send(request, self.timeout), self.timeout)
                is_answered = True
                return answer
            except Refused:
                is_answered = True
                raise
            except LaboratoryGone as error:
                raise self._or_gone(error) from None
            finally:
                # The next answer here would be this one.
                if not is_answered:
                    conversation.close()

    def _open(self) -> Conversation:
        if self._at is not None:
            return _stream.over_child(self._command("relay"))
        if not self._folder.exists():
            raise self._or_gone(LaboratoryGone(""))
        return _stream.over_socket(self._folder / "control" / "hub")

    def _pages(self, process: str, request: str, items: str, place: Any) -> list[dict[str, Any]]:
        """All items of a list that comes in pages, each after the ``place`` of the last item."""
        found: list[dict[str, Any]] = []
        while True:
            after = {"after": place(found[-1])} if found else {}
            answer = self.ask(process, request, limit=PAGE, **after)
            found += answer[items]
            if not answer["more"] or not answer[items]:
                return found


def connect(
    lab: str | None = None,
    at: str | None = None,
    identity: File | None = None,
    *,
    program: File | None = None,
    timeout: float = ASK_S,
    command_timeout: float = 600.0,
) -> Laboratory:
    """Connect to a running laboratory: the one named ``lab``, or the only one.

    ``at`` is the door of a remote hub, ``HOST:PORT``, and ``identity`` a file such as ``identities/operator.pem``
    (default: ``$WEFT_IDENTITY``). ``program`` is the program ``weft`` (default: ``$WEFT_PROGRAM``, or from the PATH).
    Raises :class:`NoLaboratory`.
    """
    return Laboratory(lab, at, identity, program, timeout, command_timeout)


def up(
    topology: File,
    lab: str | None = None,
    *,
    program: File | None = None,
    timeout: float = UP_S,
    **options: Any,
) -> Laboratory:
    """Start a laboratory, and return at SUBNET UP. ``with`` takes it down at the end of its block.

    Options are those of ``weft up --help-all``: ``pm=True``, ``engine="updn,minhop"``, ``sm_at=["H1", "H2"]``.
    True stands for an option without a value; give "true" or "false" where the help shows a value.
    """
    way = ["--lab", lab] if lab else []
    command = [_program.find(program), *way, "up", *_program.options(options), "--", os.fspath(topology)]
    _program.run(command, timeout)
    return Laboratory(lab or "default", None, None, program, ASK_S, 600.0, takes_down=True)


def _select(name: str | None) -> Path:
    """The folder of a laboratory of this machine, as ``weft`` itself finds it."""
    base = _base()
    try:
        folders = sorted(place for place in base.iterdir() if not place.name.startswith("."))
    except OSError:
        folders = []
    labs = [place for place in folders if (place / "weft-lab").is_file() and place.stat().st_uid == os.getuid()]
    names = ", ".join(place.name for place in labs)
    if name is None and len(labs) > 1:
        raise NoLaboratory("several laboratories are running", f"say which with lab=: {names}")
    chosen = [place for place in labs if name is None or place.name == name]
    if not chosen:
        hint = f"running: {names}" if labs else "start one with `weft up FILE` or weft.up()"
        raise NoLaboratory(f"no laboratory `{name}` is running" if name else "no laboratory is running", hint)
    return chosen[0]


def _base() -> Path:
    if home := os.environ.get("WEFT_HOME"):
        return Path(home).absolute()
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime).absolute() / "weft"
    return Path(tempfile.gettempdir()) / f"weft-{os.getuid()}"
