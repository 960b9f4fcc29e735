"""weft from Python: start, break, watch and check laboratories of emulated InfiniBand fabrics.

>>> import weft
>>> with weft.up("ring-4.topo", pm=True) as lab:
...     lab.faults.link_down("S3:2", for_s=5)
...     print(lab.check().ok)

:func:`up` starts a laboratory and :func:`connect` finds a running one; both return a :class:`Laboratory`.
All failures are a :class:`WeftError`. docs/python.md is the guide.
"""

from ._events import Events
from ._faults import Faults
from ._flows import Flows
from ._lab import Laboratory, connect, up
from ._routes import compare_routes, compute_routes, verify_routes
from ._types import Check, Device, Event, Fault, Process, Table
from ._vms import Vms
from .errors import (
    BadAnswer,
    CommandFailed,
    LaboratoryGone,
    NoAnswer,
    NoLaboratory,
    NoProgram,
    Refused,
    WeftError,
)

__version__ = "0.2.0"

__all__ = [
    "BadAnswer",
    "Check",
    "CommandFailed",
    "Device",
    "Event",
    "Events",
    "Fault",
    "Faults",
    "Flows",
    "Laboratory",
    "LaboratoryGone",
    "NoAnswer",
    "NoLaboratory",
    "NoProgram",
    "Process",
    "Refused",
    "Table",
    "Vms",
    "WeftError",
    "compare_routes",
    "compute_routes",
    "connect",
    "up",
    "verify_routes",
]
