"""Virtual machines: what ``weft vm`` does, in a laboratory with ``vfs=``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._program import options

if TYPE_CHECKING:
    from ._lab import Laboratory


class Vms:
    """Virtual machines in virtual functions. Rows have UFM's field names, as ``weft vm ls --json``."""

    def __init__(self, lab: Laboratory) -> None:
        self._lab = lab

    def create(
        self, name: str, *, host: str | None = None, count: int | None = None, **more: Any
    ) -> list[dict[str, Any]]:
        """Start one, or a fleet of ``count``, and wait for LIDs. Also ``vf``, ``guid``, ``pkey``, ``rate`` (Gb/s)."""
        return self._rows("create", name, *options({"host": host, "count": count, **more}))

    def ls(self) -> list[dict[str, Any]]:
        """List them."""
        return self._rows("ls")

    def plan(self, name: str, host: str, **way: Any) -> dict[str, Any]:
        """Return which switches and blocks a move would write. Nothing is sent. ``method``, ``update``, ``late``."""
        return self._move("plan", name, host, way)

    def migrate(self, name: str, host: str, **way: Any) -> dict[str, Any]:
        """Move one; it keeps its GUID and its LID. Also ``cold``, ``pre_copy`` (ms) and the options of a plan."""
        return self._move("migrate", name, host, way)

    def destroy(self, name: str) -> None:
        """End one."""
        self._lab.run("vm", "destroy", name)

    def forget(self, name: str, *, force: bool = False) -> None:
        """Give up one that is lost, or whose host cannot be reached."""
        self._lab.run("vm", "forget", name, *options({"force": force}))

    def _rows(self, *words: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._lab.run_json("vm", *words)
        return rows

    def _move(self, verb: str, name: str, host: str, way: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = self._lab.run_json("vm", verb, name, host, *options(way))
        return told
