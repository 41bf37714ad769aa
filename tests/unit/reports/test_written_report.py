"""A report with everything on it: tables and figures in all formats, the same bytes twice, no text that acts."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import anyio
import polars as pl
import pytest

from consilience.core.undefined import Undefined
from consilience.experiments.evaluate import Beside, evaluate
from consilience.experiments.evaluation import Evaluation
from consilience.experiments.panel_scores import Effective, Faithful, PanelScores, RoundScores
from consilience.experiments.predictions import predictions_frame
from consilience.reports.exhibits import Exhibit, Exhibits, exhibits
from consilience.reports.gallery import Answers, Details, pictures_of
from consilience.reports.gallery_forest import forest
from consilience.reports.html import render_report
from consilience.reports.judged import overview_table
from consilience.reports.members import Members
from consilience.reports.scope import Scope
from consilience.reports.stated import stated
from consilience.reports.tables import Column, Table
from consilience.reports.written import CONTENTS, PAPER, write_report

pytestmark = pytest.mark.slow

HOSTILE = 'F_<script>alert("1")</script>\u202e$\\input{x}'
ITEMS = [f"i{k:02d}" for k in range(24)]
TRUTH = {item: 100_000.0 + 4_000.0 * k for k, item in enumerate(ITEMS)}
ARMS: Mapping[str, tuple[float, float | None]] = {
    "E_single": (0.14, 0.01),
    "J_single_matched.F": (0.10, 0.11),
    HOSTILE: (0.08, 0.12),
    "A_hedonic": (0.09, 0.0),
}


def _rows(run: str = "_r", shift: float = 0.0) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for arm, (scale, cost) in ARMS.items():
        for k, item in enumerate(ITEMS):
            point = TRUTH[item] * (1 + scale * ((k * 7 + len(arm)) % 11 - 5) / 5 + shift)
            rows.append(
                {
                    "item_id": item,
                    "split": "validation",
                    "arm": arm,
                    "committee": "c",
                    "aggregation": "median",
                    "run_id": f"{run}{len(arm)}",
                    "status": "answered",
                    "n_answered": 1,
                    "n_seats": 1,
                    "exposure": "unknown",
                    "cost_usd": cost,
                    "point": point,
                    "q05": point * 0.8,
                    "q25": point * 0.93,
                    "q50": point,
                    "q75": point * 1.07,
                    "q95": point * 1.2,
                }
            )
    return rows


def _panel() -> PanelScores:
    effective = Effective("errors", 24, ("a", "b"), 0.5, 1.3, 1.2, 1.3, 1.6, None)
    rounds = tuple(RoundScores(k, 24, 48, 20 * k, 3 * k, 5 * k, 0, 0.1 - k / 50, 0.4, 0.02, 0.01, 0.01) for k in (0, 1))
    return PanelScores(
        HOSTILE, "_r", "estimate", 24, effective, effective, rounds, (Faithful(None, 48, 2, {"c": 2}, 1.0),)
    )


@pytest.fixture(scope="module")
def told() -> tuple[Evaluation, pl.DataFrame, pl.DataFrame]:
    truth = pl.DataFrame({"item_id": ITEMS, "truth": [TRUTH[item] for item in ITEMS]})
    first, again = predictions_frame(_rows()), predictions_frame(_rows("_again", 0.02))
    beside = Beside(
        strata={item: {"price_tercile": str(k % 3)} for k, item in enumerate(ITEMS)},
        panels=(_panel(),),
        repetitions=again,
    )
    return evaluate(first, truth, n_resamples=200, beside=beside), first, truth


@pytest.fixture(scope="module")
def made(told: tuple[Evaluation, pl.DataFrame, pl.DataFrame]) -> Exhibits:
    """Tables of the evaluation, and all pictures but those of probabilities."""
    evaluation, first, _ = told
    answers = {
        str(arm): Answers(rows["point"].to_numpy(), pl.Series([TRUTH[item] for item in rows["item_id"]]).to_numpy())
        for (arm,), rows in first.group_by("arm")
    }
    errors = pl.DataFrame(
        {"a": [0.1 * (k % 5 - 2) for k in range(24)], HOSTILE: [0.1 * (k % 7 - 3) for k in range(24)]}
    )
    points = stated(first, told[2], rules=dict.fromkeys(ARMS, "median"), column="point")
    members = Members("G", "_r", ("a", HOSTILE), tuple(ITEMS), errors.to_numpy())
    pictures = pictures_of(evaluation, Details(answers, members, points, unit="EUR"))
    return Exhibits((Exhibit("main", "Each arm at a glance", overview_table(evaluation)),), pictures)


@pytest.fixture(scope="module")
def folders(made: Exhibits, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """Two reports of the same, and the page of the first."""
    root = tmp_path_factory.mktemp("report")
    drawn = write_report(made, root / "one", title="T")
    write_report(made, root / "two", title="T")
    return root / "one", root / "two", "\n".join(one.svg for one in drawn)


def test_two_reports_are_byte_identical(folders: tuple[Path, Path, str]) -> None:
    one, two, _ = folders
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert len(files) > 50
    assert files == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    assert [name for name in files if (one / name).read_bytes() != (two / name).read_bytes()] == []


def test_every_figure_has_its_formats_its_data_and_its_words(made: Exhibits, folders: tuple[Path, Path, str]) -> None:
    names = {picture.name for picture in made.pictures}
    assert "murphy-medians" in names
    assert names >= {"forest", "skill-cost", "coverage", "wis-parts", "quantiles", "pit", "rounds", "run-to-run"}
    assert names >= {"error-correlations", "influence", "ratios"}
    for picture in made.pictures:
        stem = folders[0] / "figures" / picture.name
        assert all(stem.with_suffix(f".{kind}").stat().st_size > 500 for kind in ("svg", "pdf", "png"))
        with stem.with_suffix(".csv").open(encoding="utf-8") as file:
            assert len(list(csv.DictReader(file))) == len(picture.records) > 0
        assert picture.alt
        assert "n = " in picture.caption
        assert "intervals: " in picture.caption
        assert picture.caption.startswith("Simulated.")


def test_the_forest_tells_every_measure_and_whose_p_it_is(
    told: tuple[Evaluation, pl.DataFrame, pl.DataFrame], made: Exhibits
) -> None:
    picture = next(one for one in made.pictures if one.name == "forest")
    record = next(dict(row) for row in picture.records if row["arm"] == "A_hedonic")
    found = told[0].contrasts
    assert found is not None
    both = {record["arm"], record["against"]}
    contrast = next(one for one in (*found.declared, *found.exploratory) if {one.arm, one.against} == both)
    assert not isinstance(contrast.ppe10, Undefined)
    assert not isinstance(contrast.wis, Undefined)
    sign = 1 if contrast.arm == record["arm"] else -1
    assert record["ppe10_difference"] == pytest.approx(sign * contrast.ppe10.point)
    assert record["wis_difference"] == pytest.approx(sign * contrast.wis.point)
    ends = (contrast.ppe10.low, contrast.ppe10.high)
    assert {record["ppe10_low"], record["ppe10_high"]} == {None if end is None else sign * end for end in ends}
    assert all(word in picture.alt for word in ("MdAPE", "WIS5", "PPE10"))
    assert "The p belongs to MdAPE alone" in picture.caption
    assert "WIS5 and PPE10 beside it have no test" in picture.caption
    figure = picture.draw()
    assert [axes.get_xlabel().partition("\n")[0] for axes in figure.axes] == [
        "MdAPE, points",
        "WIS5 × 100",
        "PPE10, points",
    ]


def test_a_measure_that_no_pair_has_gets_no_panel(told: tuple[Evaluation, pl.DataFrame, pl.DataFrame]) -> None:
    found = told[0].contrasts
    assert found is not None
    gone = Undefined("no quantiles")
    bare = replace(
        found,
        declared=tuple(replace(one, wis=gone) for one in found.declared),
        exploratory=tuple(replace(one, wis=gone) for one in found.exploratory),
    )
    picture = forest(replace(told[0], contrasts=bare))
    assert picture is not None
    assert len(picture.draw().axes) == 2
    assert "WIS5" not in picture.caption
    assert all(row["wis_difference"] is None for row in picture.records)


def test_hostile_texts_act_nowhere(folders: tuple[Path, Path, str]) -> None:
    one, _, svgs = folders
    for text in (svgs, *(path.read_text(encoding="utf-8") for path in one.rglob("*.svg"))):
        assert "<script" not in text
        assert "\u202e" not in text
    for path in (*one.rglob("*.tex"), *one.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        assert "\u202e" not in text
        assert path.suffix == ".md" or r"\input{x}" not in text
        assert path.suffix == ".tex" or not re.search(r"(?<!\\)<script", text)
    ids = re.findall(r'\sid="([^"]+)"', svgs)
    assert len(ids) == len(set(ids))
    assert "http" not in svgs


def test_pictures_are_well_formed_on_the_page(
    told: tuple[Evaluation, pl.DataFrame, pl.DataFrame], made: Exhibits, tmp_path: Path
) -> None:
    drawn = write_report(Exhibits((), made.pictures[:2]), tmp_path, title="T")
    page = render_report(told[0], title="T", heads={}, simulated=True, tables=made.tables, drawn=drawn)
    assert page == render_report(told[0], title="T", heads={}, simulated=True, tables=made.tables, drawn=drawn)
    for outside in ("<script", "http:", "https:", "src=", "@import", "<link"):
        assert outside not in page
    for one in drawn:
        assert ET.fromstring(one.svg).attrib["role"] == "img"  # noqa: S314 - our own figure
        assert one.svg in page
    assert "Each arm at a glance" in page


def test_the_glance_tells_what_a_verdict_needs(told: tuple[Evaluation, pl.DataFrame, pl.DataFrame]) -> None:
    table = overview_table(told[0])
    record = next(dict(row) for row in table.records if row["arm"] == HOSTILE)
    assert record["against"] == "J_single_matched.F"
    assert record["money_ratio"] == pytest.approx(0.11 / 0.12)
    assert all(record[name] is not None for name in ("mdape", "wis", "coverage90", "difference", "adjusted_p"))
    assert all(record[name] is not None for name in ("difference_low", "difference_high", "least_detectable"))
    assert (record["flips"], record["flagged"]) == ("3, 5 of 20", "2 of 48")


def test_what_an_earlier_report_wrote_is_removed(tmp_path: Path) -> None:
    table = Table("C.", (Column("a", lambda r: str(r["a"])),), ({"a": 1},))
    (tmp_path / "mine.txt").write_text("kept", encoding="utf-8")
    write_report(Exhibits((Exhibit("old", "Old", table),)), tmp_path, title="T")
    write_report(Exhibits((Exhibit("new", "New", table),)), tmp_path, title="T")
    names = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {"mine.txt", "new.csv", "new.md", "new.tex", CONTENTS, PAPER}
    assert sorted(json.loads((tmp_path / CONTENTS).read_bytes())) == [
        PAPER, "tables/new.csv", "tables/new.md", "tables/new.tex"
    ]  # fmt: skip
    assert r"\input{tables/new}" in (tmp_path / PAPER).read_text(encoding="utf-8")


def test_tables_without_rows_are_left_out(told: tuple[Evaluation, pl.DataFrame, pl.DataFrame], tmp_path: Path) -> None:
    evaluation, first, truth = told

    async def gather() -> Exhibits:
        alone = replace(evaluation, panels=())
        return await exhibits(
            alone, folder_of=lambda run: tmp_path / run, predictions=first, truth=truth, scope=Scope(), labels=()
        )

    found = anyio.run(gather)
    names = [one.name for one in found.tables]
    assert names[0] == "main"
    assert {"exploration", "coverage", "calibration", "iaao", "strata", "missingness"} <= set(names)
    assert not {"rounds", "members", "deviations", "cost", "choices"} & set(names)


def test_the_paper_compiles_whatever_its_texts_hold(tmp_path: Path) -> None:
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("no compiler of LaTeX here")
    column = Column("50 % & $x_1$", lambda r: str(r["arm"]), numeric=False)
    odd = Table(
        r"\input{/etc/passwd} ~^#{} \u202e 東京 🏠" + "".join(map(chr, range(0x180))), (column,), ({"arm": HOSTILE},)
    )
    write_report(Exhibits((Exhibit("odd", "Odd", odd),)), tmp_path, title=r"A & B \write18{id} % é")

    done = subprocess.run(
        [compiler, "-interaction=nonstopmode", "-halt-on-error", PAPER],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )

    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")
