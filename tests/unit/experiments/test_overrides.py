from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli_cases import write_questions
from consilience.experiments.fingerprint import run_facts
from consilience.experiments.frozen import Freeze, Study, keep, take
from consilience.experiments.frozen_data import WEIGHTS, Hashed
from consilience.experiments.general import GENERAL
from consilience.experiments.overrides import overrides
from consilience.experiments.plan import Choices, Plan, make_plan
from consilience.experiments.questions import read_questions
from consilience.experiments.weights import Weights
from consilience.models.prices import load_catalogue

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
CHOICES = Choices(arm="G_debate", rounds=(), committee="mixed_random", tier="mid", split=None, seed=7)
PANEL = "roles: [outside_view, inside_view]\nlabels: role\n"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return Study.of(tmp_path, rosters={"general": GENERAL.roles_for})


@pytest.fixture
def freeze(study: Study) -> Freeze:
    return take(study, now=NOON)


@pytest.fixture
def panel(tmp_path: Path) -> str:
    (tmp_path / "own.yaml").write_text(PANEL)
    return str(tmp_path / "own.yaml")


def plan(tmp_path: Path, **changes: Any) -> Plan:
    items = read_questions(write_questions(tmp_path / "questions.jsonl", 2))
    return make_plan(GENERAL, items, replace(CHOICES, **changes), catalogue=load_catalogue())


@pytest.mark.parametrize(
    "arm", ["E_single", "F_independent", "G_debate", "H_skeptic", "I_placebo", "J_single_matched", "control_displaced"]
)
@pytest.mark.slow
def test_an_arm_as_it_is_declared_is_no_deviation(tmp_path: Path, freeze: Freeze, arm: str) -> None:
    assert overrides(plan(tmp_path, arm=arm), freeze) == ()


def test_what_each_run_chooses_for_itself_is_none(tmp_path: Path, freeze: Freeze) -> None:
    assert overrides(plan(tmp_path, committee="all_openai", tier="small", seed=1, split="test"), freeze) == ()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"labels": "role"}, ("override: labels role instead of neutral",)),
        ({"rounds": (3,)}, ("override: rounds 3 instead of 2",)),
        ({"rounds": (2,)}, ()),
        ({"rounds": (1, 2)}, ("override: nested 1, 2 instead of none",)),
        ({"panel": "default", "labels": "neutral"}, ()),
        ({"panel": "placebo"}, ("override: panel placebo instead of default",)),
    ],
)
def test_what_is_told_otherwise_is_named(
    tmp_path: Path, freeze: Freeze, changes: dict[str, Any], said: tuple[str, ...]
) -> None:
    assert overrides(plan(tmp_path, **changes), freeze) == said


def test_a_panel_of_the_users_is_named_with_its_labels(tmp_path: Path, freeze: Freeze, panel: str) -> None:
    assert overrides(plan(tmp_path, panel=panel), freeze) == (
        "override: labels role instead of neutral",
        "override: panel own.yaml instead of default",
    )


def test_dropped_seats_other_weights_and_undeclared_arms_are_named(tmp_path: Path, freeze: Freeze) -> None:
    asked = plan(tmp_path).model_copy(update={"dropped": ("calibrator",)})
    assert overrides(asked, freeze) == ("override: dropped seats calibrator instead of none",)
    weights = Weights(package_version="0", sources=(), panels=()).sealed()
    asked = plan(tmp_path, weights=weights)
    assert overrides(asked, freeze) == (f"override: weights {weights.sha256} instead of none",)
    held = freeze.model_copy(update={"data": {**freeze.data, WEIGHTS: Hashed(sha256=weights.sha256)}})
    assert overrides(asked, held) == overrides(plan(tmp_path), held) == ()
    assert overrides(plan(tmp_path).model_copy(update={"arm": "G_new_r2"}), freeze) == (
        "override: G_new_r2 is no arm of the freeze",
    )
    debates = {**freeze.treatments, "G_debate": {"protocol": {"delphi": {}}, "panel": "default", "full_view": True}}
    assert overrides(plan(tmp_path), freeze.model_copy(update={"treatments": debates})) == (
        "override: full_view False instead of True",
        "override: protocol debate instead of delphi",
    )


def test_frozen_weights_have_the_hash_they_call_theirs(tmp_path: Path, study: Study) -> None:
    weights = Weights(package_version="0", sources=(), panels=()).sealed()
    (tmp_path / "results").mkdir()
    (tmp_path / WEIGHTS).write_text(weights.model_dump_json())
    hashed = take(study, now=NOON).data[WEIGHTS]
    assert hashed is not None
    assert hashed.sha256 == weights.sha256


def test_what_the_project_chose_at_the_freeze_holds_for_every_run(tmp_path: Path, study: Study) -> None:
    (tmp_path / "consilience.yaml").write_text("tier: mid\nseed: 7\nmax_spend_usd: 3\n")
    freeze = take(study, now=NOON)
    assert freeze.choices == {"tier": "mid", "seed": 7}
    assert overrides(plan(tmp_path), freeze) == ()
    assert overrides(plan(tmp_path, tier="small", seed=8, committee="all_openai"), freeze) == (
        "override: seed 8 instead of 7",
        "override: tier small instead of mid",
    )


def test_a_run_keeps_its_label(tmp_path: Path, study: Study) -> None:
    bent = plan(tmp_path, rounds=(3,))
    assert run_facts(study, plan=bent).deviations == ()  # nothing is frozen yet
    keep(study, take(study, now=NOON))
    assert run_facts(study, plan=bent).deviations == ("override: rounds 3 instead of 2",)
    run = study.results / "runs" / "early"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text('{"freeze_sha256": null, "protocol_deviations": []}')
    assert run_facts(study, run_id="early", plan=bent).deviations == ()
