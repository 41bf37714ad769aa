from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from consilience.errors import IntegrityError
from consilience.reports.scope import Scope, Source, read_asked, scope_facts

MANIFEST: dict[str, Any] = {
    "run_id": "r1",
    "arm": "G_debate_r2",
    "models": ["m"],
    "committee": "m",
    "tier": "mid",
    "split": None,
    "seed": 3,
    "weights_source": "validation runs r0",
    "said_of_models": [],
    "turns": {"answered": 7, "abstained": 2, "failed": 1},
    "match": None,
    "configuration": {"protocol": {"debate": {"rounds": 2}}, "roles": [{"id": "a", "text": "A."}, {"id": "b"}]},
    "spent_usd": 0.1,
}


def folder(root: Path, *, days: tuple[str | None, ...] = ("2020-05-01", "2019-01-31"), **changed: Any) -> Path:
    (root / "packets").mkdir(parents=True)
    (root / "manifest.json").write_text(json.dumps(MANIFEST | changed))
    for place, day in enumerate(days):
        item = {"question": {"id": f"q{place}", "text": f"Q{place}?", "unit": "EUR"}, "packet": {"valuation_date": day}}
        (root / "packets" / f"q{place}.json").write_text(json.dumps(item))
    return root


def test_a_run_tells_what_it_asked(tmp_path: Path) -> None:
    told = read_asked(folder(tmp_path))
    assert (told.arm, told.protocol, told.roles) == ("G_debate_r2", "debate (rounds 2)", ("a", "b"))
    assert (told.first, told.last, told.units) == (date(2019, 1, 31), date(2020, 5, 1), ("EUR",))
    assert told.questions == {"q0": "Q0?", "q1": "Q1?"}


def test_a_run_matched_in_cost_tells_the_samples_it_took(tmp_path: Path) -> None:
    single = {"protocol": {"single": {"refine": True, "samples": 12}}, "roles": [{"id": "a"}]}
    told = read_asked(folder(tmp_path, match={"source": "g2", "samples": [48, 66]}, configuration=single))
    assert told.protocol == "single (refine, samples 48 to 66 an item, as many as g2 pays for)"


def test_facts_name_what_is_known_and_nothing_else(tmp_path: Path) -> None:
    scope = Scope((read_asked(folder(tmp_path, days=(None,))),), ())
    facts = dict(scope_facts(scope, primary="median"))
    assert facts["Question"] == "“Q0?”"
    assert "validation runs r0" in facts["One answer of several"]
    assert not {"Data", "Market", "Asked about"} & facts.keys()
    assert scope_facts(Scope(), primary="median") == []


def test_many_places_are_counted_and_a_made_up_source_is_called_so() -> None:
    towns = ("zip code", tuple(f"{n:05d}" for n in range(11)))
    source = Source("synthetic", "town.parquet", "ab" * 32, 2000, made_up=True, places=(towns, ("county", ())))
    facts = dict(scope_facts(Scope((), (source,)), primary="median"))
    assert facts["Market"].endswith("00007 and 3 more")
    assert "made up" in facts["Data"]
    assert "made up" not in dict(scope_facts(Scope((), (replace(source, made_up=False),)), primary="m"))["Data"]


def test_turns_of_all_runs_of_an_arm_are_summed(tmp_path: Path) -> None:
    run = read_asked(folder(tmp_path))
    scope = Scope((run, replace(run, run_id="r2", roles=("a",))))
    assert scope.unanswered("G_debate_r2") == "4 abstained, 2 failed of 20"
    assert scope.unanswered("E_single") == "unknown"
    assert scope.lone_arms() == frozenset()
    assert Scope((replace(run, roles=("a",)),)).lone_arms() == {"G_debate_r2"}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("{}", "Field required"),
        ("{", "Invalid JSON"),
        (json.dumps(MANIFEST | {"seed": "3"}), "seed"),
        (None, "No such"),
    ],
)
def test_a_manifest_that_no_run_wrote_is_refused(tmp_path: Path, damage: str | None, said: str) -> None:
    path = folder(tmp_path) / "manifest.json"
    path.unlink()
    if damage is not None:
        path.write_text(damage)
    with pytest.raises(IntegrityError, match=said):
        read_asked(tmp_path)
