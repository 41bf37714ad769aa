"""Mixed models: the closed form of a balanced design, a likelihood that cannot be beaten, and groups that vanish."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import DataError
from consilience.valuation.baselines import mixed
from consilience.valuation.baselines.mixed import Block, fit_mixed

Floats = npt.NDArray[np.float64]


def towns(rng: np.random.Generator, *, groups: int, each: int, spread: float) -> tuple[Floats, Block]:
    code = np.repeat(np.arange(groups), each)
    y = 12 + rng.normal(0, spread, groups)[code] + rng.normal(0, 0.3, groups * each)
    return y, Block("town", groups, code, np.ones(groups * each))


def likelihood(y: Floats, fixed: Floats, blocks: list[Block], variances: Floats, residual: float) -> float:
    """The restricted log-likelihood, written out with the covariance of all rows."""
    covariance = residual * np.eye(len(y))
    for block, variance in zip(blocks, variances, strict=True):
        design = np.zeros((len(y), block.groups))
        rows = np.flatnonzero(block.code >= 0)
        design[rows, block.code[rows]] = block.factor[rows]
        covariance += variance * design @ np.linalg.inv(block.kernel()) @ design.T
    inverse = np.linalg.inv(covariance)
    inner = fixed.T @ inverse @ fixed
    beta = np.linalg.solve(inner, fixed.T @ inverse @ y)
    miss = y - fixed @ beta
    return float(-(np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(inner)[1] + miss @ inverse @ miss) / 2)


def test_a_balanced_design_has_the_estimates_of_analysis_of_variance() -> None:
    y, block = towns(np.random.default_rng(1), groups=12, each=7, spread=0.5)
    fit = fit_mixed(y, np.ones((84, 1)), [block])
    table = y.reshape(12, 7)
    means = table.mean(axis=1)
    within = ((table - means[:, None]) ** 2).sum() / (12 * 6)
    between = 7 * means.var(ddof=1)
    assert fit.converged
    assert fit.residual == pytest.approx(within, rel=1e-3)
    assert fit.variances["town"] == pytest.approx((between - within) / 7, rel=1e-3)
    share = 7 * fit.variances["town"] / (7 * fit.variances["town"] + fit.residual)
    assert fit.effects["town"] == pytest.approx(share * (means - y.mean()), abs=1e-4)
    assert fit.fixed[0] == pytest.approx(y.mean())


def test_no_other_variances_are_more_likely() -> None:
    rng = np.random.default_rng(5)
    n = 150
    town, month, years = rng.integers(0, 8, n), rng.integers(0, 12, n), rng.uniform(-1, 1, n)
    walk = np.cumsum(rng.normal(0, 0.1, 12))
    y = rng.normal(0, 0.4, 8)[town] + rng.normal(0, 0.3, 8)[town] * years + walk[month] + rng.normal(0, 0.2, n)
    blocks = [
        Block("town", 8, town, np.ones(n)),
        Block("slope", 8, town, years),
        Block("month", 11, month - 1, np.ones(n), kind="walk"),
    ]
    fixed = np.column_stack([np.ones(n), rng.normal(size=n)])
    fit = fit_mixed(y, fixed, blocks)
    found = np.array([fit.variances[block.name] for block in blocks])
    best = likelihood(y, fixed, blocks, found, fit.residual)
    assert fit.converged
    for number in range(3):
        for factor in (0.8, 1.25):
            other = found.copy()
            other[number] *= factor
            assert likelihood(y, fixed, blocks, other, fit.residual) < best
    for factor in (0.9, 1.1):
        assert likelihood(y, fixed, blocks, found, fit.residual * factor) < best


def test_planted_variances_are_recovered() -> None:
    y, block = towns(np.random.default_rng(3), groups=400, each=20, spread=0.5)
    fit = fit_mixed(y, np.ones((8_000, 1)), [block])
    assert fit.variances["town"] == pytest.approx(0.25, rel=0.15)
    assert fit.residual == pytest.approx(0.09, rel=0.05)


def test_groups_that_do_not_differ_have_no_effect() -> None:
    y = np.tile([1.0, 2.0, 3.0], 6)
    fit = fit_mixed(y, np.ones((18, 1)), [Block("town", 6, np.repeat(np.arange(6), 3), np.ones(18))])
    assert fit.variances["town"] == pytest.approx(0, abs=1e-4)
    assert fit.effects["town"] == pytest.approx(np.zeros(6), abs=1e-4)
    assert fit.fixed[0] == pytest.approx(2)


def test_rows_of_no_group_move_the_fixed_effects_alone() -> None:
    y, block = towns(np.random.default_rng(1), groups=12, each=7, spread=0.5)
    code = np.append(block.code, -1)
    fit = fit_mixed(np.append(y, 11.0), np.ones((85, 1)), [Block("town", 12, code, np.ones(85))])
    assert fit.fixed[0] < y.mean()


@given(st.integers(0, 2**32 - 1))
def test_labels_of_groups_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, block = towns(rng, groups=6, each=4, spread=rng.uniform(0.1, 1))
    renamed = rng.permutation(6)
    first = fit_mixed(y, np.ones((24, 1)), [block])
    second = fit_mixed(y, np.ones((24, 1)), [Block("town", 6, renamed[block.code], block.factor)])
    assert second.effects["town"][renamed] == pytest.approx(first.effects["town"], abs=1e-4)
    assert second.fixed == pytest.approx(first.fixed, abs=1e-4)


@pytest.mark.parametrize(
    ("fixed", "words"),
    [(np.ones((3, 3)), "3 sales, 3 fixed"), (np.ones((3, 2)), "depend on each other")],
)
def test_a_model_that_cannot_be_solved_is_refused(fixed: Floats, words: str) -> None:
    with pytest.raises(DataError, match=words):
        fit_mixed(np.arange(3.0), fixed, [])


def test_too_many_effects_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixed, "MOST_EFFECTS", 2)
    with pytest.raises(DataError, match="2 random effects"):
        fit_mixed(np.arange(4.0), np.ones((4, 1)), [Block("town", 2, np.array([0, 0, 1, 1]), np.ones(4))])
