from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from consilience.errors import ConfigError, DataError, IntegrityError, PlanError
from consilience.experiments.artefact import load_artefact, write_artefact
from consilience.experiments.calibrating import EXPONENTS, calibrate, held
from consilience.experiments.calibrations import Calibration
from consilience.experiments.evaluate import Beside, evaluate
from consilience.experiments.held_out import Frequencies, Inside
from consilience.experiments.item_days import Days, Times
from consilience.experiments.predictions import predictions_frame
from consilience.inference.conformal import fit_cqr

N = 240
STEPS = np.array([-0.4, -0.2, 0.0, 0.2, 0.4])
STRATA = {f"{split}{k:03d}": {"property_class": "house" if k % 2 else "flat"} for split in "vt" for k in range(N)}


def rows(*, split: str = "validation", width: float = 0.1, noise: float = 0.2, arm: str = "E_single") -> pl.DataFrame:
    """Return dated answers that are ``noise`` off; quantiles fit a noise of ``width`` times a normal one's."""
    off = np.random.default_rng(3).normal(0, noise, N)
    first = date(2020, 1, 1) if split == "validation" else date(2021, 1, 1)
    told = []
    for k in range(N):
        point = 100.0 * float(np.exp(off[k]))
        quantiles = point * np.exp(STEPS * width)
        fields: dict[str, Any] = {
            "item_id": f"{split[0]}{k:03d}",
            "split": split,
            "arm": arm,
            "committee": "c",
            "aggregation": "median",
            "run_id": f"_{arm}-{split}",
            "status": "answered",
            "n_answered": 1,
            "n_seats": 1,
            "exposure": "unknown",
            "cutoff": first + timedelta(days=k),
            "point": point,
        }
        told.append(fields | dict(zip(("q05", "q25", "q50", "q75", "q95"), quantiles.tolist(), strict=True)))
    return predictions_frame(told)


def yes_no(*, exponent: float) -> pl.DataFrame:
    """Return dated probabilities whose log-odds are the right ones times ``exponent``."""
    rng = np.random.default_rng(4)
    odds = rng.normal(0, 1, N)
    told = []
    for k in range(N):
        fields: dict[str, Any] = {
            "item_id": f"v{k:03d}",
            "split": "validation",
            "arm": "E_single",
            "committee": "c",
            "aggregation": "mean",
            "run_id": "_E",
            "status": "answered",
            "n_answered": 1,
            "n_seats": 1,
            "exposure": "unknown",
            "cutoff": date(2020, 1, 1) + timedelta(days=k),
            "p": float(1 / (1 + np.exp(-exponent * odds[k]))),
        }
        told.append(fields)
    return predictions_frame(told)


def happened() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    odds = rng.normal(0, 1, N)
    y = (rng.random(N) < 1 / (1 + np.exp(-odds))).astype(float)
    return pl.DataFrame({"item_id": [f"v{k:03d}" for k in range(N)], "truth": y})


def truth(split: str = "validation") -> pl.DataFrame:
    return pl.DataFrame({"item_id": [f"{split[0]}{k:03d}" for k in range(N)], "truth": [100.0] * N})


def fit(frame: pl.DataFrame, known: pl.DataFrame | None = None, times: Times | None = None) -> Calibration:
    return calibrate(
        frame,
        truth() if known is None else known,
        runs={"_E_single-validation": "0" * 64},
        package_version="1",
        strata=STRATA,
        times=times,
        n_resamples=200,
    )


def test_narrow_intervals_are_widened_by_the_margins_of_their_stratum() -> None:
    made = fit(rows())
    assert [entry.cqr.alpha for entry in made.intervals] == [0.5, 0.1]
    assert made.refused == ()
    entry = made.intervals[1]
    assert set(entry.cqr.strata) == {"flat", "house"}
    frame = rows().filter(pl.col("item_id").str.contains("[13579]$"))
    logs = [np.log(frame[name].to_numpy()) for name in ("q05", "q95")]
    outcome = np.full(frame.height, np.log(100.0))
    alone = fit_cqr(lower=logs[0], upper=logs[1], outcome=outcome, alpha=0.1, asymmetric=False)
    assert entry.cqr.strata["house"].lower == pytest.approx(alone.overall.lower)
    assert (entry.gain.n_fitted, entry.gain.n_judged) == (120, 120)
    assert 0 < entry.gain.low < entry.gain.gain < entry.gain.high
    assert made.until == date(2020, 1, 1) + timedelta(days=N - 1)


