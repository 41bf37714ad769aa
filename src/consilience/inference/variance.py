"""How much a loss varies between questions and from run to run, so that a difference can be told from luck."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from consilience.errors import DataError
from consilience.inference.bootstrap import Labels
from consilience.inference.effective import FloatArray, Undefined

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Components:
    """Variance between groups and within them.

    Attributes:
        between: Variance of the groups' means in the long run; 0 or above.
        within: Variance of repetitions in one group.
        icc: ``between / (between + within)``: 1 where repetitions are identical; undefined where nothing varies.
        n: Values.
        n_groups: Groups.
        method: ``anova`` for equally many values per group, else ``reml``.
        flags: ``negative_between`` (the estimate was below 0: it is 0 and all variation is within), ``few_runs`` (fewer
            than 3 values per group on average).
    """

    between: float
    within: float
    icc: float | Undefined
    n: int
    n_groups: int
    method: Literal["anova", "reml"]
    flags: tuple[str, ...]


def components(*, values: FloatArray, groups: Labels) -> Components | Undefined:
    r"""Return the variance components of ``y_gr = mu + u_g + e_gr``: of questions, and of runs on one question.

    Equally many values per group: ``within = MS_w``, ``between = (MS_b - MS_w)/r``; below 0 it is 0 and ``within`` is
    the variance of all values. Else restricted maximum likelihood, with the ratio of the two as its one unknown.

    Args:
        values: One per run, shape (n,).
        groups: The question of each.

    Reference: Searle, Casella & McCulloch 1992; Bates et al. 2015.

    Degenerate: undefined with fewer than two groups or no group of two values.

    Raises:
        DataError: Shapes do not fit, there are no values, or one is not finite.

    Example:
        >>> made = components(values=np.array([1.0, 2.0, 5.0, 6.0, 9.0, 10.0]), groups=np.array([0, 0, 1, 1, 2, 2]))
        >>> made.between, made.within, made.flags
        (15.75, 0.5, ('few_runs',))
    """
    if values.ndim != 1 or values.size == 0 or groups.shape != values.shape or not np.isfinite(values).all():
        raise DataError(
            f"values {values.shape} and groups {groups.shape} do not fit, or a value is not finite",
            hint="Give one finite value and one group per run.",
        )
    labels, codes = np.unique(groups, return_inverse=True)
    sizes = np.bincount(codes)
    n, count = values.size, labels.size
    if count < 2 or n == count:
        return Undefined(f"{n} values in {count} groups do not tell variation within from variation between")
    means = np.bincount(codes, weights=values) / sizes
    squares_within = math.fsum(((values - means[codes]) ** 2).tolist())
    squares_all = math.fsum(((values - values.mean()) ** 2).tolist())
    few = ("few_runs",) if n < 3 * count else ()
    scale = float((values**2).sum())
    balanced = bool((sizes == sizes[0]).all())
    method: Literal["anova", "reml"] = "anova" if balanced else "reml"
    if squares_within <= _ROUNDING**2 * scale:  # every repetition is identical
        between, within = float(means.var(ddof=1)), 0.0
    elif balanced:
        within = squares_within / (n - count)
        between = ((squares_all - squares_within) / (count - 1) - within) / int(sizes[0])
    else:
        between, within = _reml(means, sizes.astype(np.float64), squares_within)
    if between < 0 or (between == 0.0 and method == "reml"):
        between, within = 0.0, squares_all / (n - 1)
        few = ("negative_between", *few)
    total = between + within
    icc = Undefined("nothing varies") if total <= _ROUNDING**2 * scale else between / total
    return Components(between, within, icc, n, count, method, few)


def _reml(means: FloatArray, sizes: FloatArray, squares_within: float) -> tuple[float, float]:
    """Return the components that maximise the restricted likelihood, over ``rho = between / (between + within)``."""
    from scipy.optimize import minimize_scalar  # noqa: PLC0415 - scipy is loaded where it is used

    n = float(sizes.sum())

    def fitted(rho: float) -> tuple[float, float]:
        ratio = rho / (1 - rho)
        weights = sizes / (1 + sizes * ratio)
        centre = float(weights @ means) / float(weights.sum())
        within = (squares_within + float(weights @ (means - centre) ** 2)) / (n - 1)
        deviance = (n - 1) * math.log(within) + float(np.log1p(sizes * ratio).sum()) + math.log(float(weights.sum()))
        return deviance, within

    grid = np.append(np.linspace(0, 1, 50, endpoint=False), 1 - np.logspace(-2, -9, 30))
    best = int(np.argmin([fitted(float(rho))[0] for rho in grid]))
    low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, grid.size - 1)])
    found = minimize_scalar(lambda rho: fitted(rho)[0], bounds=(low, high), method="bounded", options={"xatol": 1e-12})
    rho = float(found.x) if fitted(float(found.x))[0] < fitted(0.0)[0] else 0.0
    within = fitted(rho)[1]
    return within * rho / (1 - rho), within


@dataclass(frozen=True)
class CrossedComponents:
    """Variance of a loss over questions, over how arms differ by question, and from run to run.

    Attributes:
        question: Of questions: difficulty that all arms share, which paired differences do not see.
        arm_by_question: Of an arm's own strength on a question: the lasting part of a paired difference.
        run: Of one arm asked the same question again.
        flags: ``negative_arm_by_question`` and ``negative_question`` (below 0: set to 0 and pooled), ``few_runs``.
    """

    question: float
    arm_by_question: float
    run: float
    flags: tuple[str, ...]


def crossed_components(*, values: FloatArray) -> CrossedComponents | Undefined:
    r"""Return the components of ``loss_qar = mu_a + Q_q + (AQ)_qa + e_qar`` from equally many runs of every arm.

    Mean squares: ``run = MS_e``, ``arm_by_question = (MS_AQ - MS_e)/R``, ``question = (MS_Q - MS_AQ)/(A R)``. A term
    below 0 is 0, and its mean square is pooled with the one it is taken from.

    Args:
        values: Losses, shape (questions, arms, runs).

    Reference: Thompson 1962; Searle, Casella & McCulloch 1992.

    Degenerate: undefined with fewer than two questions, arms or runs.

    Raises:
        DataError: The values have another number of axes, or one is not finite.

    Example:
        >>> losses = np.array([[[1.0, 1.2], [2.0, 1.8]], [[3.0, 3.2], [2.0, 2.2]], [[5.0, 4.8], [6.0, 6.2]]])
        >>> made = crossed_components(values=losses)
        >>> round(made.question, 6), round(made.arm_by_question, 6), round(made.run, 6)
        (3.926667, 0.676667, 0.02)
    """
    if values.ndim != 3 or not np.isfinite(values).all():
        raise DataError(f"losses of shape {values.shape}", hint="Give finite ones by question, arm and run.")
    questions, arms, runs = values.shape
    if min(values.shape) < 2:
        return Undefined(f"{questions} questions, {arms} arms and {runs} runs are too few")
    cell, by_question, by_arm = values.mean(axis=2), values.mean(axis=(1, 2)), values.mean(axis=(0, 2))
    inner = cell - by_question[:, None] - by_arm[None, :] + values.mean()
    squares = (
        float(((values - cell[:, :, None]) ** 2).sum()),
        runs * float((inner**2).sum()),
        arms * runs * float(((by_question - values.mean()) ** 2).sum()),
    )
    freedom = (questions * arms * (runs - 1), (questions - 1) * (arms - 1), questions - 1)
    run, middle, top = _ascending(squares, freedom)
    flags = [
        f"negative_{name}" for name, same in (("arm_by_question", middle == run), ("question", top == middle)) if same
    ]
    if runs < 3:
        flags.append("few_runs")
    return CrossedComponents((top - middle) / (arms * runs), (middle - run) / runs, run, tuple(flags))


def _ascending(squares: Sequence[float], freedom: Sequence[int]) -> list[float]:
    """Return mean squares that do not fall from run to question: those that would are pooled (Thompson 1962)."""
    pools: list[tuple[float, int, int]] = []
    for total, df in zip(squares, freedom, strict=True):
        pools.append((total, df, 1))
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] >= pools[-1][0] / pools[-1][1]:
            upper, lower = pools.pop(), pools.pop()
            pools.append((lower[0] + upper[0], lower[1] + upper[1], lower[2] + upper[2]))
    return [total / df for total, df, count in pools for _ in range(count)]
