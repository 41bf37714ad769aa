from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from consilience.errors import ConfigError, DataError, PlanError
from consilience.experiments.evaluate import evaluate
from consilience.experiments.evaluation import ArmResult, Evaluation
from consilience.experiments.predictions import predictions_frame
from consilience.scoring.summaries import wilson

N = 24
ITEMS = [f"i{k:02d}" for k in range(N)]
OFF = np.linspace(-0.3, 0.3, N)
COST = {"E_single": 0.01, "F_independent": 0.10}
SCALE = {"E_single": 1.0, "F_independent": 0.5}


def rows(arm: str, *, run: str | None = None, **changed: Any) -> list[dict[str, Any]]:
    """Return one row per item whose truth is 100, off by a known share."""
    told: list[dict[str, Any]] = []
    for item, off in zip(ITEMS, OFF, strict=True):
        point = 100.0 * (1 + SCALE[arm] * off)
        fields: dict[str, Any] = {
            "item_id": item,
            "split": "validation",
            "arm": arm,
            "committee": "c",
            "aggregation": "median",
            "run_id": run or f"_{arm}",
            "status": "answered",
            "n_answered": 1,
            "n_seats": 1 if arm == "E_single" else 12,
            "exposure": "unknown",
            "cost_usd": COST[arm],
            "tokens": 1000,
            "point": point,
            "q05": point - 20,
            "q25": point - 10,
            "q50": point,
            "q75": point + 10,
            "q95": point + 20,
        }
        told.append(fields | changed)
    return told


def lose(row: dict[str, Any], status: str) -> dict[str, Any]:
    return row | {"status": status, "n_answered": 0, **dict.fromkeys(("point", "q05", "q25", "q50", "q75", "q95"))}


def truth(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"item_id": [*ITEMS, "other"], "truth": [100.0] * (N + 1), **columns})


def run(told: list[dict[str, Any]], *, true: pl.DataFrame | None = None, **options: Any) -> Evaluation:
    return evaluate(predictions_frame(told), truth() if true is None else true, **({"n_resamples": 400} | options))


def arm(evaluation: Evaluation, name: str) -> ArmResult:
    return next(result for result in evaluation.overall.arms if result.arm == name)


BOTH = [*rows("E_single"), *rows("F_independent")]


def test_an_arm_is_measured_as_by_hand() -> None:
    told = arm(run(BOTH), "E_single")
    assert told.points is not None
    assert told.coverage90 is not None
    assert told.points.mdape == pytest.approx(np.median(np.abs(OFF)))
    assert told.points.ppe10 == pytest.approx(np.mean(np.abs(OFF) <= 0.10))
    hits = int(np.sum(np.abs(100 * OFF) <= 20))
    assert (told.coverage90.k, told.coverage90.n) == (hits, N)
    assert (told.coverage90.low, told.coverage90.high) == wilson(k=hits, n=N)
    assert told.width90 == pytest.approx(np.median(0.4 / (1 + OFF)))
    assert told.cost_usd == pytest.approx(0.24)
    assert told.cost_per_item_usd == pytest.approx(0.01)
    assert told.tokens == 24_000
    assert told.difference is None


def test_the_difference_is_negative_where_the_panel_is_better() -> None:
    gap = arm(run(BOTH), "F_independent").difference
    assert gap is not None
    assert gap.point == pytest.approx(-0.5 * np.median(np.abs(OFF)))
    assert gap.low is not None
    assert gap.high is not None
    assert gap.low < gap.point < gap.high < 0
    assert gap.rule == "percentile"


def test_the_same_seed_gives_the_same_result_whatever_the_order_of_rows() -> None:
    assert run(BOTH) == run(list(reversed(BOTH)))
    assert run(BOTH) != run(BOTH, seed=1)


