"""Watch a victim port while a cable is cut: its throughput beside its XmitWait, and the subnet manager's answer.

    python3 examples/victim.py S1:3 --cut S3:2

It needs a running laboratory, and shows whatever traffic that carries. `--plot FILE` needs matplotlib.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import weft


@dataclass
class Sample:
    """The port between two moments."""

    at_s: float
    xmit_bytes_per_s: float
    xmit_wait_ticks: int
    events: list[str]


def port_of(lab: weft.Laboratory, name: str) -> dict[str, Any]:
    node, _, port = name.rpartition(":")
    rows = lab.counters().where(node=node, port=int(port))
    if not rows:
        raise SystemExit(f"no port {name} answers")
    return rows[0]


def watch(lab: weft.Laboratory, victim: str, cut: str, seconds: float, every_s: float) -> Iterator[Sample]:
    """Samples of the port; the cable is out for the middle third."""
    with lab.events(kinds=["link-down", "link-up", "routed", "subnet-up"], timeout=0.01) as events:
        began, is_cut = time.monotonic(), False
        last, last_s = port_of(lab, victim), 0.0
        while last_s < seconds:
            time.sleep(every_s)
            now_s, now = time.monotonic() - began, port_of(lab, victim)
            sent = now["xmit_bytes"] - last["xmit_bytes"]
            yield Sample(
                now_s,
                sent / (now_s - last_s),
                now["xmit_wait_ticks"] - last["xmit_wait_ticks"],
                happened(events),
            )
            last, last_s = now, now_s
            if not is_cut and now_s >= seconds / 3:
                is_cut = True
                lab.faults.link_down(cut, for_s=seconds / 3)


def happened(events: weft.Events) -> list[str]:
    """What has happened since the last look."""
    found: list[str] = []
    try:
        found.extend(event.kind + at(event) for event in events)
    except weft.NoAnswer:
        pass
    return found


def at(event: weft.Event) -> str:
    return f" {event.fields['node']}:{event.fields['port']}" if "port" in event.fields else ""


def plot(samples: list[Sample], file: str) -> None:
    from matplotlib import pyplot

    figure, (above, below) = pyplot.subplots(2, sharex=True)
    times = [sample.at_s for sample in samples]
    above.plot(times, [sample.xmit_bytes_per_s for sample in samples])
    above.set_ylabel("sent, bytes/s")
    below.plot(times, [sample.xmit_wait_ticks for sample in samples])
    below.set(xlabel="seconds", ylabel="XmitWait, ticks")
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("victim", metavar="NODE:PORT")
    parser.add_argument("--cut", metavar="NODE:PORT", required=True, help="a port of the cable that is cut")
    parser.add_argument("--lab", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=9.0)
    parser.add_argument("--every", type=float, default=0.5, metavar="SECONDS")
    parser.add_argument("--plot", metavar="FILE", help="write a picture, such as victim.png")
    args = parser.parse_args()
    samples = []
    with weft.connect(args.lab) as lab:
        print(f"{'s':>6} {'bytes/s':>12} {'XmitWait':>10}  events")
        for sample in watch(lab, args.victim, args.cut, args.seconds, args.every):
            samples.append(sample)
            row = f"{sample.at_s:6.1f} {sample.xmit_bytes_per_s:12.0f} {sample.xmit_wait_ticks:10d}"
            print(f"{row}  {', '.join(sample.events)}".rstrip(), flush=True)
    if args.plot:
        plot(samples, args.plot)


if __name__ == "__main__":
    try:
        main()
    except weft.WeftError as error:
        raise SystemExit(f"error: {error}") from None
