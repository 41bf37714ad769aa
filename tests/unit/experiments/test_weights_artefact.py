"""From validation runs to frozen weights, and from these to what is refused and what is applied."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import polars as pl
import pytest

from consilience.aggregation.answers import FittedPanel, aggregate_answers
from consilience.aggregation.fitting import fit_numbers
from consilience.core.answers import Estimate
from consilience.core.packet import Item
from consilience.core.panel import Seat
from consilience.errors import ConfigError, DataError, IntegrityError, PlanError
from consilience.experiments.artefact import load_artefact, write_artefact
from consilience.experiments.fitting import fit_weights as fit_weights_async
from consilience.experiments.replay import recompute as recompute_async
from consilience.experiments.weights import (
    Weights,
    refuse_in_sample,
    seat_weights,
    weights_for,
    weights_source,
)
from engine_cases import (
    DEBATE,
    INDEPENDENT,
    MODEL,
    ROLES,
    answer_json,
    carry_out,
    make_item,
    make_plan,
    panel,
    read,
    reply,
    seat_number,
)

FACTS = (1.02, 0.97, 1.1, 0.9, 1.3)
"""What each seat makes of a truth, apart from an error that depends on the item."""
ABSENT = ("item-02", 3)
"""The seat that says nothing of one item."""
SILENT = 5
NAMES = tuple(role.id for role in ROLES)


def truth_of(item_id: str) -> float:
    return 300_000.0 + 1_000 * int(item_id[-2:]) ** 2


def said_of(item_id: str, seat: int) -> float:
    wave = 0.03 * np.sin(seat * int(item_id[-2:]) + seat)
    return float(round(truth_of(item_id) * FACTS[seat - 1] * (1 + wave)))


def speak(request: Any) -> str:
    number = read(request).view["P"][0]["floor_area_m2"] - 100
    item_id, seat = f"item-{number:02d}", seat_number(request)
    if (item_id, seat) == ABSENT:
        return reply(abstention={"reason": "Nothing to go by."})
    if read(request).kind == "probability":
        return reply(answer=answer_json("probability", p_yes=0.1 * seat + 0.4 * (number % 2)))
    if read(request).task.startswith("critique"):
        return reply(critiques=[])
    moved = 1.05 if read(request).committee else 1.0
    return reply(answer=answer_json(point=said_of(item_id, seat) * moved))


def run(folder: Path, numbers: Sequence[int], *, split: str | None, kind: str = "estimate", **changes: Any) -> Path:
    items = [make_item(number, kind=kind) for number in numbers]
    carry_out(folder, make_plan(items, **{"protocol": INDEPENDENT, "split": split, **changes}), items, panel(speak))
    return folder


def truths(numbers: Sequence[int]) -> dict[str, float]:
    return {f"item-{number:02d}": truth_of(f"item-{number:02d}") for number in numbers}


def fit_weights(folders: Sequence[Path], **given: Any) -> Weights:
    return anyio.run(partial(fit_weights_async, folders, **given))


def recompute(folder: Path, **given: Any) -> pl.DataFrame:
    return anyio.run(partial(recompute_async, folder, **given))


VALIDATION = range(1, 13)
TEST = range(20, 23)


@pytest.fixture(scope="module")
def validated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("runs") / "v", VALIDATION, split="validation")


@pytest.fixture(scope="module")
def weights(validated: Path) -> Weights:
    return fit_weights([validated], truths=truths(VALIDATION), package_version="0")


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("runs") / "t", TEST, split="test")


def test_what_is_fitted_is_what_the_seats_said_of_the_truths(validated: Path, weights: Weights) -> None:
    (found,) = weights.panels
    assert (found.arm, found.committee, found.models, found.kind) == ("test", "none", (MODEL,), "estimate")
    assert (found.scale, found.unit, found.roles) == ("log", "USD", tuple(sorted(NAMES)))
    items = [f"item-{number:02d}" for number in VALIDATION]
    seats = {role: NAMES.index(role) + 1 for role in found.roles}
    present = np.array([[(item, seat) != ABSENT for seat in seats.values()] for item in items])
    expected = fit_numbers(
        points=np.array([[said_of(item, seat) for seat in seats.values()] for item in items]),
        present=present,
        truth=np.array([truth_of(item) for item in items]),
        roles=found.roles,
        scale="log",
    )
    assert found.numbers == expected
    assert (expected.items, expected.complete_rows, expected.roles["condition"].rows) == (12, 11, 11)
    (source,) = weights.sources
    assert source.run_id == validated.name
    assert list(source.items) == items
    assert source.journal_head == json.loads((validated / "manifest.json").read_bytes())["journal_head"]


def test_the_artefact_is_frozen(weights: Weights, tmp_path: Path) -> None:
    path = tmp_path / "results" / "aggregation_weights.json"
    write_artefact(weights, path)
    write_artefact(weights, path)
    assert load_artefact(Weights, path) == weights
    other = weights.model_copy(update={"package_version": "1"}).sealed()
    with pytest.raises(DataError, match="holds other weights"):
        write_artefact(other, path)
    path.write_bytes(path.read_bytes().replace(b'"complete_rows":11', b'"complete_rows":12'))
    with pytest.raises(IntegrityError, match="is not what was frozen"):
        load_artefact(Weights, path)
    for content in (b"{}", b"[", json.dumps({"schema_version": 2}).encode()):
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="holds no weights"):
            load_artefact(Weights, path)
    with pytest.raises(ConfigError, match="No such file"):
        load_artefact(Weights, tmp_path / "absent.json")


def test_only_finished_untouched_validation_runs_with_truths_teach(
    validated: Path, tested: Path, tmp_path: Path
) -> None:
    fit: dict[str, Any] = {"truths": truths(VALIDATION), "package_version": "0"}
    for split, folder in (("test", tested), ("None", run(tmp_path / "plain", [1], split=None))):
        with pytest.raises(PlanError, match=f"is of the split {split}; weights are fitted on validation only"):
            fit_weights([validated, folder], **fit)
    with pytest.raises(DataError, match="no truth is known of item-03"):
        fit_weights([validated], truths=truths([1, 2]), package_version="0")
    twin = run(tmp_path / "twin", [1], split="validation")
    with pytest.raises(DataError, match="item item-01 stands in two runs"):
        fit_weights([validated, twin], **fit)
    other = run(tmp_path / "other", [13], split="validation", roles=ROLES[1:])
    with pytest.raises(PlanError, match="the panels of two runs of test differ in comparables"):
        fit_weights([validated, other], **fit)
    single = run(tmp_path / "single", [1], split="validation", roles=ROLES[:1])
    ballots = run(tmp_path / "ballots", [1], split="validation", kind="distribution")
    with pytest.raises(PlanError, match="there is nothing to fit"):
        fit_weights([single, ballots], **fit)
    packet = twin / "packets" / "item-01.json"
    packet.write_bytes(packet.read_bytes().replace(b"worth", b"north"))
    with pytest.raises(IntegrityError, match="packets/item-01"):
        fit_weights([twin], **fit)
    journal = single / "events-00001.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    (single / "manifest.json").unlink()
    with pytest.raises(DataError, match="is not finished"):
        fit_weights([single], **fit)


def test_runs_of_one_panel_are_taken_together(weights: Weights, tmp_path: Path) -> None:
    halves = {"a": range(1, 6), "b": range(6, 13)}
    parts = [run(tmp_path / name, numbers, split="validation") for name, numbers in halves.items()]
    together = fit_weights(parts[::-1], truths=truths(VALIDATION), package_version="0")
    assert together.panels == weights.panels
    assert [source.run_id for source in together.sources] == ["a", "b"]


def test_every_arm_of_a_nested_course_is_fitted_on_the_answers_of_its_rounds(weights: Weights, tmp_path: Path) -> None:
    levels = {"alone": 0, "test": 1}
    folder = run(tmp_path / "n", VALIDATION, split="validation", protocol=DEBATE, levels=levels)
    alone, after = fit_weights([folder], truths=truths(VALIDATION), package_version="0").panels
    assert (alone.arm, after.arm) == ("alone", "test")
    assert alone.numbers == weights.panels[0].numbers
    assert after.numbers is not None
    assert alone.numbers is not None
    biased = {role: after.numbers.roles[role].scale for role in after.roles}
    assert biased["comparables"] != alone.numbers.roles["comparables"].scale
    assert after.numbers.roles["place"].variance == pytest.approx(alone.numbers.roles["place"].variance)


def seats_of(item: Item, roles: Sequence[Any] = ROLES) -> tuple[Seat, ...]:
    return make_plan([item], roles=roles).seats(item.question.id)


def chosen(weights: Weights, item: Item, *, roles: Sequence[Any] = ROLES, **changes: Any) -> FittedPanel | None:
    seats = {seat.label: seat.role for seat in seats_of(item, roles)}
    values: dict[str, Any] = {"arm": "test", "committee": "none", "models": (MODEL,)}
    return seat_weights(weights, question=item.question, seats=seats, **(values | changes))


def test_seats_take_the_weights_of_their_roles(weights: Weights) -> None:
    item = make_item(20)
    found = chosen(weights, item)
    numbers = weights.panels[0].numbers
    assert found is not None
    assert found.numbers is not None
    assert numbers is not None
    assert {seat.label: found.numbers[seat.label] for seat in seats_of(item)} == {
        seat.label: numbers.roles[seat.role.id] for seat in seats_of(item)
    }
    for changes in ({"arm": "other"}, {"committee": "mixed_random"}, {"models": ("simulated:m",)}):
        assert chosen(weights, item, **changes) is None
    for asked in (make_item(20, kind="probability"), item.model_copy(update={"question": _in_euro(item)})):
        assert weights_for(weights, arm="test", committee="none", models=(MODEL,), question=asked.question) is None


def _in_euro(item: Item) -> Any:
    return item.question.model_copy(update={"unit": "EUR"})


def test_another_panel_than_the_fitted_one_is_refused(weights: Weights, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="fitted on another panel; not the same on both: comparables"):
        chosen(weights, make_item(20), roles=ROLES[1:])
    told_otherwise = [ROLES[0].model_copy(update={"text": "Something else."}), *ROLES[1:]]
    with pytest.raises(PlanError, match=rf"not the same on both: {ROLES[0].id}\. "):
        chosen(weights, make_item(20), roles=told_otherwise)

    def silent(request: Any) -> str:
        return reply(abstention={"reason": "No."}) if seat_number(request) == SILENT else speak(request)

    items = [make_item(number) for number in (1, 3)]
    carry_out(tmp_path / "q", make_plan(items, protocol=INDEPENDENT, split="validation"), items, panel(silent))
    quiet = fit_weights([tmp_path / "q"], truths=truths([1, 3]), package_version="0")
    with pytest.raises(PlanError, match="know nothing of auditor: no answer on validation"):
        chosen(quiet, make_item(20))


def test_recorded_answers_are_aggregated_under_the_weights_without_a_call(weights: Weights, tested: Path) -> None:
    numbers = weights.panels[0].numbers
    assert numbers is not None
    for rule in ("stacking", "stacking_nnls", "inverse_variance", "robust_bayes"):
        plain = recompute(tested, aggregation=rule)
        weighted = recompute(tested, aggregation=rule, weights=weights)
        assert weighted["point"].to_list() != plain["point"].to_list()
    stacked = recompute(tested, aggregation="stacking", weights=weights)
    for item, point in zip(stacked["item_id"], stacked["point"], strict=True):
        logs = {role: np.log(said_of(item, seat)) for seat, role in enumerate(NAMES, start=1)}
        by_hand = sum(numbers.roles[role].stacking * logs[role] for role in NAMES)
        assert point == pytest.approx(np.exp(by_hand), rel=1e-12)
    median = recompute(tested, aggregation="median", weights=weights)
    assert median.equals(recompute(tested, aggregation="median"))


def test_in_sample_use_is_refused_by_name(weights: Weights, validated: Path, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"in-sample use: the weights were fitted on item-01, .* and 7 more"):
        recompute(validated, aggregation="stacking", weights=weights)
    inside = run(tmp_path / "inside", [3, 20], split="test")
    with pytest.raises(PlanError, match="in-sample use: the weights were fitted on item-03"):
        recompute(inside, aggregation="stacking", weights=weights)
    refuse_in_sample(weights, items={"item-03": "another question of that name"}, split="test")
    with pytest.raises(PlanError, match="item-03"):
        refuse_in_sample(weights, items={"item-03": "another question of that name"}, split=None)
    elsewhere = run(tmp_path / "elsewhere", [20], split="test", arm="other")
    with pytest.raises(PlanError, match="the weights hold nothing for other by m"):
        recompute(elsewhere, aggregation="stacking", weights=weights)


def test_the_manifest_is_told_where_weights_come_from(weights: Weights) -> None:
    panel_: dict[str, Any] = {"arm": "test", "committee": "none", "models": (MODEL,)}
    told = weights_source(weights, **panel_)
    assert weights.sha256 in told
    assert told.endswith("fitted on validation: v")
    assert "equal weights" in weights_source(None, **panel_)
    assert "none for this panel" in weights_source(weights, **(panel_ | {"arm": "E_single"}))


def test_probabilities_are_fitted_with_their_map(tmp_path: Path) -> None:
    numbers = range(1, 41)
    folder = run(tmp_path / "p", numbers, split="validation", kind="probability")
    outcomes = {f"item-{number:02d}": float(number % 2 if number % 5 else 1 - number % 2) for number in numbers}
    bare = fit_weights([folder], truths=outcomes, package_version="0").panels[0].probabilities
    assert bare is not None
    assert bare.recalibration is None
    weights = fit_weights([folder], truths=outcomes, package_version="0", recalibration="platt")
    write_artefact(weights, tmp_path / "w.json")
    assert load_artefact(Weights, tmp_path / "w.json") == weights
    found = weights.panels[0].probabilities
    assert found is not None
    assert found.recalibration is not None
    assert (found.n_items, found.complete_rows, found.recalibration.pool) == (40, 39, "geometric_odds")
    assert found.recalibration.n == 40
    item = make_item(50, kind="probability")
    seated = chosen(weights, item)
    assert seated is not None
    assert seated.probabilities is not None
    assert found.stacking is not None
    assert seated.probabilities.stacking == {seat.label: found.stacking[seat.role.id] for seat in seats_of(item)}
    later = run(tmp_path / "later", [50], split="test", kind="probability")
    (row,) = recompute(later, aggregation="recalibrated", weights=weights).to_dicts()
    (pool,) = recompute(later, aggregation="geometric_odds").to_dicts()
    assert row["p"] == pytest.approx(found.recalibration(pool["p"]))
    with pytest.raises(ConfigError, match="recalibrated"):
        recompute(later, aggregation="recalibrated")


def test_a_seat_that_was_not_fitted_is_named_when_it_answers(weights: Weights) -> None:
    item = make_item(20)
    found = chosen(weights, item)
    assert found is not None
    assert found.numbers is not None
    said = Estimate.model_validate_json(json.dumps(answer_json(point=300_000)))
    with pytest.raises(DataError, match="no fitted weights for stranger"):
        aggregate_answers(item.question, [("analyst_01", said), ("stranger", said)], found)
