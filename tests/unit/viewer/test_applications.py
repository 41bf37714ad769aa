"""The pages of a forecast and of a decision, over runs as the command line makes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from consilience.cli import main
from consilience.forecasting.traces import read_trace
from viewer_cases import Page, Viewer, running_viewer, study_of

OPTION = "<img src=x onerror=alert(1)> go"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("study")
    assert main(["--project", str(root), "backtest", "--demo", "--n", "1"]) == 0
    asked = ("--question", "Ship on <b>Friday</b>?", "--option", OPTION, "--option", "wait", "--passes", "1")
    assert main(["--project", str(root), "decide", *asked, "--safety-order", f"wait,{OPTION}"]) in {0, 3}
    return root


@pytest.fixture(scope="module")
def viewer(root: Path) -> Iterator[Viewer]:
    with running_viewer(study_of(root)) as served:
        yield served


def test_a_forecast_shows_what_was_found_and_what_was_rejected(root: Path, viewer: Viewer) -> None:
    (path,) = root.rglob("traces/*.json")
    trace = read_trace(path)
    address = f"/runs/{path.parents[1].name}/forecasts/{path.stem}"
    assert address in Page(viewer.get(f"/runs/{path.parents[1].name}/items/{path.stem}").text).links
    text = viewer.get(address).text
    rejected = [one for agent in trace.agents for record in agent.tool_log for one in record.filtered]
    assert text.count('class="document rejected"') == len(rejected) > 0
    kept = sum(len(record.kept) for agent in trace.agents for record in agent.tool_log)
    assert text.count('class="document dated"') + text.count('class="document undated"') == kept > 0
    assert f"<dt>Rejected by the executor</dt><dd>{len(rejected)}</dd>" in text
    assert "forecast of the panel" in text
    assert "simulated" in text


def test_a_changed_trace_is_told_and_not_shown(root: Path, viewer: Viewer) -> None:
    (path,) = root.rglob("traces/*.json")
    whole = path.read_bytes()
    told = json.loads(whole)
    told["final"]["probability"] = 0.99
    path.write_text(json.dumps(told))
    answer = viewer.get(f"/runs/{path.parents[1].name}/forecasts/{path.stem}")
    path.write_bytes(whole)
    assert answer.status == 500
    assert "This cannot be shown" in answer.text
    assert "0.99" not in answer.text


def test_a_decision_shows_steps_ballots_and_dissent_as_text(root: Path, viewer: Viewer) -> None:
    (path,) = root.rglob("decision.json")
    told = json.loads(path.read_bytes())
    listed = viewer.get("/decisions").text
    assert f"/decisions/{told['run_id']}" in Page(listed).links
    text = viewer.get(f"/decisions/{told['run_id']}").text
    assert text.count('class="tally"') == sum("tally" in step["record"] for step in told["steps"]) > 0
    for seat in (vote["seat"] for vote in told["votes"]):
        assert f">{seat}</th>" in text
    assert text.count("<li><strong>analyst_") == len(told["minority"])
    assert "&lt;img src=x onerror=alert(1)&gt; go" in text
    assert "img" not in Page(text).tags
    assert f"/runs/{told['run_id']}/items/" in text


@pytest.mark.parametrize("content", ["{}", "[]", "null", "{", '{"run_id": "x"}'])
def test_what_is_no_decision_is_told(root: Path, viewer: Viewer, content: str) -> None:
    folder = root / "results" / "decisions" / "broken"
    folder.mkdir(exist_ok=True)
    (folder / "decision.json").write_text(content)
    answer = viewer.get("/decisions/broken")
    assert answer.status == 500
    assert "Traceback" not in answer.text
    assert viewer.get("/decisions").status == 200
    (folder / "decision.json").unlink()


OPTIONS: tuple[Any, ...] = (None, 5, "x", [], {})
COSTS: tuple[Any, ...] = ("x", [], {})
LISTS = ("step", "votes", "steps", "heads", "minority", "flips", "review", "decided_by", "audit")
CHANGES: list[tuple[str, Any]] = [
    ("winner", "x"),
    ("winner", 5),
    *(("options", value) for value in OPTIONS),
    *((name, 5) for name in LISTS),
    *((name, value) for name in ("cost_usd", "full_path_usd") for value in COSTS),
    ("audit", {"question": {"text": "no id"}}),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_a_decision_of_another_shape_is_told_beside_the_others(
    root: Path, viewer: Viewer, name: str, value: Any
) -> None:
    path = next(path for path in root.rglob("decision.json") if path.parent.name.startswith("_ask"))
    whole = path.read_bytes()
    path.write_text(json.dumps({**json.loads(whole), name: value}))
    listed, alone = viewer.get("/decisions"), viewer.get(f"/decisions/{path.parent.name}")
    path.write_bytes(whole)
    assert (listed.status, alone.status) == (200, 500)
    assert "is not what was written" in listed.text
    assert "is not what was written" in alone.text
