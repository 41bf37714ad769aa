"""No option that names an output writes over what is read, or over a record of a project."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cli_cases import Cli
from consilience.cli.outputs import check_folder, check_output
from consilience.errors import ConfigError

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_score_writes_no_curves_over_its_tables(cli: Cli, tmp_path: Path) -> None:
    for name in ("forecasts.csv", "outcomes.csv"):
        shutil.copy(EXAMPLES / name, tmp_path)
    (tmp_path / "link.csv").symlink_to(tmp_path / "forecasts.csv")
    read = ("--forecasts", tmp_path / "forecasts.csv", "--outcomes", tmp_path / "outcomes.csv")
    before = (tmp_path / "forecasts.csv").read_bytes()
    for name in ("forecasts.csv", "outcomes.csv", "link.csv", "."):
        done = cli("score", *read, "--reliability", tmp_path / name)
        assert (done.code, done.out) == (2, "")
        assert "--reliability" in done.err
    assert (tmp_path / "forecasts.csv").read_bytes() == before
    assert cli("score", *read, "--reliability", tmp_path / "curves.csv").code == 0


@pytest.mark.parametrize(
    "name",
    [
        *("results/freeze.json", "results/looks.jsonl", "results/calibration.json", "results/aggregation_weights.json"),
        *("results/runs/_r/predictions.parquet", "results/runs/page.html", "results/baselines/a/x.html"),
        *("data/processed/analytic.parquet", "data/x.html", "consilience.yaml", "results.html", "results/runs.html"),
        *(".", "results", "question.jsonl"),
    ],
)
def test_a_report_replaces_no_record(name: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "results" / "runs" / "_r").mkdir(parents=True)
    (tmp_path / "results" / "freeze.json").write_text("{}")
    (tmp_path / "question.jsonl").write_text("{}")
    given = ("--questions", tmp_path / "question.jsonl", "--project", tmp_path)
    done = cli("report", "--include-simulated", "--output", tmp_path / name, *given)
    assert (done.code, done.out) == (2, "")
    assert "--output" in done.err
    assert (tmp_path / "results" / "freeze.json").read_text() == "{}"


def test_other_verbs_ask_the_same(cli: Cli, tmp_path: Path) -> None:
    where = ("--project", tmp_path)
    (tmp_path / "results").mkdir()
    for verb in (
        ("freeze", "--prereg", tmp_path / "results" / "looks.jsonl"),
        ("data", "synth", "--output", tmp_path / "data" / "processed" / "analytic.parquet"),
        ("data", "synth", "--output", tmp_path / "consilience.yaml"),
    ):
        assert cli(*verb, *where).code == 2
    assert list((tmp_path / "results").iterdir()) == []


def test_a_run_folder_is_known_wherever_it_lies(tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / "events-00001.jsonl").write_text("")
    with pytest.raises(ConfigError, match="lies in the run folder"):
        check_output(folder / "page.html", option="--output", root=tmp_path)
    with pytest.raises(ConfigError, match="lies in the run folder"):
        check_folder(folder / "page", option="--output", root=tmp_path)
    (tmp_path / "taken").write_text("")
    with pytest.raises(ConfigError, match="is a file"):
        check_folder(tmp_path / "taken", option="--output", root=tmp_path)
    check_output(tmp_path / "new.html", option="--output", root=tmp_path)
    check_output(tmp_path / "data" / "raw" / "town.csv", option="--output", root=tmp_path, data=True)
    check_folder(tmp_path / "results" / "report", option="--output", root=tmp_path)
