from __future__ import annotations

from pathlib import Path

import pytest

from cli_cases import Cli


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


def test_predict_writes_runs_of_the_synthetic_town_and_names_them(cli: Cli, root: Path) -> None:
    command = ("baselines", "predict", "--synthetic", "--arm", "A_hedonic", "--arm", "D_index", "--split", "test")
    document = cli(*command, "--project", root, "--json").document
    assert [run["arm"] for run in document["runs"]] == ["A_hedonic", "D_index"]
    assert (document["split"], document["as_of"], document["calls"]) == ("test", "frozen", 0)
    for run in document["runs"]:
        assert run["run_id"].startswith("_")
        assert (root / "results" / "baselines" / run["run_id"] / "predictions.parquet").is_file()
    told = cli(*command, "--project", root)
    assert told.code == 0
    assert "301 of 301" in told.out
    assert "hit rate" in told.err


def test_fit_keeps_a_model_with_its_card(cli: Cli, root: Path) -> None:
    done = cli("baselines", "fit", "--synthetic", "--arm", "A2_adjusted_comps", "--project", root, "--json")
    (run,) = done.document["runs"]
    assert sorted(path.name for path in Path(run["folder"]).iterdir()) == ["card.json", "card.md", "model.json"]


def test_an_imported_table_is_an_arm(cli: Cli, root: Path) -> None:
    cli("baselines", "fit", "--synthetic", "--arm", "D_index", "--project", root)
    import polars as pl  # noqa: PLC0415 - one test needs it

    splits = pl.read_parquet(root / "data" / "synthetic" / "data" / "processed" / "splits.parquet")
    table = root / "avm.csv"
    splits.filter(pl.col("split") == "test").select(id="tx_id", point=pl.lit(300_000.0))[:50].write_csv(table)
    command = ("baselines", "predict", "--synthetic", "--arm", "X_import", "--import", table, "--split", "test")
    done = cli(*command, "--information-date", "2022-12-31", "--project", root, "--json")
    (run,) = done.document["runs"]
    assert (run["answered"], run["information_date"]) == (50, "2022-12-31")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--arm", "A_hedonik"), 'unknown baseline "A_hedonik"'),
        (("--split", "train"), 'nothing is predicted on split "train"'),
        (("--as-of", "sometimes"), '--as-of: unknown "sometimes"'),
        (("--import", "avm.csv"), "--import and --information-date belong together"),
        (("--import", "avm.csv", "--information-date", "May"), '--information-date: "May" is no day'),
        (("--arm", "X_import"), "X_import needs a table"),
    ],
)
def test_mistakes_are_told(cli: Cli, root: Path, options: tuple[str, ...], said: str) -> None:
    done = cli("baselines", "predict", "--synthetic", "--project", root, *options)
    assert done.code == 2
    assert said in done.err


def test_without_a_table_the_next_step_is_told(cli: Cli, tmp_path: Path) -> None:
    done = cli("baselines", "predict", "--project", tmp_path)
    assert done.code == 1
    assert "there is no file" in done.err


@pytest.mark.slow
def test_baselines_alone_are_evaluated_and_reported(cli: Cli, root: Path) -> None:
    where = ("--project", root)
    command = ("baselines", "predict", "--synthetic", "--arm", "A_hedonic", "--arm", "D_index", "--split", "validation")
    made = [run["run_id"] for run in cli(*command, "--n", 20, *where, "--json").document["runs"]]
    skipped = cli("evaluate", *made, *where)
    assert skipped.code == 1
    assert "--include-simulated" in skipped.err
    told = cli("evaluate", *made, "--include-simulated", *where, "--json").document
    assert [row["arm"] for row in told["arms"]] == ["A_hedonic", "D_index"]
    assert told["baseline_arm"] == "A_hedonic"
    assert "No language model was asked: differences are taken from A_hedonic." in told["warnings"]
    one = cli("evaluate", made[1], "--include-simulated", "--baseline", "D_index", *where)
    assert one.code == 0
    page = cli("report", *made, "--include-simulated", *where)
    assert page.code == 0, page.err
    assert page.out.startswith("2 arms (simulated) in")
    cli("baselines", "predict", "--synthetic", "--arm", "D_index", "--split", "test", "--n", 20, *where)
    mixed = cli("evaluate", "--include-simulated", *where)
    assert mixed.code == 1
    assert "predictions mix splits" in mixed.err
