from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from baseline_cases import town_matrix
from consilience.errors import ConfigError, DataError, PlanError
from consilience.experiments.predictions import read_predictions
from consilience.valuation.baseline_runs import (
    Bench,
    chosen_baselines,
    fit_baselines,
    open_bench,
    predict_baselines,
    stored_items,
)
from consilience.valuation.baselines import BASELINES, Prediction
from consilience.valuation.baselines.base import information_date
from consilience.valuation.pipeline import Project, synthetic_project

ARMS = ("A_hedonic", "A2_adjusted_comps", "D_index")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("town"))
    synthetic_project(made, seed=5, sales=900)
    return made


@pytest.fixture(scope="module")
def bench(project: Project) -> Bench:
    return open_bench(project)


def test_a_split_is_predicted_into_the_common_frame(bench: Bench, tmp_path: Path) -> None:
    runs = predict_baselines(bench, tmp_path, chosen_baselines(ARMS), split="test")
    assert [run.arm for run in runs] == list(ARMS)
    for run in runs:
        assert run.folder == tmp_path / "baselines" / run.run_id
        assert run.run_id.startswith(f"_{run.arm}-test-")
        rows = read_predictions(run.folder / "predictions.parquet")
        assert rows.height == run.subjects == len(bench.matrix.part("test"))
        assert set(rows["committee"]) == {"none"}
        assert set(rows["aggregation"]) == {"model"}
        assert rows["cost_usd"].sum() == 0
        assert set(rows["information_date"]) == {run.information_date}
        assert set(rows["exposure"]) == {"after"}
        assert rows.filter(rows["point"].is_null())["status"].unique().to_list() in ([], ["abstained"])
        assert rows["point"].count() == run.answered
        assert (rows["cutoff"] >= run.information_date).all()
    assert 0 < runs[2].answered < runs[2].subjects


