"""Conformity: how far members move towards the others (λ) and towards new evidence (ζ), apart from second thoughts.

A member that is far from the others by chance comes nearer by itself when it is asked again. Plain regression takes
that for herding, so λ needs revisions in which the others were not shown, or were shown moved at random.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from consilience.errors import DataError
from consilience.inference.bootstrap import Labels
from consilience.inference.effective import FloatArray, Undefined
from consilience.inference.intervals import ENOUGH, FEW

BoolArray = npt.NDArray[np.bool_]
_RANK = 1e-8


@dataclass(frozen=True)
class Coefficient:
    """A share of the way with its cluster-robust interval.

    Attributes:
        value: The share; 0 is no pull, 1 is all of the way.
        se: CR1 standard error by question.
        low: Lower end, from t(G - 1).
        high: Upper end.
    """

    value: float
    se: float
    low: float
    high: float

    @property
    def covers_zero(self) -> bool:
        """Whether the interval holds 0."""
        return self.low <= 0 <= self.high


@dataclass(frozen=True)
class Revision:
    """What moved one role, or all.

    Attributes:
        lam: λ, pull of the others.
        zeta: ζ, pull of new evidence.
        total: λ + ζ; known also where the two cannot be told apart.
        spontaneous: Slope on the gap to the others that a member shows by itself; undefined without controls.
        n: Revisions.
        n_clusters: Questions G.
        flags: ``lambda_outside_0_1``, ``zeta_outside_0_1``, ``descriptive_only`` (G < 10), ``few_clusters`` (G < 20),
            ``weak_instrument`` (first-stage F below 10).
    """

    lam: Coefficient | Undefined
    zeta: Coefficient | Undefined
    total: Coefficient | Undefined
    spontaneous: Coefficient | Undefined
    n: int
    n_clusters: int
    flags: tuple[str, ...]


_COLLINEAR = Undefined("the gaps to the others and to the evidence cannot be told apart")
_NO_GAP = Undefined("every member stood there already")
_NO_EVIDENCE = Undefined("no value of the evidence is known")


def revision_regression(
    *,
    before: FloatArray,
    after: FloatArray,
    consensus: FloatArray,
    evidence: FloatArray | None = None,
    clusters: Labels,
    level: float = 0.95,
) -> Revision:
    r"""Return the plain regression ``x' - x = a + lambda (m - x) + zeta (v - x) + e``, by least squares.

    It describes one arm. Without controls its λ holds regression to the mean, too: use `controlled` or `displaced`.

    Args:
        before: x, each member's answer (logarithm on a log scale), shape (n,).
        after: x', its revision.
        consensus: m, the others' consensus as shown.
        evidence: v, what the new evidence implies; None leaves ζ out.
        clusters: Question of each revision.
        level: Nominal coverage.

    Reference: DeGroot 1974; Friedkin & Johnsen 1990; Becker, Brackbill & Centola 2017.

    Degenerate: where the gaps are collinear λ and ζ are undefined and only their sum is told, if that can be.

    Raises:
        DataError: Shapes do not fit, a number is not finite, or there are no revisions.

    Example:
        >>> x, m = np.array([1.0, 2.0, 3.0, 5.0]), np.array([2.0, 2.5, 1.0, 2.0])
        >>> made = revision_regression(before=x, after=x + 0.4 * (m - x), consensus=m, clusters=np.arange(4))
        >>> round(made.lam.value, 9), made.zeta.reason
        (0.4, 'no value of the evidence is known')
    """
    _check([before, after, consensus, *([] if evidence is None else [evidence])], clusters, level)
    columns = {"intercept": np.ones(before.size), "lam": consensus - before}
    if evidence is not None:
        columns["zeta"] = evidence - before
    return _revision(after - before, columns, columns, clusters, level)


def controlled(  # noqa: PLR0913 - the columns of one table of revisions
    *,
    before: FloatArray,
    after: FloatArray,
    consensus: FloatArray,
    shown: FloatArray,
    peers: BoolArray,
    evidence: FloatArray | None = None,
    informed: BoolArray | None = None,
    clusters: Labels,
    level: float = 0.95,
) -> Revision | Undefined:
    r"""Return λ and ζ with control arms: only the pull that showing the others, or the evidence, adds.

    ``x' - x = a_k + b (m - x) + lambda P (s - x) [+ c (v - x) + zeta E (v - x)] + e`` over the revisions of all arms,
    with an intercept per condition k = (P, E). The slopes b and c are what members do by themselves.

    Args:
        before: x, shape (n,).
        after: x'.
        consensus: m, consensus of the others' answers as given, whether or not it was shown.
        shown: s, the consensus as shown (moved at random in the displaced arm); not read where nothing was shown.
        peers: P, the others were shown; both values must occur.
        evidence: v; None leaves ζ out.
        informed: E, the new evidence was shown; both values must occur. None where ``evidence`` is.
        clusters: Question of each revision, the same in all arms.
        level: Nominal coverage.

    Reference: Lorenz et al. 2011 and Becker, Brackbill & Centola 2017, with the re-ask arm as control.

    Degenerate: undefined without revisions of either kind; collinear gaps as in `revision_regression`.

    Raises:
        DataError: Shapes do not fit, a number is not finite, or there are no revisions.

    Example:
        >>> x, m = np.array([1.0, 2.0, 3.0, 5.0] * 2), np.array([2.0, 2.5, 1.0, 2.0] * 2)
        >>> peers = np.arange(8) < 4
        >>> moved = x + 0.3 * (m - x) + np.where(peers, 0.2 * (m - x), 0.0)  # 0.3 of the way by itself
        >>> made = controlled(before=x, after=moved, consensus=m, shown=m, peers=peers, clusters=np.arange(8) % 4)
        >>> round(made.lam.value, 9), round(made.spontaneous.value, 9)
        (0.2, 0.3)
    """
    told = [before, after, consensus, np.where(peers, shown, 0.0), *([] if evidence is None else [evidence])]
    _check(told, clusters, level)
    if peers.all() or not peers.any():
        which = "without" if peers.all() else "with"
        return Undefined(f"there are no revisions {which} the others shown")
    gap = consensus - before
    states = peers.astype(np.int64)
    columns = {"spontaneous": gap, "lam": np.where(peers, shown - before, 0.0)}
    if evidence is not None:
        if informed is None or informed.all() or not informed.any():
            return Undefined("there are no revisions both with and without the new evidence")
        states = states + 2 * informed
        columns |= {"own": evidence - before, "zeta": np.where(informed, evidence - before, 0.0)}
    columns |= {f"intercept {state}": (states == state).astype(np.float64) for state in np.unique(states).tolist()}
    return _revision(after - before, columns, columns, clusters, level)


def displaced(
    *,
    before: FloatArray,
    after: FloatArray,
    consensus: FloatArray,
    shown: FloatArray,
    displacement: FloatArray,
    clusters: Labels,
    level: float = 0.95,
) -> Revision | Undefined:
    r"""Return λ from a consensus that was moved at random before it was shown, by two-stage least squares.

    ``x' - x = a + b (m - x) + lambda (s - x) + e`` with ``s - x`` instrumented by the displacement. Its sign was drawn,
    so nothing a member would do by itself goes along with it.

    Args:
        before: x, shape (n,).
        after: x'.
        consensus: m, before it was moved.
        shown: s, as shown.
        displacement: How far it was moved, on the scale it was drawn on.
        clusters: Question of each revision.
        level: Nominal coverage.

    Reference: Angrist, Imbens & Rubin 1996; Stock & Yogo 2005 (F below 10 is flagged as weak).

    Degenerate: undefined where the displacement does not vary.

    Raises:
        DataError: Shapes do not fit, a number is not finite, or there are no revisions.

    Example:
        >>> x, m = np.array([1.0, 2.0, 3.0, 5.0]), np.array([2.0, 2.5, 1.0, 2.0])
        >>> d = np.array([0.1, -0.1, 0.1, -0.1])
        >>> moved = x + 0.3 * (m - x) + 0.2 * (m + d - x)
        >>> made = displaced(before=x, after=moved, consensus=m, shown=m + d, displacement=d, clusters=np.arange(4))
        >>> round(made.lam.value, 9)
        0.2
    """
    _check([before, after, consensus, shown, displacement], clusters, level)
    if np.ptp(displacement) == 0:
        return Undefined("the displacement does not vary")
    exogenous = {"intercept": np.ones(before.size), "spontaneous": consensus - before}
    columns = {**exogenous, "lam": shown - before}
    return _revision(after - before, columns, {**exogenous, "instrument": displacement}, clusters, level)


def _revision(
    moved: FloatArray,
    columns: Mapping[str, FloatArray],
    instruments: Mapping[str, FloatArray],
    clusters: Labels,
    level: float,
) -> Revision:
    fit = _Fit.of(moved, columns, instruments, clusters, level)
    lam = fit.sum_of("lam")
    zeta = fit.sum_of("zeta") if "zeta" in columns else _NO_EVIDENCE
    total = fit.sum_of("lam", "zeta") if "zeta" in columns else _NO_EVIDENCE
    alone = fit.sum_of("spontaneous") if "spontaneous" in columns else Undefined("there are no controls")
    flags = [
        f"{name}_outside_0_1"
        for name, one in (("lambda", lam), ("zeta", zeta))
        if isinstance(one, Coefficient) and not 0 <= one.value <= 1
    ]
    if fit.groups < ENOUGH:
        flags.append("descriptive_only" if fit.groups < FEW else "few_clusters")
    if "instrument" in instruments and _first_stage(columns["lam"], instruments, clusters, level) < 10:
        flags.append("weak_instrument")
    return Revision(lam, zeta, total, alone, moved.size, fit.groups, tuple(flags))


def _first_stage(
    endogenous: FloatArray, instruments: Mapping[str, FloatArray], clusters: Labels, level: float
) -> float:
    """Return the cluster-robust F of the one instrument; 0 where it is collinear with the other columns."""
    found = _Fit.of(endogenous, instruments, instruments, clusters, level).sum_of("instrument")
    if isinstance(found, Undefined):
        return 0.0
    return math.inf if found.se == 0 else (found.value / found.se) ** 2


@dataclass(frozen=True)
class _Fit:
    """Least squares in one or two stages with CR1 covariance, telling which sums of coefficients the rows determine."""

    names: tuple[str, ...]
    still: frozenset[str]
    solution: FloatArray
    covariance: FloatArray
    null: FloatArray
    groups: int
    spare: int
    level: float

    @classmethod
    def of(
        cls,
        y: FloatArray,
        columns: Mapping[str, FloatArray],
        instruments: Mapping[str, FloatArray],
        clusters: Labels,
        level: float,
    ) -> _Fit:
        names = tuple(columns)
        matrix = np.column_stack([*columns.values()])
        projected = matrix
        if instruments is not columns:
            every = np.column_stack([*instruments.values()])
            projected = every @ np.linalg.lstsq(every, matrix, rcond=None)[0]
        lengths = np.sqrt((projected**2).sum(axis=0))
        lengths = np.where(lengths > 0, lengths, 1.0)
        u, sizes, rows = np.linalg.svd(projected / lengths, full_matrices=len(projected) < len(lengths))
        rank = int((sizes > _RANK * sizes[0]).sum())
        kept, null = rows[:rank] / lengths, rows[rank:]
        inverse = kept.T / sizes[:rank]
        solution = inverse @ (u[:, :rank].T @ y)
        residuals = y - matrix @ solution
        _, codes = np.unique(clusters, return_inverse=True)
        groups = int(codes.max()) + 1
        scores = np.zeros((groups, rank))
        np.add.at(scores, codes, u[:, :rank] * residuals[:, None])
        spare = y.size - rank
        factor = groups / (groups - 1) * (y.size - 1) / spare if groups > 1 and spare > 0 else 0.0
        covariance = factor * inverse @ (scores.T @ scores) @ inverse.T
        still = frozenset(name for name, column in columns.items() if not column.any())
        return cls(names, still, solution, covariance, null / lengths, groups, spare, level)

    def sum_of(self, *names: str) -> Coefficient | Undefined:
        from scipy.special import stdtrit  # noqa: PLC0415 - scipy is loaded where it is used

        pick = np.array([float(name in names) for name in self.names])
        if any(name in self.still for name in names):
            return _NO_GAP
        # A sum is determined where it takes one value over all solutions, which differ by the null space.
        lengths = np.sqrt((self.null**2).sum(axis=1))
        if bool((np.abs(self.null @ pick) > 1e-6 * lengths).any()):
            return _COLLINEAR
        if self.groups < 2 or self.spare < 1:
            return Undefined(f"{self.groups} questions with {self.spare} revisions to spare tell no error")
        value = float(pick @ self.solution)
        se = math.sqrt(max(float(pick @ self.covariance @ pick), 0.0))
        reach = se * float(stdtrit(self.groups - 1, (1 + self.level) / 2))
        return Coefficient(value, se, value - reach, value + reach)


def _check(arrays: list[FloatArray], clusters: Labels, level: float) -> None:
    if arrays[0].size == 0 or any(one.shape != clusters.shape or one.ndim != 1 for one in arrays):
        shapes = ", ".join(str(one.shape) for one in arrays)
        raise DataError(
            f"revisions of shapes {shapes} and {clusters.size} questions do not fit",
            hint="Give one number and one question per revision, at least one.",
        )
    if not all(np.isfinite(one).all() for one in arrays):
        raise DataError("a revision holds a number that is not finite", hint="Leave out members that did not answer.")
    if not 0 < level < 1:
        raise DataError(f"an interval at level {level}", hint="Give a level in (0, 1), such as 0.95.")
