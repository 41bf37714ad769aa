from __future__ import annotations

from typing import Any

import pytest

from consilience.core.answers import Adjustment, Estimate, Probability, Quote
from consilience.core.role import Role
from consilience.evidence.verification import (
    Citations,
    Comparables,
    Flag,
    citations,
    faithfulness_summary,
    verify_answer,
)
from consilience.evidence.views import full_view, view
from evidence_cases import make_packet

PACKET = make_packet()


def estimate(point: float = 420000.0, *, adjusted: dict[str, float] | None = None, **more: Any) -> Estimate:
    values: dict[str, Any] = {
        "point": point,
        "q05": point / 2,
        "q25": point,
        "q50": point,
        "q75": point,
        "q95": point * 2,
        "evidence_ids": (),
        "reasoning_summary": "",
        "counterarguments": (),
        "missing_data": (),
        "key_assumptions": (),
        "confidence_rationale": "",
        "adjustments": tuple(
            Adjustment(evidence_id=name, adjusted_value=value, reason="size")
            for name, value in (adjusted or {}).items()
        ),
    }
    return Estimate(**(values | more))


def codes(answer: Estimate | Probability, **more: Any) -> list[tuple[str, str | None]]:
    flags = verify_answer(answer, view=more.pop("view", full_view(PACKET)), packet=PACKET, **more)
    return [(flag.code, flag.evidence_id) for flag in flags]


def test_a_faithful_answer_has_no_flags() -> None:
    answer = estimate(
        adjusted={"C01": 410000.0, "C02": 430000.0},
        evidence_ids=("P", "C01", "C02"),
        quotes=(Quote(evidence_id="C01", text="corner lot"),),
    )
    assert codes(answer) == []


def test_unknown_and_unseen_ids_are_flagged_once_each() -> None:
    seen = view(PACKET, Role(id="condition", view=("P",), text="Judge."))
    answer = estimate(evidence_ids=("P", "C01", "C77", "C77", "c01"), quotes=(Quote(evidence_id="Z", text="x"),))
    assert codes(answer, view=seen) == [
        ("unknown_evidence_id", "C77"),
        ("unknown_evidence_id", "c01"),
        ("unknown_evidence_id", "Z"),
        ("evidence_outside_view", "C01"),
    ]


def test_an_adjusted_comparable_outside_the_view_is_flagged() -> None:
    seen = view(PACKET, Role(id="condition", view=("P",), text="Judge."))
    assert codes(estimate(adjusted={"C01": 400000.0}), view=seen) == [("evidence_outside_view", "C01")]


@pytest.mark.parametrize("name", ["C99", "P", "M1"])
def test_only_priced_items_of_the_section_are_comparables(name: str) -> None:
    assert codes(estimate(adjusted={name: 420000.0})) == [("unknown_comparable", name)]


@pytest.mark.parametrize(("value", "flagged"), [(560000.0, False), (560001.0, True), (240000.0, False), (239999, True)])
def test_band_is_forty_percent_with_its_ends(value: float, flagged: bool) -> None:
    found = ("adjustment_out_of_band", "C01") in codes(estimate(point=value, adjusted={"C01": float(value)}))
    assert found is flagged


@pytest.mark.parametrize(
    ("point", "flagged"), [(300000.0, False), (299999.0, True), (550000.0, False), (550001.0, True)]
)
def test_hull_is_widened_by_a_quarter_with_its_ends(point: float, flagged: bool) -> None:
    answer = estimate(point, adjusted={"C01": 400000.0, "C02": 440000.0})
    assert (("point_outside_comparable_hull", None) in codes(answer)) is flagged


def test_unknown_comparables_make_no_hull() -> None:
    assert codes(estimate(9e9, adjusted={"C99": 1.0})) == [("unknown_comparable", "C99")]
    assert codes(estimate(9e9)) == []


@pytest.mark.parametrize(
    ("assumptions", "justified"),
    [
        ((), None),
        (("Rates stay flat.",), None),
        (("Rates stay flat.", "A view premium lifts it above all sales."), "A view premium lifts it above all sales."),
        (("Unlike C01 it has two lots.",), "Unlike C01 it has two lots."),
    ],
)
def test_a_justification_is_recorded_beside_the_hull_flag(assumptions: tuple[str, ...], justified: str | None) -> None:
    answer = estimate(900000.0, adjusted={"C01": 400000.0}, key_assumptions=assumptions)
    flags = verify_answer(answer, view=full_view(PACKET), packet=PACKET)
    assert flags == (
        Flag(
            code="point_outside_comparable_hull",
            detail="900000 lies outside [300000, 500000]",
            justified=justified,
        ),
    )


def test_comparables_are_declared_by_section_and_field() -> None:
    other = Comparables(section="M", value_field="median")
    assert codes(estimate(adjusted={"M1": 420000.0}), comparables=other) == []
    assert codes(estimate(adjusted={"M1": 900000.0}, point=900000.0), comparables=other) == [
        ("adjustment_out_of_band", "M1")
    ]


def test_quotes_are_checked_on_every_kind_of_answer() -> None:
    answer = Probability(
        p_yes=0.5,
        rationale="",
        evidence_ids=("C01",),
        reasoning_summary="",
        counterarguments=(),
        missing_data=(),
        quotes=(
            Quote(evidence_id="C01", text="“Corner  LOT”"),
            Quote(evidence_id="C01", text="price: 400,000"),
            Quote(evidence_id="C01", text="price: 410,000"),
            Quote(evidence_id="C02", text="Corner lot"),
            Quote(evidence_id="C02", text="…"),
        ),
    )
    assert codes(answer) == [("quote_not_found", "C01"), ("quote_not_found", "C02"), ("quote_not_found", "C02")]


def test_summary_counts_per_arm_and_role() -> None:
    bad = estimate(900000.0, adjusted={"C01": 400000.0, "C99": 1.0}, evidence_ids=("P", "X1"), key_assumptions=("C01",))
    flags = verify_answer(bad, view=full_view(PACKET), packet=PACKET)
    records = [
        citations(bad, arm="F", role="skeptic", packet=PACKET, flags=flags),
        citations(estimate(evidence_ids=("P",)), arm="F", role="buyer", packet=PACKET, flags=()),
        citations(estimate(), arm="E", role="generalist", packet=PACKET, flags=()),
    ]
    rows = faithfulness_summary(reversed(records))
    assert [(row.arm, row.role, row.answers, row.flagged) for row in rows] == [
        ("E", None, 1, 0),
        ("E", "generalist", 1, 0),
        ("F", None, 2, 1),
        ("F", "buyer", 1, 0),
        ("F", "skeptic", 1, 1),
    ]
    whole = rows[2]
    assert whole.counts == {"point_outside_comparable_hull": 1, "unknown_comparable": 1, "unknown_evidence_id": 1}
    assert (whole.cited, whole.existing, whole.justified, whole.share_existing) == (5, 3, 1, 0.6)
    assert rows[0].share_existing is None


def test_no_records_make_no_rows() -> None:
    none: list[Citations] = []
    assert faithfulness_summary(none) == []
