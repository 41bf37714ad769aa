from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from consilience.core.undefined import Undefined
from consilience.experiments.contrasts import MARGIN, CommonItems, ContrastResult, Contrasts, contrasts
from consilience.experiments.family import family
from consilience.experiments.further import further_measures
from consilience.experiments.predictions import QUANTILES
from consilience.inference.bootstrap import analysis_rng, bootstrap_medians, cluster_weights
from consilience.inference.multiplicity import adjust
from consilience.inference.power import least_detectable
from consilience.inference.tests import t_p
from consilience.reports.judged import turned

ARMS = ("D_avm", "E_single", "F_independent", "G_debate_r2", "J_single_matched.F_independent", "copy")
SCALES = (0.5, 1.0, 0.7, 0.6, 0.9, 0.5)


def made(n: int = 60, groups: int = 30, *, arms: tuple[str, ...] = ARMS) -> CommonItems:
    rng = np.random.default_rng(5)
    log = np.abs(rng.normal(0, 0.2, n)[:, None] * np.array(SCALES) + rng.normal(0, 0.02, (n, len(ARMS))))
    log[:, -1] = log[:, 0]
    clusters = np.arange(n) % groups
    weights = cluster_weights(clusters=clusters, n_resamples=500, rng=analysis_rng(seed=0, analysis="x"))
    kept = [ARMS.index(arm) for arm in arms]
    ape = log[:, kept]
    return CommonItems(arms, ape, ape, clusters, bootstrap_medians(values=ape, clusters=clusters, weights=weights))


def one(found: Contrasts, arm: str, against: str) -> ContrastResult:
    return next(each for each in (*found.declared, *found.exploratory) if (each.arm, each.against) == (arm, against))


def test_declared_contrasts_are_found_and_the_others_named() -> None:
    pairs, missing = family(ARMS, models=["D_avm"])
    told = {(pair.arm, pair.against): pair for pair in pairs}
    assert list(told)[:2] == [
        ("G_debate_r2", "J_single_matched.F_independent"),
        ("F_independent", "J_single_matched.F_independent"),
    ]
    assert told["G_debate_r2", "J_single_matched.F_independent"].matched == "other"
    own = told["F_independent", "J_single_matched.F_independent"]
    assert own.matched == "own"
    assert len(own.asks) == 2
    against_avm = {arm for arm, against in told if against == "D_avm"}
    assert against_avm == {"E_single", "F_independent", "G_debate_r2", "J_single_matched.F_independent"}
    assert {(one.arm, one.against, one.reason) for one in missing} == {
        ("G_debate", "I_placebo", "no run of I_placebo"),
        ("G_debate", "G_fullview", "no run of G_fullview"),
        ("H_skeptic", "G_debate", "no run of H_skeptic"),
    }


def test_rounds_stand_under_the_declared_number_or_the_only_one() -> None:
    def against_single(*labels: str) -> list[str]:
        return [pair.arm for pair in family([*labels, "J_single_matched"])[0]]

    assert against_single("G_debate_r1", "G_debate_r2", "G_debate_r4") == ["G_debate_r2"]
    assert against_single("G_debate_r4") == ["G_debate_r4"]
    assert against_single("G_debate_r1", "G_debate_r4") == []
    pairs, _ = family(["control_reask", "D_avm"])
    assert pairs == []


def test_the_family_is_adjusted_and_exploration_apart() -> None:
    found = contrasts(made(), models=["D_avm", "copy"])
    raw = [each.p for each in found.declared]
    assert [each.holm for each in found.declared] == list(adjust(p=raw, method="holm").p)
    assert found.family == len(found.declared)
    for each in found.declared:
        assert isinstance(each.holm, float)
        assert isinstance(each.max_t, float)
        assert isinstance(each.p, float)
        assert each.p <= each.holm
        assert each.declared
        assert each.bh == Undefined("declared")
    assert len(found.declared) + len(found.exploratory) == len(ARMS) * (len(ARMS) - 1) // 2
    assert all(not each.declared and each.holm == Undefined("not declared") for each in found.exploratory)