def test_the_same_gives_the_same_bytes(bench: Bench, tmp_path: Path) -> None:
    def written(folder: Path) -> dict[str, bytes]:
        predict_baselines(bench, folder, chosen_baselines(ARMS), split="test")
        files = (path for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    first = written(tmp_path / "one")
    assert len(first) == 4 * len(ARMS)
    assert first == written(tmp_path / "two")


def test_rolling_refits_bear_their_name_and_the_day_each_row_knew(project: Project, tmp_path: Path) -> None:
    rolling = open_bench(project, as_of="rolling")
    (run,) = predict_baselines(rolling, tmp_path, chosen_baselines(["A_hedonic"]), split="test")
    assert run.arm == "A_hedonic_rolling"
    rows = read_predictions(run.folder / "predictions.parquet")
    assert rows.height == rows["point"].count() == len(rolling.matrix.part("test"))
    assert rows["information_date"].n_unique() > 2
    assert (rows["information_date"] <= rows["cutoff"]).all()
    card = json.loads((run.folder / "card.json").read_bytes())
    refits = list(json.loads((run.folder / "model.json").read_bytes())["refits"])
    assert card["refits"] == sorted(refits)
    assert (card["as_of"], len(refits)) == ("rolling", rows["information_date"].n_unique())


def test_the_card_tells_data_period_features_and_hashes(bench: Bench, tmp_path: Path) -> None:
    (run,) = predict_baselines(bench, tmp_path, chosen_baselines(["A_hedonic"]), split="test")
    card = json.loads((run.folder / "card.json").read_bytes())
    assert card["data"]["adapter"] == "synthetic"
    assert list(card["period"]) == ["test", "train", "validation"]
    assert card["period"]["train"]["sales"] == len(bench.matrix.part("train"))
    assert card["information_date"] == run.information_date.isoformat()
    assert "ln_floor_area" in card["features"]
    assert set(card["hashes"]) == {"table", "splits", "model.json", "predictions.parquet"}
    assert card["predicted"] == {"split": "test", "subjects": run.subjects, "answered": run.answered}
    text = (run.folder / "card.md").read_text(encoding="utf-8")
    assert text.startswith("# A_hedonic\n")
    assert run.run_id in text
    model = json.loads((run.folder / "model.json").read_bytes())
    assert model["prices"]["coefficients"]["ln_floor_area"]["value"] == pytest.approx(0.65, abs=0.1)


def test_the_stored_subsample_alone_is_predicted(project: Project, bench: Bench, tmp_path: Path) -> None:
    items = stored_items(project, split="validation", n=24)
    (part,) = predict_baselines(bench, tmp_path, chosen_baselines(["A_hedonic"]), split="validation", items=items)
    (whole,) = predict_baselines(bench, tmp_path, chosen_baselines(["A_hedonic"]), split="validation")
    rows = read_predictions(part.folder / "predictions.parquet")
    assert rows["item_id"].to_list() == sorted(items)
    assert set(rows["exposure"]) == {"after"}
    card = json.loads((part.folder / "card.json").read_bytes())
    first = min(day for day in rows["cutoff"].to_list())
    assert date.fromisoformat(card["information_date"]) < first
    assert set(card["period"]) == {"train", "validation"}
    assert part.run_id != whole.run_id
    everyone = read_predictions(whole.folder / "predictions.parquet")
    same = everyone.filter(everyone["item_id"].is_in(items))
    assert np.allclose(same["point"], rows["point"])


def test_fitting_alone_leaves_models_and_no_predictions(bench: Bench, tmp_path: Path) -> None:
    (run,) = fit_baselines(bench, tmp_path, chosen_baselines(["D_index"]))
    assert sorted(path.name for path in run.folder.iterdir()) == ["card.json", "card.md", "model.json"]
    assert json.loads((run.folder / "card.json").read_bytes())["predicted"] is None


def test_splits_that_are_none_to_predict_are_refused(bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match='nothing is predicted on split "train"'):
        predict_baselines(bench, tmp_path, [], split="train")
    with pytest.raises(DataError, match="split prospective holds no sale"):
        predict_baselines(bench, tmp_path, [], split="prospective")


def test_baselines_are_chosen_by_their_arms() -> None:
    assert "X_import" not in [baseline.name for baseline in chosen_baselines()]
    assert [baseline.name for baseline in chosen_baselines(["X_import"])] == ["X_import"]
    with pytest.raises(ConfigError, match='unknown baseline "A_hedonik"'):
        chosen_baselines(["A_hedonik"])
    assert {"A_hedonic", "A2_adjusted_comps", "D_index", "X_import"} <= set(BASELINES.names())


@pytest.mark.parametrize(
    ("point", "quantiles", "said"),
    [
        ([1.0], [[1.0, 2.0, 3.0, 2.5, 4.0]], "falling"),
        ([1.0], [[1.0, np.nan, 3.0, 3.5, 4.0]], "some of the numbers"),
        ([np.nan], [[1.0, 2.0, 3.0, 3.5, 4.0]], "some of the numbers"),
        ([0.0], [[np.nan] * 5], "no price"),
        ([np.inf], [[np.nan] * 5], "no price"),
        ([1.0, 2.0], [[np.nan] * 5], "shape"),
    ],
)
def test_unsound_predictions_are_refused(point: list[float], quantiles: list[list[float]], said: str) -> None:
    with pytest.raises(DataError, match=said):
        Prediction(point=np.array(point), quantiles=np.array(quantiles))


def test_information_dates_of_rows_are_one_per_row() -> None:
    with pytest.raises(DataError, match="0 information dates for 1 rows"):
        Prediction(point=np.array([1.0]), quantiles=np.full((1, 5), np.nan), information_dates=())


def test_nothing_to_fit_on_is_said() -> None:
    empty = town_matrix(60, 1).take(np.array([], dtype=np.int64))
    with pytest.raises(DataError, match="no sale to fit on"):
        information_date(empty)
