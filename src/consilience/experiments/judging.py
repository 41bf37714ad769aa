"""Arms that answered with a probability of yes, or over options, beside each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl

from consilience.aggregation.answers import OPTION_PREFIX, default_rule
from consilience.aggregation.recalibration import Recalibration
from consilience.core.question import Kind
from consilience.experiments.answers_judged import (
    ChoiceComparison,
    ChoiceResult,
    ProbabilityComparison,
    ProbabilityResult,
)
from consilience.experiments.arm_scores import Draws
from consilience.experiments.comparing import Key, answered, asked
from consilience.experiments.evaluable import ESTIMATE, OPTIONS, PROBABILITY
from consilience.experiments.evaluation import Resampling
from consilience.experiments.gaps import Gaps, Losses, gaps
from consilience.experiments.measures import Measure
from consilience.inference.bootstrap import (
    analysis_rng,
    bootstrap_means,
    cluster_weights,
    draws_digest,
    summarise_clusters,
)
from consilience.scoring.calibration import calibration, reliability
from consilience.scoring.point import FloatArray
from consilience.scoring.probability import brier, corp, log_score, murphy, sharpness, skill
from consilience.scoring.summaries import share_clustered

NULL_RESAMPLES: Final = 1_000
"""Samples behind the nulls of calibration errors and the consistency band; as many as are asked for where fewer."""

Loss = Callable[[pl.DataFrame], FloatArray]


@dataclass(frozen=True)
class Judge:
    """How arms are compared that answer otherwise than with a number.

    Attributes:
        baseline_arm: Arm that differences are taken from.
        n_resamples: Resamples B.
        seed: Seed of the draws.
        recalibrated: Frozen maps of probabilities by arm.
    """

    baseline_arm: str
    n_resamples: int
    seed: int
    recalibrated: Mapping[str, Recalibration] = field(default_factory=dict)

    def probabilities(self, frame: pl.DataFrame) -> ProbabilityComparison:
        """Return the arms over questions of yes or no.

        Args:
            frame: Rows with ``p``, ``truth`` (0 or 1) and ``cluster``.

        Raises:
            DataError: A truth is neither 0 nor 1.
        """
        frames = _frames(frame)
        primary = primary_rules(frame, PROBABILITY, "")
        loss: Loss = lambda rows: brier(p=rows["p"].to_numpy(), y=rows["truth"].to_numpy())  # noqa: E731
        resampling, told = self._differences(frames, primary, loss, part="brier")
        draws = Draws("evaluate/levels/brier", n_resamples=self.n_resamples, seed=self.seed)
        results = [self._probability(key, rows, primary, told.get(key, Gaps()), draws) for key, rows in frames.items()]
        return ProbabilityComparison(tuple(results), resampling)

    def _probability(
        self,
        key: Key,
        rows: pl.DataFrame,
        primary: Mapping[str, str],
        gap: Gaps,
        draws: Draws,
    ) -> ProbabilityResult:
        told = answered(rows)
        first = primary[key[0]] == key[1]
        found: dict[str, Any] = dict.fromkeys(
            (*("brier", "corp", "murphy", "log_score", "calibration", "reliability", "sharpness", "skill"),)
        )
        n_clipped = 0
        if told.height:
            p, y, clusters = (told[name].to_numpy() for name in ("p", "truth", "cluster"))
            logs = log_score(p=p, y=y)
            means = draws.means(np.column_stack([brier(p=p, y=y), logs.each]), clusters)
            parts, n_clipped = corp(p=p, y=y), logs.n_clipped
            found |= {
                "brier": means[0],
                "log_score": means[1],
                "corp": parts,
                "murphy": murphy(p=p, y=y),
                "sharpness": float(sharpness(p=p).mean()),
                "skill": skill(score=parts.score, reference=parts.unc),
            }
            if first:
                few = min(NULL_RESAMPLES, self.n_resamples)
                rng = analysis_rng(seed=self.seed, analysis=f"evaluate/calibration/{key[0]}")
                found["calibration"] = calibration(p=p, y=y, rng=rng, n_resamples=few)
                found["reliability"] = reliability(p=p, y=y, rng=rng, n_resamples=few)
        return ProbabilityResult(
            arm=key[0],
            aggregation=key[1],
            primary=first,
            n=told.height,
            n_clipped=n_clipped,
            **_compared(gap),
            calibrated=self._recalibrated(key[0], told, draws) if first and told.height else None,
            **asked(rows),  # type: ignore[arg-type]
            **found,
        )

    def _recalibrated(self, arm: str, told: pl.DataFrame, draws: Draws) -> Measure | None:
        made = self.recalibrated.get(arm)
        if made is None:
            return None
        better = np.array([made(p) for p in told["p"].to_list()])
        return draws.means(brier(p=better, y=told["truth"].to_numpy())[:, None], told["cluster"].to_numpy())[0]

    def choices(self, frame: pl.DataFrame) -> ChoiceComparison:
        """Return the arms over questions with options.

        Args:
            frame: Rows with ``option:<id>``, ``option`` (null where the truth is unknown) and ``cluster``.
        """
        names = [name for name in frame.columns if name.startswith(OPTION_PREFIX)]
        frames = _frames(_leading(frame, names))
        primary = primary_rules(frame, OPTIONS, "")
        judged = {key: rows.filter(pl.col("option").is_not_null()) for key, rows in frames.items()}
        loss: Loss = lambda rows: rows["right"].cast(pl.Float64).to_numpy()  # noqa: E731
        resampling, told = self._differences(judged, primary, loss, part="accuracy")
        results = [_choice(key, rows, primary, told.get(key, Gaps())) for key, rows in frames.items()]
        return ChoiceComparison(tuple(results), resampling)

    def _differences(
        self, frames: Mapping[Key, pl.DataFrame], primary: Mapping[str, str], loss: Loss, *, part: str
    ) -> tuple[Resampling | None, dict[Key, Gaps]]:
        told = {key: answered(rows) for key, rows in frames.items()}
        base = (self.baseline_arm, primary.get(self.baseline_arm, ""))
        voiced = [set(told[key]["item_id"]) for key in sorted(primary.items()) if told[key].height]
        common = sorted(set.intersection(*voiced)) if voiced else []
        if not common or base not in told or told[base].is_empty():
            return None, {}
        on_common = {key: rows.filter(pl.col("item_id").is_in(common)) for key, rows in told.items()}
        columns = [key for key, rows in on_common.items() if rows.height == len(common)]
        values = np.column_stack([loss(on_common[key]) for key in columns])
        clusters = on_common[base]["cluster"].to_numpy()
        rng = analysis_rng(seed=self.seed, analysis=f"evaluate/{part}")
        weights = cluster_weights(clusters=clusters, n_resamples=self.n_resamples, rng=rng)
        draws = bootstrap_means(values=values, clusters=clusters, weights=weights)
        summary = summarise_clusters(clusters=clusters)
        costs = {arm: _cost(frames[arm, rule]) for arm, rule in primary.items()}
        made = gaps(Losses(columns, values, draws, summary.n_clusters, costs), base=base, primary=primary)
        return Resampling(len(common), summary, self.n_resamples, self.seed, draws_digest(weights=weights)), made


def _cost(rows: pl.DataFrame) -> float | None:
    cost = asked(rows)["cost_usd"]
    return cost / rows.height if isinstance(cost, float) else None


def _compared(gap: Gaps) -> dict[str, Any]:
    """Return what is told of an arm's differences."""
    base = gap.baseline
    told = (None, None, None) if base is None else (base.difference, base.p, base.holm)
    return dict(zip(("difference", "p", "holm"), told, strict=True)) | {"matched": gap.matched}


