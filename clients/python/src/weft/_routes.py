"""Routings of topology files, without a laboratory: what ``weft routes`` does."""

from __future__ import annotations

import os
from typing import Any

from . import _program

File = str | os.PathLike[str]
# Large fabrics take minutes.
PATIENCE_S = 3600.0


def compute_routes(
    topology: File,
    engine: str = "auto",
    *,
    dump: File | None = None,
    program: File | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Route a fabric; with ``dump`` write the tables into a folder, in the formats of OpenSM's files."""
    routing: dict[str, Any] = _routes(program, "compute", topology, engine=engine, dump=dump, **options)
    return routing


def verify_routes(topology: File, folder: File, *, program: File | None = None, **options: Any) -> dict[str, Any]:
    """Verify the tables in a folder. The verdict says what is wrong; a bad routing is no exception."""
    verdict: dict[str, Any] = _routes(program, "verify", topology, folder, **options)
    return verdict


def compare_routes(topology: File, engines: list[str], *, program: File | None = None, **options: Any) -> Any:
    """Route a fabric with several engines, and compare their quality."""
    return _routes(program, "compare", topology, engines=",".join(engines), **options)


def _routes(program: File | None, verb: str, *files: File, **options: Any) -> Any:
    words = [verb, "--json", *_program.options(options), "--", *(os.fspath(file) for file in files)]
    return _program.run_json([_program.find(program), "routes", *words], PATIENCE_S, (0, 1))
