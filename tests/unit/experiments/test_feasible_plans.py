"""What cannot work is refused when the plan is made, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from consilience.core.packet import Item
from consilience.core.role import Role
from consilience.errors import ConfigError, PlanError
from consilience.experiments.exposed import EvidenceFields
from consilience.experiments.feasible import check_parts
from consilience.experiments.matching import Match
from consilience.experiments.plan import Application, Choices, Plan, make_plan, shown_items
from consilience.experiments.repeats import repeated
from consilience.models.prices import load_catalogue
from consilience.protocols.adversarial import Adversarial
from consilience.protocols.independent import Independent
from consilience.protocols.skeptic import BlindedSkeptic
from consilience.valuation.pipeline import VALUATION
from engine_cases import ROLES, make_item, make_items

ITEMS = make_items(2)
CATALOGUE = load_catalogue()
SKEPTIC = Role(id="skeptic", view=("all",), text="Doubt.")
NARROW_SKEPTIC = Role(id="skeptic", view=("P",), text="Doubt.")
WHOLE = tuple(role.model_copy(update={"view": ("all",)}) for role in ROLES)
ADVOCATES = tuple(Role(id=name, view=("all",), text=name) for name in ("advocate_yes", "advocate_no", "judge"))
TOKENS = Match(unit="tokens", source="tokens:9", label="tokens9", allowance={"item-01": 9, "item-02": 9})


def planned(
    arm: str, roles: Sequence[Role] = ROLES, *, items: Sequence[Item] = ITEMS, fields: Any = None, **changes: Any
) -> Plan:
    """Return the plan of an arm whose panel is made of these roles."""
    toy = Application(
        name="general" if arm == "adversarial" else "valuation",
        roles_for=lambda _panel, _seed: tuple(roles),
        reader=lambda _mind: {},
        fields=fields or EvidenceFields(),
    )
    values = {"rounds": (), "committee": "gpt-6-luna", "tier": "mid", "split": "validation", "seed": 7}
    return make_plan(toy, items, Choices(**{"arm": arm, **values, **changes}), catalogue=CATALOGUE)


def of_kind(kind: str) -> list[Item]:
    return [make_item(number, kind=kind) for number in (1, 2)]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("H_skeptic", {}, 'gives the part "skeptic" to the role skeptic, whom the panel does not seat'),
    ("H_skeptic", {"roles": (ROLES[0], SKEPTIC)}, "needs 2 members beside those with a part, and has 1"),
    (
        "H_skeptic",
        {"roles": (ROLES[0], ROLES[1], NARROW_SKEPTIC), "drop_empty_seats": True},
        "whom the panel does not seat",
    ),
    ("G_debate", {"roles": ROLES[:1]}, "protocol debate needs 2 members .* and has 1"),
    ("G_debate", {"roles": (ROLES[0], NARROW_SKEPTIC), "drop_empty_seats": True}, "needs 2 members"),
    ("delphi", {"roles": ROLES[:1]}, "protocol delphi needs 2 members"),
    ("control_peers", {"roles": ROLES[:1]}, "protocol peers_only needs 2 members"),
    ("control_displaced", {"roles": ROLES[:1]}, "protocol displaced needs 2 members"),
    ("control_displaced", {"items": of_kind("choice")}, "protocol displaced does not serve choice questions"),
    ("control_displaced", {"items": of_kind("distribution")}, "does not serve distribution questions"),
    ("control_evidence", {"roles": WHOLE}, "every member already sees all the evidence"),
    ("J_single_matched", {}, "protocol single asks 1 beside those with a part, and the panel has 5"),
    (
        "J_single_matched",
        {"roles": ROLES[:1], "match": TOKENS, "items": make_items(3)},
        "allows nothing for item item-03",
    ),
    ("G_debate", {"match": TOKENS}, "protocol debate takes the turns it declares and cannot be matched in cost"),
    ("F_independent", {"match": TOKENS}, "cannot be matched in cost"),
    ("adversarial", {"roles": ADVOCATES}, "protocol adversarial does not serve estimate questions"),
    ("adversarial", {"roles": ADVOCATES[:2], "items": of_kind("probability")}, "to the role judge, whom"),
    (
        "adversarial",
        {"roles": (*ADVOCATES, ROLES[0]), "items": of_kind("probability")},
        "protocol adversarial asks 0 beside those with a part, and the panel has 1",
    ),
    ("adversarial", {"roles": ADVOCATES, "items": of_kind("probability"), "rounds": (4,)}, "4 rounds of arguments"),
    ("H_skeptic", {"roles": (*ROLES, SKEPTIC), "rounds": (1, 2)}, "protocol skeptic has no nested rounds"),
    ("H_skeptic", {"roles": (*ROLES, SKEPTIC), "rounds": (21,)}, "21 rounds is more than the 20"),
]


@pytest.mark.parametrize(("arm", "changes", "why"), REFUSED)
def test_what_cannot_work_is_refused(arm: str, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(PlanError, match=why):
        planned(arm, **changes)


WORKS: list[tuple[str, dict[str, Any]]] = [
    ("H_skeptic", {"roles": (*ROLES, SKEPTIC)}),
    ("H_skeptic", {"roles": (*ROLES, SKEPTIC), "drop_empty_seats": True}),
    ("G_debate", {}),
    ("delphi", {"items": of_kind("choice")}),
    ("control_displaced", {"items": of_kind("probability")}),
    ("control_evidence", {}),
    ("control_reask", {"roles": ROLES[:1]}),
    ("J_single_matched", {"roles": ROLES[:1], "match": TOKENS}),
    ("adversarial", {"roles": ADVOCATES, "items": of_kind("probability")}),
]


@pytest.mark.parametrize(("arm", "changes"), WORKS)
def test_what_differs_in_that_alone_is_planned(arm: str, changes: dict[str, Any]) -> None:
    plan = planned(arm, **changes)
    parts = {seat.part for seat in plan.seats("item-01") if seat.part is not None}
    assert parts == set(plan.make_protocol().parts)
    assert set(plan.tasks) == {one.turn.kind for one in plan.make_protocol().plan(_seating(plan))}


def _seating(plan: Plan) -> Any:
    from consilience.core.panel import seating_of  # noqa: PLC0415 - for this assertion alone

    return seating_of(plan.seats("item-01"))


def test_parts_are_checked_by_name() -> None:
    with pytest.raises(ConfigError, match=r'unknown part "skeptik" of protocol skeptic.*Did you mean "skeptic"'):
        check_parts({"skeptik": "comparables"}, ROLES, BlindedSkeptic())
    with pytest.raises(ConfigError, match="Protocol independent has no parts"):
        check_parts({"skeptic": "comparables"}, ROLES, Independent())
    with pytest.raises(PlanError, match='needs somebody for the part "judge"'):
        check_parts({"advocate_yes": "comparables", "advocate_no": "market"}, ROLES, Adversarial())


def test_the_placebo_panel_has_the_views_and_the_turns_of_the_debate() -> None:
    def of(arm: str) -> Plan:
        choices = Choices(arm=arm, rounds=(), committee="gpt-6-luna", tier="mid", split=None, seed=7)
        return make_plan(VALUATION, ITEMS, choices, catalogue=CATALOGUE)

    debate = of("G_debate")
    texts = {role.text for role in debate.roles}
    for arm in ("I_placebo", "I_shuffled"):
        plan = of(arm)
        assert [role.view for role in plan.roles] == [role.view for role in debate.roles]
        assert plan.make_protocol() == debate.make_protocol()
        assert plan.make_protocol().plan(_seating(plan)) == debate.make_protocol().plan(_seating(debate))
        assert (plan.tasks, plan.preamble, plan.output_rules) == (debate.tasks, debate.preamble, debate.output_rules)
    assert len({role.text for role in of("I_placebo").roles}) == 1
    assert {role.text for role in of("I_shuffled").roles} == texts
    assert [role.text for role in of("I_shuffled").roles] != [role.text for role in debate.roles]
    assert len(of("I_placebo").make_protocol().plan(_seating(debate))) == 60


def test_an_arm_without_the_skeptics_seat_has_the_others() -> None:
    def names(arm: str) -> list[str]:
        choices = Choices(arm=arm, rounds=(), committee="gpt-6-luna", tier="mid", split=None, seed=7)
        return [role.id for role in make_plan(VALUATION, ITEMS, choices, catalogue=CATALOGUE).roles]

    assert names("G_noskeptic") == [name for name in names("G_debate") if name != "skeptic"]
    assert names("H_skeptic") == names("G_debate")


# Which items are asked again


@pytest.mark.parametrize(("count", "again"), [(0, 0), (1, 1), (9, 1), (10, 1), (11, 2), (24, 3), (100, 10)])
def test_a_tenth_of_the_items_is_asked_again(count: int, again: int) -> None:
    items = make_items(count)
    drawn = repeated(items, seed=7)
    assert len(drawn) == again
    assert [item for item in items if item in drawn] == drawn


def test_the_draw_depends_on_the_seed_and_the_items_alone() -> None:
    items = make_items(30)
    drawn = [item.question.id for item in repeated(items, seed=7)]
    assert [item.question.id for item in repeated(items[::-1], seed=7)] == drawn
    assert len({tuple(item.question.id for item in repeated(items, seed=seed)) for seed in range(20)}) > 15


def test_most_arms_show_the_items_as_they_are() -> None:
    for arm in ("G_debate", "H_skeptic", "control_evidence"):
        assert shown_items(VALUATION, ITEMS, arm=arm, seed=7) == ITEMS