def test_what_was_not_known_when_the_later_half_was_asked_teaches_nothing_there() -> None:
    asked = [date(2020, 1, 1) + timedelta(days=k) for k in range(N)]
    late = {f"v{k:03d}": Days(asked[k], asked[k] + timedelta(days=30)) for k in range(N)}
    made = fit(rows(), times=late)
    gain = made.intervals[1].gain
    assert (gain.n_fitted, gain.n_unresolved, gain.n_judged) == (91, 29, 120)
    assert made.until == asked[-1] + timedelta(days=30)
    assert made.n_assumed == 0
    with pytest.raises(PlanError, match=r"0 earlier items; at least 9 are needed \(120 more were not known yet\)"):
        fit(rows(), times={item: Days(days.admitted, date(2030, 1, 1)) for item, days in late.items()})


def test_a_calibration_serves_only_whoever_may_know_the_truths_behind_it() -> None:
    asked = [date(2020, 1, 1) + timedelta(days=k) for k in range(N)]
    times = {f"v{k:03d}": Days(asked[k], date(2020, 4, 1) if k < 60 else asked[k]) for k in range(N)}
    times["v239"] = Days(asked[239], date(2021, 1, 5))
    made = fit(rows(), times=times)
    assert made.until == date(2021, 1, 5)
    early = rows(split="test")
    with pytest.raises(PlanError, match="item t000 is no later than 2021-01-05, when the last truth became known"):
        made.intervals_of(early, STRATA)
    later = early.filter(pl.col("cutoff") == date(2021, 1, 5))
    with pytest.raises(PlanError, match="such items: 1"):
        made.intervals_of(later, STRATA)
    admitted = {item: Days(date(2021, 1, 5)) for item in later["item_id"]}
    assert made.intervals_of(later, STRATA, admitted)["E_single"].height == 1


def test_intervals_that_are_right_already_are_left_alone() -> None:
    right = rows(width=0.2 * 1.645 / 0.4, noise=0.2)
    with pytest.raises(PlanError, match=r"no calibration is kept \(E_single, 50 % interval: .*covers 0.*90 % interval"):
        fit(right)
    both = fit(pl.concat([rows(), right.with_columns(arm=pl.lit("F_independent"))]))
    assert {entry.subject.arm for entry in both.intervals} == {"E_single"}
    assert {one.subject.arm for one in both.refused} == {"F_independent"}
    assert all(one.gain is not None and one.gain.low <= 0 for one in both.refused)


def test_a_frozen_calibration_stands_beside_the_raw_intervals() -> None:
    made = fit(rows())
    later = rows(split="test")
    known = truth("test")
    found = evaluate(later, known, n_resamples=50, beside=Beside(strata=STRATA, calibration=made))
    (arm,) = found.overall.arms
    assert arm.intervals is not None
    assert arm.calibrated is not None
    assert arm.intervals.coverage90.value < 0.3
    assert 0.85 < arm.calibrated.coverage90.value < 0.95
    assert arm.calibrated.wis.value < arm.intervals.wis.value
    assert arm.coverage90 is not None
    assert arm.coverage90.value == arm.intervals.coverage90.value
    assert found.calibration_sha256 == made.sha256
    real = later.with_columns(run_id=pl.lit("real"))
    untouched = evaluate(real, known, n_resamples=50, beside=Beside(strata=STRATA, calibration=made))
    assert untouched.overall.arms[0].calibrated is None


