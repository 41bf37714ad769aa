"""Least squares with absorbed effects and standard errors that allow for clusters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consilience.errors import DataError
from consilience.valuation.baselines.base import Floats
from consilience.valuation.comparables import Ints

CONSTANT: Final = 1e-10
"""A column that keeps less than this share of its spread within the cells is constant there."""

DEPENDENT: Final = 1e-9
"""A column of which less than this share (of its square) is not explained by those before it depends on them."""


OUTLYING: Final = 5.0
"""A sale that misses by more robust standard deviations is no market price, or not of this market."""

_NORMAL_MAD: Final = 1.4826
_PASSES: Final = 10


@dataclass(frozen=True)
class LeastSquares:
    """A fitted regression.

    Attributes:
        names: Columns kept, in order.
        coefficients: One per column kept.
        covariance: Clustered covariance of the coefficients; None with fewer than two clusters.
        effects: One per cell, in the order of the codes; empty without cells.
        cell_sizes: Rows per cell.
        residuals: One per row.
        dropped: Column left out → why.
        rows: Rows fitted on.
        clusters: Clusters among them.
        outlying: Rows left out by `trimmed_least_squares`.
    """

    names: tuple[str, ...]
    coefficients: Floats
    covariance: Floats | None
    effects: Floats
    cell_sizes: Ints
    residuals: Floats
    dropped: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    clusters: int = 0
    outlying: int = 0

    def of(self, *names: str) -> Floats:
        """Return the coefficients of some columns; 0 for one that was dropped."""
        known = dict(zip(self.names, self.coefficients.tolist(), strict=True))
        return np.array([known.get(name, 0.0) for name in names])

    def record(self) -> dict[str, Any]:
        """Return coefficients with their standard errors, as JSON."""
        errors = None if self.covariance is None else np.sqrt(np.diag(self.covariance)).tolist()
        return {
            "coefficients": {
                name: {"value": value, "standard_error": None if errors is None else errors[k]}
                for k, (name, value) in enumerate(zip(self.names, self.coefficients.tolist(), strict=True))
            },
            "dropped": dict(self.dropped),
            "rows": self.rows,
            "clusters": self.clusters,
            "outlying": self.outlying,
        }

    def wald(self, expected: dict[str, float]) -> float:
        """Return the p-value of the hypothesis that some coefficients have these values.

        With q coefficients and G clusters::

            W = d' V⁻¹ d,    W (G - q) / (q (G - 1)) ~ F(q, G - q)

        which, unlike the χ² limit, holds its level with few clusters (Hotelling's T²; Pustejovsky and Tipton 2018
        discuss such corrections).

        Raises:
            DataError: A column was not fitted, or there are not more clusters than coefficients.

        Example:
            >>> rng = np.random.default_rng(1)
            >>> x = rng.normal(size=(400, 1))
            >>> fit = least_squares(2 * x[:, 0] + rng.normal(size=400), x, ("x",), clusters=np.arange(400) // 10)
            >>> fit.wald({"x": 2.0}) > 0.05, fit.wald({"x": 3.0}) < 1e-6
            (True, True)
        """
        from scipy.special import fdtrc  # noqa: PLC0415 - scipy is loaded where it is used

        q = len(expected)
        unknown = [name for name in expected if name not in self.names]
        if unknown or self.covariance is None or self.clusters <= q:
            raise DataError(
                f"{q} coefficients cannot be tested with {self.clusters} clusters (not fitted: {unknown})",
                hint="Test fewer coefficients, or fit on more municipalities.",
            )
        at = [self.names.index(name) for name in expected]
        gap = self.coefficients[at] - np.array(list(expected.values()))
        statistic = float(gap @ np.linalg.solve(self.covariance[np.ix_(at, at)], gap))
        return float(fdtrc(q, self.clusters - q, statistic * (self.clusters - q) / (q * (self.clusters - 1))))


def least_squares(
    y: Floats, columns: Floats, names: tuple[str, ...], *, clusters: Ints, cells: Ints | None = None
) -> LeastSquares:
    """Return the regression of ``y`` on columns and, where cells are given, one effect per cell.

    Cells are absorbed: their means are taken out of both sides first (Frisch, Waugh, Lovell), which gives the
    coefficients of the regression on dummies exactly. A column that is constant within the cells, or that depends on
    columns before it, is dropped and said so. Covariance is CR1::

        V = G/(G-1) · (N-1)/(N-K) · B (Σ_g Z_g' e_g e_g' Z_g) B,    B = (Z'Z)⁻¹

    with K counting columns and cells. Without cells there is no intercept.

    Args:
        y: Shape ``(n,)``.
        columns: Shape ``(n, k)``, finite.
        names: One per column.
        clusters: Cluster code of each row.
        cells: Cell code of each row, 0…C-1 with none empty.

    Raises:
        DataError: There are not more rows than parameters, or a number is not finite.

    Example:
        >>> x = np.array([[0.0], [1.0], [0.0], [1.0]])
        >>> fit = least_squares(np.array([1.0, 3.0, 5.0, 7.0]), x, ("x",), clusters=np.arange(4),
        ...                     cells=np.array([0, 0, 1, 1]))
        >>> fit.coefficients.round(9).tolist(), fit.effects.round(9).tolist()
        ([2.0], [1.0, 5.0])
    """
    n = len(y)
    if not (np.isfinite(y).all() and np.isfinite(columns).all()):
        raise DataError("a regression was given a number that is not finite", hint="Fill or drop unknown values first.")
    sizes = np.bincount(cells) if cells is not None else np.empty(0, dtype=np.int64)
    within = columns if cells is None else columns - _means(columns, cells, sizes)[cells]
    target = y if cells is None else y - _means(y[:, None], cells, sizes)[cells, 0]
    keep, dropped = _independent(columns, within, names)
    parameters = len(keep) + len(sizes)
    if n <= parameters:
        raise DataError(
            f"{n} sales cannot fit {parameters} parameters", hint="Choose boundaries that leave a longer train period."
        )
    z = within[:, keep]
    coefficients = np.linalg.lstsq(z, target, rcond=None)[0]
    residuals = target - z @ coefficients
    effects = (
        np.empty(0) if cells is None else _means((y - columns[:, keep] @ coefficients)[:, None], cells, sizes)[:, 0]
    )
    groups = np.unique(clusters, return_inverse=True)[1].ravel()
    count = int(groups.max()) + 1
    return LeastSquares(
        names=tuple(names[k] for k in keep),
        coefficients=coefficients,
        covariance=_clustered(z, residuals, groups, parameters) if count > 1 and keep else None,
        effects=effects,
        cell_sizes=sizes,
        residuals=residuals,
        dropped=dropped,
        rows=n,
        clusters=count,
    )


def trimmed_least_squares(
    y: Floats, columns: Floats, names: tuple[str, ...], *, clusters: Ints, cells: Ints | None = None
) -> LeastSquares:
    """Return `least_squares` on the rows that are not outlying, found by fitting and leaving out in turn.

    A nominal price (a dollar between relatives) would move every coefficient. Rows that miss by more than `OUTLYING`
    robust standard deviations (1.4826 median absolute ones) are left out until that changes nothing, ten times at
    most; a cell is never left without rows. Residuals are those of the rows kept.

    Example:
        >>> x = np.arange(40.0)[:, None]
        >>> y = 2 * x[:, 0] + np.tile([0.1, -0.1], 20)
        >>> y[3] = -500
        >>> fit = trimmed_least_squares(y, x, ("x",), clusters=np.arange(40))
        >>> fit.coefficients.round(2).tolist(), fit.outlying
        ([2.0], 1)
    """

    def fitted(kept: npt.NDArray[np.bool_]) -> LeastSquares:
        inside = None if cells is None else cells[kept]
        return least_squares(y[kept], columns[kept], names, clusters=clusters[kept], cells=inside)

    kept = np.ones(len(y), dtype=np.bool_)
    fit = fitted(kept)
    for _ in range(_PASSES):
        effect = 0.0 if cells is None else fit.effects[cells]
        usual = within(y - effect - columns @ fit.of(*names))
        if cells is not None:
            usual |= np.bincount(cells, weights=usual)[cells] == 0
        if (usual == kept).all():
            break
        kept, fit = usual, fitted(usual)
    return replace(fit, outlying=int((~kept).sum()))


def within(miss: Floats, deviations: float = OUTLYING) -> npt.NDArray[np.bool_]:
    """Return which misses lie within some robust standard deviations (1.4826 median absolute ones) of their median.

    Example:
        >>> within(np.array([0.0, 0.1, -0.1, 9.0]), 3).tolist()
        [True, True, True, False]
    """
    distance = np.abs(miss - np.median(miss))
    # Rounding is no distance: where half of the misses are equal, the others are not outlying by a hair.
    return np.asarray(distance <= deviations * _NORMAL_MAD * np.median(distance) + 1e-9)


def _means(values: Floats, cells: Ints, sizes: Ints) -> Floats:
    sums = np.column_stack([np.bincount(cells, weights=column, minlength=len(sizes)) for column in values.T])
    if not values.shape[1]:
        return np.empty((len(sizes), 0))
    means: Floats = sums / np.maximum(sizes, 1)[:, None]
    return means


def _independent(columns: Floats, within: Floats, names: tuple[str, ...]) -> tuple[list[int], dict[str, str]]:
    """Return which columns to keep, earlier ones first, by a Cholesky factor that grows with each one kept."""
    spread = np.sqrt((within**2).sum(axis=0))
    whole = np.sqrt((columns**2).sum(axis=0))
    flat = spread <= CONSTANT * np.maximum(whole, np.finfo(np.float64).tiny)
    scaled = within / np.where(flat, 1.0, spread)
    gram = scaled.T @ scaled
    keep: list[int] = []
    dropped: dict[str, str] = {}
    for k, name in enumerate(names):
        if flat[k]:
            dropped[name] = "it does not vary within the cells"
            continue
        if keep:
            explained = float(gram[keep, k] @ np.linalg.solve(gram[np.ix_(keep, keep)], gram[keep, k]))
            if 1 - explained <= DEPENDENT:
                dropped[name] = "it depends on columns before it"
                continue
        keep.append(k)
    return keep, dropped


def _clustered(z: Floats, residuals: Floats, groups: Ints, parameters: int) -> Floats:
    n, count = len(z), int(groups.max()) + 1
    bread = np.linalg.inv(z.T @ z)
    score = np.column_stack([np.bincount(groups, weights=column * residuals, minlength=count) for column in z.T])
    factor = count / (count - 1) * (n - 1) / (n - parameters)
    covariance: Floats = factor * bread @ (score.T @ score) @ bread
    return covariance
