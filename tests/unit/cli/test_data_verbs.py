from __future__ import annotations

from pathlib import Path

import pytest

from cli_cases import Cli


@pytest.fixture
def study(cli: Cli, tmp_path: Path) -> Path:
    town = tmp_path / "town.parquet"
    assert cli("data", "synth", "--sales", 400, "--seed", 3, "--output", town, "--project", tmp_path).code == 0
    return tmp_path


def build(cli: Cli, study: Path, *more: object) -> dict[str, object]:
    command = ("data", "build", "--adapter", "synthetic", "--input", study / "town.parquet", "--project", study)
    return cli(*command, *more, "--json").document


def test_describe_tells_the_table_before_and_after_it_is_split(cli: Cli, study: Path) -> None:
    build(cli, study)
    before = cli("data", "describe", "--project", study)
    assert before.code == 0
    assert "400 sales of " in before.out
    assert "no splits yet" in before.out
    assert "would leave out" in before.out
    assert cli("data", "splits", "--project", study).code == 0
    after = cli("data", "describe", "--project", study, "--json").document
    assert [period["split"] for period in after["periods"]] == ["train", "validation", "test", "holdout"]
    assert (after["sales"], after["exclusion_set"], after["pictures"]) == (400, "keep_all", [])
    assert "median price" in cli("data", "describe", "--project", study).out


def test_exclusions_are_told_by_build_and_describe(cli: Cli, study: Path) -> None:
    made = build(cli, study, "--exclusions", "market")
    assert (made["exclusion_set"], sum(made["exclusions"].values())) == ("market", 400 - int(str(made["rows"])))  # type: ignore[attr-defined]
    told = cli("data", "describe", "--project", study, "--json").document
    assert told["excluded"] == made["exclusions"]
    assert "would leave out" not in cli("data", "describe", "--project", study).out
    wrong = cli("data", "build", "--adapter", "synthetic", "--input", study / "town.parquet", "--exclusions", "markt")
    assert wrong.code != 0
    assert 'Did you mean "market"' in wrong.err


def test_splits_of_an_older_table_are_warned_of(cli: Cli, study: Path) -> None:
    build(cli, study)
    cli("data", "splits", "--project", study)
    build(cli, study, "--exclusions", "market")
    told = cli("data", "describe", "--project", study, "--json")
    assert told.document["periods"] == []
    assert "hold different sales" in told.err


@pytest.mark.slow
def test_pictures_are_named_with_their_texts(cli: Cli, study: Path) -> None:
    build(cli, study)
    told = cli("data", "describe", "--pictures", study / "pictures", "--project", study, "--json").document
    assert [picture["name"] for picture in told["pictures"]] == ["map", "prices", "months", "unknown"]
    assert all(picture["alt"] and Path(file).is_file() for picture in told["pictures"] for file in picture["files"])


def test_grouped_splits_report_what_moved(cli: Cli, study: Path) -> None:
    build(cli, study)
    grouped = cli("data", "splits", "--group-parcels", "--project", study, "--json").document
    assert grouped["moved"] == len(grouped["moves"]) == grouped["counts"]["excluded"] > 0
    assert {move["sold_again_in"] for move in grouped["moves"]} <= {"test", "holdout"}
    told = cli("data", "splits", "--group-parcels", "--project", study).out
    assert f"{grouped['moved']} sales left train because the parcel sells again later: " in told
    assert cli("data", "splits", "--project", study, "--json").document["moves"] == []
