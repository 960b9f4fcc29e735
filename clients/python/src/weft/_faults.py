"""Faults: what ``weft fault`` does."""

from __future__ import annotations

import builtins
import re
from typing import TYPE_CHECKING, Any

from ._program import duration, options
from ._types import Fault

if TYPE_CHECKING:
    from ._lab import Laboratory


class Faults:
    """Break and repair nodes and cables. A port is ``NODE:PORT``, a node its description, GUID or id.

    A lasting fault ends after ``for_s`` seconds, with :meth:`clear`, or with its counterpart. Methods return its id.
    """

    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab

    def kill(self, process: str) -> None:
        """Kill a node's agent, or a process by name (``sm``, ``pm``, ``vmm``, ``hub``), as ``kill -9`` does."""
        self._do("kill", process)

    def restart(self, process: str) -> None:
        """Start it again; kill it first if it runs."""
        self._do("restart", process)

    def freeze(self, process: str, *, for_s: float | None = None) -> str | None:
        """Freeze a node or a process: it answers nothing and keeps its state."""
        return self._do("freeze", process, for_s=for_s)

    def thaw(self, process: str) -> None:
        """Let it go on."""
        self._do("thaw", process)

    def link_down(self, port: str, *, for_s: float | None = None) -> str | None:
        """Unplug the cable of a port."""
        return self._do("link-down", port, for_s=for_s)

    def link_up(self, port: str) -> None:
        """Plug it back in."""
        self._do("link-up", port)

    def partition(self, *nodes: str, for_s: float | None = None) -> str | None:
        """Unplug all cables between these nodes and all others."""
        return self._do("partition", *nodes, for_s=for_s)

    def heal(self, *nodes: str) -> None:
        """Plug them back in."""
        self._do("heal", *nodes)

    def impair(self, kind: str, port: str, *, for_s: float | None = None, **amounts: Any) -> str | None:
        """Impair a cable or a port: ``impair("loss", "S1:2", percent=5)``.

        Also ``delay`` and ``jitter`` (``by="2ms"``), ``reorder`` (``percent``, ``by``), ``duplicate`` (``percent``),
        ``bit-errors`` (``rate``), ``flap`` (``every``, ``down``), ``width`` and ``speed`` (``to``) and ``slow-drain``
        (``percent``). Impairments of a cable take ``way`` ("both", "in", "out") and ``seed``.
        """
        return self._do(f"add {kind}", port, for_s=for_s, **amounts)

    def list(self) -> list[Fault]:
        """List the lasting faults."""
        return [Fault.of(raw) for raw in self._lab.run_json("fault", "ls")]

    def times(self) -> builtins.list[dict[str, Any]]:
        """List what faults cost: when they were detected, rerouted and restored, in ns, and lost pairs of hosts."""
        times: builtins.list[dict[str, Any]] = self._lab.run_json("fault", "times")
        return times

    def clear(self, *ids: str) -> None:
        """End these faults; without ids, all of them."""
        self._lab.run("fault", "clear", *(ids or ("--all",)))

    def _do(self, verb: str, *targets: str, for_s: float | None = None, **amounts: Any) -> str | None:
        amounts["for"] = None if for_s is None else duration(for_s)
        # A name that begins with a dash is no option.
        _, stderr = self._lab.run("fault", *verb.split(), *options(amounts), "--", *targets)
        found = re.search(r"\(fault ([^,)]+)", stderr.decode(errors="replace"))
        return found[1] if found else None
