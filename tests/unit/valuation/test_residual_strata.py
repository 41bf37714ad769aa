from __future__ import annotations

import numpy as np
import pytest

from consilience.errors import DataError
from consilience.valuation.baselines.strata import ENOUGH, fit_intervals


def test_strata_have_their_own_residuals_and_small_ones_the_pooled() -> None:
    rng = np.random.default_rng(3)
    point = np.exp(rng.normal(13, 0.5, 400))
    classes = ["house"] * 380 + ["condo"] * 20
    spread = np.where(point > np.quantile(point[:380], 2 / 3), 0.3, 0.05)
    truth = np.log(point) + rng.normal(0, spread)
    fitted = fit_intervals(point, truth, classes)
    assert fitted.counts["condo"] == (7, 6, 7)
    assert fitted.quantiles["condo"] == (None, None, None)
    cheap, dear = fitted.around(np.array([1e5, 5e6]), ["house", "house"])
    assert np.log(dear[4] / dear[0]) > 3 * np.log(cheap[4] / cheap[0])
    pooled, unheard = fitted.around(np.array([4e5, 4e5]), ["condo", "barn"])
    assert pooled.tolist() == unheard.tolist() == (4e5 * np.exp(np.array(fitted.pooled))).tolist()


def test_the_quantiles_of_a_stratum_are_those_of_its_residuals() -> None:
    point = 100.0 + np.arange(90.0)
    residual = np.tile(np.linspace(-0.3, 0.3, 30), 3)
    fitted = fit_intervals(point, np.log(point) + residual, ["house"] * 90)
    assert fitted.counts["house"] == (30, 30, 30)
    for row in fitted.quantiles["house"]:
        assert row is not None
        assert np.allclose(row, np.quantile(np.linspace(-0.3, 0.3, 30), [0.05, 0.25, 0.5, 0.75, 0.95]))


def test_rows_without_a_prediction_are_left_out_and_too_few_are_refused() -> None:
    point = np.full(ENOUGH + 5, 100.0)
    point[:5] = np.nan
    fitted = fit_intervals(point, np.full(ENOUGH + 5, np.log(110.0)), ["house"] * (ENOUGH + 5))
    assert np.allclose(fitted.pooled, np.log(1.1))
    assert np.isnan(fitted.around(point[:1], ["house"])).all()
    with pytest.raises(DataError, match=f"holds {ENOUGH - 1} predicted sales"):
        fit_intervals(point[: ENOUGH + 4], np.zeros(ENOUGH + 4), ["house"] * (ENOUGH + 4))
