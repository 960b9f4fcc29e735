"""Every public method on a laboratory that runs, near and by its hub's door."""

import datetime
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import weft

PATIENCE_S = 60.0


def wait_for(what: str, holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"{what}: not within {PATIENCE_S} s"
        time.sleep(0.02)


def heals(lab: weft.Laboratory) -> None:
    wait_for("every host reaches every other", lambda: lab.check().subnet_up)


def test_status_and_processes(lab: weft.Laboratory) -> None:
    status = lab.status()
    assert (status["lab"], status["running"], status["sm"]["subnet_up"]) == ("default", True, True)
    processes = {process.name: process for process in lab.processes()}
    assert {"sm", "pm", "vmm", "hub", "a0000"} <= processes.keys()
    assert all(process.state == "running" and process.pid for process in processes.values())
    labels = {device.label for process in processes.values() for device in process.devices}
    assert {"S1", "S2", "S3", "S4", "H1", "H4"} <= labels
    assert repr(lab) == "<weft laboratory default>"


def test_check_and_routes(lab: weft.Laboratory) -> None:
    check = lab.check(sample=100)
    assert check and check.subnet_up and not check.problems and check.raw["hosts"] >= 4
    hops = lab.routes("H1", "H3")
    assert hops[0]["node"] == "H1" and hops[-1]["peer"] == "H3"


def test_counters_are_a_table_with_units(lab: weft.Laboratory) -> None:
    table = lab.counters()
    assert table.silent == ()
    assert len({(row["node_guid"], row["port"]) for row in table}) == len(table) > 20
    assert len({tuple(row) for row in table}) == 1, "all rows have the same columns"
    (row,) = table.where(node="S1", port=3)
    assert row["xmit_bytes"] > row["xmit_packets"] > 0 and row["state"] == "active"
    assert row["xmit_wait_ns"] == 4 * row["xmit_wait_ticks"]
    # A packet that crosses the cable is counted on both of its ends.
    wait_for("both ends have counted", lambda: is_balanced(lab.counters(), row))


def is_balanced(table: weft.Table, row: dict) -> bool:
    here = table.where(node_guid=row["node_guid"], port=row["port"])[0]
    there = table.where(node_guid=row["peer_guid"], port=row["peer_port"])[0]
    return here["xmit_bytes"] == there["rcv_bytes"] and there["peer_port"] == here["port"]


def test_the_performance_manager_counts_the_same_ports(lab: weft.Laboratory) -> None:
    wait_for("it has swept", lambda: lab.status()["pm"]["sweeps"] >= 2)
    (row,) = lab.pm_ports().where(node="S1", port=3)
    (same,) = lab.counters().where(node="S1", port=3)
    assert row["peer_guid"] == same["peer_guid"] and 0 < row["xmit_bytes"] <= same["xmit_bytes"]
    assert row["rate_bits_per_s"] == 16 * 10**9 and len(row["lane_wait_ticks"]) == 16


def test_requests_go_to_any_process(lab: weft.Laboratory) -> None:
    assert lab.ask("hub", "lab-status", limit=1)["more"]
    assert lab.ask("sm", "sm-status")["type"] == "sm-status"
    assert len(lab.ask("a0000", "ports", limit=2)["ports"]) == 2
    with pytest.raises(weft.Refused) as refused:
        lab.ask("nobody", "hello")
    assert refused.value.code == "not-found" and refused.value.hint and "hint" in str(refused.value)
    with pytest.raises(weft.Refused) as refused:
        lab.ask("a0000", "sm-status")
    assert refused.value.code == "not-here"
    with pytest.raises(ValueError):
        lab.ask("hub", "events")
    # A refusal does not end the conversation.
    assert lab.ask("hub", "hello")["kind"] == "hub"


def test_threads_share_a_laboratory(lab: weft.Laboratory) -> None:
    told: list[str] = []

    def ask(name: str) -> None:
        told.extend(lab.ask(name, "hello")["name"] for _ in range(50))

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("sm", "hub", "a0001")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(set(told)) == ["a0001", "hub", "sm"] and len(told) == 150


def test_a_cut_cable_shows_in_events_and_faults(lab: weft.Laboratory) -> None:
    began = datetime.datetime.now(datetime.UTC)
    with lab.events(kinds=["link-down", "link-up", "fault"], timeout=PATIENCE_S) as events:
        number = lab.faults.link_down("S3:2", for_s=PATIENCE_S)
        first = next(events)
        assert (first.kind, first.area, first.source, first.fields["target"]) == ("fault", "lab", "hub", "S3:2")
        assert {next(events).fields["node"] for _ in range(2)} == {"S2", "S3"}
        (fault,) = lab.faults.list()
        assert (fault.id, fault.what, fault.at) == (number, "unplugged", ("S2:3", "S3:2"))
        assert fault.until and fault.since.tzinfo and began < fault.since < fault.until
        lab.faults.link_up("S3:2")
        assert any(event.kind == "link-up" for event in events)
    heals(lab)
    assert any(times["fault"] == number and times["detected_after_ns"] for times in lab.faults.times())
    # The same again: behind an event, since a time, and of one process alone.
    past = [event.kind for event in lab.events(kinds=["fault", "link-down"], since=first, past_only=True)]
    assert past[:2] == ["link-down", "link-down"]
    since = [event.raw for event in lab.events(kinds=["fault"], since=began, past_only=True)]
    assert since[0] == first.raw
    sources = {event.source for event in lab.events(sources=["sm"], since="start", past_only=True)}
    assert sources == {"sm"}


def test_events_wait_no_longer_than_told(lab: weft.Laboratory) -> None:
    with lab.events(kinds=["vm-lost"], timeout=0.05) as events:
        for _ in range(2):
            with pytest.raises(weft.NoAnswer, match="no event within"):
                next(events)
    assert list(events) == []
    for wrong in ({"kinds": "fault"}, {"since": datetime.datetime.now()}, {"since": "yesterday"}):
        with pytest.raises((TypeError, ValueError, weft.Refused)):
            lab.events(**wrong)


def test_faults_last_until_they_are_cleared(lab: weft.Laboratory) -> None:
    faults = lab.faults
    amounts = {
        "loss": {"percent": 1, "way": "in", "seed": 7},
        "delay": {"by": "1ms"},
        "jitter": {"by": "1ms"},
        "reorder": {"percent": 1, "by": "1ms"},
        "duplicate": {"percent": 1},
        "bit-errors": {"rate": "1e-9"},
        "flap": {"every": "10s", "down": "100ms"},
        "width": {"to": "1x"},
        "speed": {"to": "sdr"},
    }
    ids = [faults.impair(kind, "S1:3", for_s=600, **amount) for kind, amount in amounts.items()]
    ids += [faults.impair("slow-drain", "H1:1", percent=50), faults.freeze("H2"), faults.partition("H4", "H3")]
    assert None not in ids and {fault.id for fault in faults.list()} == set(ids)
    faults.clear(*ids[:2])
    assert len(faults.list()) == len(ids) - 2
    faults.thaw("H2")
    faults.heal("H4", "H3")
    faults.clear()
    assert faults.list() == []
    heals(lab)


def test_processes_die_and_return(lab: weft.Laboratory) -> None:
    lab.faults.kill("S3")
    (dead,) = [process for process in lab.processes() if process.state == "dead"]
    assert dead.devices[0].label == "S3"
    assert not lab.counters().where(node="S3"), "it counts nothing"
    assert lab.counters().silent == (dead.name,)
    check = lab.check(wait=0)
    assert not check and not check.ok and check.problems
    lab.faults.restart("S3")
    heals(lab)


def test_virtual_machines_come_move_and_go(lab: weft.Laboratory) -> None:
    (one,) = lab.vms.create("web1", host="H1")
    assert one["vm"] == "web1" and one["virtual_port_lid"] > 0
    assert len(lab.vms.create("fleet", count=2)) == 2
    assert {row["vm"] for row in lab.vms.ls()} == {"web1", "fleet-1", "fleet-2"}
    assert lab.vms.plan("web1", "H3", method="skyline")["writes"]
    moved = lab.vms.migrate("web1", "H3")
    assert moved["to"]["host"] == "H3" if isinstance(moved["to"], dict) else "H3" in str(moved["to"])
    for row in lab.vms.ls():
        lab.vms.destroy(row["vm"])
    assert lab.vms.ls() == []
    for wrong in (lambda: lab.vms.forget("web1", force=True), lambda: lab.vms.create("web1", host="H9")):
        with pytest.raises(weft.CommandFailed) as failed:
            wrong()
        assert failed.value.message and failed.value.exit_code in (1, 2)


def test_flows_come_carry_and_go(lab: weft.Laboratory) -> None:
    began = lab.events(kinds=["flow-started", "flow-stopped"], timeout=PATIENCE_S)
    assert lab.flows.start("H1", "H3", name="web", rate=2) == "web"
    assert lab.flows.start("H3", "H4", name="ping", ping_pong=True, size=256, for_s=600) == "ping"
    wait_for("both carry", lambda: all(row["delivered_bytes"] > 0 for row in lab.flows.ls()))
    wait_for("round trips are counted", lambda: lab.flows.ls().where(flow="ping")[0]["round_trips"] > 0)
    (web,) = lab.flows.ls().where(flow="web")
    assert (web["from"], web["to"], web["state"], web["set"]) == ("H1", "H3", "running", None)
    assert web["sent_bytes"] >= web["delivered_bytes"] and web["mean_round_trip_ns"] is None
    (ping,) = lab.flows.ls().where(flow="ping")
    assert ping["mean_round_trip_ns"] > 0 and ping["raw"]["shape"]["message_bytes"] == 256
    lab.flows.stop("web", "ping")
    assert lab.flows.ls() == []
    kinds = [next(began).kind for _ in range(4)]
    assert kinds == ["flow-started", "flow-started", "flow-stopped", "flow-stopped"]
    began.close()


def test_traffic_is_a_set_of_flows(lab: weft.Laboratory) -> None:
    names = lab.flows.traffic("incast", ["H1", "H3", "H4"], set="load", rate=0.5)
    assert names == ["load-1", "load-2"]
    assert {(row["from"], row["to"]) for row in lab.flows.ls().where(set="load")} == {("H3", "H1"), ("H4", "H1")}
    assert len(lab.flows.traffic("ring", ["H1", "H3", "H4"], size=1024)) == len(lab.flows.ls().where(set="traffic")) > 0
    lab.flows.stop(sets=["load"])
    assert not lab.flows.ls().where(set="load")
    lab.flows.stop()
    lab.flows.stop(all=True)
    assert lab.flows.ls() == []


def test_flows_that_cannot_be_are_refused(lab: weft.Laboratory) -> None:
    for wrong in (
        lambda: lab.flows.start("H1", "H1"),
        lambda: lab.flows.start("H1", "H9"),
        lambda: lab.flows.start("H1", "H2", rate=0),
        lambda: lab.flows.start("H1", "H2", name="a b"),
        lambda: lab.flows.traffic("storm"),
        lambda: lab.flows.stop("nobody"),
    ):
        with pytest.raises(weft.CommandFailed) as failed:
            wrong()
        assert failed.value.exit_code in (1, 2) and failed.value.message
    for wrong in (lambda: lab.flows.traffic("ring", "H1"), lambda: lab.flows.stop(sets="load")):
        with pytest.raises(TypeError):
            wrong()
    assert lab.flows.ls() == []


def test_names_that_no_node_has_are_refused(lab: weft.Laboratory) -> None:
    for wrong in (lambda: lab.faults.kill("H9"), lambda: lab.routes("H1", "H9"), lambda: lab.faults.link_down("-x")):
        with pytest.raises(weft.CommandFailed) as failed:
            wrong()
        assert failed.value.exit_code == 2 and failed.value.hint
    with pytest.raises(weft.CommandFailed, match="--way"):
        lab.faults.impair("loss", "S1:2", percent=1, way="up")


def test_a_remote_laboratory_is_the_same(lab: weft.Laboratory, door: str, identities: Path) -> None:
    with weft.connect(at=door, identity=identities / "operator.pem") as far:
        assert far.name == "default" and door in repr(far)
        assert "subnet_up" in far.ask("sm", "sm-status")
        assert far.status()["lab"] == "default" and far.check()
        assert {row["node_guid"] for row in far.counters()} == {row["node_guid"] for row in lab.counters()}
        with far.events(kinds=["fault"], timeout=PATIENCE_S) as events:
            far.faults.link_down("S3:2", for_s=0.2)
            assert next(events).fields["target"] == "S3:2"
        with pytest.raises(weft.CommandFailed) as failed:
            far.down()
        assert failed.value.hint and "take it down where it was started" in failed.value.hint
    with weft.connect(at=door, identity=identities / "viewer.pem") as viewer:
        assert "subnet_up" in viewer.ask("sm", "sm-status")
        with pytest.raises(weft.Refused) as refused:
            viewer.ask("sm", "sm-sweep")
        assert refused.value.code == "forbidden"
        with pytest.raises(weft.CommandFailed, match="operator"):
            viewer.faults.link_down("S3:2")
    heals(lab)


def test_a_killed_hub_is_noticed_and_another_is_found(lab: weft.Laboratory) -> None:
    stream = lab.events(timeout=PATIENCE_S)
    lab.ask("hub", "hello")
    lab.faults.kill("hub")
    with pytest.raises(weft.LaboratoryGone):
        list(stream)
    with pytest.raises(weft.LaboratoryGone):
        lab.ask("hub", "hello")
    with pytest.raises(weft.LaboratoryGone, match="weft hub --detached"):
        lab.ask("hub", "hello")
    with pytest.raises(weft.NoLaboratory, match="weft hub --detached"):
        weft.connect()
    lab.faults.restart("hub")
    assert lab.ask("hub", "hello")["kind"] == "hub"
    wait_for("the hub knows the subnet manager", lambda: is_known(lab, "sm"))


def is_known(lab: weft.Laboratory, process: str) -> bool:
    try:
        return "subnet_up" in lab.ask(process, "sm-status")
    except weft.Refused:
        return False
