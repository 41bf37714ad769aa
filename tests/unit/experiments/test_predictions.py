from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.errors import ConfigError, DataError
from consilience.experiments.predictions import (
    PREDICTIONS,
    load_runs,
    predictions_frame,
    read_predictions,
    validate_predictions,
    write_predictions,
)

ANSWER = {"point": 100.0, "q05": 80.0, "q25": 95.0, "q50": 100.0, "q75": 106.0, "q95": 125.0}


def row(item: Any = "a", **changed: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "item_id": item,
        "split": "validation",
        "arm": "F_independent",
        "committee": "mixed_random",
        "aggregation": "median",
        "run_id": "_r",
        "n_answered": 11,
        "n_seats": 12,
        "status": "answered",
        "exposure": "unknown",
        "cutoff": date(2015, 3, 1),
        "cost_usd": 0.07,
    }
    return fields | ANSWER | changed


def silent(status: str = "failed", **changed: Any) -> dict[str, Any]:
    return row(**({"status": status, **dict.fromkeys(ANSWER), "n_answered": 0} | changed))


def test_columns_are_the_published_ones_in_their_order() -> None:
    assert predictions_frame([row()]).columns == [
        *("item_id", "split", "arm", "committee", "aggregation", "point", "q05", "q25", "q50", "q75", "q95"),
        *("cost_usd", "latency_s", "tokens", "run_id", "n_answered", "n_seats", "status", "information_date"),
        *("cutoff", "exposure", "paid_usd"),
    ]


def test_rows_are_sorted_and_unknown_stays_null() -> None:
    frame = predictions_frame([row("b"), row("a", aggregation="mean"), row("a"), silent(item="c", cost_usd=None)])
    assert frame.select("item_id", "aggregation").rows() == [
        ("a", "mean"),
        ("a", "median"),
        ("b", "median"),
        ("c", "median"),
    ]
    assert frame.row(3, named=True)["point"] is None
    assert frame["cost_usd"][3] is None


def test_options_follow_the_probability_by_name() -> None:
    empty = dict.fromkeys(ANSWER)
    frame = predictions_frame([row(**empty, **{"option:b": 0.4, "p": 0.6, "option:a": 0.6})])
    assert frame.columns[-3:] == ["p", "option:a", "option:b"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (row(status="lost"), "status other than"),
        (row(exposure="later"), "exposure other than"),
        (row(exposure=None), "lacks one of"),
        (row(point=float("nan")), "not finite"),
        (row(cost_usd=-0.1), "negative"),
        (row(n_answered=13), "more answers than seats"),
        (row(**dict.fromkeys(ANSWER)), "no number"),
        (silent() | {"point": 0.0}, "without being answered"),
        (row(q05=None), "some of the five"),
        (row(point=None), "no number"),
        (row(q05=99.0), "crossing"),
        (row(p=1.2), "outside"),
    ],
)
def test_an_unsound_row_is_named(bad: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=rf"row 1 \(item z, .*{said}"):
        predictions_frame([row(), bad | {"item_id": "z"}])


def test_a_row_may_not_stand_twice() -> None:
    with pytest.raises(DataError, match="stands twice"):
        predictions_frame([row(), row()])


def test_columns_are_checked() -> None:
    frame = predictions_frame([row()])
    with pytest.raises(DataError, match='unknown column "q50_"'):
        validate_predictions(frame.with_columns(q50_=pl.lit(1.0)))
    with pytest.raises(DataError, match='lack the column "paid_usd"'):
        validate_predictions(frame.drop("paid_usd"))
    with pytest.raises(DataError, match='column "tokens" holds'):
        validate_predictions(frame.with_columns(pl.col("tokens").cast(pl.Float64)))
    with pytest.raises(DataError, match="does not fit its column"):
        predictions_frame([row(point="much")])


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    rows = [row(str(i), point=100.0 + i) for i in range(40)]
    write_predictions(predictions_frame(rows), tmp_path / "one.parquet")
    parts = pl.concat([predictions_frame(rows[20:]), predictions_frame(rows[:20])], rechunk=False)
    write_predictions(parts, tmp_path / "deep" / "two.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "deep" / "two.parquet").read_bytes()
    assert read_predictions(tmp_path / "one.parquet").equals(predictions_frame(rows))
    assert read_predictions(tmp_path / "one.parquet").schema == PREDICTIONS


def test_an_unsound_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match="no readable Parquet"):
        read_predictions(tmp_path / "bad.parquet")
    predictions_frame([row()]).drop("split").write_parquet(tmp_path / "short.parquet")
    with pytest.raises(DataError, match=r"short\.parquet: predictions lack"):
        read_predictions(tmp_path / "short.parquet")


def test_simulated_runs_are_skipped_and_counted(tmp_path: Path) -> None:
    for run in ("_sim", "real"):
        write_predictions(predictions_frame([row(run_id=run)]), tmp_path / "runs" / run / "predictions.parquet")
    (tmp_path / "runs" / "begun").mkdir()
    loaded = load_runs(tmp_path)
    assert (loaded.run_ids, loaded.skipped_simulated, loaded.unfinished) == (("real",), ("_sim",), ("begun",))
    assert load_runs(tmp_path, include_simulated=True).predictions.height == 2
    assert load_runs(tmp_path, ["_sim"], include_simulated=True).run_ids == ("_sim",)
    with pytest.raises(DataError, match=r"1 simulated skipped.*--include-simulated"):
        load_runs(tmp_path, ["_sim"])
    with pytest.raises(DataError, match="there is no file"):
        load_runs(tmp_path, ["begun"])
    with pytest.raises(ConfigError, match=r'no run "reel".*Did you mean "real"'):
        load_runs(tmp_path, ["reel"])
    with pytest.raises(DataError, match="no run to evaluate"):
        load_runs(tmp_path / "nowhere")
