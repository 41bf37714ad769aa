"""Murphy diagrams: their areas are the scores we know, and they say whether the arms cross."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from consilience.reports.gallery_murphy import murphy_of_medians, murphy_of_probabilities
from consilience.reports.pictures.canvas import Picture, inline, rendered
from consilience.reports.stated import Stated, stated

HOSTILE = 'F_<script>alert("1")</script>\u202e$x$'


def areas(picture: Picture, *, log: bool = False) -> dict[str, float]:
    """Return the area under the curve of every arm, from the data of the picture."""
    found: dict[str, float] = {}
    for arm in dict.fromkeys(str(row["arm"]) for row in picture.records):
        rows = [row for row in picture.records if row["arm"] == arm]
        at = np.array([row["threshold"] for row in rows], dtype=float)
        score = np.array([row["score"] for row in rows], dtype=float)
        found[arm] = float(np.trapezoid(score, np.log(at) if log else at))
    return found


def chances(*, better: float = 0.0) -> Stated:
    rng = np.random.default_rng(2)
    odds = rng.normal(0, 1.5, 300)
    y = (rng.random(300) < 1 / (1 + np.exp(-odds))).astype(float)
    good = 1 / (1 + np.exp(-odds))
    flat = np.clip(0.5 + 0.2 * (good - 0.5), 0, 1)
    return Stated(("E_single", HOSTILE), np.column_stack([flat, good * (1 - better) + better * y]), y, np.arange(300))


def test_twice_the_area_is_the_brier_score() -> None:
    said = chances()
    picture = murphy_of_probabilities(said, baseline="E_single")
    assert picture is not None
    brier = ((said.values - said.truth[:, None]) ** 2).mean(axis=0)
    assert [2 * area for area in areas(picture).values()] == pytest.approx(brier.tolist(), abs=2e-3)
    assert f"Brier {brier[0]:.3f}" in picture.alt
    assert "n = 300 items, G = 300 clusters; intervals: none." in picture.caption
    assert "black: E_single" in picture.caption


def test_twice_the_area_along_the_logarithm_is_the_mean_absolute_log_error() -> None:
    rng = np.random.default_rng(3)
    truth = rng.lognormal(12, 0.4, 400)
    values = truth[:, None] * np.exp(rng.normal(0, [0.1, 0.3], (400, 2)))
    picture = murphy_of_medians(Stated(("a", "b"), values, truth, np.arange(400)), baseline="a", unit="EUR")
    assert picture is not None
    errors = np.abs(np.log(values) - np.log(truth)[:, None]).mean(axis=0)
    assert [2 * area for area in areas(picture, log=True).values()] == pytest.approx(errors.tolist(), rel=0.02)


def test_it_says_whether_one_arm_is_ahead_under_every_score() -> None:
    y = np.tile([0.0, 1.0], 20)
    sure = np.where(y == 1, 0.999, 0.001)
    ahead = murphy_of_probabilities(Stated(("a", "b"), np.column_stack([sure, 1 - y]), y, y), baseline="b")
    assert ahead is not None
    assert "a loses least at every threshold" in ahead.caption
    crossing = Stated(("a", "b"), np.column_stack([np.full(40, 0.3), np.full(40, 0.7)]), y, y)
    crossed = murphy_of_probabilities(crossing, baseline="b")
    assert crossed is not None
    assert "curves cross" in crossed.caption
    assert "G = 2 clusters" in crossed.caption


def test_one_arm_has_nothing_to_be_compared_with() -> None:
    said = chances()
    alone = Stated(said.arms[:1], said.values[:, :1], said.truth, said.clusters)
    assert murphy_of_probabilities(alone, baseline="E_single") is None


def test_a_hostile_arm_is_only_text_and_the_bytes_are_the_same_twice() -> None:
    picture = murphy_of_probabilities(chances(), baseline="E_single")
    assert picture is not None
    one, two = rendered(picture), rendered(picture)
    assert one == two
    text = inline(one["svg"], name=picture.name, alt=picture.alt)
    assert "<script" not in text
    assert "\u202e" not in text


def test_only_items_that_every_arm_answered_are_compared() -> None:
    def row(arm: str, item: str, point: float | None, rule: str = "median") -> dict[str, object]:
        status = "abstained" if point is None else "answered"
        return {"item_id": item, "arm": arm, "aggregation": rule, "status": status, "point": point}

    frame = pl.DataFrame(
        [
            *(row("E", item, point) for item, point in (("a", 1.0), ("b", 2.0), ("c", 3.0))),
            *(row("F", item, point) for item, point in (("c", 30.0), ("b", 20.0), ("a", None))),
            *(row("F", item, 99.0, "mean") for item in "abc"),
            *(row("silent", item, None) for item in "abc"),
            row("unjudged", "z", 5.0),
        ]
    )
    truth = pl.DataFrame({"item_id": ["c", "b", "a"], "truth": [4.0, 5.0, 6.0], "cluster": ["k", None, "k"]})
    rules = {"E": "median", "F": "median", "silent": "median", "unjudged": "median"}
    made = stated(frame, truth, rules=rules, column="point")
    assert made is not None
    assert (made.arms, made.values.tolist(), made.truth.tolist()) == (
        ("E", "F"),
        [[2.0, 20.0], [3.0, 30.0]],
        [5.0, 4.0],
    )
    assert made.clusters.tolist() == ["item:b", "cluster:k"]
    assert stated(frame, truth, rules={}, column="point") is None
    assert stated(frame, truth, rules=rules, column="p") is None
