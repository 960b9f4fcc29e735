"""The page in a real browser, on a laboratory that is made up."""

import re
import time

import fabrics
import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import Opener, Watched
from playwright.sync_api import Page, expect

SEVEN_HUNDRED = fabrics.two_levels(36, 18, 18, "tree-702")
MARKUP = "<script>globalThis.broken=1</script><img src=x onerror=globalThis.broken=1>"


def row(page: Page, name: str) -> object:
    return page.get_by_role("row").filter(has=page.get_by_role("button", name=name, exact=True))


def start_flow(page: Page, one: str, other: str, name: str) -> None:
    page.get_by_label("From", exact=True).fill(one)
    page.get_by_label("To", exact=True).fill(other)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_role("button", name="Start flow").click()


def test_devices_are_counted_and_listed(opened: Opener) -> None:
    watched, world = opened(fabrics.x5())
    page = watched.page
    summary = page.get_by_role("list", name="Summary")
    for words in ["11 switches", "89 hosts", "159 cables", "0 links down"]:
        expect(summary).to_contain_text(re.compile(words.replace(" ", r"\s*")))
    assert page.evaluate("weft.map.drawn.marks") == 100
    page.get_by_role("tab", name="Devices").click()
    expect(page.get_by_role("tabpanel").get_by_role("row")).to_have_count(101)
    page.get_by_role("tab", name="Links").click()
    expect(page.get_by_text("1 to 100 of 159")).to_be_visible()
    assert "token" not in page.url and world.token not in page.url
    assert page.evaluate("sessionStorage.getItem('weft-token')") == world.token
    assert world.token not in page.evaluate("weft.sharedUrl()")
    watched.picture("x5")


def test_a_kill_shows_and_an_alarm_is_acknowledged(opened: Opener) -> None:
    watched, world = opened(fabrics.x5())
    page = watched.page
    page.get_by_role("tab", name="Devices").click()
    page.get_by_role("button", name="S4", exact=True).click()
    page.get_by_role("button", name="Kill").click()
    expect(page.get_by_text("S4 is silent")).to_be_visible()
    expect(row(page, "S4")).to_contain_text("down")
    expect(page.get_by_role("list", name="Summary").locator(".bad")).to_contain_text("links down")
    expect(page.get_by_text("killed S4", exact=True)).to_be_visible()
    page.get_by_role("tab", name="Events").click()
    expect(page.get_by_role("cell", name="S4 was killed")).to_be_visible()
    watched.picture("killed")
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("#alarms")).to_contain_text("acknowledged")
    page.get_by_role("button", name="Restart").click()
    expect(page.locator("#alarms")).to_contain_text("No alarms.")
    assert [act["do"] for act in world.acts] == ["kill", "acknowledge", "restart"]


def test_a_flow_is_started_and_its_path_lights_up(opened: Opener) -> None:
    watched, world = opened(fabrics.x5())
    page = watched.page
    before = page.evaluate("document.querySelector('#pane .over').toDataURL()")
    start_flow(page, "host-3 mlx5_0", "host-80 mlx5_0", "web")
    inspector = page.get_by_role("region", name="Selection")
    expect(inspector.get_by_role("heading", name="web")).to_be_visible()
    expect(inspector).to_contain_text("Hop by hop, 4 links")
    expect(inspector.locator(".hop")).to_have_count(4)
    watched.until("location.hash.includes('flow=web')", "the flow is in the address")
    assert page.evaluate("document.querySelector('#pane .over').toDataURL()") != before, "the path is drawn"
    # Another flow over the first hop shares it.
    start_flow(page, "host-3 mlx5_0", "host-88 mlx5_0", "rival")
    page.get_by_role("button", name="web", exact=True).click()
    expect(inspector.locator(".hop").first).to_contain_text("shared with rival")
    watched.picture("flow")
    page.get_by_role("row").filter(has_text="rival").get_by_role("button", name="Stop").click()
    expect(row(page, "rival")).to_contain_text("done")
    assert world.acts[0] == {
        "do": "flow-start",
        "from": "host-3 mlx5_0",
        "to": "host-80 mlx5_0",
        "name": "web",
        "rate_mbps": None,
        "ping_pong": False,
    }


def test_a_refused_action_says_why_and_what_to_do(opened: Opener) -> None:
    watched, _ = opened(fabrics.x5(), excused=("400",))
    start_flow(watched.page, "host-3 mlx5_0", "nowhere", "web")
    expect(watched.page.get_by_text("no host is called nowhere")).to_be_visible()
    expect(watched.page.get_by_text("see `weft flow start --help`")).to_be_visible()