def _frames(frame: pl.DataFrame) -> dict[Key, pl.DataFrame]:
    grouped = frame.sort("arm", "aggregation", "item_id").group_by(["arm", "aggregation"], maintain_order=True)
    return {(str(arm), str(rule)): rows for (arm, rule), rows in grouped}


def primary_rules(frame: pl.DataFrame, kind: str, primary: str) -> dict[str, str]:
    """Return the rule that is the primary comparison of each arm, by kind of question and its seats.

    An arm that has not the declared rule, such as a baseline, is read under its first one.

    Args:
        frame: Rows of one kind.
        kind: ``estimate``, ``probability`` or ``options``.
        primary: Rule of estimates.
    """
    kinds: tuple[Kind, ...] = ("choice", "distribution") if kind == OPTIONS else ("probability",)
    found: dict[str, str] = {}
    for (arm,), rows in frame.group_by("arm"):
        rules: list[str] = sorted(rows["aggregation"].unique())
        seats = max(rows["n_seats"].to_list())
        declared = [primary] if kind == ESTIMATE else [default_rule(one, seats) for one in kinds]
        found[str(arm)] = next((rule for rule in declared if rule in rules), rules[0])
    return found


def _leading(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Return the rows with their largest share, how many options have it, and whether it is the true one's alone."""
    top = pl.max_horizontal(names)
    tied = pl.sum_horizontal((pl.col(name) == top).fill_null(value=False).cast(pl.Int64) for name in names)
    truth = pl.coalesce(
        pl.when(pl.col("option") == name.removeprefix(OPTION_PREFIX)).then(pl.col(name)) for name in names
    )
    rows = frame.with_columns(top=top, tied=tied, given=truth)
    return rows.with_columns(right=((pl.col("given") == pl.col("top")) & (pl.col("tied") == 1)).fill_null(value=False))


def _choice(key: Key, rows: pl.DataFrame, primary: Mapping[str, str], gap: Gaps) -> ChoiceResult:
    told = answered(rows)
    known = told.filter(pl.col("option").is_not_null())
    accuracy = None
    if known.height:
        accuracy = share_clustered(hits=known["right"].to_numpy(), clusters=known["cluster"].to_numpy())
    return ChoiceResult(
        arm=key[0],
        aggregation=key[1],
        primary=primary[key[0]] == key[1],
        n=known.height,
        n_tied=int((known["tied"] > 1).sum()),
        accuracy=accuracy,
        agreement=float(told["top"].to_numpy().mean()) if told.height else None,
        given_to_truth=float(known["given"].fill_null(0.0).to_numpy().mean()) if known.height else None,
        **_compared(gap),
        **asked(rows),  # type: ignore[arg-type]
    )
