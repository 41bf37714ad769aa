"""Arms that answered with numbers, beside each other on one set of items."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import polars as pl

from consilience.experiments.arm_scores import Draws, interval_scores, point_measures, ratio_scores
from consilience.experiments.contrasts import CommonItems
from consilience.experiments.evaluation import ArmResult, Comparison, Resampling
from consilience.experiments.further import further_measures
from consilience.experiments.predictions import SIMULATED_PREFIX, STATUSES
from consilience.inference.bootstrap import (
    analysis_rng,
    bootstrap_medians,
    cluster_weights,
    draws_digest,
    summarise_clusters,
)
from consilience.inference.intervals import DifferenceInterval, difference_interval
from consilience.scoring.interval import covered, width
from consilience.scoring.point import FloatArray, absolute_percentage_error, log_error
from consilience.scoring.summaries import Share, share, summarise_points

Key = tuple[str, str]
"""Arm and rule."""
WITHOUT_MODEL: Final = "model"
"""The rule of baselines, which ask no language model."""


@dataclass(frozen=True)
class Compared:
    """A comparison, and what contrasts are made from.

    Attributes:
        comparison: The results.
        common: Errors of the arms under their primary rule on the common items; None without any.
    """

    comparison: Comparison
    common: CommonItems | None


@dataclass(frozen=True)
class Compare:
    """How arms are compared.

    Attributes:
        rule_of: Primary rule of each arm.
        baseline_arm: Arm that differences are taken from.
        n_resamples: Resamples B.
        seed: Seed of the draws.
        calibrated: Frozen calibrated intervals by item, for arms that have them.
    """

    rule_of: Mapping[str, str]
    baseline_arm: str
    n_resamples: int
    seed: int
    calibrated: Mapping[str, pl.DataFrame] = field(default_factory=dict)

    def __call__(self, frame: pl.DataFrame, *, part: str) -> Compared:
        """Return the arms on these rows; ``part`` names them in the draws."""
        frames = {
            (str(arm), str(rule)): rows
            for (arm, rule), rows in frame.sort("arm", "aggregation", "item_id").group_by(
                ["arm", "aggregation"], maintain_order=True
            )
        }
        primary = [key for key in sorted(self.rule_of.items()) if key in frames]
        resampling, differences, common = self._differences(frames, primary, part=part)
        results = {key: _arm_result(key, rows, differences.get(key)) for key, rows in frames.items()}
        draws = Draws(f"evaluate/levels/{part}", n_resamples=self.n_resamples, seed=self.seed)
        for key in primary:
            results[key] = self._scored(results[key], answered(frames[key]), draws)
        comparison = Comparison(
            arms=tuple(results[key] for key in primary), rules=tuple(results.values()), resampling=resampling
        )
        return Compared(comparison, common)

    def _scored(self, result: ArmResult, told: pl.DataFrame, draws: Draws) -> ArmResult:
        if told.is_empty():
            return result
        mdape, size = point_measures(told, draws)
        better = self.calibrated.get(result.arm)
        return replace(
            result,
            mdape=mdape,
            log_error=size,
            intervals=interval_scores(told, draws),
            calibrated=None if better is None else interval_scores(told.update(better, on="item_id"), draws),
            ratios=ratio_scores(told, draws),
        )

    def _differences(
        self, frames: Mapping[Key, pl.DataFrame], primary: Iterable[Key], *, part: str
    ) -> tuple[Resampling | None, dict[Key, DifferenceInterval], CommonItems | None]:
        base = (self.baseline_arm, self.rule_of.get(self.baseline_arm, ""))
        told = {key: answered(rows) for key, rows in frames.items()}
        voiced = [set(told[key]["item_id"]) for key in primary if told[key].height]
        common = sorted(set.intersection(*voiced)) if voiced else []
        if not common or base not in frames or not told[base].height:
            return None, {}, None
        on_common = {key: rows.filter(pl.col("item_id").is_in(common)) for key, rows in told.items()}
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
        kept = [at for at, (arm, rule) in enumerate(columns) if self.rule_of.get(arm) == rule]
        logs = [np.abs(log_error(estimate=pairs[at][0], truth=pairs[at][1])) for at in kept]
        whole = CommonItems(
            arms=tuple(columns[at][0] for at in kept),
            ape=errors[:, kept],
            log=np.column_stack(logs),
            clusters=clusters,
            draws=draws[:, kept],
            further=further_measures(
                {columns[at][0]: on_common[columns[at]] for at in kept}, clusters=clusters, weights=weights
            ),
        )
        return resampling, differences, whole


def answered(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that have an answer."""
    return rows.filter(pl.col("status") == "answered")


def asked(rows: pl.DataFrame) -> dict[str, object]:
    """Return what is told of an arm's rows whatever it answers with: who, how many, what came of them, the cost."""
    costs, tokens = rows["cost_usd"].to_list(), rows["tokens"].to_list()
    return {
        "committee": ", ".join(sorted(rows["committee"].unique())),
        "simulated": simulated(rows["run_id"].unique()),
        "n_items": rows.height,
        "outcomes": {status: int((rows["status"] == status).sum()) for status in STATUSES},
        "cost_usd": None if None in costs else math.fsum(costs),
        "tokens": None if None in tokens else sum(tokens),
    }


def simulated(run_ids: Iterable[str]) -> bool:
    """Return whether every run is simulated or synthetic."""
    return all(run_id.startswith(SIMULATED_PREFIX) for run_id in run_ids)


def _arm_result(key: Key, rows: pl.DataFrame, difference: DifferenceInterval | None) -> ArmResult:
    told = answered(rows)
    ranged = told.drop_nulls(["q05", "q95"])
    return ArmResult(
        arm=key[0],
        aggregation=key[1],
        **asked(rows),  # type: ignore[arg-type]
        points=summarise_points(estimate=_array(told, "point"), truth=_array(told, "truth")) if told.height else None,
        coverage50=_coverage(ranged, "q25", "q75"),
        coverage90=_coverage(ranged, "q05", "q95"),
        width90=_width(ranged),
        difference=difference,
    )


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
