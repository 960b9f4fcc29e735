"""A browser for all tests, and a page that is watched: its console stays empty, and no request leaves its origin."""

import copy
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixture import Server, World
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

PICTURES = Path(__file__).parents[2] / "target/page"
WAIT_S = 20.0


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes long, and measures")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    assert program, "apt-get install chromium-headless-shell"
    with playwright.chromium.launch(executable_path=program, args=["--no-sandbox"]) as browser:
        yield browser


class Watched:
    """A page, what it said and what it asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("request", lambda request: self.asked.append(request.url))

    def is_quiet(self, origin: str, excused: tuple[str, ...] = ()) -> None:
        loud = [words for words in self.said if not any(one in words for one in excused)]
        assert not loud, loud
        beyond = [url for url in self.asked if not url.startswith((origin + "/", "data:", "blob:" + origin))]
        assert not beyond, beyond

    def until(self, script: str, what: str | None = None) -> Any:
        """Waits until a script gives something. The page's own policy refuses scripts from texts, so it is asked from outside."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            if found := self.page.evaluate(script):
                return found
            self.page.wait_for_timeout(30)
        raise AssertionError(f"waited for: {what or script}")

    def picture(self, name: str, full: bool = False) -> None:
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.mouse.move(2, 2)
        self.page.wait_for_timeout(350)
        self.page.screenshot(path=str(PICTURES / f"{name}.png"), full_page=full)


Opened = tuple[Watched, World]
Opener = Callable[..., Opened]


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opener]:
    """Opens the page on a laboratory that is made up; the page is judged when the test is over."""
    begun: list[tuple[Server, Watched, tuple[str, ...]]] = []

    def make(
        state: dict[str, Any],
        view: str = "",
        excused: tuple[str, ...] = (),
        token: str | None = None,
        before: Callable[[Page], None] | None = None,
        **options: Any,
    ) -> Opened:
        world = World(copy.deepcopy(state))
        server = Server(world)
        page = browser.new_page(**({"viewport": {"width": 1440, "height": 900}} | options))
        watched = Watched(page)
        begun.append((server, watched, excused))
        if before:
            before(page)
        page.goto(f"{server.origin}/#token={world.token if token is None else token}{'&' + view if view else ''}")
        if token is None:
            watched.until("Boolean(globalThis.weft?.map.scene)", "the fabric is drawn")
        return watched, world

    yield make
    for server, watched, excused in begun:
        watched.is_quiet(server.origin, excused)
        watched.page.close()
        server.close()
