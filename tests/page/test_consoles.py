"""Prometheus' consoles in a real browser, on a Prometheus that scrapes a laboratory: WEFT_PROMETHEUS is its address."""

import os
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import Watched
from playwright.sync_api import Browser

CONSOLES = sorted((Path(__file__).parents[2] / "contrib/prometheus/consoles").glob("weft-*.html"))

# Titles of panels without a number, a curve or a row, and of those that show an error.
EMPTY = """() => [...document.querySelectorAll(".panel")].filter(panel =>
    /^(…|no data|nothing)$/m.test(panel.lastElementChild.innerText.trim()) || panel.querySelector("p.bad")
).map(panel => panel.querySelector("h2").innerText + ": " + panel.lastElementChild.innerText)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("console", CONSOLES, ids=lambda path: path.stem)
def test_each_panel_shows_something(browser: Browser, console: Path, scheme: str) -> None:
    origin = f"http://{os.environ['WEFT_PROMETHEUS']}"
    page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
    watched = Watched(page)
    page.goto(f"{origin}/consoles/{console.name}")
    watched.until("document.querySelector('#state').innerText.startsWith('as of')", "the console is filled")
    assert page.locator(".panel").count() > 3
    try:
        watched.until(f"({EMPTY})().length === 0", "each panel has data")
    except AssertionError:
        raise AssertionError(page.evaluate(EMPTY)) from None
    # Curves are drawn, not only named.
    assert page.evaluate("[...document.querySelectorAll('.panel.lines path.line')].every(line => /[ML]/.test(line.getAttribute('d')))")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    watched.picture(f"console-{console.stem}-{scheme}", full=True)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth <= 390"), "it scrolls sideways on a phone"
    watched.is_quiet(origin)
    page.close()
