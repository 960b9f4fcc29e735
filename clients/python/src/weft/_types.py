"""What a laboratory tells, as Python sees it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

# A tick of XmitWait, in nanoseconds of fabric time.
TICK_NS = 4
# A word of XmitData and RcvData, in bytes.
WORD_BYTES = 4


class Table(list[dict[str, Any]]):
    """A list of rows, each a dict with the same keys: ``pandas.DataFrame(table)`` takes it as it is.

    ``silent`` names the agents, or nodes, that do not answer and whose rows are missing or old.
    """

    def __init__(self, rows: Iterable[dict[str, Any]] = (), silent: Iterable[str] = ()) -> None:
        super().__init__(rows)
        self.silent = tuple(silent)

    def where(self, **values: Any) -> Table:
        """The rows with these values: ``lab.counters().where(node="S1", port=3)``."""
        wanted = values.items()
        return Table((row for row in self if all(row[key] == value for key, value in wanted)), self.silent)


@dataclass(frozen=True)
class Event:
    """Something that happened. docs/control.md lists the kinds with their fields."""

    kind: str
    """What: `link-down`, `subnet-up` and so on."""
    area: str
    """Whose record it is: sm, pm, vm, agent, process or lab."""
    source: str
    """The process that says so."""
    time: datetime.datetime
    """By the source's clock, in UTC, to the microsecond; ``raw["time"]`` has the nanoseconds."""
    fields: dict[str, Any]
    """What belongs to the event."""
    raw: dict[str, Any] = field(repr=False)
    """The JSON object as it came."""
    hub: str = field(default="", repr=False)
    """The life of the hub that sent it, with which a stream can be resumed behind it."""

    @classmethod
    def of(cls, raw: dict[str, Any], hub: str = "") -> Event:
        head = (
            "time",
            "source",
            "incarnation",
            "sequence",
            "place",
            "ahead_ns",
            "monotonic_ns",
            "area",
            "event",
        )
        fields = {name: value for name, value in raw.items() if name not in head}
        return cls(raw["event"], raw["area"], raw["source"], utc(raw["time"]), fields, raw, hub)


@dataclass(frozen=True)
class Device:
    """A device of an agent."""

    id: str
    guid: str
    description: str
    label: str


@dataclass(frozen=True)
class Process:
    """A process of a laboratory (docs/schemas/ps.schema.json)."""

    name: str
    kind: str
    """`switch`, `hca` or `packed` of an agent, otherwise the kind of process."""
    state: str
    """`running`, `dead`, `frozen` or `silent`."""
    pid: int | None
    restarts: int | None
    devices: tuple[Device, ...]
    raw: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Process:
        devices = tuple(Device(one["id"], one["guid"], one["description"], one["label"]) for one in raw["devices"])
        return cls(raw["process"], raw["kind"], raw["state"], raw["pid"], raw["restarts"], devices, raw)


@dataclass(frozen=True)
class Fault:
    """A fault that lasts."""

    id: str
    what: str
    """What is damaged: `unplugged`, `frozen`, or what happens to packets."""
    at: tuple[str, ...]
    """Where: both ends of a cable that is unplugged, or the places where packets arrive impaired."""
    since: datetime.datetime
    until: datetime.datetime | None
    raw: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Fault:
        until = utc(raw["until"]) if raw["until"] else None
        return cls(raw["id"], raw["damage"], tuple(raw["at"]), utc(raw["since"]), until, raw)


@dataclass(frozen=True)
class Check:
    """What a check has found (docs/schemas/check.schema.json). It is true if every host reaches every other."""

    ok: bool
    subnet_up: bool
    """And nothing is out of service."""
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    raw: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Check:
        return cls(raw["ok"], raw["subnet_up"], tuple(raw["problems"]), tuple(raw["notes"]), raw)

    def __bool__(self) -> bool:
        return self.ok


def utc(text: str) -> datetime.datetime:
    """A time of the control protocol, which has nanoseconds; Python keeps microseconds."""
    return datetime.datetime.fromisoformat(re.sub(r"(\.\d{1,6})\d*", r"\1", text))


def port_row(port: dict[str, Any], node: str) -> dict[str, Any]:
    """A port of an agent as a row, with units in the names."""
    end, peer, totals = port["end"], port["peer"] or {}, port["totals"]
    row = {
        "node": node,
        "node_guid": end["node"],
        "port": end["port"],
        "peer_guid": peer.get("node"),
        "peer_port": peer.get("port"),
        "state": port["state"],
        "link_up": port["link_up"],
        "lid": port["lid"],
        "rate": port["rate"],
        "xmit_bytes": totals["xmit_words"] * WORD_BYTES,
        "rcv_bytes": totals["rcv_words"] * WORD_BYTES,
        "xmit_wait_ticks": totals["xmit_wait"],
        "xmit_wait_ns": totals["xmit_wait"] * TICK_NS,
    }
    renamed = ("xmit_words", "rcv_words", "xmit_wait")
    return row | {name: count for name, count in totals.items() if name not in renamed}


def flow_row(flow: dict[str, Any]) -> dict[str, Any]:
    """A flow as a row, with units in the names."""
    sender, receiver = flow["sender"] or {}, flow["receiver"] or {}
    trips = sender.get("latency") or {"count": 0, "sum_ns": 0}
    return {
        "flow": flow["name"],
        "set": flow["set"],
        "from": flow["from"]["name"],
        "to": flow["to"]["name"],
        "state": flow["state"],
        "sent_bytes": sender.get("bytes", 0),
        "delivered_bytes": receiver.get("bytes", 0),
        "delivered_bytes_per_s": flow["delivered_bytes_per_second"],
        "repeated_packets": sender.get("repeated", 0),
        "service_level": sender.get("service_level"),
        "round_trips": trips["count"],
        "mean_round_trip_ns": trips["sum_ns"] / trips["count"] if trips["count"] else None,
        "reason": flow["reason"],
        "raw": flow,
    }


def pm_row(port: dict[str, Any]) -> dict[str, Any]:
    """A port of a performance manager as a row, with units in the names."""
    peer, totals = port["peer"] or {}, port["totals"]
    row = {
        "node": port["name"],
        "kind": port["kind"],
        "node_guid": port["node_guid"],
        "port_guid": port["port_guid"],
        "port": port["port"],
        "lid": port["lid"],
        "peer": peer.get("name"),
        "peer_guid": peer.get("node_guid"),
        "peer_port": peer.get("port"),
        "rate_bits_per_s": port["rate_bits"],
        "wait_ticks_per_s": port["congestion"],
        "xmit_bytes_per_s": port["xmit_bandwidth"],
        "rcv_bytes_per_s": port["rcv_bandwidth"],
        "utilisation_share": port["utilisation"],
        "hot_spot": port["hot_spot"],
        "contributor": port["contributor"],
        "silent": port["silent"],
        "read_at_ns": port["read_at_ns"],
        "lane_wait_ticks": port["lane_waits"],
        "xmit_bytes": totals["port_xmit_data"] * WORD_BYTES,
        "rcv_bytes": totals["port_rcv_data"] * WORD_BYTES,
        "xmit_wait_ticks": totals["port_xmit_wait"],
    }
    renamed = ("port_xmit_data", "port_rcv_data", "port_xmit_wait")
    return row | {name.removeprefix("port_"): count for name, count in totals.items() if name not in renamed}
