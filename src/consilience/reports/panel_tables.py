"""The tables of panels: what rounds did to them, how independent their members were, how true to the evidence."""

from __future__ import annotations

from consilience.experiments.evaluation import Evaluation
from consilience.experiments.panel_scores import Faithful, PanelScores
from consilience.reports.cells import (
    captioned,
    counted,
    number,
    one_digit,
    ten_thousandths,
    thousandths,
    two_digits,
)
from consilience.reports.evaluation import arm_label
from consilience.reports.tables import ABSENT, Column, Record, Table, percent


def flips_table(evaluation: Evaluation) -> Table:
    """Return one row per panel and round: spread, error and flips."""
    records: list[Record] = [
        {
            "arm": panel.arm,
            "simulated": evaluation.simulated,
            "run_id": panel.run_id,
            "round": one.round,
            "n_items": one.n_items,
            "answers": one.answers,
            "revised": one.revised,
            "right_to_wrong": one.right_to_wrong,
            "wrong_to_right": one.wrong_to_right,
            "spread": one.spread,
            "member_error": one.member_error,
            "mean_error": one.mean_error,
            "diversity": one.diversity,
            "jaccard": one.jaccard,
        }
        for panel in evaluation.panels
        for one in panel.rounds
    ]
    columns = (
        Column("Arm", arm_label, numeric=False),
        Column("Round", lambda r: str(r["round"])),
        Column("Answers", lambda r: str(r["answers"])),
        Column("Revised", lambda r: str(r["revised"])),
        Column("Right to wrong", lambda r: counted(r["right_to_wrong"])),
        Column("Wrong to right", lambda r: counted(r["wrong_to_right"])),
        Column("Spread", lambda r: thousandths(r["spread"])),
        Column("Member error²", lambda r: ten_thousandths(r["member_error"])),
        Column("Error² of the mean", lambda r: ten_thousandths(r["mean_error"])),
        Column("Shared evidence", lambda r: percent(number(r["jaccard"]), 0)),
    )
    said = (
        "Round 0 holds the independent answers. Right is within 10 % of the truth. Spread: mean standard deviation of "
        "the members (log prices). Shared evidence: of what two members cite, on average."
    )
    return Table(captioned(evaluation, said), columns, tuple(records))


def independence_table(evaluation: Evaluation) -> Table:
    """Return one row per panel: how many independent members it was worth, and how it kept to its evidence."""
    records: list[Record] = []
    for panel in evaluation.panels:
        row = whole(panel)
        records.append(
            {
                "arm": panel.arm,
                "simulated": evaluation.simulated,
                "run_id": panel.run_id,
                "members": len(panel.first.members),
                "n_items": panel.first.n_items,
                "basis": panel.first.basis,
                "rho_first": panel.first.rho,
                "effective_first": panel.first.equal_weight,
                "effective_final": panel.final.equal_weight,
                "answers": None if row is None else row.answers,
                "flagged": None if row is None else row.flagged,
                "flags": None if row is None else "; ".join(f"{code} {count}" for code, count in row.counts.items()),
                "share_existing": None if row is None else row.share_existing,
            }
        )
    columns = (
        Column("Arm", arm_label, numeric=False),
        Column("Members", lambda r: str(r["members"])),
        Column("Correlation of errors", lambda r: two_digits(r["rho_first"])),
        Column("Effective members, first", lambda r: one_digit(r["effective_first"])),
        Column("Effective members, last", lambda r: one_digit(r["effective_final"])),
        Column("Answers checked", lambda r: counted(r["answers"])),
        Column("Flagged", lambda r: counted(r["flagged"])),
        Column("Flags", lambda r: str(r["flags"] or ABSENT), numeric=False),
        Column("Cited ids that exist", lambda r: percent(number(r["share_existing"]), 0)),
    )
    said = (
        "Effective members: what the equally weighted mean gains over one member, before and after the discussion; one "
        "means that the others added nothing. Flags: deterministic checks of every answer against its evidence."
    )
    return Table(captioned(evaluation, said), columns, tuple(records))


def whole(panel: PanelScores) -> Faithful | None:
    """Return how all members of a panel together kept to their evidence; None where nothing was checked."""
    return next((row for row in panel.faithfulness if row.role is None), None)
