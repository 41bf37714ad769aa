"""What the arms were worth: errors, coverage and cost of each, and its difference from the single agent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from consilience.aggregation.answers import rule_names
from consilience.errors import ConfigError, PlanError
from consilience.experiments.evaluable import refuse_mixtures, with_truth
from consilience.experiments.evaluation import ArmResult, Comparison, Evaluation, Resampling
from consilience.experiments.predictions import EXPOSURES, SIMULATED_PREFIX, STATUSES, validate_predictions
from consilience.inference.bootstrap import (
    analysis_rng,
    bootstrap_medians,
    cluster_weights,
    draws_digest,
    summarise_clusters,
)
from consilience.inference.intervals import DifferenceInterval, difference_interval
from consilience.registry import nearest
from consilience.scoring.interval import covered, width
from consilience.scoring.point import FloatArray, absolute_percentage_error
from consilience.scoring.summaries import Share, share, summarise_points


def evaluate(
    predictions: pl.DataFrame,
    truth: pl.DataFrame,
    *,
    primary: str = "median",
    baseline_arm: str = "E_single",
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Evaluation:
    """Return errors, coverage and cost of every arm and its difference from the single agent.

    An arm is read under the primary rule; one with a single rule under that (a baseline's ``model``), and one of single
    seats, where all rules agree, under its first. Differences are of the median absolute percentage error over the
    items that every arm with any answer has answered; whole clusters are drawn, the same draws for all arms and rules.

    Args:
        predictions: As `validate_predictions`; numbers, not probabilities.
        truth: ``item_id, truth`` (> 0) and optionally ``cluster`` (null: the item is its own); may hold more items.
        primary: Aggregation rule fixed beforehand.
        baseline_arm: Arm that every other is compared with.
        n_resamples: Resamples B, >= 2.
        seed: Seed of the draws.

    Raises:
        ConfigError: No rule has the name of the primary one.
        DataError: There are no predictions, an item has no truth or two, an item stands twice for one arm and rule,
            splits are mixed, or an answer is no positive number.
        PlanError: The baseline arm is absent, or an arm has several rules and not the primary one.

    Example:
        >>> from consilience.experiments.predictions import predictions_frame
        >>> told = {"committee": "c", "aggregation": "median", "run_id": "_r", "status": "answered", "n_answered": 1,
        ...         "n_seats": 1, "exposure": "unknown"}
        >>> frame = predictions_frame([
        ...     told | {"item_id": item, "arm": arm, "point": point}
        ...     for item in "ab" for arm, point in (("E_single", 110.0), ("F_independent", 105.0))])
        >>> truth = pl.DataFrame({"item_id": ["a", "b"], "truth": [100.0, 100.0]})
        >>> result = evaluate(frame, truth, n_resamples=10)
        >>> round(result.overall.arms[1].difference.point, 9), result.simulated
        (-0.05, True)
    """
    predictions = validate_predictions(predictions)
    refuse_mixtures(predictions)
    if primary not in (known := {*predictions["aggregation"], *rule_names("estimate")}):
        raise ConfigError(f'unknown aggregation rule "{primary}"', hint=nearest(primary, known))
    frame = with_truth(predictions, truth)
    rule_of = {arm: _rule(arm, rows, primary) for (arm,), rows in frame.group_by("arm", maintain_order=True)}
    if baseline_arm not in rule_of:
        raise PlanError(
            f'no run has the arm "{baseline_arm}", so no arm could be shown beside the single agent',
            hint=f"Run it on the same items first. Arms here: {', '.join(sorted(rule_of))}.",
        )
    compare = _Compare(rule_of=rule_of, baseline_arm=baseline_arm, n_resamples=n_resamples, seed=seed)
    overall = compare(frame, part="all")
    levels = [level for level in EXPOSURES if (frame["exposure"] == level).any()]
    by_exposure = {
        level: compare(frame.filter(pl.col("exposure") == level), part=level) for level in levels if len(levels) > 1
    }
    run_ids = tuple(sorted(frame["run_id"].unique()))
    return Evaluation(
        split=frame["split"][0],
        primary=primary,
        baseline_arm=baseline_arm,
        overall=overall,
        by_exposure=by_exposure,
        run_ids=run_ids,
        simulated=_simulated(run_ids),
        warnings=(*_about_rows(run_ids, levels), *_about_comparison(overall, baseline_arm)),
    )


@dataclass(frozen=True)
class _Compare:
    rule_of: Mapping[str, str]
    baseline_arm: str
    n_resamples: int
    seed: int

    def __call__(self, frame: pl.DataFrame, *, part: str) -> Comparison:
        frames = {
            (str(arm), str(rule)): rows
            for (arm, rule), rows in frame.sort("arm", "aggregation", "item_id").group_by(
                ["arm", "aggregation"], maintain_order=True
            )
        }
        primary = {
            (arm, rule): frames[arm, rule] for arm, rule in sorted(self.rule_of.items()) if (arm, rule) in frames
        }
        resampling, differences = self._differences(frames, primary, part=part)
        results = {key: _arm_result(key, rows, differences.get(key)) for key, rows in frames.items()}
        return Comparison(
            arms=tuple(results[key] for key in primary), rules=tuple(results.values()), resampling=resampling
        )

    def _differences(
        self,
        frames: Mapping[tuple[str, str], pl.DataFrame],
        primary: Mapping[tuple[str, str], pl.DataFrame],
        *,
        part: str,
    ) -> tuple[Resampling | None, dict[tuple[str, str], DifferenceInterval]]:
        base = (self.baseline_arm, self.rule_of[self.baseline_arm])
        answered = {key: _answered(rows) for key, rows in frames.items()}
        voiced = [set(answered[key]["item_id"]) for key in primary if answered[key].height]
        common = sorted(set.intersection(*voiced)) if voiced else []
        if not common or base not in frames or not answered[base].height:
            return None, {}
        on_common = {key: rows.filter(pl.col("item_id").is_in(common)) for key, rows in answered.items()}
        columns = [key for key, rows in on_common.items() if rows.height == len(common)]
        pairs = [(_array(on_common[key], "point"), _array(on_common[key], "truth")) for key in columns]
        errors = np.column_stack([absolute_percentage_error(estimate=point, truth=truth) for point, truth in pairs])
        clusters = on_common[base]["cluster"].to_numpy()
        rng = analysis_rng(seed=self.seed, analysis=f"evaluate/mdape/{part}")
        weights = cluster_weights(clusters=clusters, n_resamples=self.n_resamples, rng=rng)
        draws = bootstrap_medians(values=errors, clusters=clusters, weights=weights)
        medians = np.median(errors, axis=0)
        summary = summarise_clusters(clusters=clusters)
        own = columns.index(base)
        differences = {
            key: difference_interval(
                point=float(medians[at] - medians[own]),
                draws=draws[:, at] - draws[:, own],
                n_clusters=summary.n_clusters,
            )
            for at, key in enumerate(columns)
            if key[0] != self.baseline_arm
        }
        resampling = Resampling(
            n_items=len(common),
            clusters=summary,
            n_resamples=self.n_resamples,
            seed=self.seed,
            digest=draws_digest(weights=weights),
        )
        return resampling, differences


def _arm_result(key: tuple[str, str], rows: pl.DataFrame, difference: DifferenceInterval | None) -> ArmResult:
    told = _answered(rows)
    ranged = told.drop_nulls(["q05", "q95"])
    costs, tokens = rows["cost_usd"].to_list(), rows["tokens"].to_list()
    return ArmResult(
        arm=key[0],
        aggregation=key[1],
        committee=", ".join(sorted(rows["committee"].unique())),
        simulated=_simulated(rows["run_id"].unique()),
        n_items=rows.height,
        outcomes={status: int((rows["status"] == status).sum()) for status in STATUSES},
        points=summarise_points(estimate=_array(told, "point"), truth=_array(told, "truth")) if told.height else None,
        coverage50=_coverage(ranged, "q25", "q75"),
        coverage90=_coverage(ranged, "q05", "q95"),
        width90=_width(ranged),
        cost_usd=None if None in costs else math.fsum(costs),
        tokens=None if None in tokens else sum(tokens),
        difference=difference,
    )


def _answered(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("status") == "answered")


def _array(rows: pl.DataFrame, column: str) -> FloatArray:
    return rows[column].to_numpy()


def _coverage(rows: pl.DataFrame, lower: str, upper: str) -> Share | None:
    if rows.is_empty():
        return None
    return share(hits=covered(lower=_array(rows, lower), upper=_array(rows, upper), outcome=_array(rows, "truth")))


def _width(rows: pl.DataFrame) -> float | None:
    if rows.is_empty():
        return None
    return float(np.median(width(lower=_array(rows, "q05"), upper=_array(rows, "q95")) / _array(rows, "point")))


def _simulated(run_ids: Iterable[str]) -> bool:
    return all(run_id.startswith(SIMULATED_PREFIX) for run_id in run_ids)


def _rule(arm: object, rows: pl.DataFrame, primary: str) -> str:
    rules: list[str] = sorted(rows["aggregation"].unique())
    if primary in rules:
        return primary
    if len(rules) == 1 or (rows["n_seats"] == 1).all():
        return rules[0]
    raise PlanError(f'arm "{arm}" has no rows under the rule "{primary}"', hint=nearest(primary, rules))


def _about_rows(run_ids: Sequence[str], exposures: Sequence[str]) -> list[str]:
    made_up = [run for run in run_ids if _simulated([run])]
    found = []
    if 0 < len(made_up) < len(run_ids):
        found.append(f"Some runs are simulated or synthetic, others not: {', '.join(made_up)}.")
    exposures = [] if len(made_up) == len(run_ids) else exposures  # simulated analysts were trained on nothing
    if list(exposures) == ["before"]:
        found.append("All items lie before the models' training cutoff: a model may have seen every answer.")
    if list(exposures) == ["unknown"]:
        found.append("It is unknown for every item whether it lies before the models' training cutoff.")
    return found


def _about_comparison(comparison: Comparison, baseline_arm: str) -> list[str]:
    found = []
    resampling = comparison.resampling
    if len({arm.n_items for arm in comparison.arms}) > 1:
        found.append("The arms were not put to the same number of items; only the differences are on common items.")
    if resampling is None:
        return [*found, f"No item was answered by every arm and by {baseline_arm}: there are no differences to show."]
    groups = resampling.clusters.n_clusters
    if groups < 2:
        found.append("All common items are one cluster: no interval can be given.")
    elif groups < 10:
        found.append(f"Only {groups} clusters: the intervals describe these items and support no conclusion.")
    elif groups < 20:
        found.append(f"Only {groups} clusters: intervals are standard error × t({groups - 1}) and may be too narrow.")
    return found