def test_faults_have_buttons_only_for_those_who_may(opened: Opener) -> None:
    watched, world = opened(fabrics.dftree(), "cable=6")
    page = watched.page
    inspector = page.get_by_role("region", name="Selection")
    inspector.get_by_role("button", name="Lose").click()
    expect(page.locator("#faults")).to_contain_text("loss 5 %")
    assert world.acts == [{"do": "loss", "cable": "6", "percent": 5, "seconds": 30}]
    page.locator("#faults").get_by_role("button", name="Clear").click()
    expect(page.locator("#faults")).to_contain_text("No fault acts")
    inspector.get_by_role("button", name="What a cut would do").click()
    expect(inspector.get_by_role("status")).to_contain_text("no node would be cut off")
    assert world.acts[-1] == {"do": "if-cut", "cable": "6"}
    world.patch({"may_act": False, "role": "viewer"})
    expect(inspector.get_by_role("button", name="Lose")).to_have_count(0)
    expect(page.get_by_role("button", name="Start flow")).to_have_count(0)


def test_without_a_token_the_page_says_how_to_get_in(opened: Opener) -> None:
    watched, _ = opened(fabrics.x5(), token="", excused=("401",))
    alert = watched.page.get_by_role("alert")
    expect(alert).to_contain_text("no token")
    expect(alert).to_contain_text("weft ui")
    expect(watched.page.get_by_role("button", name="Start flow")).to_have_count(0)


def test_the_hub_goes_and_comes_back(opened: Opener) -> None:
    watched, world = opened(fabrics.x5())
    page = watched.page
    world.leave()
    expect(page.get_by_role("alert")).to_contain_text("The laboratory is gone: the hub does not answer")
    expect(page.get_by_role("button", name="Start flow")).to_have_count(0)
    watched.picture("gone")
    world.come_back()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator("#status")).to_have_text("live")
    # The stream itself ends: the page begins another.
    for stream in list(world.streams):
        stream.put(None)
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    expect(page.locator("#status")).to_have_text("live")


def test_a_tape_is_stepped_played_and_compared(opened: Opener) -> None:
    watched, world = opened(fabrics.x5())
    page = watched.page
    world.do_kill({"node": "S4"})
    for _ in range(3):
        world.patch({"summary": {"mbps": 1.0}})
    world.do_restart({"node": "S4"})
    watched.until(f"weft.tape.range?.to_ms >= {world.state['at_ms']}", "the page knows the tape")
    page.get_by_role("tab", name="Devices").click()
    page.get_by_role("button", name="Event before").click()
    page.get_by_role("button", name="Event before").click()
    expect(row(page, "S4")).to_contain_text("down")
    expect(page.locator("#status")).to_have_text("past")
    expect(page.get_by_role("button", name="Kill")).to_have_count(0)
    page.get_by_role("button", name="Step back").click()
    expect(row(page, "S4")).to_contain_text("up")
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("button", name="Next event").click()
    expect(page.get_by_role("region", name="From A to B")).to_contain_text("S4: up → down")
    watched.picture("compared")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("region", name="From A to B")).to_have_count(0)
    page.get_by_role("combobox", name="Speed").select_option("10")
    page.get_by_role("button", name="Play").click()
    expect(row(page, "S4")).to_contain_text("up")
    page.get_by_role("button", name="Live: back to now").click()
    expect(page.locator("#status")).to_have_text("live")
    watched.until("!location.hash.includes('at=')", "the view is of now")


def test_hot_spot_and_victim_are_found_by_visible_text(opened: Opener) -> None:
    watched, world = opened(fabrics.dftree())
    page = watched.page
    hot = page.get_by_role("region", name="Hot spots")
    expect(hot).to_contain_text("host-5 looks like a hot spot")
    world.patch(fabrics.hot_spot_found(world.state))
    expect(hot).to_contain_text("host-5 is a hot spot")
    expect(hot).to_contain_text("On the slow lane: host-1, host-3 and host-6")
    expect(hot).to_contain_text("Victim: 2-3 (host-2 → host-3)")
    expect(hot).to_contain_text("at A:3 → R:1 behind 1-5")
    hot.get_by_role("button", name="Victim: 2-3").click()
    expect(page.get_by_role("region", name="Selection")).to_contain_text("shared with 1-5 50 %")
    watched.picture("hot-spot")