def test_a_contrast_says_interval_test_power_and_equivalence_from_one_set_of_draws() -> None:
    common = made()
    each = one(contrasts(common, models=["D_avm"]), "F_independent", "E_single")
    at, against = ARMS.index("F_independent"), ARMS.index("E_single")
    draws = common.draws[:, at] - common.draws[:, against]
    assert each.difference.point == float(np.median(common.ape[:, at]) - np.median(common.ape[:, against]))
    assert each.p == 2 * (min((draws <= 0).sum(), (draws >= 0).sum()) + 1) / 501
    se = float(draws.std(ddof=1))
    assert each.least_detectable == pytest.approx(least_detectable(se=se, df=29))
    assert not isinstance(each.equivalence, Undefined)
    assert each.equivalence.margin == MARGIN
    assert each.mean_log.df == 29
    assert isinstance(each.sign_flip, float)


def test_further_measures_use_the_same_draws_and_have_no_p() -> None:
    n, groups = 60, 30
    common = made(n, groups)
    weights = cluster_weights(clusters=common.clusters, n_resamples=500, rng=analysis_rng(seed=0, analysis="x"))
    truth = np.full(n, 100.0)
    frames = {}
    for at, arm in enumerate(ARMS[:3]):
        point = truth * (1 + common.ape[:, at])
        stated = {name: point * step for name, step in zip(QUANTILES, (0.8, 0.9, 1.0, 1.1, 1.2), strict=True)}
        if arm == "E_single":
            stated["q05"] = np.where(np.arange(n) == 7, np.nan, stated["q05"])
        frames[arm] = pl.DataFrame({"point": point, "truth": truth, **stated}).fill_nan(None)
    found = further_measures(frames, clusters=common.clusters, weights=weights)
    near = (common.ape[:, :3] <= 0.1).astype(float)
    counts = weights[:, common.clusters]  # by hand: each item as often as its cluster was drawn
    by_hand = (counts @ near) / counts.sum(axis=1)[:, None]
    for at, arm in enumerate(ARMS[:3]):
        assert found["ppe10"][arm].value == pytest.approx(near[:, at].mean())
        assert found["ppe10"][arm].draws == pytest.approx(by_hand[:, at])
    assert set(found["wis"]) == {"D_avm", "F_independent"}

    each = one(contrasts(replace(common, further=found), models=["D_avm"]), "F_independent", "D_avm")
    assert not isinstance(each.ppe10, Undefined)
    assert each.ppe10.point == pytest.approx(near[:, 2].mean() - near[:, 0].mean())
    gaps = by_hand[:, 2] - by_hand[:, 0]
    assert (each.ppe10.low, each.ppe10.high) == pytest.approx(tuple(np.quantile(gaps, (0.025, 0.975))))
    assert not isinstance(each.wis, Undefined)
    assert (each.wis.point > 0) == (each.difference.point > 0)
    before = one(contrasts(common, models=["D_avm"]), "F_independent", "D_avm")
    assert (each.p, each.holm, each.difference) == (before.p, before.holm, before.difference)
    lacking = one(contrasts(replace(common, further=found), models=["D_avm"]), "E_single", "D_avm")
    assert lacking.wis == Undefined("not known of E_single on all common items")

    back = turned(each)
    assert not isinstance(back.ppe10, Undefined)
    assert (back.ppe10.point, back.ppe10.low) == (-each.ppe10.point, -(each.ppe10.high or 0))


def test_arms_that_do_not_differ_have_no_p_value() -> None:
    each = one(contrasts(made(), models=["D_avm", "copy"]), "D_avm", "copy")
    assert each.difference.flags == ("identical",)
    assert each.p == Undefined("the difference does not vary")
    assert each.bh == each.p
    best = contrasts(made()).best
    assert not isinstance(best, Undefined)
    assert best.p["copy"] == best.p["D_avm"]
    assert best.path[0] == "E_single"


def test_few_clusters_take_the_t_test_and_fewer_none() -> None:
    few = one(contrasts(made(groups=12)), "F_independent", "E_single")
    assert few.difference.se is not None
    assert few.p == t_p(few.difference.point / few.difference.se, df=11)
    fewer = contrasts(made(groups=6))
    assert one(fewer, "F_independent", "E_single").p == Undefined("6 clusters only describe")
    assert fewer.family == 0
    alone = contrasts(made(groups=1))
    assert one(alone, "F_independent", "E_single").least_detectable == Undefined("one cluster has no standard error")
    assert isinstance(alone.best, Undefined)


def test_a_record_holds_json_values_and_reasons() -> None:
    told = contrasts(made(groups=6)).record()
    each = told["declared"][0]
    assert each["p"] is None
    assert each["undefined"]["p"] == "6 clusters only describe"
    assert each["difference"]["flags"] == ["descriptive_only"]
    assert contrasts(made(arms=("E_single",))).record()["exploratory"] == []
