from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest

from consilience.core.undefined import Undefined
from consilience.experiments.arm_scores import Draws
from consilience.experiments.evaluate import Beside, evaluate
from consilience.experiments.evaluation import ArmResult, Evaluation
from consilience.experiments.panel_scores import panel_scores
from consilience.experiments.predictions import predictions_frame
from consilience.experiments.score_pools import clustered_mean
from consilience.inference.variance import Components
from consilience.scoring.quantile import wis5
from consilience.scoring.ratio import cod, prb

N = 40
ITEMS = [f"i{k:02d}" for k in range(N)]
TRUTH = np.linspace(100.0, 300.0, N)
OFF = np.sin(np.arange(N)) * 0.2
STEPS = np.array([-0.3, -0.1, 0.0, 0.1, 0.3])


def rows(arm: str, *, run: str = "", scale: float = 1.0, **changed: Any) -> list[dict[str, Any]]:
    told = []
    for item, off, truth in zip(ITEMS, OFF, TRUTH, strict=True):
        point = truth * float(np.exp(scale * off))
        quantiles = point * np.exp(STEPS)
        fields: dict[str, Any] = {
            "item_id": item,
            "split": "validation",
            "arm": arm,
            "committee": "c",
            "aggregation": "median",
            "run_id": run or f"_{arm}",
            "status": "answered",
            "n_answered": 1,
            "n_seats": 1,
            "exposure": "unknown",
            "point": point,
            **dict(zip(("q05", "q25", "q50", "q75", "q95"), quantiles.tolist(), strict=True)),
        }
        told.append(fields | changed)
    return told


BOTH = [*rows("E_single"), *rows("F_independent", scale=0.5)]


def run(told: list[dict[str, Any]], *, beside: Beside | None = None, groups: int = N) -> Evaluation:
    truth = pl.DataFrame({"item_id": ITEMS, "truth": TRUTH, "cluster": [f"c{k % groups}" for k in range(N)]})
    return evaluate(predictions_frame(told), truth, n_resamples=200, beside=beside)


def arm(found: Evaluation, name: str) -> ArmResult:
    return next(one for one in found.overall.arms if one.arm == name)


def test_intervals_are_scored_in_logarithms() -> None:
    told = arm(run(BOTH), "E_single").intervals
    assert told is not None
    quantiles = np.log(TRUTH)[:, None] + OFF[:, None] + STEPS
    wis = wis5(quantiles=quantiles, outcome=np.log(TRUTH))
    assert told.wis.value == pytest.approx(wis.score.mean())
    parts = told.dispersion + told.overprediction + told.underprediction
    assert parts == pytest.approx(told.wis.value)
    assert told.wis.low is not None
    assert told.wis.high is not None
    assert told.wis.low < told.wis.value < told.wis.high
    assert told.coverage90.k == N
    assert told.coverage50.k == int((np.abs(OFF) <= 0.1).sum())
    assert [one.k for one in told.below] == [int((step >= -OFF).sum()) for step in STEPS]
    assert sum(told.pit_bins) == N
    assert told.width90 == pytest.approx(np.exp(0.3) - np.exp(-0.3))
    assert told.interval_score90.value == pytest.approx(0.6)
    assert 0 < told.crps.value < told.interval_score90.value


def test_ratios_and_errors_carry_intervals() -> None:
    found = arm(run(BOTH), "E_single")
    assert found.mdape is not None
    assert found.ratios is not None
    assert found.points is not None
    assert found.mdape.value == found.points.mdape
    assert found.mdape.low is not None
    assert found.mdape.low <= found.mdape.value
    assert found.log_error is not None
    assert found.log_error.value == pytest.approx(np.abs(OFF).mean())
    estimate = TRUTH * np.exp(OFF)
    assert found.ratios.cod.value == pytest.approx(cod(ratio=np.exp(OFF)))
    bias = prb(estimate=estimate, price=TRUTH)
    assert not isinstance(bias, Undefined)
    assert not isinstance(found.ratios.prb, Undefined)
    assert found.ratios.prb.value == pytest.approx(bias.value)
    assert found.ratios.prb.low is not None
    assert found.ratios.prd.n_clusters == N


def test_few_clusters_flag_every_measure() -> None:
    found = arm(run(BOTH, groups=1), "E_single")
    assert found.mdape is not None
    assert found.intervals is not None
    assert (found.mdape.low, found.mdape.flags) == (None, ("no_interval",))
    assert found.intervals.wis.flags == ("no_interval",)
    assert found.intervals.coverage50.flags[0] == "no_interval"


