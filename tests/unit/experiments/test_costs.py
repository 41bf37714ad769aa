"""What an arm cost, read from its journal: answered calls apart from those that were lost, per finished item."""

from __future__ import annotations

from pathlib import Path

import pytest

from consilience.errors import TransientModelError
from consilience.experiments.costs import ArmCost, actual_cost, foreseen_cost
from consilience.experiments.foresight import Foresight, foresee
from consilience.experiments.orders import Orders, RunReport
from consilience.experiments.plan import Plan
from consilience.journal.events import AttemptLost, AttemptResponse
from consilience.models.request import Request
from consilience.models.scripted import Reply
from consilience.reports.costs import cost_table
from consilience.reports.tables import ABSENT
from engine_cases import (
    CENT,
    INDEPENDENT,
    LIST_PRICE,
    PENNY,
    QUICK,
    carry_out,
    events_of,
    make_catalogue,
    make_items,
    make_plan,
    panel,
    speak,
)

ITEMS = make_items(2)


def plan() -> Plan:
    return make_plan(ITEMS, protocol=INDEPENDENT)


def bounds() -> Foresight:
    return foresee(plan(), ITEMS, catalogue=make_catalogue())


def cost_of(report: RunReport) -> ArmCost:
    turns = sum(report.manifest["turns"].values())
    return actual_cost(report.folder, arm="F", turns=turns, prices={"m": LIST_PRICE}, before=bounds())


def shown(cost: ArmCost) -> dict[str, str]:
    table = cost_table([cost], simulated=True)
    return dict(zip([column.label for column in table.columns], table.cells()[0], strict=True))


def test_bounds_before_hold_what_is_taken_after(tmp_path: Path) -> None:
    before = foreseen_cost("F", bounds())
    assert (before.items, before.turns, before.cost_nano, before.run_id) == (2, 10, None, None)
    assert set(shown(before)) == {"arm", "items", "turns", "expected", "at most"}
    report = carry_out(tmp_path / "run", plan(), ITEMS, panel())
    after = cost_of(report)
    assert after.cost_nano == after.finished_nano == round(report.manifest["spent_usd"] * 10**9)
    assert after.worst_nano is not None
    assert 0 < (after.cost_nano or 0) < after.worst_nano
    assert after.record()["cost_per_item_usd"] == pytest.approx(report.manifest["spent_usd"] / 2)
    assert after.uncached_nano == after.cost_nano, "nothing was cached"
    assert "unanswered, at most" not in shown(after)


def test_a_run_that_the_cap_ended_counts_finished_items(tmp_path: Path) -> None:
    whole = cost_of(carry_out(tmp_path / "whole", plan(), ITEMS, panel()))
    limit = bounds().by_item[0].expected_nano
    orders = Orders(limits=QUICK, concurrency=1, max_spend_nano=limit)
    cut = cost_of(carry_out(tmp_path / "cut", plan(), ITEMS, panel(), orders=orders))
    assert (cut.items, cut.planned_items) == (1, 2)
    assert cut.record()["cost_per_item_usd"] == pytest.approx(whole.record()["cost_per_item_usd"], rel=0.01)
    assert cut.record()["uncached_per_item_usd"] == cut.record()["cost_per_item_usd"]
    assert shown(cut)["items"] == "1 of 2"


def test_a_run_in_which_nothing_was_done_has_nothing_per_item(tmp_path: Path) -> None:
    orders = Orders(limits=QUICK, max_spend_nano=0)
    none = cost_of(carry_out(tmp_path / "run", plan(), ITEMS, panel(), orders=orders))
    record = none.record()
    assert record["cost_usd"] == 0
    assert [record[name] for name in ("cost_per_item_usd", "uncached_usd", "uncached_per_item_usd")] == [None] * 3
    cells = shown(none)
    assert (cells["items"], cells["cost"], cells["per item"], cells["uncached per item"]) == (
        "0 of 2",
        "$0.00",
        ABSENT,
        ABSENT,
    )
    assert "$0.0000" not in cells.values()


def test_calls_of_an_unfinished_item_count_as_cost_but_not_per_item(tmp_path: Path) -> None:
    """A seat that needs more than is left ends the run in the midst of the second item."""
    folder = tmp_path / "run"
    carry_out(folder, plan(), ITEMS, panel())
    whole = cost_of(carry_out(folder, plan(), ITEMS, panel()))
    cut_before(folder, AttemptResponse, number=8)
    orders = Orders(limits=QUICK, max_spend_nano=0)
    cut = cost_of(carry_out(folder, plan(), ITEMS, panel(), orders=orders))
    assert cut.items == 1
    assert cut.cost_nano is not None
    assert cut.finished_nano is not None
    assert cut.finished_nano < cut.cost_nano < (whole.cost_nano or 0)
    assert cut.uncached_nano == cut.finished_nano


def cut_before(folder: Path, kind: type, *, number: int) -> None:
    """Let the journal end before the record of an event of a kind, as a kill does."""
    at = events_of(folder)
    where = [index for index, record in enumerate(at) if isinstance(record.event, kind)][number]
    (segment,) = folder.glob("events-*.jsonl")
    segment.write_bytes(b"".join(segment.read_bytes().splitlines(keepends=True)[:where]))


def test_lost_calls_have_a_column_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    whole = cost_of(carry_out(folder, plan(), ITEMS, panel()))
    cut_before(folder, AttemptResponse, number=9)
    report = carry_out(folder, plan(), ITEMS, panel())
    charged = [record.event.charged_nano for record in events_of(folder) if isinstance(record.event, AttemptLost)]
    assert report.lost == len(charged) == 1
    killed = cost_of(report)
    assert killed.unanswered_nano == sum(nano or 0 for nano in charged) > 0
    assert (killed.items, killed.cost_nano) == (2, whole.cost_nano)
    assert killed.record()["cost_per_item_usd"] == whole.record()["cost_per_item_usd"]
    assert killed.record()["uncached_per_item_usd"] == whole.record()["uncached_per_item_usd"]
    assert round(report.manifest["spent_usd"] * 10**9) == (killed.cost_nano or 0) + killed.unanswered_nano
    assert shown(killed)["unanswered, at most"] == f"${killed.unanswered_nano / 10**9:.4f}"
    assert "Unanswered: calls that failed or were lost" in cost_table([killed], simulated=True).caption


def test_tries_that_may_have_been_billed_are_no_cost_of_answers(tmp_path: Path) -> None:
    tried: set[str] = set()

    def drops(request: Request) -> Reply:
        """Lose the connection on each seat's first try."""
        if request.model not in tried:
            tried.add(request.model)
            return TransientModelError("gone", hint="Wait.")
        return speak(request)

    report = carry_out(tmp_path / "run", plan(), ITEMS, panel(drops), price=PENNY)
    cost = actual_cost(report.folder, arm="F", turns=10, prices={"m": PENNY}, before=bounds())
    assert cost.unanswered_nano == CENT
    assert cost.cost_nano == cost.finished_nano
    assert round(report.manifest["spent_usd"] * 10**9) == (cost.cost_nano or 0) + CENT


def test_an_unknown_price_stays_unknown(tmp_path: Path) -> None:
    report = carry_out(tmp_path / "run", plan(), ITEMS, panel(), price=None)
    cost = actual_cost(report.folder, arm="F", turns=10, prices={"m": None}, before=bounds())
    assert (cost.cost_nano, cost.finished_nano, cost.uncached_nano) == (None, None, None)
    assert shown(cost)["cost"] == shown(cost)["per item"] == "unknown"
