"""Contrasts of arms: the declared family adjusted together, and all other pairs as exploration."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np

from consilience.core.undefined import Undefined
from consilience.experiments.family import Matched, Missing, Pair, family
from consilience.experiments.further import PPE10, WIS, Further, gap
from consilience.experiments.measures import Recorded
from consilience.inference.bootstrap import Labels, analysis_rng
from consilience.inference.confidence_set import model_confidence_set
from consilience.inference.effective import FloatArray
from consilience.inference.equivalence import Equivalence, equivalence
from consilience.inference.intervals import FEW, DifferenceInterval, difference_interval
from consilience.inference.multiplicity import adjust, max_t
from consilience.inference.power import least_detectable
from consilience.inference.tests import ClusterTest, cluster_t, sign_flip, t_p

MARGIN: Final = 0.01
"""A difference of MdAPE of less than one percentage point does not matter."""
POWER: Final = 0.8
ALPHA: Final = 0.05
SIZE: Final = 0.1

_EXPLORED: Final = Undefined("not declared")
_DECLARED: Final = Undefined("declared")


@dataclass(frozen=True)
class ContrastResult(Recorded):
    """One arm against another: MdAPE of the first less that of the second; negative is better.

    Attributes:
        arm: Label of the arm.
        against: Label of the arm it is compared with.
        asks: The questions it answers; empty in exploration.
        declared: It belongs to the declared family.
        matched: Of a contrast with a single agent: matched in cost to this arm (``own``), to another arm (``other``),
            or not (``unmatched``); None elsewhere.
        difference: With its interval, from the draws that all arms share.
        p: Two-sided, by the rule of the interval; undefined below 10 clusters and where the arms are identical.
        holm: Adjusted over the declared family; undefined in exploration.
        max_t: Adjusted over the declared family from the same draws, by the largest statistic; undefined likewise.
        bh: Adjusted over all explored pairs for the rate of false discoveries; undefined in the declared family.
        least_detectable: True difference that this many clusters would show with 80 % power; undefined below 2.
        equivalence: Whether the difference is smaller than `MARGIN`; undefined below 2 clusters.
        mean_log: The same comparison by mean absolute log error, with the cluster-robust t-test.
        sign_flip: p-value of that mean difference by flipping signs of whole clusters.
        wis: The same comparison by mean WIS5 of the logarithms, from the same draws; it has no p of its own, so that
            the declared family stays one of a single measure. Undefined where an arm lacks quantiles.
        ppe10: The same by the share of estimates within 10 %, positive is better; likewise without a p.
    """

    arm: str
    against: str
    asks: tuple[str, ...]
    declared: bool
    matched: Matched | None
    difference: DifferenceInterval
    p: float | Undefined
    holm: float | Undefined
    max_t: float | Undefined
    bh: float | Undefined
    least_detectable: float | Undefined
    equivalence: Equivalence | Undefined
    mean_log: ClusterTest
    sign_flip: float | Undefined
    wis: DifferenceInterval | Undefined
    ppe10: DifferenceInterval | Undefined


@dataclass(frozen=True)
class Best(Recorded):
    """The model confidence set: arms that cannot be told from the best by their MdAPE.

    Attributes:
        included: Labels that stay, sorted.
        p: By arm: the largest size at which it stays.
        path: Labels in the order they left, the last to stay at the end.
        size: Share of error allowed.
        flags: ``descriptive_only``, ``few_clusters``.
    """

    included: tuple[str, ...]
    p: dict[str, float]
    path: tuple[str, ...]
    size: float
    flags: tuple[str, ...]


@dataclass(frozen=True)
class Contrasts(Recorded):
    """All contrasts on the common items.

    Attributes:
        declared: The declared family, in its order.
        exploratory: All other pairs of arms, sorted.
        missing: Declared contrasts whose arms are not here.
        family: Declared contrasts with a p-value, over which they are adjusted.
        best: The model confidence set; undefined with one cluster.
        margin: Of the equivalence tests.
        alpha: Level of tests and of the least detectable difference.
        power: Of the least detectable difference.
    """

    declared: tuple[ContrastResult, ...]
    exploratory: tuple[ContrastResult, ...]
    missing: tuple[Missing, ...]
    family: int
    best: Best | Undefined
    margin: float
    alpha: float
    power: float


@dataclass(frozen=True)
class CommonItems:
    """Errors of all arms, each under its primary rule, on the items they all answered.

    Attributes:
        arms: Labels, one per column.
        ape: Absolute percentage errors, shape (n, arms).
        log: Absolute log errors, the same shape.
        clusters: One label per item.
        draws: MdAPE of every arm in each resample, shape (B, arms).
        further: More measures from the same draws.
    """

    arms: tuple[str, ...]
    ape: FloatArray
    log: FloatArray
    clusters: Labels
    draws: FloatArray
    further: Further = field(default_factory=dict)


def contrasts(common: CommonItems, *, models: Collection[str] = (), seed: int = 0) -> Contrasts:
    """Return the declared family, adjusted by Holm and by the largest statistic, and all other pairs.

    Tests follow the intervals: from 20 clusters on the percentile of the draws, ``2 (b + 1)/(B + 1)`` with b of B draws
    on the other side of 0; from 10 on ``point / se`` against t(G - 1); below there is none, nor where nothing differs.

    Args:
        common: Errors on the common items.
        models: Labels of arms without any language model; no family asks whether they are worth their price.
        seed: Seed of the sign flips.
    """
    pairs, missing = family(common.arms, models=models)
    taken = {(one.arm, one.against) for one in pairs} | {(one.against, one.arm) for one in pairs}
    others = [Pair(a, b) for a, b in combinations(sorted(common.arms), 2) if (a, b) not in taken]
    made = _made(common, [*pairs, *others], seed)
    declared, exploratory = made[: len(pairs)], made[len(pairs) :]
    holm = adjust(p=[one.p for one in declared], method="holm")
    largest = _largest(common, declared)
    bh = adjust(p=[one.p for one in exploratory], method="bh")
    return Contrasts(
        declared=tuple(
            replace(one, declared=True, holm=h, max_t=t) for one, h, t in zip(declared, holm.p, largest, strict=True)
        ),
        exploratory=tuple(replace(one, bh=q) for one, q in zip(exploratory, bh.p, strict=True)),
        missing=missing,
        family=holm.family,
        best=_best(common),
        margin=MARGIN,
        alpha=ALPHA,
        power=POWER,
    )


def _made(common: CommonItems, pairs: Sequence[Pair], seed: int) -> list[ContrastResult]:
    column = {arm: at for at, arm in enumerate(common.arms)}
    medians = np.median(common.ape, axis=0)
    left, right = [column[one.arm] for one in pairs], [column[one.against] for one in pairs]
    logs = common.log[:, left] - common.log[:, right]
    rng = analysis_rng(seed=seed, analysis="contrasts/sign_flip")
    flips = sign_flip(differences=logs, clusters=common.clusters, rng=rng) if pairs else ()
    groups = int(np.unique(common.clusters).size)
    found: list[ContrastResult] = []
    for at, (pair, a, b) in enumerate(zip(pairs, left, right, strict=True)):
        draws = common.draws[:, a] - common.draws[:, b]
        between = difference_interval(point=float(medians[a] - medians[b]), draws=draws, n_clusters=groups)
        se = Undefined("one cluster has no standard error") if between.se is None else between.se
        further = partial(gap, common.further, arm=pair.arm, against=pair.against, n_clusters=groups)
        found.append(
            ContrastResult(
                arm=pair.arm,
                against=pair.against,
                asks=pair.asks,
                declared=False,
                matched=pair.matched,
                difference=between,
                p=p_of(between, draws),
                holm=_EXPLORED,
                max_t=_EXPLORED,
                bh=_DECLARED,
                least_detectable=se
                if isinstance(se, Undefined)
                else least_detectable(se=se, df=groups - 1, alpha=ALPHA, power=POWER),
                equivalence=equivalence(point=between.point, se=se, n_clusters=groups, margin=MARGIN, alpha=ALPHA),
                mean_log=cluster_t(differences=logs[:, at], clusters=common.clusters),
                sign_flip=flips[at].p,
                wis=further(WIS),
                ppe10=further(PPE10),
            )
        )
    return found


def p_of(between: DifferenceInterval, draws: FloatArray) -> float | Undefined:
    """Return the two-sided p of a difference by the rule of its interval; undefined where that only describes."""
    if between.n_clusters < FEW:
        return Undefined(f"{between.n_clusters} clusters only describe")
    if not between.se:
        return Undefined("the difference does not vary")
    if between.rule == "se_t":
        return t_p(between.point / between.se, df=between.n_clusters - 1)
    beyond = min(int((draws <= 0).sum()), int((draws >= 0).sum()))
    return min(1.0, 2 * (beyond + 1) / (draws.size + 1))


def _largest(common: CommonItems, declared: Sequence[ContrastResult]) -> tuple[float | Undefined, ...]:
    tested = [one for one in declared if not isinstance(one.p, Undefined)]
    if not tested:
        return tuple(one.p for one in declared)
    column = {arm: at for at, arm in enumerate(common.arms)}
    draws = common.draws[:, [column[one.arm] for one in tested]]
    draws = draws - common.draws[:, [column[one.against] for one in tested]]
    made = iter(max_t(points=np.array([one.difference.point for one in tested]), draws=draws).p)
    return tuple(one.p if isinstance(one.p, Undefined) else next(made) for one in declared)


def _best(common: CommonItems) -> Best | Undefined:
    groups = int(np.unique(common.clusters).size)
    losses = np.median(common.ape, axis=0)
    made = model_confidence_set(losses=losses, draws=common.draws, n_clusters=groups, size=SIZE)
    if isinstance(made, Undefined):
        return made
    return Best(
        included=tuple(sorted(common.arms[at] for at in made.included)),
        p=dict(zip(common.arms, made.p, strict=True)),
        path=tuple(common.arms[at] for at in made.path),
        size=SIZE,
        flags=made.flags,
    )
