"""The tables tell what failed and what was not tried, and a part of a campaign rewrites its own rows only."""

from __future__ import annotations

from campaign_table import HELD, Row, kept, table

ROWS = [
    Row("a | b", "holds", 1_200, "7", HELD, "9 | 9 kills"),
    Row("c", "holds", 0, "7", "FAILED", ""),
    Row("d", "holds", 0, "all", "not tried: no disk", ""),
]


def test_failed_and_skipped_cases_are_counted() -> None:
    page = table("faults", ROWS, [Row("`test_kill.py`", "a run goes on", 2, "", "FAILED", "")], share=0.5)
    assert "4 cases, 1,202 tries, 2 open, 1 not tried. 50% of the tries" in page
    assert "| c | holds | 0 | 7 | FAILED |" in page


def test_rows_that_were_not_tried_again_stay_as_they_are() -> None:
    page = table("hostile", ROWS, [Row("`test_kill.py`", "a run goes on", 2, "", HELD, "")], share=1)
    assert kept(page, but=()) == ROWS
    assert [row.case for row in kept(page, but=("c",))] == ["a | b", "d"]
