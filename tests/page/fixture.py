"""A server of the page that speaks the page's contract without a laboratory: a clock of its own, a tape, gone and back, errors."""

import copy
import json
import queue
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from fabrics import State

ASSETS = Path(__file__).parents[2] / "crates/page/assets"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
)
EVENTS_MAX = 200


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    target = target if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merge(target.get(key), value)
    return target


class World:
    """A laboratory: its state, the tape of it, and the streams that follow."""

    def __init__(self, state: State, token: str = "c0ffee") -> None:
        self.token, self.state = token, state
        self.first = copy.deepcopy(state)
        self.patches: list[tuple[int, State]] = []
        self.marks: list[dict[str, Any]] = []
        self.streams: list[queue.Queue[Any]] = []
        self.acts: list[dict[str, Any]] = []
        self.lock = threading.RLock()
        self.gone: str | None = None
        self.events = 0

    def send(self, line: Any) -> None:
        for stream in self.streams:
            stream.put(line)

    def patch(self, patch: State, ms: int = 1000) -> None:
        """Something changes, `ms` after the last change."""
        with self.lock:
            at = self.state["at_ms"] + ms
            merge(self.state, copy.deepcopy(patch) | {"at_ms": at})
            self.patches.append((at, patch))
            self.send({"patch": patch, "at_ms": at})

    def event(self, kind: str, node: str, text: str) -> State:
        self.events += 1
        at = self.state["at_ms"] + 1000
        self.marks.append({"at_ms": at, "kind": kind, "text": text})
        old = {str(self.events - EVENTS_MAX): None} if self.events > EVENTS_MAX else {}
        return {"events": {str(self.events): {"at_ms": at, "kind": kind, "node": node, "text": text}} | old}

    def leave(self, words: str = "the hub does not answer") -> None:
        with self.lock:
            self.gone = words
            self.send({"gone": words})

    def come_back(self) -> None:
        with self.lock:
            self.gone = None
            self.send({"key": copy.deepcopy(self.state)})

    def at(self, ms: int) -> State:
        with self.lock:
            state = copy.deepcopy(self.first)
            for at, patch in self.patches:
                if at > ms:
                    break
                merge(state, copy.deepcopy(patch) | {"at_ms": at})
            return state

    def node(self, name: str) -> str | None:
        return next((id for id, node in self.state["nodes"].items() if name in (node["name"], node["guid"])), None)

    def path(self, one: str, other: str) -> list[list[Any]] | None:
        """The shortest way, the first cables first."""
        begin, end = self.node(one), self.node(other)
        if begin is None or end is None or begin == end:
            return None
        beside: dict[str, list[tuple[str, str, int]]] = {}
        for id, cable in self.state["cables"].items():
            beside.setdefault(cable["a"], []).append((cable["b"], id, 0))
            beside.setdefault(cable["b"], []).append((cable["a"], id, 1))
        came: dict[str, tuple[str, str, int]] = {begin: ("", "", 0)}
        line = [begin]
        for at in line:
            for to, cable_id, way in beside.get(at, []):
                if to not in came:
                    came[to] = (at, cable_id, way)
                    line.append(to)
        found: list[list[Any]] = []
        while end != begin:
            end, cable_id, way = came[end]
            found.insert(0, [cable_id, way])
        return found

    def act(self, what: dict[str, Any]) -> dict[str, str]:
        with self.lock:
            self.acts.append(what)
            if not self.state["may_act"]:
                raise PermissionError("a viewer may not act")
            return {"done": getattr(self, "do_" + what["do"].replace("-", "_"))(what)}

    def do_kill(self, what: dict[str, Any]) -> str:
        id, name = self.node(what["node"]), what["node"]
        cables = {
            nth: {"state": "down", "ab": None, "ba": None}
            for nth, cable in self.state["cables"].items()
            if id in (cable["a"], cable["b"])
        }
        alarm = {
            "severity": "critical",
            "since_ms": self.state["at_ms"],
            "where": name,
            "text": f"{name} is silent",
            "cause": "its process was killed",
            "acknowledged": False,
        }
        self.patch(
            {
                "nodes": {id: {"state": "down"}},
                "cables": cables,
                "summary": {"links_down": len(cables)},
                "alarms": {f"silent-{name}": alarm},
            }
            | self.event("killed", name, f"{name} was killed")
        )
        return f"killed {name}"

    def do_if_cut(self, what: dict[str, Any]) -> str:
        return f"if cable {what['cable']} were cut:\n  no node would be cut off\n  1 flow would take another way: {next(iter(self.state['flows']), 'none')}"

    def do_restart(self, what: dict[str, Any]) -> str:
        id, name = self.node(what["node"]), what["node"]
        cables = {
            nth: {"state": "active"} for nth, cable in self.state["cables"].items() if id in (cable["a"], cable["b"])
        }
        self.patch(
            {
                "nodes": {id: {"state": "up"}},
                "cables": cables,
                "summary": {"links_down": 0},
                "alarms": {f"silent-{name}": None},
            }
            | self.event("started", name, f"{name} was started")
        )
        return f"restarted {name}"

    def do_freeze(self, what: dict[str, Any]) -> str:
        self.patch(
            {"nodes": {self.node(what["node"]): {"state": "frozen"}}}
            | self.event("frozen", what["node"], f"{what['node']} is frozen")
        )
        return f"froze {what['node']}"

    def do_loss(self, what: dict[str, Any]) -> str:
        id = f"f{len(self.acts)}"
        where = self.state["nodes"][self.state["cables"][what["cable"]]["a"]]["name"]
        fault = {
            "kind": "loss",
            "where": where,
            "cable": what["cable"],
            "node": None,
            "until_ms": self.state["at_ms"] + 30_000,
            "text": f"loss {what['percent']:g} %",
        }
        self.patch({"faults": {id: fault}, "cables": {what["cable"]: {"faults": [id]}}})
        return fault["text"]

    def do_link_down(self, what: dict[str, Any]) -> str:
        self.patch(
            {"cables": {what["cable"]: {"state": "down", "ab": None, "ba": None}}, "summary": {"links_down": 1}}
            | self.event("link-down", "", "link down")
        )
        return "the link is down"

    def do_clear(self, what: dict[str, Any]) -> str:
        cables = {id: {"faults": []} for id, cable in self.state["cables"].items() if what["fault"] in cable["faults"]}
        self.patch({"faults": {what["fault"]: None}, "cables": cables})
        return "cleared"

    def do_acknowledge(self, what: dict[str, Any]) -> str:
        self.patch({"alarms": {what["alarm"]: {"acknowledged": True}}})
        return "acknowledged"

    def do_flow_start(self, what: dict[str, Any]) -> str:
        path = self.path(what["from"], what["to"])
        if path is None:
            raise ValueError(f"no host is called {what['from'] if self.node(what['from']) is None else what['to']}")
        name, mbps = what["name"] or f"flow-{len(self.acts)}", what["rate_mbps"] or 40.0
        flow = {
            "name": name,
            "set": None,
            "from": what["from"],
            "to": what["to"],
            "state": "running",
            "mbps": mbps,
            "delivered": 0,
            "repeated": 0,
            "sl": 0,
            "vl": 0,
            "why": None,
            "path": path,
        }
        cables = {
            id: {"ba" if way else "ab": {"mbps": mbps, "wait": 0.02, "lanes": {"0": {"mbps": mbps, "wait": 0.02}}}}
            for id, way in path
        }
        self.patch(
            {"flows": {name: flow}, "cables": cables, "summary": {"flows": len(self.state["flows"]) + 1, "mbps": mbps}}
            | self.event("flow-started", what["from"], f"flow {name} started")
        )
        return f"started {name}"

    def do_flow_stop(self, what: dict[str, Any]) -> str:
        self.patch({"flows": {what["id"]: {"state": "done", "mbps": 0.0, "why": "stopped"}}})
        return f"stopped {what['id']}"

    def hops(self, id: str) -> dict[str, Any]:
        flow = self.state["flows"][id]
        hops = []
        for cable_id, way, *_ in flow["path"]:
            cable = self.state["cables"][cable_id]
            data = cable.get("ba" if way else "ab", {})
            shares = [
                {"flow": other, "mbps": one["mbps"]}
                for other, one in self.state["flows"].items()
                if [cable_id, way] in [list(hop[:2]) for hop in one["path"]]
            ]
            hops.append(
                {
                    "node": self.state["nodes"][cable["b" if way else "a"]]["name"],
                    "cable": cable_id,
                    "vl": flow["vl"],
                    "mbps": data.get("mbps"),
                    "wait": data.get("wait"),
                    "shares": shares,
                }
            )
        return {"hops": hops, "why": None}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Server"

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def json(self, value: Any, status: int = 200) -> None:
        self.answer(status, json.dumps(value).encode())

    def is_allowed(self) -> bool:
        if self.headers.get("Authorization") == f"Bearer {self.server.world.token}":
            return True
        self.json({"error": "no token", "hint": "open the address that `weft ui` printed"}, 401)
        return False

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        if not url.path.startswith("/api/"):
            self.file(url.path)
        elif self.is_allowed():
            self.api(url.path, {key: values[0] for key, values in urllib.parse.parse_qs(url.query).items()})

    def file(self, path: str) -> None:
        file = ASSETS / ("index.html" if path == "/" else path.lstrip("/"))
        if ".." in path or not file.is_file():
            self.json({"error": "no such file"}, 404)
        else:
            self.answer(200, file.read_bytes(), TYPES[file.suffix])

    def api(self, path: str, query: dict[str, str]) -> None:
        world = self.server.world
        if path == "/api/stream":
            self.stream()
        elif path == "/api/tape":
            self.json(
                {"from_ms": world.first["at_ms"], "to_ms": world.state["at_ms"], "live": True, "marks": world.marks}
            )
        elif path == "/api/tape/at":
            self.json({"key": world.at(int(query["ms"]))})
        elif path == "/api/tape/play":
            begin, end = int(query["from"]), int(query["to"])
            lines: list[Any] = [{"key": world.at(begin)}]
            lines += [{"patch": patch, "at_ms": at} for at, patch in world.patches if begin < at <= end]
            self.answer(200, "".join(json.dumps(line) + "\n" for line in lines).encode(), "application/x-ndjson")
        elif path == "/api/flow" and query.get("id") in world.state["flows"]:
            self.json(world.hops(query["id"]))
        else:
            self.json({"error": "no such thing"}, 404)

    def stream(self) -> None:
        world = self.server.world
        mine: queue.Queue[Any] = queue.Queue(maxsize=10_000)
        with world.lock:
            mine.put({"gone": world.gone} if world.gone else {"key": copy.deepcopy(world.state)})
            world.streams.append(mine)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while (line := mine.get()) is not None:
                body = json.dumps(line).encode() + b"\n"
                self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
        finally:
            world.streams.remove(mine)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.is_allowed():
            return
        try:
            self.json(self.server.world.act(json.loads(body)))
        except PermissionError as error:
            self.json({"error": str(error), "hint": None}, 403)
        except (ValueError, KeyError, AttributeError) as error:
            self.json({"error": str(error), "hint": "see `weft flow start --help`"}, 400)


class Server(ThreadingHTTPServer):
    """Serves a world on loopback, until closed."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, world: World) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.world = world
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def url(self) -> str:
        return f"{self.origin}/#token={self.world.token}"

    def close(self) -> None:
        for stream in list(self.world.streams):
            stream.put(None)
        self.shutdown()
        self.server_close()
