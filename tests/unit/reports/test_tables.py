from __future__ import annotations

import csv
import io
import json

from consilience.reports.tables import Column, Table, count, dollars, percent, plain, points

TABLE = Table(
    "Two <rows>.",
    (
        Column("Arm", lambda r: str(r["arm"]), numeric=False),
        Column("Cost", lambda r: dollars(r["cost"] if isinstance(r["cost"], float) else None)),
    ),
    ({"arm": "<script>|x", "cost": 0.25, "live": True}, {"arm": "b\x1b[31m\u202e", "cost": None, "live": False}),
)


def test_markdown_escapes_and_aligns() -> None:
    assert TABLE.to_markdown().splitlines() == [
        "| Arm | Cost |",
        "| :-- | --: |",
        "| \\<script>\\|x | $0.2500 |",
        "| b\\\\u001b[31m\\\\u202e | unknown |",
        "",
        "Two \\<rows>.",
    ]


def test_html_escapes_everything_and_labels_cells() -> None:
    html = TABLE.to_html()
    assert "<script" not in html
    assert "&lt;script&gt;|x" in html
    assert '<td data-label="Cost" class="num">unknown</td>' in html
    assert "<caption>Two &lt;rows&gt;.</caption>" in html
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_csv_and_json_keep_numbers_and_say_unknown_by_emptiness() -> None:
    read = list(csv.DictReader(io.StringIO(TABLE.to_csv())))
    assert [(row["cost"], row["live"]) for row in read] == [("0.25", "true"), ("", "false")]
    assert json.loads(json.dumps(TABLE.to_json(), allow_nan=False))[1]["cost"] is None


def test_an_empty_table_keeps_its_head() -> None:
    empty = Table("None.", TABLE.columns, ())
    assert empty.to_csv() == "Arm,Cost\n"
    assert empty.to_markdown().startswith("| Arm | Cost |\n| :-- | --: |\n\n")


def test_numbers_are_shown_as_people_read_them() -> None:
    assert (percent(-0.011), percent(None), points(0.0001), points(-0.0001)) == ("−1.1\xa0%", "–", "0.0", "0.0")
    assert (dollars(0.0), dollars(1234.5), count(None), count(0)) == ("$0.0000", "$1,234.50", "unknown", "0")
    assert plain("é ok\u200b\ud800") == "é ok\\u200b\\ud800"
