"""Pictures of the members of one panel, from their errors: who errs with whom, and who is worth how much."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from consilience.core.undefined import Undefined
from consilience.inference.bootstrap import analysis_rng
from consilience.inference.effective import correlation_matrix, effective_numbers
from consilience.inference.influence import EXACT_MEMBERS, influence
from consilience.reports.members import Members
from consilience.reports.pictures.canvas import Picture, of_sample
from consilience.reports.pictures.panel import Worth, draw_correlations, draw_influence

RESAMPLES: Final = 1_000
_LEAST: Final = 10


def correlations(members: Members) -> Picture | None:
    """Return the map of error correlations of the first answers; None below 10 items and without any variance."""
    if len(members.items) < _LEAST:
        return None
    matrix = correlation_matrix(values=members.errors)
    numbers = effective_numbers(values=members.errors, errors=True)
    if isinstance(matrix, Undefined):
        return None
    n = len(members.roles)
    worth = numbers.equal_weight
    effective = f"undefined ({worth.reason})" if isinstance(worth, Undefined) else f"{worth:.1f}"
    upper = matrix[np.triu_indices(n, 1)]
    title = f"{members.arm}: {n} members worth {effective} independent ones"
    return Picture(
        "error-correlations",
        "Whose errors go together",
        f"{title}; correlations from {upper.min():.2f} to {upper.max():.2f}, mean {upper.mean():.2f}.",
        "Correlation of the members' log errors in their first answers, in hundredths, before they saw each other; "
        "like "
        f"members stand together. Effective number: what the equally weighted mean gains over one member. "
        f"{of_sample(n=len(members.items), interval='none')}",
        tuple(
            {"member": a, "other": b, "correlation": float(matrix[i, j])}
            for i, a in enumerate(members.roles)
            for j, b in enumerate(members.roles)
        ),
        partial(draw_correlations, matrix, members=members.roles, title=title),
    )


def influences(members: Members, *, seed: int, n_resamples: int = RESAMPLES) -> Picture | None:
    """Return what each member is worth to the panel's mean; None below 10 items or above 15 members."""
    items, n = members.errors.shape
    if items < _LEAST or n > EXACT_MEMBERS:
        return None
    made = influence(errors=members.errors)
    rng = analysis_rng(seed=seed, analysis="report/influence")
    draws = [influence(errors=members.errors[rng.integers(0, items, items)]).shapley for _ in range(n_resamples)]
    low, high = np.quantile(np.array(draws), (0.025, 0.975), axis=0)
    rows = [
        Worth(
            role,
            made.shapley[k],
            float(min(low[k], made.shapley[k])),
            float(max(high[k], made.shapley[k])),
            made.leave_one_out[k],
        )
        for k, role in enumerate(members.roles)
    ]
    ordered = sorted(rows, key=lambda row: -row.share)
    return Picture(
        "influence",
        f"What each member of {members.arm} is worth",
        "; ".join(f"{row.member}: {row.share:.4f} [{row.low:.4f}, {row.high:.4f}]" for row in ordered),
        "Bars: exact Shapley shares in what the mean of the first answers gains over a member drawn at random, in "
        "squared "
        f"log error ({made.total:.4f} in all); below zero a member makes the panel worse. Crosses: what the panel "
        "loses "
        "without the member; copies of another lose nothing. "
        + of_sample(n=items, resamples=n_resamples, seed=seed, interval="95 % percentile, items resampled"),
        tuple(
            {"member": row.member, "shapley": row.share, "low": row.low, "high": row.high, "leave_one_out": row.without}
            for row in rows
        ),
        partial(draw_influence, rows),
    )
