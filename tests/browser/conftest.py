"""A real browser, and a study with everything the viewer shows."""

from __future__ import annotations

import os
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
