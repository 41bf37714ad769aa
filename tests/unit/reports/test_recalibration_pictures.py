"""Calibration before and after: what is drawn is what was judged on items that taught nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from consilience.experiments.calibrating import calibrate
from consilience.experiments.calibrations import Calibration
from consilience.experiments.evaluate import Beside, evaluate
from consilience.experiments.evaluation import Evaluation
from consilience.experiments.predictions import predictions_frame
from consilience.reports.gallery_recalibration import recalibrated
from consilience.reports.pictures.canvas import Picture, inline, rendered

HOSTILE = 'F_<script>alert("1")</script>\u202e$x$'
N = 200
STEPS = np.array([-0.33, -0.135, 0.0, 0.135, 0.33])
"""Logarithms of right quantiles around a point whose error is normal with SD 0.2."""


def _frame(split: str, arms: dict[str, Callable[[int], dict[str, object]]]) -> pl.DataFrame:
    first = date(2020 if split == "validation" else 2022, 1, 1)
    return predictions_frame(
        [
            {
                "item_id": f"{split[0]}{k:03d}",
                "split": split,
                "arm": arm,
                "committee": "c",
                "aggregation": "median",
                "run_id": f"_{len(arm)}{split}",
                "status": "answered",
                "n_answered": 1,
                "n_seats": 1,
                "exposure": "unknown",
                "cutoff": first + timedelta(days=k),
                **says(k),
            }
            for arm, says in arms.items()
            for k in range(N)
        ]
    )


def _numbers(width: float) -> Callable[[int], dict[str, object]]:
    off = np.random.default_rng(3).normal(0, 0.2, N)

    def says(k: int) -> dict[str, object]:
        point = 100.0 * float(np.exp(off[k]))
        quantiles = (point * np.exp(STEPS * width)).tolist()
        return {"point": point, **dict(zip(("q05", "q25", "q50", "q75", "q95"), quantiles, strict=True))}

    return says


ODDS = np.random.default_rng(4).normal(0, 1, N)


def _chances(exponent: float) -> Callable[[int], dict[str, object]]:
    return lambda k: {"p": float(1 / (1 + np.exp(-exponent * ODDS[k]))), "aggregation": "mean"}


def _learnt(frame: pl.DataFrame, truth: pl.DataFrame) -> Calibration:
    return calibrate(frame, truth, runs={}, package_version="1", strata={}, n_resamples=200)


@pytest.fixture(scope="module")
def numbers() -> Evaluation:
    arms = {"E_single": _numbers(0.3), HOSTILE: _numbers(0.4), "G_debate": _numbers(1.0)}
    truths = [pl.DataFrame({"item_id": [f"{s}{k:03d}" for k in range(N)], "truth": [100.0] * N}) for s in "vt"]
    made = _learnt(_frame("validation", arms), truths[0])
    return evaluate(_frame("test", arms), truths[1], n_resamples=50, beside=Beside(calibration=made))


@pytest.fixture(scope="module")
def chances() -> Evaluation:
    arms = {"E_single": _chances(3.0), "G_debate": _chances(1.0)}
    y = (np.random.default_rng(4).random(N) < 1 / (1 + np.exp(-ODDS))).astype(float)
    truths = [pl.DataFrame({"item_id": [f"{s}{k:03d}" for k in range(N)], "truth": y}) for s in "vt"]
    made = _learnt(_frame("validation", arms), truths[0])
    return evaluate(_frame("test", arms), truths[1], n_resamples=50, beside=Beside(calibration=made))


def _named(found: list[Picture], name: str) -> Picture:
    return next(one for one in found if one.name == name)


def test_held_out_coverage_stands_before_and_after_and_refused_ones_are_named(numbers: Evaluation) -> None:
    picture = _named(recalibrated(numbers), "recalibration-intervals")
    rows = {(row["arm"], row["interval"]): row for row in picture.records}
    assert set(rows) == {(arm, share) for arm in ("E_single", HOSTILE, "G_debate") for share in ("50 %", "90 %")}
    narrow = rows["E_single", "90 %"]
    assert (narrow["kept"], narrow["n_fitted"], narrow["n_judged"]) == (True, N // 2, N // 2)
    assert isinstance(narrow["before_share"], float)
    assert isinstance(narrow["after_share"], float)
    assert narrow["before_share"] < 0.5 < narrow["after_share"]
    assert abs(narrow["after_share"] - 0.9) < 0.08
    assert not rows["G_debate", "90 %"]["kept"]
    assert "G_debate (90 % interval)" in picture.caption
    assert f"n = {N // 2} items, G = {N // 2} clusters" in picture.caption
    assert len(picture.draw().axes) == 2


def test_the_items_at_hand_stand_beside_the_held_out_ones(numbers: Evaluation) -> None:
    picture = _named(recalibrated(numbers), "recalibration-applied")
    assert {row["arm"] for row in picture.records} == {"E_single", HOSTILE}
    arm = next(one for one in numbers.overall.arms if one.arm == "E_single")
    row = next(row for row in picture.records if (row["arm"], row["interval"]) == ("E_single", "90 %"))
    assert arm.intervals is not None
    assert arm.calibrated is not None
    assert row["before_share"] == arm.intervals.coverage90.value
    assert row["after_share"] == arm.calibrated.coverage90.value


def test_maps_of_probabilities_have_a_curve_before_and_after(chances: Evaluation) -> None:
    (picture,) = recalibrated(chances)
    assert picture.name == "recalibration-probabilities"
    assert "orange: the map was refused" in picture.caption
    assert "G_debate: Brier" in picture.alt
    assert picture.alt.endswith("(refused)")
    for when in ("before", "after"):
        rows = [row for row in picture.records if (row["arm"], row["when"]) == ("E_single", when)]
        assert sum(int(row["count"] or 0) for row in rows) == N // 2
        seen = [float(row["seen"] or 0) for row in rows]
        assert seen == sorted(seen)
    far = {
        when: max(
            float(row["stated"] or 0) for row in picture.records if (row["arm"], row["when"]) == ("E_single", when)
        )
        for when in ("before", "after")
    }
    assert far["after"] < far["before"]


def test_without_a_calibration_there_is_no_picture() -> None:
    arms = {"E_single": _numbers(0.3)}
    truth = pl.DataFrame({"item_id": [f"t{k:03d}" for k in range(N)], "truth": [100.0] * N})
    assert recalibrated(evaluate(_frame("test", arms), truth, n_resamples=50)) == []


@pytest.mark.slow
def test_hostile_arms_are_only_text_and_the_bytes_are_the_same_twice(numbers: Evaluation, chances: Evaluation) -> None:
    for picture in (*recalibrated(numbers), *recalibrated(chances)):
        one, two = rendered(picture), rendered(picture)
        assert one == two
        text = inline(one["svg"], name=picture.name, alt=picture.alt)
        assert "<script" not in text
        assert "\u202e" not in text
