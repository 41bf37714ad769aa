"""Tables of forecasts: how they are read, scored and pooled, and what is said about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from consilience.aggregation.recalibration import fit_platt
from consilience.core.undefined import Undefined
from consilience.errors import ConfigError, DataError
from consilience.experiments.forecast_table import ForecastTable, read_forecasts
from consilience.experiments.score_flags import flags_of
from consilience.experiments.score_pools import EXTREMIZED, FittedMap, time_fits
from consilience.experiments.score_table import MARKET, ScoreTable, reliabilities, score_table

CORE = tuple(f"{model}-high-brave-c0-t1" for model in ("flash", "gpt5", "kimi-k2.5", "pro", "sonnet"))
POOLS = ("mean", "median", "geometric_odds", "trimmed_mean", EXTREMIZED)


def write(folder: Path, forecasts: str, outcomes: str) -> tuple[Path, Path]:
    made = folder / "forecasts.csv", folder / "outcomes.csv"
    for path, text in zip(made, (forecasts, outcomes), strict=True):
        path.write_text(text)
    return made


SAID = "question,target,forecaster,probability\na,1,x,0.5\na,1,y,0.25\na,2,x,\nb,1,x,1\nb,1,y,0\nc,1,x,0.9\nd,1,y,0.9\n"
TOLD = "question,target,outcome,market_price\na,1,1,0.5\na,2,0,\nb,1,no,0.25\nc,1,0.49,\ne,1,1,\n"


def test_a_long_table_becomes_a_matrix_and_counts_what_is_left_out(tmp_path: Path) -> None:
    table = read_forecasts(*write(tmp_path, SAID, TOLD))
    assert table.names == ("x", "y")
    at = list(zip(table.question.tolist(), table.target.tolist(), strict=True))
    assert at == [("a", "1"), ("a", "2"), ("b", "1"), ("e", "1")]
    assert table.outcome.tolist() == [1, 0, 0, 1]
    assert table.present.tolist() == [[True, True], [False, False], [True, True], [False, False]]
    assert table.probability[0].tolist() == [0.5, 0.25]
    assert table.priced.tolist() == [True, False, True, False]
    assert (table.n_unresolved, table.n_unknown) == (1, 1)
    made = score_table(table, rules=("mean",))
    assert made.common is not None
    assert made.common.n == 2
    assert "left out as they resolved to neither yes nor no: 1" in made.warnings
    assert {one.name: one.missing for one in made.entrants} == {"x": 2, "y": 2, "mean": 2, MARKET: 2}


def test_all_formats_and_other_names_read_alike(tmp_path: Path) -> None:
    forecasts, outcomes = write(tmp_path, SAID, TOLD)
    whole = read_forecasts(forecasts, outcomes)
    said = pl.read_csv(forecasts, infer_schema=False).with_columns(pl.col("probability").cast(pl.Float64))
    said.rename({"question": "question_id", "target": "resolution_date", "probability": "prob"}).write_parquet(
        tmp_path / "said.parquet"
    )
    told = pl.read_csv(outcomes, infer_schema=False).rename({"question": "question_id", "outcome": "came true"})
    # The text of the question stands beside its id, as question sets have it.
    told.with_columns(question=pl.lit("Will it?")).write_ndjson(tmp_path / "told.jsonl")
    other = read_forecasts(tmp_path / "said.parquet", tmp_path / "told.jsonl", columns={"outcome": "came true"})
    for name in ForecastTable.__dataclass_fields__:
        assert np.array_equal(getattr(whole, name), getattr(other, name)), name


@pytest.mark.parametrize(
    ("spoil", "error", "named"),
    [
        (lambda said, told: (said.replace("0.25", "1.25"), told), DataError, 'row 2, column "probability"'),
        (lambda said, told: (said.replace("0.25", "nan"), told), DataError, "no probability"),
        (lambda said, told: (said + "a,1,x,0.1\n", told), DataError, "a, 1, x stands twice"),
        (lambda said, told: (said, told + "a,1,0,\n"), DataError, "a, 1 stands twice"),
        (lambda said, told: (said.replace("probability", "chance"), told), DataError, "--columns probability=COLUMN"),
        (lambda said, told: (said, told.replace("a,1,1,0.5", "a,1,1,1.5")), DataError, 'column "market_price"'),
        (
            lambda said, told: (said.replace("a,", "A,").replace("b,", "B,").replace("c,", "C,"), told),
            DataError,
            "target",
        ),
        (lambda said, told: (said + ",1,x,0.1\n", told), DataError, "row 8: no question"),
        (lambda said, told: (said.partition("\n")[0] + "\n", told), DataError, "no rows"),
        (lambda said, told: (said, told.partition("\n")[0] + "\na,1,N/A,\n"), DataError, "has resolved"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_with_its_row(
    spoil: Callable[[str, str], tuple[str, str]], error: type[Exception], named: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=named):
        read_forecasts(*write(tmp_path, *spoil(SAID, TOLD)))


def test_unknown_names_are_refused_and_the_nearest_is_told(tmp_path: Path) -> None:
    files = write(tmp_path, SAID, TOLD)
    odd = tmp_path / "said.xlsx"
    odd.write_text("x")
    with pytest.raises(ConfigError, match='Did you mean "probability"'):
        read_forecasts(*files, columns={"probabilty": "p"})
    with pytest.raises(ConfigError, match=r'no column "p" in forecasts\.csv, where probability is read'):
        read_forecasts(*files, columns={"probability": "p"})
    with pytest.raises(ConfigError, match='no forecaster "z"'):
        read_forecasts(*files, forecasters=["z"])
    with pytest.raises(ConfigError, match="ending"):
        read_forecasts(odd, files[1])
    with pytest.raises(ConfigError, match='Did you mean "median"'):
        score_table(read_forecasts(*files), rules=("medain",))
    with pytest.raises(DataError, match="no file"):
        read_forecasts(tmp_path / "none.csv", files[1])


def test_pools_without_a_common_target_are_refused(tmp_path: Path) -> None:
    said = "question,forecaster,probability\na,x,0.5\nb,y,0.5\nc,y,0.5\n"
    table = read_forecasts(*write(tmp_path, said, "question,outcome\na,1\nb,0\nc,0\n"))
    made = score_table(table)
    assert made.common is None
    assert isinstance(made.entrants[0].peer_score, Undefined)
    with pytest.raises(DataError, match="x answered the fewest targets"):
        score_table(table, rules=("mean",))
    with pytest.raises(DataError, match="x answered the fewest targets"):
        reliabilities(table, rules=("mean",))


def town(n: int = 120, seed: int = 1) -> ForecastTable:
    """Forecasters of four sorts on two-target questions of two dates; ``honest1`` to ``honest4`` know the chances."""
    rng = np.random.default_rng(seed)
    chance = rng.random(n)
    y = (rng.random(n) < chance).astype(float)
    honest = np.clip(chance[:, None] + rng.normal(0, 0.1, (n, 4)), 0.02, 0.98)
    knowing = np.abs(y - 0.004)
    price = np.clip(chance + rng.normal(0, 0.05, n), 0.01, 0.99)
    p = np.column_stack([honest, knowing, price * 0.98 + 0.01])
    present = np.ones(p.shape, dtype=bool)
    unsubmitted = np.zeros(p.shape, dtype=bool)
    p[4:7, 0], unsubmitted[4:8, 0] = 0.5, True
    present[1:21:2, 1] = False
    present[20:24, 2] = False
    return ForecastTable(
        question=np.repeat([f"q{i:03d}" for i in range(n // 2)], 2),
        target=np.tile(["2025-02-01", "2025-06-01"], n // 2),
        as_of=np.repeat(["2025-01-01", "2025-03-01"], n // 2),
        outcome=y,
        price=price,
        priced=np.ones(n, dtype=bool),
        names=("honest1", "honest2", "honest3", "honest4", "knowing", "price taker"),
        probability=p,
        present=present,
        unsubmitted=unsubmitted,
        n_unresolved=0,
        n_unknown=0,
    )


def test_signs_are_found_and_honest_forecasters_have_none() -> None:
    found = flags_of(town())
    assert found["honest1"] == {"unsubmitted_half": 3}
    assert found["honest2"] == {"missing_targets": 10, "missing_horizons": 10}
    assert found["honest3"] == {"missing_targets": 4}
    assert found["honest4"] == {}
    assert set(found["knowing"]) == {"far_below_peers", "leak"}
    assert found["knowing"]["leak"] == 1.0
    assert set(found["price taker"]) == {"copies_price"}


def test_few_targets_find_neither_leaks_nor_copies() -> None:
    whole = town(28)
    assert not {"leak", "far_below_peers", "copies_price"} & {
        flag for each in flags_of(whole).values() for flag in each
    }
    assert any("leaks and copies are not looked for on 28 targets" in line for line in score_table(whole).warnings)


def test_intervals_are_clustered_by_question_and_comparisons_are_paired() -> None:
    made = score_table(town(), rules=("mean", EXTREMIZED))
    assert {one.brier.n_clusters for one in made.entrants} == {60, 58}
    assert all(one.by_date is not None and one.by_date.n_clusters == 2 for one in made.entrants)
    assert made.common is not None
    rows = {row.name: row for row in made.common.rows}
    assert made.common.n == 106
    individual = np.mean([row.brier for row in rows.values() if row.sort == "forecaster"])
    assert made.common.mean_of_individuals == pytest.approx(individual)
    assert rows["mean"].change.point == pytest.approx(rows["mean"].brier - individual)
    assert rows["mean"].change.high is not None
    assert rows["mean"].change.high < 0
    assert rows["knowing"] == made.common.rows[0]


def test_time_forward_fits_say_what_was_not_known_and_refuse_what_does_not_help() -> None:
    table = town()
    shared: Any = table.present.all(axis=1)
    forward, back = time_fits(table, shared, date(2025, 3, 1))
    assert (forward.direction, back.direction) == ("forward", "reversed")
    assert (forward.n_fitted, forward.n_scored) == (back.n_scored, back.n_fitted)
    assert forward.unresolved_then == int(
        (shared & (table.as_of == "2025-01-01") & (table.target == "2025-06-01")).sum()
    )
    for made in (*forward.maps.values(), *back.maps.values()):
        assert isinstance(made, FittedMap)
        assert made.helps == (made.change.high is not None and made.change.high < 0)
    with pytest.raises(DataError, match="before 2026-01-01"):
        time_fits(table, shared, date(2026, 1, 1))


def test_separable_outcomes_are_mapped_by_smoothed_targets(tmp_path: Path) -> None:
    said = "".join(
        f"q{i},x,0.{2 + 6 * (i % 2)},{day}\n" for i, day in enumerate(["2025-01-01"] * 6 + ["2025-02-01"] * 6)
    )
    told = "".join(f"q{i},{i % 2}\n" for i in range(12))
    files = write(tmp_path, f"question,forecaster,probability,as_of\n{said}", f"question,outcome\n{told}")
    forward, _ = score_table(read_forecasts(*files), fit_before=date(2025, 2, 1)).fits
    platt, power = forward.maps["platt"], forward.maps["extremized"]
    assert isinstance(platt, FittedMap)
    assert platt.flags == ("smoothed_targets",)
    assert platt.parameters == pytest.approx(fit_platt(scores=np.log([1 / 4, 4] * 3), outcomes=np.array([0.0, 1] * 3)))
    assert isinstance(power, FittedMap)
    assert power.flags == ("at_bound",)
    with pytest.raises(DataError, match="as_of"):
        time_fits(read_forecasts(*write(tmp_path, SAID, TOLD)), np.array([True, False, True, False]), date(2025, 2, 1))


def test_a_day_begins_at_midnight_utc_whatever_zone_a_forecast_names(tmp_path: Path) -> None:
    days = ["2025-02-01T00:30:00+02:00"] * 6 + ["2025-01-31T23:30:00-02:00"] * 6
    said = "".join(f"q{i},x,0.{2 + i % 5},{day}\n" for i, day in enumerate(days))
    told = "".join(f"q{i},{i % 2}\n" for i in range(12))
    head = "question,forecaster,probability,as_of\n"
    table = read_forecasts(*write(tmp_path, head + said, f"question,outcome\n{told}"))
    assert set(table.as_of) == {"2025-01-31T22:30:00+00:00", "2025-02-01T01:30:00+00:00"}
    forward, _ = time_fits(table, np.asarray(table.present.all(axis=1)), date(2025, 2, 1))
    assert (forward.n_fitted, forward.n_scored) == (6, 6)


def test_one_instant_in_two_zones_is_one_target(tmp_path: Path) -> None:
    said = "question,target,forecaster,probability\na,2025-02-01T01:00:00+01:00,x,0.5\nb,2025-03-01,x,0.5\n"
    told = "question,target,outcome\na,2025-02-01T00:00:00Z,1\nb,2025-03-01,0\n"
    assert read_forecasts(*write(tmp_path, said, told)).present.all()


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ('a,1,"",0.5', "row 1.*no forecaster"),
        ("a,1, x,0.5", "row 1, column \"forecaster\": ' x'"),
        ("a,1,x ,0.5", "row 1, column \"forecaster\": 'x '"),
        ("a,1,   ,0.5", "is no forecaster"),
        (" a,1,x,0.5", 'column "question"'),
    ],
)
def test_names_that_are_empty_or_have_outer_blanks_are_refused(said: str, named: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=named):
        read_forecasts(*write(tmp_path, f"question,target,forecaster,probability\n{said}\n", TOLD))


def test_a_column_of_the_other_file_is_refused_and_one_of_either_is_read(tmp_path: Path) -> None:
    files = write(tmp_path, SAID, TOLD)
    with pytest.raises(ConfigError, match=r'no column "market_price" in forecasts\.csv, where probability is read'):
        read_forecasts(*files, columns={"probability": "market_price"})
    with pytest.raises(ConfigError, match=r'no column "probability" in outcomes\.csv, where outcome is read'):
        read_forecasts(*files, columns={"outcome": "probability"})
    files[1].write_text(TOLD.replace("question", "id", 1))
    assert read_forecasts(*files, columns={"question": "id"}).names == ("x", "y")


@pytest.mark.parametrize("column", ["probability", "forecaster", "question"])
def test_cells_that_hold_lists_are_refused_by_name(column: str, tmp_path: Path) -> None:
    files = write(tmp_path, SAID, TOLD)
    path = tmp_path / "said.parquet"
    pl.read_csv(files[0]).with_columns(pl.concat_list(column)).write_parquet(path)
    with pytest.raises(DataError, match=f'said.parquet, column "{column}": it holds List'):
        read_forecasts(path, files[1])


def test_pools_and_the_market_keep_apart_from_forecasters_of_their_name() -> None:
    made = town(40)
    named = replace(made, names=("mean", MARKET, *made.names[2:]))
    found = score_table(named, rules=("mean",))
    names = [one.name for one in found.entrants]
    assert len(set(names)) == len(names)
    assert {"mean", "mean (pool)", MARKET} <= set(names)
    assert "mean (pool)" in reliabilities(named, rules=("mean",))


def test_reliability_curves_are_those_of_everybody() -> None:
    made = reliabilities(town(40), rules=("mean",))
    assert set(made) == {*town(40).names, "mean"}
    assert made["mean"].count.sum() == town(40).present.all(axis=1).sum()


@pytest.fixture(scope="module")
def blf(shared: Path) -> tuple[Path, Path]:
    folder = shared / "data" / "forecast"
    return folder / "blf_forecasts.parquet", folder / "blf_targets.parquet"


def briers(found: ScoreTable) -> dict[str, float]:
    assert found.common is not None
    return {row.name: round(row.brier, 4) for row in found.common.rows}


@pytest.mark.shared_data
def test_the_reference_scores_of_the_core_panel(blf: tuple[Path, Path]) -> None:
    found = score_table(read_forecasts(*blf, forecasters=CORE), rules=POOLS, fit_before=date(2025, 11, 9))
    assert (found.n_items, found.n_questions, found.n_dates, found.n_priced) == (791, 400, 2, 200)
    assert found.common is not None
    assert round(found.common.mean_of_individuals, 4) == 0.1277
    assert round(found.common.error_correlation or 0, 2) == 0.96
    made = briers(found)
    wanted = {"mean": 0.1235, "median": 0.1236, "geometric_odds": 0.1234, "trimmed_mean": 0.1235, EXTREMIZED: 0.1213}
    assert {name: made[name] for name in wanted} == wanted
    assert min(made[name] for name in CORE) == 0.1211
    (market,) = (one for one in found.entrants if one.sort == "market")
    assert (market.n, round(market.brier.point, 4)) == (200, 0.0343)
    told = []
    for fit in found.fits:
        maps = [made for made in fit.maps.values() if isinstance(made, FittedMap)]
        told.append((fit.direction, *(round(x, 4) for x in (fit.brier, *(made.brier for made in maps)))))
    assert told == [("forward", 0.1305, 0.1343, 0.1404), ("reversed", 0.1163, 0.1146, 0.1186)]
    extremized = found.fits[0].maps["extremized"]
    assert isinstance(extremized, FittedMap)
    assert round(extremized.parameters[0], 2) == 1.92
    assert not extremized.helps


@pytest.mark.shared_data
@pytest.mark.slow
def test_the_reference_scores_of_nineteen_configurations(blf: tuple[Path, Path]) -> None:
    frame = pl.read_parquet(blf[0]).filter(pl.col("kind") == "llm_no_crowd")
    whole = frame.group_by("forecaster").agg(pl.col("prob").count()).filter(pl.col("prob") == 791)
    names = whole["forecaster"].to_list()
    assert len(names) == 19
    found = score_table(read_forecasts(*blf, forecasters=names), rules=POOLS)
    assert found.common is not None
    assert round(found.common.mean_of_individuals, 4) == 0.1381
    assert round(found.common.error_correlation or 0, 2) == 0.93
    made = briers(found)
    wanted = {"mean": 0.1275, "median": 0.1245, "geometric_odds": 0.1256, "trimmed_mean": 0.1251, EXTREMIZED: 0.1226}
    assert {name: made[name] for name in wanted} == wanted
    assert min(made[name] for name in names) == 0.1211


@pytest.mark.shared_data
def test_the_signs_of_the_real_table(blf: tuple[Path, Path]) -> None:
    table = read_forecasts(*blf)
    found = flags_of(table)

    def flagged(flag: str) -> list[str]:
        return [name for name, flags in found.items() if flag in flags]

    assert len(table.names) == 50
    assert flagged("far_below_peers") == ["pro-high-brave-c1-t1-clairvoyant"]
    assert [name.endswith("-halawi") for name in flagged("missing_horizons")] == [True, True, True]
    assert flagged("copies_price") == [
        "flash-high-brave-c1-p1-t1",
        "flash-high-brave-c1-p1-t1-nobelief",
        "pro-high-none-c1-p1-t0",
    ]
    assert found["kimi-k2.5-high-brave-c1-t1-nobelief"]["unsubmitted_half"] == 221