def test_it_tells_what_it_did_to_later_items_that_it_was_not_learnt_on() -> None:
    right = rows(width=0.2 * 1.645 / 0.4, noise=0.2).with_columns(arm=pl.lit("F_independent"))
    made = fit(pl.concat([rows(), right]))
    gain = made.intervals[1].gain
    assert isinstance(gain.before, Inside)
    assert isinstance(gain.after, Inside)
    later = rows().filter(pl.col("cutoff") >= date(2020, 1, 1) + timedelta(days=N // 2))
    hits = ((later["q05"] <= 100.0) & (later["q95"] >= 100.0)).to_numpy()
    assert gain.before.share == pytest.approx(hits.mean())
    assert gain.before.width == pytest.approx(float(np.exp(0.04) - np.exp(-0.04)))
    assert gain.before.share < 0.3
    assert gain.after.share > 0.8
    assert gain.before.width < gain.after.width
    assert gain.after.n_clusters == N // 2

    test = rows(split="test")
    beside = Beside(strata=STRATA, calibration=made)
    changes = evaluate(test, truth("test"), n_resamples=50, beside=beside).changes
    assert [(one.arm, one.what, one.kept) for one in changes] == [
        ("E_single", "50 % interval", True),
        ("E_single", "90 % interval", True),
    ]
    assert changes[1].before == gain.before
    assert json.dumps([one.record() for one in changes], allow_nan=False)
    both = made.changes({"E_single": True, "F_independent": True})
    assert [one.kept for one in both] == [True, True, False, False]
    assert made.changes({"E_single": False}) == ()


def test_an_artefact_of_an_earlier_version_has_no_such_points(tmp_path: Path) -> None:
    told = fit(rows()).model_dump(mode="json")
    for entry in told["intervals"]:
        del entry["gain"]["before"], entry["gain"]["after"]
    told["sha256"] = Calibration.digest_of(told)
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(told))
    assert load_artefact(Calibration, path).changes({"E_single": True}) == ()


def test_a_calibration_is_never_used_on_what_it_was_fitted_on_or_before() -> None:
    beside = Beside(strata=STRATA, calibration=fit(rows()))
    with pytest.raises(PlanError, match="in-sample use: the calibration was fitted on v000"):
        evaluate(rows(), truth(), n_resamples=10, beside=beside)
    early = rows(split="test").with_columns(cutoff=pl.lit(date(2020, 3, 1)))
    with pytest.raises(PlanError, match="item t000 is no later than 2020-08-27"):
        evaluate(early, truth("test"), n_resamples=10, beside=beside)


def test_probabilities_are_recalibrated_with_a_held_exponent() -> None:
    sharp = fit(yes_no(exponent=3.0), happened())
    (entry,) = sharp.probabilities
    assert entry.recalibration.parameters[1] == EXPONENTS[0]
    assert entry.gain.measure == "Brier score"
    assert entry.gain.low > 0
    assert isinstance(entry.gain.before, Frequencies)
    assert isinstance(entry.gain.after, Frequencies)
    assert sum(entry.gain.before.count) == entry.gain.n_judged == N // 2
    assert entry.gain.before.score - entry.gain.after.score == pytest.approx(entry.gain.gain)
    assert entry.gain.after.mcb < entry.gain.before.mcb
    with pytest.raises(PlanError, match=r"probability: the interval of its gain covers 0"):
        fit(yes_no(exponent=1.0), happened())
    later = yes_no(exponent=3.0).with_columns(
        item_id=pl.col("item_id").str.replace("v", "t"),
        split=pl.lit("test"),
        cutoff=pl.col("cutoff").dt.offset_by("2y"),
    )
    known = happened().with_columns(item_id=pl.col("item_id").str.replace("v", "t"))
    found = evaluate(later, known, n_resamples=50, beside=Beside(calibration=sharp)).probabilities
    assert found is not None
    (arm,) = found.results
    assert arm.calibrated is not None
    assert arm.brier is not None
    assert arm.calibrated.value < arm.brier.value


def test_a_held_exponent_keeps_the_share_that_was_fitted() -> None:
    p, y = np.array([0.1, 0.3, 0.6, 0.9]), np.array([0.0, 0.0, 1.0, 1.0])
    intercept, exponent = held((0.0, 4.0), p=p, y=y)
    stated = 1 / (1 + np.exp(-(intercept + exponent * np.log(p / (1 - p)))))
    assert exponent == EXPONENTS[1]
    assert stated.sum() == pytest.approx(2 * 3 / 4 + 2 / 4)


def test_what_cannot_be_calibrated_is_refused() -> None:
    with pytest.raises(PlanError, match="fitted on validation and these are items of test"):
        fit(rows(split="test"), truth("test"))
    with pytest.raises(PlanError, match="no information cutoff"):
        fit(rows().with_columns(cutoff=pl.lit(None, pl.Date)))
    with pytest.raises(PlanError, match="7 earlier items; at least 9 are needed"):
        fit(rows().head(14))
    one = truth().with_columns(cluster=pl.lit("same"))
    with pytest.raises(PlanError, match="its later items are one cluster"):
        fit(rows(), one)


def test_the_artefact_is_sealed(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    made = fit(rows())
    write_artefact(made, path)
    assert load_artefact(Calibration, path) == made
    assert write_artefact(made, path)
    with pytest.raises(DataError, match="not written over"):
        write_artefact(fit(rows(noise=0.3)), path)
    told = json.loads(path.read_bytes())
    told["intervals"][0]["cqr"]["overall"]["lower"] = 0.0
    path.write_text(json.dumps(told))
    with pytest.raises(IntegrityError, match="is not what was frozen"):
        load_artefact(Calibration, path)
    path.write_text("{}")
    with pytest.raises(ConfigError, match="holds no calibration"):
        load_artefact(Calibration, path)


@pytest.mark.parametrize("changed", [{"low": -0.1}, {"low": 0.0}, {"n_fitted": 3}, {"n_judged": 0}])
def test_what_could_not_have_been_kept_is_no_calibration_however_it_is_sealed(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    content = fit(rows()).model_dump(mode="json")
    content["intervals"][1]["gain"] |= changed
    content["sha256"] = Calibration.digest_of(content)
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=r"only what surely gains is kept|at least 9 and 1 are needed"):
        load_artefact(Calibration, path)