def test_strata_hold_every_arm_with_counts_and_numbers_in_order() -> None:
    strata = {item: {"comparables": str(k % 3 + 9), "class": "house"} for k, item in enumerate(ITEMS)}
    told = [dict(row) for row in BOTH]
    told[0] |= dict.fromkeys(("point", "q05", "q25", "q50", "q75", "q95")) | {"status": "failed", "n_answered": 0}
    found = run(told, beside=Beside(strata=strata)).strata
    assert [(one.stratum, one.level, one.arm) for one in found][:4] == [
        ("class", "house", "E_single"),
        ("class", "house", "F_independent"),
        ("comparables", "9", "E_single"),
        ("comparables", "9", "F_independent"),
    ]
    assert [one.level for one in found if one.arm == "E_single"][1:] == ["9", "10", "11"]
    assert (found[0].n_items, found[0].n_answered) == (N, N - 1)
    assert found[1].mdape is not None
    assert found[1].mdape.value == pytest.approx(np.median(np.abs(np.exp(0.5 * OFF) - 1)))
    assert run(BOTH).strata == ()


def test_repetitions_tell_variance_from_run_to_run() -> None:
    again = predictions_frame([row | {"run_id": "_again"} for row in rows("E_single", scale=1.1)[:4]])
    found = run(BOTH, beside=Beside(repetitions=again)).run_to_run
    assert [(one.arm, one.n_items, one.n_runs) for one in found] == [("E_single", 4, 2)]
    assert isinstance(found[0].components, Components)
    assert found[0].components.within == pytest.approx(np.mean((0.1 * OFF[:4]) ** 2 / 2))
    assert found[0].spread == pytest.approx(np.median(np.abs(0.1 * OFF[:4])))
    assert len(found[0].items["i00"]) == 2


def independence() -> dict[str, Any]:
    told = {"rho": 0.5, "equal_weight": 1.6, "mean_square": None, "equicorrelated": 1.7, "participation_ratio": 2.0}
    return {"basis": "errors", "n_items": 40, "members": ["a", "b"], "effective": told, "reason": None}


def round_of(number: int, spread: float) -> dict[str, Any]:
    counted = {"round": number, "n_items": 40, "answers": 80, "revised": 10 * number, "changed": None}
    judged = {"n_known": 40, "revised_known": 10, "right": 9, "right_to_wrong": number, "wrong_to_right": 2}
    crowd = {"avg_error": 0.04, "crowd_error": 0.01, "diversity": 0.03}
    return {**counted, **judged, "spread": spread, "jaccard": 0.5, "crowd": crowd}


def manifest() -> dict[str, Any]:
    faith = {"role": None, "answers": 80, "flagged": 3, "counts": {"quote_not_found": 3}, "share_existing": 1}
    family = {"family": "estimate (log, EUR)", "n_items": 40, "first": independence(), "final": independence()}
    rounds = [round_of(0, 0.3), round_of(1, 0.2)]
    panel = {"families": [family | {"rounds": rounds}], "faithfulness": [{**faith, "role": "a"}, faith]}
    return {"arm": "G_debate_r1", "run_id": "_g", "split": "validation", "panel": panel}


def test_panels_say_flips_faithfulness_and_error_by_round() -> None:
    (panel,) = panel_scores(manifest())
    assert [(one.round, one.right_to_wrong, one.mean_error) for one in panel.rounds] == [(0, 0, 0.01), (1, 1, 0.01)]
    assert [one.role for one in panel.faithfulness] == [None, "a"]
    assert panel.final.equal_weight == 1.6
    told = [*BOTH, *rows("G_debate_r1", run="_g", scale=0.25)]
    levels = {"_g": {"F_independent": 0, "G_debate_r1": 1}, "_E_single": {"E_single": 0}}
    found = run(told, beside=Beside(panels=(panel,), levels=levels))
    assert [(one.round, one.arm, one.spread) for one in found.convergence] == [
        (0, "F_independent", 0.3),
        (1, "G_debate_r1", 0.2),
    ]
    assert found.convergence[0].mdape.value > found.convergence[1].mdape.value
    assert found.panels == (panel,)
    assert panel_scores(manifest() | {"panel": None}) == []


def test_the_whole_evaluation_is_json() -> None:
    strata = {item: {"class": "house"} for item in ITEMS}
    told = run(BOTH, beside=Beside(strata=strata)).record()
    assert json.loads(json.dumps(told, allow_nan=False))["overall"]["arms"][0]["intervals"]["n"] == N
    assert told["contrasts"]["declared"][0]["arm"] == "F_independent"


def test_a_score_that_cannot_be_negative_is_flagged_and_not_cut_off_where_its_interval_is() -> None:
    draws = Draws("x", n_resamples=500, seed=0)
    clusters = np.array(["a", "b", "c"])
    losses = np.array([[0.0], [0.02], [0.3]])
    (mean,) = draws.means(losses, clusters)
    assert mean.low is not None
    assert mean.low < 0
    assert mean.flags == ("descriptive_only", "below_possible")
    assert "below_possible" in draws.median(losses[:, 0], clusters).flags
    (moved,) = draws.means(losses - 0.1, clusters)
    assert moved.flags == ("descriptive_only",)
    assert clustered_mean(losses[:, 0], clusters, loss=True).flags == ("descriptive_only", "below_possible")
    assert clustered_mean(losses[:, 0], clusters).flags == ("descriptive_only",)
