"""Linear mixed models: fixed effects beside groups whose effects are pulled together as far as the data ask for it.

y = Xβ + Σ Zₖuₖ + e with uₖ ~ N(0, σ²ₖ Kₖ⁻¹) and e ~ N(0, σ²I). β and u solve Henderson's equations; the variances are
those of restricted maximum likelihood, found by Schall's alternating closed forms (Schall 1991, Biometrika 78).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from consilience.errors import DataError

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]

MOST_EFFECTS: Final = 5_000
"""More fixed and random effects than these make the equations too large to solve in memory."""

MOST_ROUNDS: Final = 200
TOLERANCE: Final = 1e-4
NOTHING: Final = 1e-6
"""A variance below this share of the residual one is none: its effects are 0."""


@dataclass(frozen=True)
class Block:
    """One set of random effects.

    Attributes:
        name: What they are, such as ``municipality``.
        groups: Number of effects.
        code: Which effect each row has, 0 … groups − 1; −1 for none.
        factor: What the effect of each row is multiplied by: 1 for an intercept, time for a slope.
        kind: ``independent`` effects, or a ``walk``: each differs from the one before it by an independent step, and
            the first from 0.
    """

    name: str
    groups: int
    code: Ints
    factor: Floats
    kind: Literal["independent", "walk"] = "independent"

    def take(self, rows: Ints) -> Block:
        """Return the effects of some rows, by position."""
        return replace(self, code=self.code[rows], factor=self.factor[rows])

    def kernel(self) -> Floats:
        """Return K, the precision matrix of the effects up to their variance."""
        kernel = np.eye(self.groups)
        if self.kind == "walk":
            inner = np.arange(self.groups - 1)
            kernel[inner, inner] = 2.0
            kernel[inner, inner + 1] = kernel[inner + 1, inner] = -1.0
        return kernel


@dataclass(frozen=True)
class MixedFit:
    """A fitted mixed model.

    Attributes:
        fixed: β, in the order of the columns.
        effects: u of each block, by its name.
        variances: σ²ₖ of each block, by its name; 0 where the data show none.
        residual: σ².
        rounds: Rounds of the alternation.
        converged: Whether the last round moved every variance by a share of less than 1e-4 of itself.
    """

    fixed: Floats
    effects: dict[str, Floats]
    variances: dict[str, float]
    residual: float
    rounds: int
    converged: bool


def fit_mixed(y: Floats, fixed: Floats, blocks: Sequence[Block]) -> MixedFit:
    """Return the fit with REML variances: σ²ₖ = uₖ'Kₖuₖ/γₖ, σ² = e'e/(n − p − Σγₖ), γₖ the effective number of effects.

    Args:
        y: Shape ``(n,)``.
        fixed: Shape ``(n, p)``, of full rank.
        blocks: Random effects; a block whose effects repeat those of another shares their variance arbitrarily.

    Raises:
        DataError: Fewer rows than fixed effects, columns that depend on each other, or too many effects.

    Example:
        >>> y, ones = np.array([1.0, 2.0, 7.0, 8.0]), np.ones((4, 1))
        >>> fit = fit_mixed(y, ones, [Block("town", 2, np.array([0, 0, 1, 1]), np.ones(4))])
        >>> round(fit.variances["town"], 3), round(fit.residual, 3), fit.effects["town"].round(3).tolist()
        (17.75, 0.5, [-2.958, 2.958])
    """
    n, p = fixed.shape
    size = p + sum(block.groups for block in blocks)
    if n <= p or size > MOST_EFFECTS:
        raise DataError(
            f"{n} sales, {p} fixed and {size - p} random effects",
            hint=f"Give more sales than fixed effects, and coarser places above {MOST_EFFECTS:,} effects.",
        )
    cross, right = _cross_products(y, fixed, blocks)
    if np.linalg.matrix_rank(cross[:p, :p], hermitian=True) < p:
        raise DataError("features of the model depend on each other", hint="Leave out a feature that repeats others.")
    kernels = [block.kernel() for block in blocks]
    ends = p + np.cumsum([0, *(block.groups for block in blocks)])
    parts = [slice(low, high) for low, high in pairwise(ends.tolist())]
    total = float(y @ y)
    scale = float(np.var(y)) or 1.0
    residual, variances = scale / 2, np.full(len(blocks), scale / (2 * max(len(blocks), 1)))
    solution, rounds, converged = np.zeros(size), 0, False
    while rounds < MOST_ROUNDS and not converged:
        rounds += 1
        before = np.append(variances, residual)
        live = variances > NOTHING * residual
        keep = np.concatenate(
            [np.ones(p, dtype=bool), *(np.full(b.groups, ok) for b, ok in zip(blocks, live, strict=True))]
        )
        system = cross.copy()
        for part, kernel, variance, alive in zip(parts, kernels, variances, live, strict=True):
            if alive:
                system[part, part] += kernel * (residual / variance)
        inverse = np.zeros_like(system)
        inverse[np.ix_(keep, keep)] = np.linalg.inv(system[np.ix_(keep, keep)])
        solution = inverse @ right
        effective = np.zeros(len(blocks))
        for k, (part, kernel) in enumerate(zip(parts, kernels, strict=True)):
            if not live[k]:
                variances[k] = 0.0
                continue
            shrunk = residual / variances[k] * float(np.sum(kernel * inverse[part, part]))
            effective[k] = blocks[k].groups - shrunk
            variances[k] = float(solution[part] @ kernel @ solution[part]) / max(effective[k], 1e-12)
        errors = max(total - 2 * float(solution @ right) + float(solution @ cross @ solution), 0.0)
        residual = errors / (n - p - float(effective.sum()))
        moved = np.abs(np.append(variances, residual) - before) / np.maximum(before, np.finfo(float).tiny)
        converged = bool((moved < TOLERANCE).all())
    return MixedFit(
        fixed=solution[:p],
        effects={block.name: solution[part] for block, part in zip(blocks, parts, strict=True)},
        variances={block.name: float(value) for block, value in zip(blocks, variances, strict=True)},
        residual=residual,
        rounds=rounds,
        converged=converged,
    )


def _cross_products(y: Floats, fixed: Floats, blocks: Sequence[Block]) -> tuple[Floats, Floats]:
    """Return W'W and W'y of W = [X Z₁ Z₂ …] without writing out Z."""
    p = fixed.shape[1]
    ends = p + np.cumsum([0, *(block.groups for block in blocks)])
    cross, right = np.zeros((ends[-1], ends[-1])), np.zeros(ends[-1])
    cross[:p, :p], right[:p] = fixed.T @ fixed, fixed.T @ y
    for k, block in enumerate(blocks):
        has = block.code >= 0
        code, factor, part = block.code[has], block.factor[has], slice(ends[k], ends[k + 1])
        for column in range(p):
            cross[part, column] = np.bincount(code, factor * fixed[has, column], minlength=block.groups)
        cross[:p, part] = cross[part, :p].T
        right[part] = np.bincount(code, factor * y[has], minlength=block.groups)
        for other_k, other in enumerate(blocks[: k + 1]):
            both = has & (other.code >= 0)
            cell = block.code[both] * other.groups + other.code[both]
            weight = block.factor[both] * other.factor[both]
            table = np.bincount(cell, weight, minlength=block.groups * other.groups)
            other_part = slice(ends[other_k], ends[other_k + 1])
            cross[part, other_part] = table.reshape(block.groups, other.groups)
            cross[other_part, part] = cross[part, other_part].T
    return cross, right
