"""Items whose evidence is withheld or perturbed, and what stays true of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from consilience.core.packet import EvidenceItem, Item, Section
from consilience.errors import PlanError
from consilience.experiments.exposed import FACTORS, PERTURBED, EvidenceFields, treat
from consilience.experiments.plan import Choices, make_plan, shown_items
from consilience.models.prices import load_catalogue
from consilience.valuation.packets import EVIDENCE_FIELDS
from consilience.valuation.pipeline import VALUATION, Project, load_items, synthetic_project
from engine_cases import make_item

FIELDS = EvidenceFields(
    subject={"P": frozenset({"floor_area_m2"})},
    amounts=frozenset({"price", "assessment_total", "median_price_per_m2"}),
)


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    project = Project(tmp_path_factory.mktemp("town"))
    synthetic_project(project, seed=7)
    return load_items(project, split="validation", n=12)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of nested content with the path to it."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from leaves(part, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from leaves(part, f"{path}[{index}]")
    else:
        yield path, value


def contents(item: Item) -> dict[str, Any]:
    """Return every value in the evidence of an item."""
    return {
        f"{shown.id}{path}": value
        for section in item.packet.sections.values()
        for shown in section.items
        for path, value in leaves(shown.content)
    }


def test_evidence_as_given_is_the_item_itself() -> None:
    item = make_item(truth=300_000.0)
    assert treat(item, "given", fields=FIELDS, seed=7) is item


def test_a_closed_book_keeps_what_names_the_subject_and_no_more() -> None:
    item = make_item(truth=300_000.0, notes=("A note.",))
    closed = treat(item, "closed_book", fields=FIELDS, seed=7)
    assert contents(closed) == {"P.floor_area_m2": 101}
    assert closed.packet.evidence_ids() == ("P",)
    assert closed.packet.notes == ()
    assert set(closed.packet.sections) == set(item.packet.sections)
    assert (closed.question, closed.truth, closed.strata) == (item.question, item.truth, item.strata)
    assert (closed.packet.cutoff, closed.packet.valuation_date) == (item.packet.cutoff, item.packet.valuation_date)
    assert closed.packet.digest != item.packet.digest


def test_a_closed_book_of_a_house_holds_no_amount(houses: list[Item]) -> None:
    for house in houses:
        left = contents(treat(house, "closed_book", fields=EVIDENCE_FIELDS, seed=7))
        assert left
        assert all(place.startswith("P.") for place in left)
        assert not [place for place in left if "price" in place or "assessment" in place or "median" in place]
        assert "P.prior_sale_price" in contents(house)


def test_every_amount_is_moved_by_one_factor_and_the_truth_with_them() -> None:
    item = make_item(truth=300_000.0).model_copy(update={"strata": {"tier": "pilot"}})
    given = contents(item)
    moved = treat(item, "perturbed", fields=FIELDS, seed=7)
    factor = float(moved.strata[PERTURBED])
    assert factor in FACTORS
    assert moved.truth == 300_000.0 * factor
    assert moved.strata["tier"] == "pilot"
    shown = contents(moved)
    for place, value in given.items():
        amount = place.rpartition(".")[2] in FIELDS.amounts
        assert shown[place] == (round(value * factor) if amount else value), place
        assert type(shown[place]) is type(value)
    assert item.packet.sections["P"].items[0].content["assessment_total"] == given["P.assessment_total"]


def test_amounts_are_found_at_any_depth_and_nothing_else_is_touched() -> None:
    content: dict[str, JsonValue] = {
        "rows": [{"price": 100.0}, {"deep": {"price": 200}}],
        "price": True,
        "price_to_assessment": 1.1,
        "remark": "price 100",
        "empty": None,
    }
    sections = {"X": Section(code="X", title="X", items=(EvidenceItem(id="X1", content=content),))}
    moved = treat(make_item(truth=50.0, sections=sections), "perturbed", fields=FIELDS, seed=7)
    factor = float(moved.strata[PERTURBED])
    shown = contents(moved)
    assert (shown["X1.rows[0].price"], shown["X1.rows[1].deep.price"]) == (100.0 * factor, round(200 * factor))
    rest = {place.removeprefix("X1."): value for place, value in shown.items() if "rows" not in place}
    assert rest == {name: value for name, value in content.items() if name != "rows"}


def test_the_factor_is_drawn_per_item_and_by_the_seed() -> None:
    def factors(seed: int) -> list[str]:
        return [treat(make_item(n), "perturbed", fields=FIELDS, seed=seed).strata[PERTURBED] for n in range(1, 41)]

    assert factors(7) == factors(7)
    assert factors(7) != factors(8)
    assert set(factors(7)) == {"0.8", "1.25"}
    assert 8 < factors(7).count("0.8") < 32


def test_a_treated_item_is_an_item_of_its_own_with_its_own_digest() -> None:
    item = make_item(truth=300_000.0)
    moved = treat(item, "perturbed", fields=FIELDS, seed=7)
    assert len({item.digest, moved.digest, treat(item, "closed_book", fields=FIELDS, seed=7).digest}) == 3
    assert Item.model_validate_json(moved.model_dump_json()).digest == moved.digest
    assert moved.question == item.question


@pytest.mark.parametrize("kind", ["probability", "choice", "distribution"])
def test_questions_without_amounts_are_refused(kind: str) -> None:
    with pytest.raises(PlanError, match=f"item-01 asks for a {kind}, which has no amounts to perturb"):
        treat(make_item(kind=kind), "perturbed", fields=FIELDS, seed=7)


def test_evidence_without_amounts_is_refused() -> None:
    for fields, named in ((EvidenceFields(), "that an application names"), (FIELDS, "median_price_per_m2, price")):
        bare = make_item(sections={}) if fields is FIELDS else make_item()
        with pytest.raises(PlanError, match=f"holds no amount to perturb.*{named}"):
            treat(bare, "perturbed", fields=fields, seed=7)


def test_a_house_is_perturbed_in_every_amount_it_shows(houses: list[Item]) -> None:
    """Ratios of amounts stay as they are, so that nothing in the packet gives the true level away."""
    for house in houses:
        moved = treat(house, "perturbed", fields=EVIDENCE_FIELDS, seed=7)
        factor = float(moved.strata[PERTURBED])
        given, shown = contents(house), contents(moved)
        changed = {place for place in given if shown[place] != given[place]}
        assert {place.rpartition(".")[2] for place in changed} <= EVIDENCE_FIELDS.amounts
        prices = {
            place
            for place, value in given.items()
            if isinstance(value, int | float)
            and not isinstance(value, bool)
            and abs(value) > 1_000
            and not place.endswith(("year_built", "land_area_m2", "population_density", "median_income"))
        }
        assert prices <= changed
        for place in changed:
            assert shown[place] == pytest.approx(given[place] * factor, rel=1e-3)
        assert isinstance(house.truth, float)
        assert moved.truth == pytest.approx(house.truth * factor)


@pytest.mark.parametrize("arm", ["control_closed_book", "control_perturbed"])
def test_the_arms_show_their_items_and_a_plan_of_them_can_be_made(houses: list[Item], arm: str) -> None:
    shown = shown_items(VALUATION, houses, arm=arm, seed=7)
    assert [item.question.id for item in shown] == [item.question.id for item in houses]
    assert all(one.packet.digest != other.packet.digest for one, other in zip(shown, houses, strict=True))
    choices = Choices(arm=arm, rounds=(), committee="gpt-6-luna", tier="mid", split="validation", seed=7)
    plan = make_plan(VALUATION, shown, choices, catalogue=load_catalogue())
    assert plan.items == {item.question.id: item.digest for item in shown}


def test_a_treated_item_survives_the_disk(tmp_path: Path) -> None:
    moved = treat(make_item(truth=300_000.0), "perturbed", fields=FIELDS, seed=7)
    path = tmp_path / "item.json"
    path.write_text(json.dumps(moved.model_dump(mode="json")))
    assert Item.model_validate_json(path.read_bytes()) == moved
