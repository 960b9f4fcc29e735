"""A laboratory for all tests: a ring of four switches and four hosts with virtual functions, and a door."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import weft

TOPOLOGIES = Path(__file__).parents[3] / "topologies"


@pytest.fixture(scope="session", autouse=True)
def home() -> Iterator[Path]:
    """The folder of laboratories; paths of sockets have to be short."""
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        os.environ["WEFT_HOME"] = folder
        yield Path(folder)


@pytest.fixture(scope="session")
def door() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.fixture(scope="session")
def lab(home: Path, door: str) -> Iterator[weft.Laboratory]:
    options = {"pm": True, "vfs": 2, "lids": "dynamic", "hub_door": door.split(":")[1]}
    with weft.up(TOPOLOGIES / "ring-4.topo", **options) as lab:
        yield lab
    assert not list(home.iterdir()), "nothing is left of it"


@pytest.fixture
def identities(lab: weft.Laboratory, home: Path) -> Path:
    return home / lab.name / "identities"
