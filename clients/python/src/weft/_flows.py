"""Traffic of a running laboratory: what ``weft flow`` and ``weft traffic`` do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ._program import duration, options
from ._types import Table, flow_row

if TYPE_CHECKING:
    from ._lab import Laboratory

PATTERNS = ("all-to-all", "incast", "ring", "permutation", "bisect")


class Flows:
    """Flows between hosts and virtual machines. The hub owns them: they run on when this program has ended.

    The options of a flow are those of ``weft flow start --help``: ``rate`` (MB/s, 4 where nothing is said),
    ``unlimited``, ``size`` and ``packet`` (bytes), ``ping_pong``, ``datagrams``, ``bytes``; and ``for_s``, seconds.
    """

    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab

    def start(self, source: str, destination: str, *, name: str | None = None, **shape: Any) -> str:
        """Start a flow from a host to another, and return its name. An end is ``H1``, ``H1:1`` or ``vm:web1``."""
        words = ("start", source, destination, *_shape({"name": name, **shape}))
        (begun,) = self._begun("flow", words)
        return begun

    def traffic(
        self,
        pattern: str,
        hosts: Iterable[str] | None = None,
        *,
        set: str = "traffic",
        seed: int | None = None,
        **shape: Any,
    ) -> list[str]:
        """Start a pattern of flows as a set, among all hosts or these, and return their names.

        Patterns are "all-to-all", "incast" (all others to the first host), "ring", "permutation" and "bisect".
        """
        if isinstance(hosts, str):
            raise TypeError("hosts= takes a list of names")
        among = ",".join(hosts) if hosts is not None else None
        given = {"hosts": among, "set": set, "seed": seed, **shape}
        return self._begun("traffic", ("start", pattern, *_shape(given)))

    def ls(self) -> Table:
        """List flows: a row each, with units in the names of columns. ``raw`` has both ends' reports."""
        return Table(map(flow_row, self._lab.run_json("flow", "ls")))

    def stop(self, *names: str, sets: Iterable[str] = (), all: bool = False) -> None:
        """Stop flows by name or set, or all of them: what is under way arrives, then both hosts forget them."""
        if isinstance(sets, str):
            raise TypeError("sets= takes a list of names")
        if not (names or sets or all):
            return
        self._lab.run("flow", "stop", *names, *options({"set": list(sets), "all": all}))

    def _begun(self, verb: str, words: Iterable[str]) -> list[str]:
        names: list[str] = self._lab.run_json(verb, *words)["begun"]
        return names


def _shape(given: dict[str, Any]) -> list[str]:
    for_s = given.pop("for_s", None)
    return options({**given, "for": duration(for_s) if for_s is not None else None})