def test_items_without_an_answer_stay_and_are_counted_by_name() -> None:
    told = [dict(row) for row in BOTH]
    for place, status in enumerate(("abstained", "unreadable", "failed", "no_quorum")):
        told[N + place] = lose(told[N + place], status)
    evaluation = run(told)
    panel = arm(evaluation, "F_independent")
    assert panel.n_items == N
    counts = {"answered": 20, "abstained": 1, "unreadable": 1, "failed": 1, "no_quorum": 1, "not_asked": 0}
    assert panel.outcomes == counts
    assert panel.points is not None
    assert panel.points.n == 20
    assert evaluation.overall.resampling is not None
    assert evaluation.overall.resampling.n_items == 20
    assert panel.difference is not None
    assert panel.difference.point == pytest.approx(-0.5 * np.median(np.abs(OFF[4:])))


def test_an_arm_that_never_answers_costs_the_others_nothing() -> None:
    mute = [lose(row | {"arm": "G_debate_r2"}, "failed") for row in rows("F_independent")]
    evaluation = run([*BOTH, *mute])
    told = arm(evaluation, "G_debate_r2")
    assert (told.points, told.coverage90, told.width90, told.difference) == (None, None, None, None)
    assert evaluation.overall.resampling is not None
    assert evaluation.overall.resampling.n_items == N


def test_without_common_answers_there_is_no_difference() -> None:
    evaluation = run([*(lose(row, "failed") for row in rows("E_single")), *rows("F_independent")])
    assert evaluation.overall.resampling is None
    assert arm(evaluation, "F_independent").difference is None
    assert any("no differences" in warning for warning in evaluation.warnings)


def test_one_unknown_cost_makes_the_sum_unknown() -> None:
    told = [dict(row) for row in BOTH]
    told[0] |= {"cost_usd": None, "tokens": None}
    single = arm(run(told), "E_single")
    assert (single.cost_usd, single.cost_per_item_usd, single.tokens) == (None, None, None)


def test_points_without_quantiles_have_no_coverage() -> None:
    bare = dict.fromkeys(("q05", "q25", "q50", "q75", "q95"))
    single = arm(run([row | bare for row in BOTH]), "E_single")
    assert single.points is not None
    assert (single.coverage50, single.coverage90, single.width90) == (None, None, None)


@pytest.mark.parametrize(
    ("groups", "rule", "flag", "said"),
    [
        (12, "se_t", "few_clusters", "t(11)"),
        (6, "se_t", "descriptive_only", "no conclusion"),
        (1, None, "no_interval", "no interval"),
    ],
)
def test_few_clusters_are_said(groups: int, rule: str | None, flag: str, said: str) -> None:
    evaluation = run(BOTH, true=truth(cluster=[f"c{k % groups}" for k in range(N)] + ["x"]))
    gap = arm(evaluation, "F_independent").difference
    assert gap is not None
    assert (gap.rule, gap.flags, gap.n_clusters) == (rule, (flag,), groups)
    assert any(said in warning for warning in evaluation.warnings)


def test_an_item_without_a_cluster_is_its_own() -> None:
    evaluation = run(BOTH, true=truth(cluster=["a", "a", "i03", *[None] * (N - 2)]))
    assert evaluation.overall.resampling is not None
    assert evaluation.overall.resampling.clusters.n_clusters == N - 1


def test_every_rule_has_a_row_with_the_same_draws() -> None:
    means = [row | {"aggregation": "mean", "point": 100.0} for row in rows("F_independent")]
    means[0] = lose(means[0], "no_quorum")
    others = [row | {"aggregation": "log", "point": row["point"]} for row in rows("F_independent")]
    evaluation = run([*BOTH, *means, *others])
    found = {(row.arm, row.aggregation): row for row in evaluation.overall.rules}
    assert list(found) == [("E_single", "median")] + [("F_independent", rule) for rule in ("log", "mean", "median")]
    assert found["F_independent", "log"].difference == found["F_independent", "median"].difference
    assert found["F_independent", "mean"].difference is None
    assert [row.aggregation for row in evaluation.overall.arms] == ["median", "median"]


