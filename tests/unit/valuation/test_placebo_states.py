"""G and I: given equal answers, default roles and placebos are shown the same bytes under neutral labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from consilience.core.answers import Critique, CritiqueSet, Estimate
from consilience.core.canonical import canonical_json
from consilience.core.deliberation import first_table
from consilience.core.outcomes import Answered
from consilience.core.panel import Labels, Seat, seats_of
from consilience.core.showing import Shown
from consilience.core.turn import Turn
from consilience.evidence.views import view
from consilience.experiments.panels import packaged_panels
from consilience.runtime.state import Recipient, state_of
from consilience.valuation.roster import SHELF
from evidence_cases import make_packet, make_question

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "committee_state.json"
TURN = Turn(kind="revision", round=1)
SHOWN = ("committee", "own_answer", "critiques", "flags", "order")
SHOWN_SEAT = 1  # the second, whose view of subject and comparables leaves much unseen


def seated(panel: str, labels: Labels = "neutral") -> tuple[Seat, ...]:
    roles = SHELF.roles_for(panel, 0)
    return seats_of(roles, ["m"] * len(roles), labels=labels)


def said(number: int) -> Answered:
    point = 300_000.0 + 7_500 * number
    answer = Estimate(
        point=point,
        q05=0.8 * point,
        q25=0.9 * point,
        q50=point,
        q75=1.1 * point,
        q95=1.3 * point,
        adjustments=(),
        key_assumptions=(),
        confidence_rationale="Some.",
        evidence_ids=("P", "C01", "M1", "G1")[: 1 + number % 4],
        reasoning_summary=f"Reason {number}.",
        counterarguments=(),
        missing_data=(),
    )
    return Answered(said_type="estimate", said=answer)


def states(seats: tuple[Seat, ...]) -> list[bytes]:
    """Return what every seat is shown when seat n says the same whoever sits there and criticises the next."""
    packet, question = make_packet(), make_question()
    labels = [seat.label for seat in seats]
    table = first_table(labels, [said(number) for number in range(len(seats))])
    critiques = {
        label: CritiqueSet(
            critiques=(
                Critique(
                    target_role=labels[(number + 1) % len(labels)],
                    agrees=number % 2 == 0,
                    points=(f"Point {number}.",),
                    evidence_ids=("P",),
                    suggested_value=310_000.0,
                ),
            )
        )
        for number, label in enumerate(labels)
    }
    shown = Shown(table=table, critiques=critiques)
    found = [
        state_of(
            shown,
            to=Recipient(seat.label, frozenset(view(packet, seat.role).evidence_ids_visible)),
            question=question,
            turn=TURN,
            seed=7,
        )
        for seat in seats
    ]
    return [canonical_json({name: getattr(state, name) for name in SHOWN}) for state in found]


def test_a_placebo_is_shown_byte_for_byte_what_the_default_role_of_its_seat_is() -> None:
    default, placebo = states(seated("default")), states(seated("placebo"))
    assert len(set(default)) == 12
    assert placebo == default


def test_shuffled_mandates_are_shown_the_same_as_well() -> None:
    assert states(seated("shuffled12")) == states(seated("default"))


def test_the_state_is_the_golden_one() -> None:
    assert json.loads(states(seated("default"))[SHOWN_SEAT]) == json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_labels_by_role_would_tell_them_apart() -> None:
    assert states(seated("placebo", "role")) != states(seated("default", "role"))


def test_another_view_would_tell_them_apart() -> None:
    default = seated("default")
    widened = tuple(
        seat.model_copy(update={"role": seat.role.model_copy(update={"view": ("all",)})}) for seat in default
    )
    assert states(widened) != states(default)


@pytest.mark.parametrize("panel", sorted(packaged_panels("valuation")))
def test_no_state_names_a_role(panel: str) -> None:
    seats = seated(panel)
    names = [seat.role.id for seat in seats]
    assert not [name for state in states(seats) for name in names if name.encode() in state]
