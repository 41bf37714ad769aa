"""What the pages say of recorded runs, and that no text in them can act."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from consilience.core.canonical import canonical_json
from consilience.journal.events import AttemptReserved
from consilience.journal.lock import RunLock
from consilience.journal.reader import expand, fold, read_events
from consilience.viewer.pages.item import asked_of, rule_of
from consilience.viewer.pages.runs import row_of
from consilience.viewer.pages.turns import exchange, turns_of
from engine_cases import INDEPENDENT, make_item, make_items
from viewer_cases import (
    HOSTILE,
    HUGE,
    TRUTHS,
    Page,
    Viewer,
    hostile_item,
    recorded_run,
    running_viewer,
    say_hostile,
    study_of,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("study")
    recorded_run(root, "_plain", *make_items(2), split="validation")
    recorded_run(root, "_alone", *make_items(2), protocol=INDEPENDENT, split="validation", arm="alone")
    recorded_run(root, "_sealed", *make_items(2), split="test")
    recorded_run(root, "_hostile", hostile_item(), say=say_hostile)
    for kind in ("probability", "distribution", "choice"):
        recorded_run(root, f"_{kind}", make_item(kind=kind))
    return root


@pytest.fixture(scope="module")
def viewer(root: Path) -> Iterator[Viewer]:
    with running_viewer(study_of(root, TRUTHS)) as served:
        yield served


def test_every_link_leads_to_a_page_and_no_text_acts(viewer: Viewer) -> None:
    waiting, met = ["/"], {"/"}
    while waiting:
        path = waiting.pop()
        answer = viewer.get(path)
        assert answer.status == 200, path
        if not answer.headers["content-type"].startswith("text/html"):
            continue
        page = Page(answer.text)
        assert page.tags.isdisjoint({"style", "iframe", "object", "embed", "svg", "base"}), path
        assert not any(name.startswith("on") or name == "style" for name in page.attributes), path
        assert "49" not in re.findall(r"hidden (\d+)", answer.text)
        for address in (*page.links, *page.loaded):
            assert address.startswith(("/", "?", "#")), (path, address)
            assert not urlsplit(address).netloc, (path, address)
        assert len(answer.body) < 400_000, path
        for address in page.links:
            at = address if address.startswith("/") else ""
            # one of each kind of page a run is enough
            if at and at not in met and len([one for one in met if one.split("?")[0] == at.split("?")[0]]) < 3:
                met.add(at)
                waiting.append(at)
    assert {"/compare", "/decisions", "/runs/_hostile/verify", "/runs/_hostile/items/item-01"} <= met
    assert any("/turn?" in path for path in met)


def test_hostile_texts_are_shown_whole_and_made_visible(viewer: Viewer) -> None:
    text = viewer.get("/runs/_hostile/items/item-01").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "\\u202eevil" in text
    assert "\\u001b[2J\\u0000" in text
    assert f"of {len(HUGE):,} characters" in text
    assert "\u202e" not in text
    turn = viewer.get("/runs/_hostile/items/item-01/turn?round=0&seat=analyst_02&kind=estimate&sample=0").text
    assert "lone \\ud800 surrogate" in turn
    assert HOSTILE not in text


def test_a_picture_cannot_act_either(viewer: Viewer) -> None:
    for name in ("fan", "near"):
        answer = viewer.get(f"/runs/_hostile/items/item-01/{name}.svg?theme=dark")
        assert answer.headers["content-type"].startswith("image/svg+xml")
        assert b"<script" not in answer.body
        assert b"onload" not in answer.body


def test_the_exact_bytes_of_a_turn_are_those_of_the_journal(root: Path, viewer: Viewer) -> None:
    folder = root / "results" / "runs" / "_plain"
    study = study_of(root)
    texts = fold(folder).texts
    first = next(record for record in read_events(folder) if isinstance(record.event, AttemptReserved))
    assert isinstance(first.event, AttemptReserved)
    turn = next(one for one in turns_of(study, folder, "item-01") if one.tries[0].seq == first.seq)
    shown = exchange(turn.tries[0], study.index(folder))
    assert shown.sent == canonical_json(expand(first.event.body, texts))
    query = "&".join(f"{name}={value}" for name, value in turn.query.items())
    page = viewer.get(f"/runs/_plain/items/item-01/turn?{query}").text
    assert shown.sent_sha256 in page
    assert str(shown.received_sha256) in page
    address = f"/runs/_plain/items/item-01/bytes?{query}&seq={first.seq}&part="
    assert viewer.get(f"{address}sent").body == shown.sent
    received = viewer.get(f"{address}received")
    assert received.body.decode() == shown.received
    assert received.headers["content-type"].startswith("text/plain")


def test_another_rule_is_computed_from_the_recorded_answers(root: Path, viewer: Viewer) -> None:
    folder = root / "results" / "runs" / "_plain"
    asked = asked_of(study_of(root), folder, "item-01")
    assert asked is not None
    recorded = json.loads((folder / "transcripts" / "item-01.json").read_bytes())["aggregated"]
    for name, value in recorded.items():
        ruled = rule_of(asked, name)
        assert ruled.row is not None
        assert (ruled.row.headline, ruled.same) == (value, True)
    page = viewer.get("/runs/_plain/items/item-01?rule=mean").text
    assert f"<strong>{recorded['mean']:,.0f}</strong>" in page
    assert "For exploration" in page
    part = viewer.get("/runs/_plain/items/item-01/rule?rule=median").text
    assert part.startswith('<div id="rule">')
    assert "fixed beforehand" in part


def test_a_changed_transcript_is_told_to_differ(tmp_path: Path) -> None:
    folder = recorded_run(tmp_path, "_run", *make_items(1))
    path = folder / "transcripts" / "item-01.json"
    told = json.loads(path.read_bytes())
    told["aggregated"]["mean"] = 1.0
    path.write_text(json.dumps(told))
    asked = asked_of(study_of(tmp_path), folder, "item-01")
    assert asked is not None
    assert rule_of(asked, "mean").same is False


def test_a_view_strikes_out_what_a_role_was_not_shown(viewer: Viewer) -> None:
    page = viewer.get("/runs/_plain/items/item-01?view=condition").text
    assert page.count('class="section unseen"') == 3
    assert "not shown to condition" in page
    assert 'class="section unseen"' not in viewer.get("/runs/_plain/items/item-01?view=auditor").text
    assert 'class="section unseen"' not in viewer.get("/runs/_plain/items/item-01?view=nobody").text


def test_known_truths_are_shown_but_those_of_a_test_split_are_sealed(viewer: Viewer) -> None:
    assert "317,331" in viewer.get("/runs/_plain/items/item-01").text
    assert "Worst items" in viewer.get("/runs/_plain").text
    assert viewer.get("/runs/_plain/errors.svg").status == 200
    for path in ("/runs/_sealed", "/runs/_sealed/items/item-01", "/runs/_sealed/items/item-01/fan.svg"):
        assert "317,331" not in viewer.get(path).text
        assert ">truth<" not in viewer.get(path).text
    assert "records the look" in viewer.get("/runs/_sealed").text
    assert viewer.get("/runs/_sealed/errors.svg").status == 404
    assert ">truth<" in viewer.get("/runs/_plain/items/item-01/fan.svg").text


def test_runs_are_compared_but_not_those_of_a_test_split(viewer: Viewer) -> None:
    assert "compared _alone" in viewer.get("/compare?run=_plain&run=_alone").text
    assert "records the look" in viewer.get("/compare?run=_plain&run=_sealed").text
    assert "at least one more" in viewer.get("/compare?run=_plain").text
    assert viewer.get("/compare/forest.svg?run=_plain&run=_alone").status == 404


def test_a_run_that_goes_on_is_live_and_then_is_not(tmp_path: Path) -> None:
    folder = recorded_run(tmp_path, "_run", *make_items(2))
    (folder / "manifest.json").unlink()
    (folder / "transcripts" / "item-02.json").unlink()
    study = study_of(tmp_path)
    with running_viewer(study) as viewer, RunLock(folder):
        assert 'hx-trigger="every 2s"' in viewer.get("/runs/_run/row").text
        assert "In progress" in viewer.get("/runs/_run/items/item-02").text
        assert row_of(study, folder).integrity == "in progress"
    assert row_of(study, folder).told.state == "finished"
    with running_viewer(study) as viewer:
        assert "hx-trigger" not in viewer.get("/runs/_run/row").text


def test_damage_is_told_and_takes_no_page_down(tmp_path: Path) -> None:
    folder = recorded_run(tmp_path, "_run", *make_items(2))
    (journal,) = folder.glob("events-*.jsonl")
    good = journal.read_bytes()
    with running_viewer(study_of(tmp_path)) as viewer:
        assert "Every file is what the record says" in viewer.get("/runs/_run/verify").text
        journal.write_bytes(good.replace(b'"round":0', b'"round":9', 1))
        assert "journal record" in viewer.get("/runs/_run/verify").text
        (folder / "transcripts" / "item-01.json").write_bytes(b"{")
        answer = viewer.get("/runs/_run/items/item-01")
        assert answer.status == 500
        assert "item-01.json cannot be read" in answer.text
        assert "Traceback" not in answer.text
        journal.write_bytes(good + b"nonsense\n")
        assert "damaged" in viewer.get("/").text
        assert viewer.get("/runs/_run").status == 200
        (folder / "predictions.parquet").write_bytes(b"no parquet")
        assert "cannot be shown" in viewer.get("/runs/_run").text
        (folder / "protocol.json").unlink()
        assert viewer.get("/").status == 200


ITEMS: tuple[Any, ...] = ([1, 2], 5, {"answered": None}, {"a": "x"})
PLANS: tuple[Any, ...] = (None, [], "x", {"items": 5}, {"models": 5})
PARTS = ("turns", "committee", "diagnostics", "final")
WRONG: list[tuple[str, dict[str, Any]]] = [
    *(("manifest.json", {"items": value}) for value in ITEMS),
    *(("manifest.json", {name: "x"}) for name in ("turns", "spent_usd", "max_spend_usd", "lost_attempts", "panel")),
    ("manifest.json", {"turns": {"a": "b"}}),
    *(("protocol.json", {"plan": value}) for value in PLANS),
    *(("transcripts/item-01.json", {name: 5}) for name in PARTS),
    *(("transcripts/item-01.json", {name: {}}) for name in PARTS),
]


@pytest.mark.parametrize(("name", "change"), WRONG)
def test_a_file_of_another_shape_takes_no_other_page_down(tmp_path: Path, name: str, change: dict[str, Any]) -> None:
    folder = recorded_run(tmp_path, "_run", *make_items(1))
    path = folder / name
    told = json.loads(path.read_bytes())
    path.write_text(json.dumps({**told, **change}))
    with running_viewer(study_of(tmp_path)) as viewer:
        for address in ("/", "/compare"):
            answer = viewer.get(address)
            assert answer.status == 200, address
            assert "_run" in answer.text or address == "/compare"
        for address in ("/runs/_run", "/runs/_run/items/item-01", "/runs/_run/verify"):
            answer = viewer.get(address)
            assert answer.status in {200, 500}
            assert "<h1" in answer.text, address
            assert "Internal Server Error" not in answer.text


def test_a_whole_file_of_another_shape_is_told(tmp_path: Path) -> None:
    folder = recorded_run(tmp_path, "_run", *make_items(1))
    with running_viewer(study_of(tmp_path)) as viewer:
        for name in ("manifest.json", "transcripts/item-01.json", "packets/item-01.json", "protocol.json"):
            whole = (folder / name).read_bytes()
            for content in ("[]", "5", "null", "[" * 100_000, ""):
                (folder / name).write_text(content)
                assert viewer.get("/").status == 200
                for address in ("/runs/_run", "/runs/_run/items/item-01", "/runs/_run/items/item-01/fan.svg"):
                    assert "Internal Server Error" not in viewer.get(address).text, (name, content[:5], address)
            (folder / name).write_bytes(whole)
        (folder / "events-00002.jsonl").mkdir()
        assert viewer.get("/").status == 200


def test_a_run_that_begins_anew_in_its_folder_is_read_anew(tmp_path: Path) -> None:
    folder = recorded_run(tmp_path, "_run", *make_items(3))
    (folder / "manifest.json").unlink()
    study = study_of(tmp_path)
    assert row_of(study, folder).told.items_done == 3
    (journal,) = folder.glob("events-*.jsonl")
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:3]))
    assert (row_of(study, folder).told.items_done, row_of(study, folder).told.state) == (0, "stopped")
    journal.unlink()
    journal.write_bytes(b"".join(lines))
    assert (row_of(study, folder).told.items_done, study.index(folder).sums.records) == (3, len(lines))


def test_lists_come_in_pages_of_fifty(tmp_path: Path) -> None:
    recorded_run(tmp_path, "_many", *make_items(60), protocol=INDEPENDENT)
    with running_viewer(study_of(tmp_path)) as viewer:
        first, second = viewer.get("/runs/_many").text, viewer.get("/runs/_many?page=2").text
        assert first.count("/runs/_many/items/") - second.count("/runs/_many/items/") == 40
        assert "2 of 2 (60 in all)" in second
        assert viewer.get("/runs/_many?page=99999999").text == second
        for odd in ("-1", "x", "1e9", "9" * 40, "%00", "%D9%A3"):
            assert viewer.get(f"/runs/_many?page={odd}").text == first


def test_an_empty_project_has_pages(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    with running_viewer(study_of(tmp_path)) as viewer:
        assert "No run yet" in viewer.get("/").text
        assert "No decision yet" in viewer.get("/decisions").text
        assert "No finished run" in viewer.get("/compare").text