def test_single_seats_and_models_need_no_primary_rule() -> None:
    single = [row | {"aggregation": rule} for row in rows("E_single") for rule in ("mean", "log")]
    model = [row | {"arm": "D_avm", "aggregation": "model", "committee": "none"} for row in rows("F_independent")]
    evaluation = run([*single, *model, *rows("F_independent")])
    assert [(row.arm, row.aggregation) for row in evaluation.overall.arms] == [
        ("D_avm", "model"),
        ("E_single", "log"),
        ("F_independent", "median"),
    ]


def test_a_primary_rule_that_nobody_knows_is_refused_even_of_single_seats() -> None:
    alone = rows("E_single")
    with pytest.raises(ConfigError, match=r'unknown aggregation rule "medain"\. Did you mean "median"'):
        run(alone, primary="medain")
    assert run(alone, primary="trimmed_mean_20").primary == "trimmed_mean_20"


def test_a_panel_without_the_primary_rule_is_refused() -> None:
    two = [row | {"aggregation": rule} for row in rows("F_independent") for rule in ("mean", "medoid")]
    with pytest.raises(PlanError, match=r'"F_independent" has no rows under the rule "median".*medoid'):
        run([*rows("E_single"), *two])


def test_no_report_without_the_single_agent() -> None:
    with pytest.raises(PlanError, match='no run has the arm "E_single"'):
        run(rows("F_independent"))


def test_results_by_exposure_where_it_varies() -> None:
    told = [row | {"exposure": "before" if row["item_id"] < "i06" else "after"} for row in BOTH]
    evaluation = run(told)
    assert list(evaluation.by_exposure) == ["before", "after"]
    assert [part.arms[0].n_items for part in evaluation.by_exposure.values()] == [6, 18]
    assert all(part.arms[1].difference is not None for part in evaluation.by_exposure.values())
    assert not any("training cutoff" in warning for warning in evaluation.warnings)


@pytest.mark.parametrize(
    ("exposure", "said"), [("before", "may have seen every answer"), ("unknown", "unknown for every")]
)
def test_exposure_that_does_not_vary_is_said(exposure: str, said: str) -> None:
    evaluation = run([row | {"exposure": exposure, "run_id": row["run_id"].strip("_")} for row in BOTH])
    assert evaluation.by_exposure == {}
    made_up = run([row | {"exposure": exposure} for row in BOTH])
    assert not any(said in warning for warning in made_up.warnings)
    assert any(said in warning for warning in evaluation.warnings)


def test_simulated_runs_are_told_from_real_ones() -> None:
    assert run(BOTH).simulated
    mixed = run([*rows("E_single", run="real"), *rows("F_independent")])
    assert not mixed.simulated
    assert [result.simulated for result in mixed.overall.arms] == [False, True]
    assert any("_F_independent" in warning for warning in mixed.warnings)


def test_mixed_information_is_refused() -> None:
    with pytest.raises(DataError, match=r"mix splits: test \(_F_independent\); validation \(_E_single\)"):
        run([*rows("E_single"), *rows("F_independent", split="test")])
    with pytest.raises(DataError, match=r"answers item i00 twice, in the runs _F_independent, again"):
        run([*BOTH, *rows("F_independent", run="again")])
    with pytest.raises(DataError, match=r"22 item\(s\) have no truth: i02, i03, i04, i05, i06 …"):
        run(BOTH, true=truth().head(2))
    with pytest.raises(DataError, match="item i00 has two truths"):
        run(BOTH, true=pl.concat([truth(), truth().head(1)]))
    with pytest.raises(DataError, match='lacks the column "truth"'):
        run(BOTH, true=truth().drop("truth"))
    with pytest.raises(DataError, match="no predictions"):
        run([])
    told = [lose(row, "answered") | {"p": 0.5} for row in BOTH]
    with pytest.raises(DataError, match="neither 0 nor 1"):
        run(told)