def test_a_slow_lane_frees_the_victim_in_words(opened: Opener) -> None:
    watched, world = opened(fabrics.dftree())
    world.patch(fabrics.hot_spot_found(world.state))
    flows = world.state["flows"]
    world.patch(
        {
            "flows": {
                name: {"vl": 1, "path": [[cable, way, 1] for cable, way, _ in flows[name]["path"]]}
                for name in ["1-5", "3-5", "6-5"]
            }
        }
    )
    expect(watched.page.get_by_role("region", name="Hot spots")).to_contain_text("Victims: none")


def test_search_and_filters_come_before_drawing(opened: Opener) -> None:
    watched, world = opened(SEVEN_HUNDRED)
    page = watched.page
    find = page.get_by_role("searchbox")
    page.get_by_role("tab", name="Devices").click()
    for words, name in [("host-333", "host-333"), (world.state["nodes"]["60"]["guid"], "host-6"), ("lid 61", "host-6")]:
        find.fill(words)
        expect(page.locator("#found")).to_have_text(re.compile(r"1\sdevice"))
        expect(row(page, name)).to_be_visible()
    find.press("Enter")
    expect(page.get_by_role("region", name="Selection").get_by_role("heading", name="host-6")).to_be_visible()
    watched.until("weft.map.scene.marks === 54 + 18", "the host's leaf unfolds")
    find.fill("")
    world.do_kill({"node": "leaf-7"})
    page.get_by_role("radio", name="Trouble").click()
    expect(page.locator("#found")).to_have_text(re.compile(r"37\sdevices"))


def test_leaves_fold_and_a_switch_unfolds_by_keys_alone(opened: Opener) -> None:
    watched, _ = opened(SEVEN_HUNDRED)
    page = watched.page
    assert page.evaluate("[weft.map.scene.marks, weft.map.scene.edges]") == [54, 648]
    page.get_by_role("application", name="Map of the fabric").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    watched.until("weft.map.scene.marks === 72", "the leaf unfolds")
    watched.picture("unfolded")
    page.keyboard.press("Enter")
    watched.until("weft.map.scene.marks === 54", "and folds")
    page.keyboard.press("Escape")
    assert page.evaluate("weft.view.node") is None
    page.get_by_role("button", name="Unfold all").click()
    watched.until("weft.map.scene.marks === 702", "all unfold")
    watched.picture("unfolded-all")


def test_a_flow_is_started_by_keys_alone(opened: Opener) -> None:
    watched, world = opened(fabrics.x5())
    page = watched.page
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip the map")).to_be_focused()
    page.keyboard.press("Enter")
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.getAttribute('role') ?? document.activeElement.name"))
        if reached[-1] == "from":
            break
    assert reached[-1] == "from", reached
    for words in ["host-1 mlx5_0", "host-9 mlx5_0"]:
        page.keyboard.type(words)
        page.keyboard.press("Tab")
    page.keyboard.type("keys")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Selection").get_by_role("heading", name="keys")).to_be_visible()
    assert world.acts[0]["name"] == "keys"


