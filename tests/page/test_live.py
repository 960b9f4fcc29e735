"""The page in a real browser, on laboratories that run."""

import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Watched
from playwright.sync_api import Browser, expect

ROOT = Path(__file__).parents[2]
WEFT = os.environ.get("WEFT_PROGRAM", "weft")
# What a link takes to notice, and half a second.
KILL_SHOWS_S = 0.5 + 2.0
FOUND_S = 30.0


class Lab:
    """A laboratory, and the page that `weft ui` serves of it."""

    def __init__(self, topology: str, *options: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="weft-")
        self.pages: list[subprocess.Popen[str]] = []
        self("up", *options, topology)

    def command(self, *arguments: str) -> list[str]:
        return [WEFT, *arguments]

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"WEFT_HOME": self.folder.name, "NO_COLOR": "1"}

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            self.command(*arguments),
            env=self.environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=170,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done.stdout

    def ui(self, *options: str) -> str:
        page = subprocess.Popen(
            self.command("ui", "--no-browser", *options),
            env=self.environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pages.append(page)
        assert page.stdout
        return page.stdout.readline().strip()

    def down(self) -> None:
        for page in self.pages:
            page.terminate()
            page.wait(10)
        self("down")
        self.folder.cleanup()


@pytest.fixture
def labs() -> Iterator[Any]:
    begun: list[Lab] = []

    def start(topology: str, *options: str) -> Lab:
        begun.append(Lab(topology, *options))
        return begun[-1]

    yield start
    for lab in begun:
        lab.down()


@pytest.fixture
def look(browser: Browser) -> Iterator[Any]:
    begun: list[tuple[Watched, str]] = []

    def at(url: str, view: str = "", **options: Any) -> Watched:
        watched = Watched(browser.new_page(**({"viewport": {"width": 1440, "height": 900}} | options)))
        begun.append((watched, url.split("/#")[0]))
        watched.page.goto(url + (f"&{view}" if view else ""))
        watched.until("Boolean(globalThis.weft?.map.scene)", "the fabric is drawn")
        return watched

    yield at
    for watched, origin in begun:
        watched.is_quiet(origin)
        watched.page.close()


def hosts_of(watched: Watched) -> list[str]:
    """Hosts as a flow names them: by name, or by GUID where names are alike."""
    watched.page.wait_for_timeout(300)
    return watched.page.evaluate("[...document.querySelectorAll('#ends option')].map(option => option.value)")


def test_x5_is_shown_broken_and_repaired(labs: Any, look: Any) -> None:
    lab = labs("topologies/psmn-x5.topo", "--pm")
    watched = look(lab.ui())
    page = watched.page
    assert page.evaluate("Object.keys(weft.store.state.nodes).length") == 100
    summary = page.get_by_role("list", name="Summary")
    for words in ["11", "89", "159"]:
        expect(summary).to_contain_text(words)
    watched.picture("live-x5")
    hosts = hosts_of(watched)
    page.get_by_label("From", exact=True).fill(hosts[0])
    page.get_by_label("To", exact=True).fill(hosts[-1])
    page.get_by_label("Name", exact=True).fill("web")
    page.get_by_role("button", name="Start flow").click()
    inspector = page.get_by_role("region", name="Selection")
    expect(inspector.get_by_role("heading", name="web")).to_be_visible(timeout=20_000)
    expect(inspector.locator(".hop").first).to_be_visible()
    watched.until("Object.values(weft.store.state.flows)[0].mbps > 0", "it delivers")
    watched.picture("live-flow")
    kill(watched)
    faults(watched)
    gone_and_back(lab, watched)
    tape(watched)
    page.get_by_role("tab", name="Flows").click()
    page.get_by_role("row").filter(has_text="web").get_by_role("button", name="Stop").click()
    watched.until("!['running', 'starting'].includes(weft.store.state.flows.web?.state)", "the flow ends")


SPARE_SWITCH = """(() => {
  const { nodes, cables, flows } = weft.store.state;
  const on = new Set(Object.values(flows).flatMap((flow) => flow.path.flatMap(([id]) => [cables[id].a, cables[id].b])));
  const [id, node] = Object.entries(nodes).find(([id, node]) => node.kind === 'switch' && !on.has(id));
  return [id, node.name];
})()"""


def kill(watched: Watched) -> None:
    """A switch that no flow needs is killed from the page, and comes back."""
    page = watched.page
    id, name = page.evaluate(SPARE_SWITCH)
    page.evaluate(f"weft.choose({{ node: '{id}' }})")
    page.get_by_role("button", name="Kill", exact=True).click()
    begun = time.monotonic()
    watched.until(f"weft.store.state.nodes['{id}'].state === 'down'", "the kill shows")
    took = time.monotonic() - begun
    print(f"\na kill shows after {took:.2f} s")
    assert took < KILL_SHOWS_S
    expect(page.locator("#alarms .item").first).to_be_visible(timeout=20_000)
    watched.picture("live-killed")
    page.get_by_role("button", name="Restart", exact=True).click()
    watched.until(f"weft.store.state.nodes['{id}'].state === 'up'", f"{name} is back")


def faults(watched: Watched) -> None:
    page = watched.page
    page.evaluate("weft.choose({ cable: Object.keys(weft.store.state.cables)[0] })")
    page.get_by_role("button", name="Lose", exact=True).click()
    expect(page.locator("#faults .item")).to_have_count(1, timeout=20_000)
    page.locator("#faults").get_by_role("button", name="Clear").click()
    expect(page.locator("#faults .item")).to_have_count(0, timeout=20_000)


def gone_and_back(lab: Lab, watched: Watched) -> None:
    hub = next(row["pid"] for row in json.loads(lab("ps", "--json")) if row["kind"] == "hub")
    os.kill(hub, 9)
    expect(watched.page.get_by_role("alert")).to_contain_text("The laboratory is gone", timeout=20_000)
    watched.picture("live-gone")
    lab("hub", "--detached")
    expect(watched.page.locator("#status")).to_have_text("live", timeout=30_000)


def tape(watched: Watched) -> None:
    page = watched.page
    watched.until("weft.tape.range?.marks.length > 0", "the time bar knows events")
    page.get_by_role("button", name="Event before").click()
    expect(page.locator("#status")).to_have_text("past")
    page.get_by_role("button", name="Step back").click()
    page.get_by_role("button", name="Live: back to now").click()
    expect(page.locator("#status")).to_have_text("live")


def test_hot_spot_and_victim_are_found_in_dftree(labs: Any, look: Any) -> None:
    # The performance manager comes late, so that there is something to find before it helps.
    pm = ["--pm", "--pm-interval", "6000"]
    lab = labs("topologies/dftree-1.topo", *pm, "--rates", "experiments/dftree-1.toml")
    watched = look(lab.ui())
    for one, other in [(2, 3), (1, 5), (3, 5), (6, 5)]:
        lab("flow", "start", f"host-{one}", f"host-{other}", "--name", f"{one}-{other}")
    begun = time.monotonic()
    hot = watched.page.get_by_role("region", name="Hot spots")
    expect(hot).to_contain_text("host-5", timeout=FOUND_S * 1000)
    expect(hot).to_contain_text("Victim: 2-3", timeout=FOUND_S * 1000)
    took = time.monotonic() - begun
    # In Gb/s of fabric time. How much it is, flows_shaped.rs judges by closed forms.
    expect(hot).to_contain_text(re.compile(r"has [1-9][\d.]* Gb/s"), timeout=FOUND_S * 1000)
    print(f"\nhot spot and victim are found after {took:.1f} s")
    assert took < FOUND_S
    watched.picture("live-hot-spot")
    # It finds them too, and the contributors leave the victim's lane.
    expect(hot).to_contain_text("host-5 is a hot spot", timeout=FOUND_S * 1000)
    expect(hot).to_contain_text("On the slow lane: host-1", timeout=FOUND_S * 1000)
    expect(hot).to_contain_text("Victims: none", timeout=FOUND_S * 1000)
    watched.picture("live-cured")


@pytest.mark.long
def test_702_devices_are_shown(labs: Any, look: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        topology = f"{folder}/tree.topo"
        generated = subprocess.run(
            [WEFT, "topo", "gen", "xgft", "--children", "18,36", "--parents", "1,18"], capture_output=True, check=True
        )
        Path(topology).write_bytes(generated.stdout)
        lab = labs(topology)
        watched = look(lab.ui())
        assert watched.page.evaluate("Object.keys(weft.store.state.nodes).length") == 702
        expect(watched.page.get_by_role("list", name="Summary")).to_contain_text("648")
        watched.picture("live-702")
        kill(watched)
