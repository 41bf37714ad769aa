"""A person's way through the viewer, in a real browser, at two widths and in two schemes of colours."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from consilience.cli import main
from consilience.cli.place import Place
from consilience.cli.viewing import compare, truths
from consilience.viewer.study import Study
from viewer_cases import Seen, Viewer, hostile_item, recorded_run, running_viewer, say_hostile

pytestmark = [pytest.mark.browser, pytest.mark.shared_data]

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
ARMS = (("E_single",), ("G_debate", "--rounds", "1"))


@pytest.fixture(scope="session")
def chromium(study: Path) -> Iterator[Any]:
    """Debian's Chromium. Playwright's loop lets no other run in this thread, so the study is made first."""
    assert study.is_dir()
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - installed by `make test-browser` alone

    found = shutil.which("chromium")
    assert found is not None, "make test-browser installs chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Path:
    """A project with two runs over King County, a forecast, a decision, and a run that is hostile."""
    root = tmp_path_factory.mktemp("study")
    table = str(shared / "data" / "avm" / "king_county_2014_2015.parquet")

    def do(*words: str) -> None:
        assert main(["--project", str(root), *words]) in {0, 3}

    do("data", "build", "--adapter", "king_county", "--input", table)
    do("data", "splits")
    do("data", "subsample")
    for arm in ARMS:
        do("run-arm", "--arm", *arm, "--split", "validation", "--n", "8", "--seed", "7")
    do("backtest", "--demo")
    do("decide", "--question", "Ship on Friday?", "--option", "ship", "--option", "wait", "--safety-order", "wait,ship")
    recorded_run(root, "_hostile", hostile_item(), say=say_hostile)
    return root


@pytest.fixture(scope="session")
def viewer(study: Path) -> Iterator[Viewer]:
    """The viewer as ``consilience view`` serves it."""
    place = Place(study, ())
    with running_viewer(Study(study, partial(truths, place), partial(compare, place))) as served:
        yield served


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")], ids=lambda p: f"{p[0]}-{p[1]}")
def look(request: pytest.FixtureRequest) -> tuple[int, str]:
    """Width of the window, and scheme of colours."""
    size: tuple[int, str] = request.param
    return size


@pytest.fixture
def seen() -> Seen:
    """What the browser did."""
    return Seen()


@pytest.fixture
def tab(chromium: Any, look: tuple[int, str], seen: Seen) -> Iterator[Any]:
    """A tab that is watched."""
    width, scheme = look
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("requestfailed", lambda request: seen.problems.append(f"failed: {request.url}"))
    page.on("pageerror", lambda error: seen.problems.append(str(error)))
    page.on("console", lambda said: seen.problems.append(said.text) if said.type in {"error", "warning"} else None)

    def dismissed(dialog: Any) -> None:
        seen.dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismissed)
    yield page
    context.close()


@pytest.fixture(scope="session")
def shots() -> Path:
    """Where screenshots go, to be looked at."""
    folder = Path(os.environ.get("CONSILIENCE_SHOTS", "build/screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def settle(tab: Any) -> None:
    """Wait until the page and all of its pictures are there."""
    tab.evaluate("document.querySelectorAll('img').forEach(one => { one.loading = 'eager' })")
    tab.wait_for_load_state("networkidle")


def check(tab: Any, viewer: Viewer, seen: Seen) -> None:
    """Assert that a page fits its window, shows its pictures and has asked nobody else for anything."""
    settle(tab)
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), tab.url
    assert tab.evaluate("[...document.images].every(one => one.naturalWidth > 0)"), tab.url
    assert {address.split("/")[2] for address in seen.requests} == {f"127.0.0.1:{viewer.port}"}
    assert (seen.problems, seen.dialogs) == ([], [])


def test_from_the_list_to_the_bytes_of_a_turn_and_back_to_a_comparison(
    tab: Any, viewer: Viewer, seen: Seen, look: tuple[int, str], shots: Path
) -> None:
    name = f"{look[0]}-{look[1]}"

    def shot(what: str) -> None:
        check(tab, viewer, seen)
        tab.screenshot(path=shots / f"{what}-{name}.png", full_page=True)

    tab.goto(f"http://127.0.0.1:{viewer.port}/")
    shot("runs")
    tab.get_by_role("link", name=re.compile(r"^_?G_debate_r1")).click()
    tab.get_by_role("heading", name="Worst items").wait_for()
    shot("run")
    tab.get_by_role("heading", name="Items", exact=True).locator("xpath=following::a").first.click()
    first = tab.locator("#rule .answer").inner_text()
    shot("item")
    tab.locator("#rule select").select_option("trimmed_mean_20")
    tab.get_by_text("another rule was fixed beforehand").wait_for()
    assert tab.locator("#rule .answer").inner_text() != first
    assert tab.get_by_text("it is what the run recorded").is_visible()
    shot("rule")
    tab.locator("select[name=view]").select_option("building_condition")
    tab.get_by_role("button", name="Show").last.click()
    tab.locator("details.unseen").nth(2).wait_for(state="attached")
    shot("view")
    tab.get_by_role("link", name="round 1, analyst_01, critique").click()
    shot("turn")
    address = tab.get_by_role("link", name="the exact bytes").first.get_attribute("href")
    sent = viewer.get(address)
    assert sent.status == 200
    assert hashlib.sha256(sent.body).hexdigest() in tab.locator("main").inner_text()
    assert b"TASK: critique (round 1). You are analyst_01." in sent.body

    tab.get_by_role("link", name="Compare").click()
    for arm in ("E_single", "G_debate_r1"):
        tab.get_by_role("checkbox", name=re.compile(f"^{arm} validation")).check()
    tab.get_by_role("button", name="Compare").click()
    tab.get_by_role("heading", name="Each arm at a glance").wait_for()
    assert tab.get_by_role("img", name=re.compile("MdAPE")).count() >= 1
    shot("compare")


def test_a_forecast_and_a_decision(tab: Any, viewer: Viewer, seen: Seen, look: tuple[int, str], shots: Path) -> None:
    name = f"{look[0]}-{look[1]}"
    tab.goto(f"http://127.0.0.1:{viewer.port}/")
    tab.get_by_role("link", name=re.compile("backtest|F_independent")).first.click()
    tab.get_by_role("heading", name="Items", exact=True).locator("xpath=following::a").first.click()
    check(tab, viewer, seen)
    tab.get_by_role("link", name="What was searched and found").click()
    tab.locator(".document.dated").first.wait_for()
    assert tab.get_by_text("Dated at or after it").is_visible()
    assert tab.locator(".document.rejected").count() > 0
    check(tab, viewer, seen)
    tab.screenshot(path=shots / f"forecast-{name}.png", full_page=True)
    tab.get_by_role("link", name="Decisions").click()
    check(tab, viewer, seen)
    tab.screenshot(path=shots / f"decisions-{name}.png", full_page=True)
    tab.get_by_role("link", name="Ship on Friday?").click()
    tab.get_by_role("heading", name="Escalation").wait_for()
    check(tab, viewer, seen)
    tab.screenshot(path=shots / f"decision-{name}.png", full_page=True)


def test_hostile_texts_do_nothing_anywhere(
    tab: Any, viewer: Viewer, seen: Seen, look: tuple[int, str], shots: Path
) -> None:
    base = f"http://127.0.0.1:{viewer.port}"
    item = f"{base}/runs/_hostile/items/item-01"
    turn = f"{item}/turn?round=0&seat=analyst_02&kind=estimate&sample=0"
    for address in (f"{base}/", f"{base}/runs/_hostile", item, turn, f"{item}?view=market"):
        tab.goto(address)
        check(tab, viewer, seen)
        assert tab.locator("footer").is_visible()
        assert tab.evaluate("document.querySelectorAll('main svg, main script, main style').length") == 0
    tab.goto(item)
    assert tab.get_by_text("<script>alert(1)</script>").count() > 0
    tab.screenshot(path=shots / f"hostile-{look[0]}-{look[1]}.png", full_page=True)


def test_all_of_it_is_reached_by_keyboard(tab: Any, viewer: Viewer, seen: Seen) -> None:
    tab.goto(f"http://127.0.0.1:{viewer.port}/")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "To the content"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.getAttribute('href')").startswith("/runs/")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/runs/**")
    check(tab, viewer, seen)
