"""States of made-up laboratories, as the page's server writes them: trees of any size, and the scene of the dFtree paper."""

from typing import Any

State = dict[str, Any]
BEGIN_MS = 1_764_379_650_000


def empty(lab: str) -> State:
    """A laboratory without devices."""
    tables = ["nodes", "cables", "flows", "vms", "faults", "managers", "partitions", "alarms", "hot", "events"]
    state: State = {
        "v": 1,
        "lab": lab,
        "at_ms": BEGIN_MS,
        "clock": "wall",
        "shaped": False,
        "may_act": True,
        "role": "operator",
        "watched": True,
    }
    return state | {table: {} for table in tables}


class Builder:
    """Adds devices and cables to a state, row by row from the top."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.ports: dict[str, int] = {}

    def node(self, name: str, kind: str, x: float, y: float, rank: int, leaf: str | None = None) -> str:
        nth = len(self.state["nodes"])
        self.state["nodes"][str(nth)] = {
            "name": name,
            "kind": kind,
            "guid": f"0x{0x8F10_0000_0000 + nth:016x}",
            "x": x,
            "y": y,
            "rank": rank,
            "leaf": leaf,
            "state": "up",
            "process": f"a{nth:05}",
            "pid": 10_000 + nth,
            "lids": [nth + 1],
            "roles": [],
            "hot": False,
        }
        return str(nth)

    def cable(self, a: str, b: str, rate: str = "4x QDR", gbps: float = 32.0) -> str:
        ends = []
        for end in (a, b):
            self.ports[end] = self.ports.get(end, 0) + 1
            ends.append(self.ports[end])
        nth = str(len(self.state["cables"]))
        self.state["cables"][nth] = {
            "a": a,
            "ap": ends[0],
            "b": b,
            "bp": ends[1],
            "rate": rate,
            "gbps": gbps,
            "state": "active",
            "faults": [],
            "planned": None,
        }
        return nth

    def done(self, height: float, width: float, rows: list[str]) -> State:
        nodes, cables = self.state["nodes"].values(), self.state["cables"]
        self.state["layout"] = {"kind": "tiers", "width": width, "height": height, "rows": rows}
        self.state["summary"] = {
            "switches": sum(node["kind"] == "switch" for node in nodes),
            "hosts": sum(node["kind"] == "host" for node in nodes),
            "cables": len(cables),
            "links_down": 0,
            "flows": len(self.state["flows"]),
            "mbps": 0.0,
        }
        self.state["partitions"]["0x7fff"] = {"name": "Default", "members": self.state["summary"]["hosts"]}
        self.state["managers"]["sm"] = {
            "kind": "sm",
            "node": "host-0",
            "state": "master",
            "phase": "idle",
            "window": 8,
            "in_flight": 0,
            "text": "swept 2 s ago",
        }
        self.state["managers"]["pm"] = {"kind": "pm", "node": "host-0", "state": "running", "text": "every 2 s"}
        first = next((node for node in nodes if node["kind"] == "host"), None)
        if first:
            first["roles"] = ["sm"]
            self.state["managers"]["sm"]["node"] = self.state["managers"]["pm"]["node"] = first["name"]
        return self.state


def spread(nth: int, count: int, width: float) -> float:
    return (nth + 0.5) / count * width


def two_levels(leaves: int, spines: int, hosts: int, lab: str = "tree") -> State:
    """A fat tree: each leaf has `hosts` hosts and a cable to each spine."""
    state = empty(lab)
    build = Builder(state)
    width, row = float(max(leaves * hosts, leaves, spines)), 14.0 if leaves * hosts > 56 else 4.0
    tops = [build.node(f"spine-{nth}", "switch", spread(nth, spines, width), 0, 2) for nth in range(spines)]
    lows = [build.node(f"leaf-{nth}", "switch", spread(nth, leaves, width), row, 1) for nth in range(leaves)]
    for leaf in range(leaves):
        for host in range(hosts):
            nth = leaf * hosts + host
            build.cable(
                lows[leaf],
                build.node(f"host-{nth}", "host", spread(nth, leaves * hosts, width), 2 * row, 0, lows[leaf]),
            )
    for low in lows:
        for top in tops:
            build.cable(low, top)
    return build.done(2 * row, width, ["rank 2", "rank 1", "hosts"])


def three_levels(pods: int, half: int, lab: str = "large") -> State:
    """A fat tree of three levels: `pods` pods of `half` leaves and `half` switches above, `half` hosts a leaf, half * half at the top."""
    state = empty(lab)
    build = Builder(state)
    leaves = pods * half
    width = float(leaves * half)
    tops = [build.node(f"core-{nth}", "switch", spread(nth, half * half, width), 0, 3) for nth in range(half * half)]
    mids = [build.node(f"spine-{nth}", "switch", spread(nth, leaves, width), 14, 2) for nth in range(leaves)]
    lows = [build.node(f"leaf-{nth}", "switch", spread(nth, leaves, width), 28, 1) for nth in range(leaves)]
    for nth in range(leaves * half):
        low = lows[nth // half]
        build.cable(low, build.node(f"host-{nth}", "host", spread(nth, leaves * half, width), 42, 0, low))
    for pod in range(pods):
        for one in range(half):
            for other in range(half):
                build.cable(lows[pod * half + one], mids[pod * half + other])
                build.cable(mids[pod * half + one], tops[one * half + other])
    return build.done(42, width, ["rank 3", "rank 2", "rank 1", "hosts"])


def x5() -> State:
    """As many devices as the cluster X5 has: 11 switches, 89 hosts, 159 cables, with parallel ones."""
    state = empty("x5")
    build = Builder(state)
    tops = [build.node(f"S{nth + 1}", "switch", spread(nth, 2, 89), 0, 2) for nth in range(2)]
    lows = [build.node(f"S{nth + 3}", "switch", spread(nth, 9, 89), 22, 1) for nth in range(9)]
    for nth in range(89):
        low = lows[nth * 9 // 89]
        build.cable(
            low,
            build.node(f"host-{nth} mlx5_0", "host", spread(nth, 89, 89), 44, 0, low),
            "4x DDR" if nth % 5 == 0 else "4x QDR",
            16 if nth % 5 == 0 else 32,
        )
    for nth in range(70):
        build.cable(lows[nth % 9], tops[nth // 9 % 2])
    return build.done(44, 89, ["rank 2", "rank 1", "hosts"])


def flow(
    state: State, name: str, ends: tuple[str, str], path: list[tuple[str, int]], mbps: float, lane: int = 0
) -> None:
    """A flow that runs, and its data on each link."""
    state["flows"][name] = {
        "name": name,
        "set": None,
        "from": ends[0],
        "to": ends[1],
        "state": "running",
        "mbps": mbps,
        "delivered": 1_200_000_000,
        "repeated": 0,
        "sl": lane,
        "vl": lane,
        "mean_us": 41.0,
        "max_us": 212.0,
        "why": None,
        "path": [[cable, way, lane] for cable, way in path],
    }
    for cable, way in path:
        data = state["cables"][cable].setdefault("ba" if way else "ab", {"mbps": 0.0, "wait": 0.0, "lanes": {}})
        data["mbps"] += mbps
        own = data["lanes"].setdefault(str(lane), {"mbps": 0.0, "wait": 0.0})
        own["mbps"] += mbps


def wait(state: State, cable: str, way: int, share: float, lane: int = 0) -> None:
    """Packets on one direction of a cable wait for credits."""
    data = state["cables"][cable]["ba" if way else "ab"]
    data["wait"] = max(data["wait"], share)
    data["lanes"][str(lane)]["wait"] = share


def dftree() -> State:
    """Experiment I of the dFtree paper, figure 5: hosts 1, 3 and 6 send to host 5, and flow 2-3 waits behind 1-5."""
    state = empty("dftree-1") | {"shaped": True}
    build = Builder(state)
    root = build.node("R", "switch", 6, 0, 2)
    leaves = [build.node(name, "switch", 2 + 4 * nth, 3, 1) for nth, name in enumerate("ABC")]
    hosts = [build.node(f"host-{nth + 1}", "host", 1 + 2 * nth, 6, 0, leaves[nth // 2]) for nth in range(6)]
    down = [build.cable(leaves[nth // 2], host, "4x DDR", 16) for nth, host in enumerate(hosts)]
    up = [build.cable(leaves[nth // 2], root, "4x DDR", 16) for nth in range(6)]
    build.done(6, 12, ["rank 2", "rank 1", "hosts"])
    to_mb = 1000 / 8
    flow(state, "2-3", ("host-2", "host-3"), [(down[1], 1), (up[0], 0), (up[2], 1), (down[2], 0)], 3.23 * to_mb)
    flow(state, "1-5", ("host-1", "host-5"), [(down[0], 1), (up[0], 0), (up[4], 1), (down[4], 0)], 3.23 * to_mb)
    flow(state, "3-5", ("host-3", "host-5"), [(down[2], 1), (up[3], 0), (up[4], 1), (down[4], 0)], 3.23 * to_mb)
    flow(state, "6-5", ("host-6", "host-5"), [(down[5], 1), (down[4], 0)], 6.45 * to_mb)
    for cable, way, share in [
        (up[0], 0, 0.61),
        (down[0], 1, 0.72),
        (down[1], 1, 0.55),
        (up[4], 1, 0.48),
        (up[3], 0, 0.4),
        (down[5], 1, 0.3),
    ]:
        wait(state, cable, way, share)
    state["summary"] |= {"flows": 4, "mbps": 2017.5}
    return state


def hot_spot_found(state: State) -> State:
    """What the performance manager says of it, as a patch: the flows to host 5 take the slow lane."""
    nodes = {id: {"hot": True} for id, node in state["nodes"].items() if node["name"] == "host-5"}
    return {
        "nodes": nodes,
        "hot": {"host-5": {"since_ms": state["at_ms"] - 4000, "slow_lane": ["host-1", "host-3", "host-6"]}},
    }
