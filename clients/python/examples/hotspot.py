"""Watch a victim while a hot spot comes and goes: its throughput beside the XmitWait on its way.

    python3 examples/hotspot.py H1 H3 --hot H4

The victim sends from the first host to the second. For the middle third the senders send to the hot host: the victim's ends, or those
of `--senders`. It needs a running laboratory. `--plot FILE` draws with matplotlib; without matplotlib the picture is left out.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass

import weft

VICTIM, HOT = "victim", "hot-spot"
BAR = 30


@dataclass
class Sample:
    """The victim between two moments."""

    at_s: float
    bytes_per_s: float
    """What the receiver got."""
    wait_ticks_per_s: float
    """What the ports on its way waited for credit."""
    is_hot: bool


def way_of(lab: weft.Laboratory, source: str, destination: str) -> list[tuple[str, int]]:
    """The ports by which the victim's packets leave each node, by the tables in the switches."""
    return [(hop["node"], hop["out_port"]) for hop in lab.routes(source, destination)]


def look(lab: weft.Laboratory, way: list[tuple[str, int]]) -> tuple[float, int, int]:
    """The time, the victim's delivered bytes, and the ticks of XmitWait on its way."""
    (flow,) = lab.flows.ls().where(flow=VICTIM)
    waits = sum(row["xmit_wait_ticks"] for row in lab.counters() if (row["node"], row["port"]) in way)
    return time.monotonic(), flow["delivered_bytes"], waits


def watch(lab: weft.Laboratory, args: argparse.Namespace) -> Iterator[Sample]:
    way = way_of(lab, args.source, args.destination)
    senders = [host for host in args.senders if host != args.hot]
    lab.flows.start(args.source, args.destination, name=VICTIM, rate=args.rate)
    began, is_hot, last = time.monotonic(), False, look(lab, way)
    while last[0] - began < args.seconds:
        share = (last[0] - began) / args.seconds
        if not is_hot and 1 / 3 <= share < 2 / 3:
            lab.flows.traffic("incast", [args.hot, *senders], set=HOT, rate=args.hot_rate, unlimited=args.hot_rate is None)
            is_hot = True
        elif is_hot and share >= 2 / 3:
            lab.flows.stop(sets=[HOT])
            is_hot = False
        time.sleep(args.every)
        now = look(lab, way)
        passed = now[0] - last[0]
        yield Sample(now[0] - began, (now[1] - last[1]) / passed, (now[2] - last[2]) / passed, is_hot)
        last = now


def plot(samples: list[Sample], file: str) -> None:
    try:
        from matplotlib import pyplot
    except ImportError:
        print(f"no matplotlib, so {file} is not drawn")
        return
    figure, (above, below) = pyplot.subplots(2, sharex=True)
    times = [sample.at_s for sample in samples]
    above.plot(times, [sample.bytes_per_s / 1e6 for sample in samples], marker="o")
    above.set(ylabel="victim, MB/s", ylim=(0, None))
    below.plot(times, [sample.wait_ticks_per_s for sample in samples], marker="s", linestyle="--")
    below.set(xlabel="seconds", ylabel="XmitWait, ticks/s", ylim=(0, None))
    for axes in (above, below):
        hot = [sample.at_s for sample in samples if sample.is_hot]
        if hot:
            axes.axvspan(hot[0], hot[-1], alpha=0.2, label="hot spot")
            axes.legend()
    figure.savefig(file)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", help="the host that sends to the victim's other end")
    parser.add_argument("destination")
    parser.add_argument("--hot", metavar="HOST", required=True, help="the host of the hot spot")
    parser.add_argument("--senders", metavar="HOST", nargs="+", help="who sends to it [default: the victim's ends]")
    parser.add_argument("--rate", type=float, default=8.0, metavar="MB/S", help="of the victim")
    parser.add_argument("--hot-rate", type=float, metavar="MB/S", help="of each sender [default: unlimited]")
    parser.add_argument("--lab", metavar="NAME")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS", help="the hub counts once a second")
    parser.add_argument("--plot", metavar="FILE", help="draw a picture, such as hotspot.png")
    args = parser.parse_args()
    args.senders = args.senders or [args.source, args.destination]
    samples = []
    with weft.connect(args.lab) as lab:
        print(f"{'s':>6} {'victim MB/s':>12} {'XmitWait/s':>12}  hot spot")
        try:
            for sample in watch(lab, args):
                samples.append(sample)
                row = f"{sample.at_s:6.1f} {sample.bytes_per_s / 1e6:12.2f} {sample.wait_ticks_per_s:12.0f}"
                print(f"{row}  {'on' if sample.is_hot else ''}".rstrip(), flush=True)
        finally:
            lab.flows.stop(*(row["flow"] for row in lab.flows.ls().where(flow=VICTIM)))
            if lab.flows.ls().where(set=HOT):
                lab.flows.stop(sets=[HOT])
    if args.plot:
        plot(samples, args.plot)


if __name__ == "__main__":
    try:
        main()
    except weft.WeftError as error:
        raise SystemExit(f"error: {error}") from None