def test_a_field_keeps_its_focus_when_the_view_is_applied_again(opened: Opener) -> None:
    watched, world = opened(fabrics.x5())
    page = watched.page
    field = page.get_by_role("combobox", name="From")
    field.focus()
    page.keyboard.type("host-1")
    page.evaluate("weft.tables.open()")
    expect(field).to_be_focused()
    page.keyboard.type(" mlx5_0")
    expect(field).to_have_value("host-1 mlx5_0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_nothing(opened: Opener, scheme: str, width: int) -> None:
    watched, world = opened(fabrics.dftree(), "flow=2-3", viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = watched.page
    world.patch(fabrics.hot_spot_found(world.state))
    world.patch(
        {
            "vms": {"web1": {"name": "web1", "host": "host-3", "lid": 12, "state": "moving", "moving_to": "host-4"}},
            "cables": {"7": {"planned": "slow"}},
        }
    )
    world.do_kill({"node": "B"})
    for tab in ["Devices", "Links", "Events", "Flows"]:
        page.get_by_role("tab", name=tab).click()
        expect(page.locator("#alarms")).to_contain_text("B is silent")
        found = Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
    scrolled = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert scrolled[0] <= scrolled[1], "nothing is wider than the window"
    watched.picture(f"{scheme}-{width}", full=width == 390)


def test_names_with_markup_are_texts(opened: Opener) -> None:
    state = fabrics.dftree()
    state["lab"] = state["nodes"]["4"]["name"] = state["partitions"]["0x7fff"]["name"] = MARKUP
    state["flows"][MARKUP] = state["flows"].pop("1-5") | {"name": MARKUP}
    state["partitions"]["0x0001"] = {"name": MARKUP, "members": 2, "full": [MARKUP], "limited": ["host-1"], "text": MARKUP}
    state["vms"][MARKUP] = {"name": MARKUP, "host": MARKUP, "lid": 3, "state": "running", "moving_to": None}
    state["events"]["1"] = {"at_ms": 0, "kind": MARKUP, "node": MARKUP, "text": MARKUP}
    state["flows"]["__proto__"] = {"name": "constructor", "from": MARKUP, "to": MARKUP, "state": MARKUP, "path": []}
    watched, _ = opened(state, "node=4")
    page = watched.page
    for tab in ["Devices", "Links", "Events", "Flows"]:
        page.get_by_role("tab", name=tab).click()
    expect(page.locator("#partitions")).to_contain_text(f"full: {MARKUP}")
    expect(page.locator("#partitions")).to_contain_text("limited: host-1")
    expect(page.locator("#vms")).to_contain_text(MARKUP)
    expect(page.get_by_role("region", name="Selection")).to_contain_text(MARKUP)
    assert page.evaluate("globalThis.broken ?? document.querySelectorAll('main script, main img').length") == 0
    with page.expect_download() as svg:
        page.get_by_role("button", name="Export").click()
        page.get_by_role("button", name="Map as SVG").click()
    assert "<script" not in svg.value.path().read_text()
    watched.picture("markup")


def test_a_view_is_shared_and_a_huge_one_is_cut(opened: Opener) -> None:
    watched, _ = opened(fabrics.dftree(), "colour=wait&flow=2-3&tab=links&view=0.4000,0.5000,2.000")
    page = watched.page
    expect(page.get_by_role("radio", name="Wait")).to_be_checked()
    assert page.evaluate("weft.camera.zoom") == 2
    for part in ["colour=wait", "flow=2-3", "tab=links", "view=0.4"]:
        assert part in page.evaluate("weft.sharedUrl()")
    page.evaluate("location.hash = '#find=' + 'x'.repeat(100000)")
    watched.until("weft.view.find.length === 200", "the filter is cut")
    assert len(page.evaluate("weft.sharedUrl()")) < 400


def test_a_tab_that_slept_begins_again(opened: Opener) -> None:
    watched, world = opened(fabrics.x5())
    page = watched.page
    seen = len(world.streams)
    set_hidden = """(hidden) => {
      Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }"""
    page.evaluate(set_hidden, True)
    hour = "() => { const now = Date.now.bind(Date); Date.now = () => now() + 3600000; }"
    page.evaluate(hour)
    asked = len([url for url in watched.asked if "/api/stream" in url])
    page.evaluate(set_hidden, False)
    end = time.monotonic() + 10
    while len([url for url in watched.asked if "/api/stream" in url]) == asked and time.monotonic() < end:
        page.wait_for_timeout(50)
    assert len([url for url in watched.asked if "/api/stream" in url]) == asked + 1
    expect(page.locator("#status")).to_have_text("live")
    # A clock that is set back neither stops the page nor shows negative times.
    world.patch(
        {
            "alarms": {
                "a": {
                    "severity": "warning",
                    "since_ms": world.state["at_ms"],
                    "where": "S1",
                    "text": "slow",
                    "cause": "?",
                    "acknowledged": False,
                }
            }
        }
    )
    world.patch({"summary": {"mbps": 7.0}}, ms=-3_600_000)
    expect(page.locator("#alarms")).to_contain_text(re.compile(r"for 0\ss"))
    expect(page.get_by_role("list", name="Summary")).to_contain_text(re.compile(r"7.00\sMB/s"))
    assert seen == 1


def test_marks_stay_where_they_were_dragged(opened: Opener) -> None:
    watched, _ = opened(fabrics.dftree())
    page = watched.page
    place = """(() => {
      const [at, box] = [weft.map.at('0'), weft.map.over.getBoundingClientRect()];
      return [at.x + box.x, at.y + box.y];
    })()"""
    x, y = page.evaluate(place)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 90, y + 20, steps=5)
    page.mouse.up()
    kept = "JSON.parse(localStorage.getItem(Object.keys(localStorage).find(key => key.startsWith('weft-places:'))))"
    assert len(page.evaluate(kept)) == 1
    moved = page.evaluate("weft.map.scene.plain.mx[0]")
    page.reload()
    watched.until("Boolean(globalThis.weft?.map.scene)")
    assert page.evaluate("weft.map.scene.plain.mx[0]") == moved
    page.get_by_role("button", name="Reset places").click()
    watched.until(f"weft.map.scene.plain.mx[0] !== {moved}")


def test_what_is_seen_is_exported(opened: Opener) -> None:
    watched, _ = opened(fabrics.dftree())
    page = watched.page
    for words, name, begin in [
        ("Map as PNG", "dftree-1.png", b"\x89PNG"),
        ("Map as SVG", "dftree-1.svg", b"<svg"),
        ("Table as CSV", "dftree-1.csv", b"Flow,From,To"),
    ]:
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as download:
            page.get_by_role("button", name=words).click()
        assert download.value.suggested_filename == name
        assert download.value.path().read_bytes().startswith(begin)


FRAMES = """async (many) => {
  const { map, camera } = weft;
  map.frames.clear();
  const read = [];
  for (let nth = 0; nth < many; nth += 1) {
    await new Promise(requestAnimationFrame);
    camera.pan(nth % 40 < 20 ? 3 : -3, nth % 2, map.place());
    if (nth % 20 === 10) camera.zoomAt(nth % 40 === 10 ? 1.2 : 1 / 1.2, 300, 200, map.place(), map.size);
    const begun = performance.now();
    map.draw();
    map.groundPen.getImageData(0, 0, 1, 1);
    read.push(performance.now() - begun);
  }
  const p95 = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length * 0.95)].toFixed(1);
  const { marks, edges } = map.scene;
  return { p95: p95(read), worst: Math.max(...read).toFixed(1), drawn: map.drawn, scene: { marks, edges } };
}"""


def frames(watched: Watched, what: str) -> None:
    print(f"\nframe, {what}: {watched.page.evaluate(FRAMES, 160)}")


def test_frames_are_measured_at_702_devices(opened: Opener) -> None:
    watched, world = opened(SEVEN_HUNDRED, excused=("willReadFrequently",))
    first = watched.page.evaluate("performance.getEntriesByName('first-paint-of-fabric')[0].startTime")
    print(f"\nfirst paint, 702 devices: {first:.0f} ms after the page was asked for")
    frames(watched, "702 devices folded")
    watched.picture("702")
    watched.page.get_by_role("button", name="Unfold all").click()
    watched.until("weft.map.scene.marks === 702")
    frames(watched, "702 devices unfolded")


@pytest.mark.long
def test_frames_are_measured_at_13284_devices(opened: Opener) -> None:
    watched, world = opened(fabrics.three_levels(36, 18, "tree-13284"), excused=("willReadFrequently",))
    watched.until("weft.map.drawn.edges === 23328", "the worker has drawn")
    frames(watched, "13 284 devices folded")
    watched.page.evaluate("weft.camera.fit()")
    watched.picture("13284")
    watched.page.get_by_role("searchbox").fill("leaf-300")
    watched.page.get_by_role("searchbox").press("Enter")
    watched.page.evaluate("weft.toggleFold(weft.view.node)")
    watched.until("weft.map.scene.marks === 1638", "one switch unfolds")
    watched.page.wait_for_timeout(600)
    frames(watched, "13 284 devices, one switch unfolded, near")
    watched.picture("13284-unfolded")
    watched.page.evaluate("weft.camera.fit()")
    watched.page.wait_for_timeout(600)
    frames(watched, "13 284 devices, one switch unfolded, whole")


def test_ten_thousand_flows_are_shown(opened: Opener) -> None:
    state = fabrics.two_levels(36, 18, 18)
    for nth in range(10_000):
        one, other = f"host-{nth % 648}", f"host-{nth * 7 % 600}"
        hop = [str(nth % 648), 1, 0]
        state["flows"][f"all-{nth}"] = {
            "name": f"all-{nth}",
            "from": one,
            "to": other,
            "state": "running",
            "mbps": nth / 100,
            "sl": 0,
            "vl": 0,
            "path": [hop],
        }
        load = {"mbps": 5.0, "wait": 0.3, "lanes": {"0": {"mbps": 5.0, "wait": 0.3}}}
        state["cables"][hop[0]]["ba"] = load
    watched, world = opened(state)
    page = watched.page
    expect(page.get_by_text("1 to 100 of 10 000")).to_be_visible()
    took = page.evaluate("""(() => {
      const begun = performance.now();
      weft.changed(new Set(['flows', 'cables', 'at_ms']));
      return performance.now() - begun;
    })()""")
    print(f"\na change of 10 000 flows: {took:.0f} ms")
    page.get_by_role("searchbox").fill("all-9999")
    expect(row(page, "all-9999")).to_be_visible()
