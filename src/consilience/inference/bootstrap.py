"""The shared cluster bootstrap: whole clusters are drawn, and every arm sees the same draws.

Rows of one cluster (parcel, municipality, question) share errors, so resampling rows gives intervals that are far too
narrow. The draws are a matrix of counts, one row per resample and one column per cluster; every statistic of every
arm reuses it, so differences are paired by construction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from consilience.core.canonical import sha256_hex, tagged_hash
from consilience.errors import DataError

FloatArray = npt.NDArray[np.float64]
Counts = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]
Labels = npt.NDArray[Any]

DRAW_CHUNK: Final = 256
"""Resamples drawn at once; part of the draw stream, so changing it changes every result."""
_MEDIAN_CHUNK: Final = 1024
_FLOAT32_INTEGERS: Final = 2**24
_WINDOW_SD: Final = 4.5
_WINDOW_MARGIN: Final = 8


def analysis_rng(*, seed: int, analysis: str) -> np.random.Generator:
    """Return the generator of one named analysis, so that adding an analysis shifts no other.

    The Philox key is taken from a tagged hash of seed and name.

    Example:
        >>> first = analysis_rng(seed=7, analysis="contrasts").integers(0, 100, 3)
        >>> bool((first == analysis_rng(seed=7, analysis="contrasts").integers(0, 100, 3)).all())
        True
    """
    key = int(tagged_hash("bootstrap", [seed, analysis])[:32], 16)
    return np.random.Generator(np.random.Philox(key=key))


@dataclass(frozen=True)
class ClusterSummary:
    """What there is to resample.

    Attributes:
        n_clusters: Number of clusters G.
        largest_share: Share of the rows in the largest cluster.
        effective: ``1 / sum(share^2)``: G if all are equally large, fewer otherwise.
    """

    n_clusters: int
    largest_share: float
    effective: float


def summarise_clusters(*, clusters: Labels) -> ClusterSummary:
    """Return number, dominance and effective number of clusters.

    Raises:
        DataError: There are no rows.

    Example:
        >>> summarise_clusters(clusters=np.array(["a", "a", "b", "b"]))
        ClusterSummary(n_clusters=2, largest_share=0.5, effective=2.0)
    """
    _, sizes = _codes(clusters)
    shares = sizes / sizes.sum()
    return ClusterSummary(
        n_clusters=sizes.size, largest_share=float(shares.max()), effective=float(1.0 / (shares**2).sum())
    )


def cluster_weights(*, clusters: Labels, n_resamples: int, rng: np.random.Generator) -> Counts:
    """Return how often each cluster was drawn in each resample.

    Draw G clusters with replacement, ``n_resamples`` times. The draws depend on the generator and the number of
    clusters only; columns follow the sorted labels, so the order of rows does not matter.

    Args:
        clusters: One label per row, shape (n,).
        n_resamples: Number of resamples B, >= 1.
        rng: Consumed; take one per analysis (`analysis_rng`).

    Returns:
        Counts of shape (B, G), every row summing to G.

    Reference: Field & Welsh 2007; Cameron, Gelbach & Miller 2008.

    Raises:
        DataError: There are no rows, or fewer than one resample is asked for.

    Example:
        >>> w = cluster_weights(clusters=np.array([1, 1, 2, 3]), n_resamples=5, rng=analysis_rng(seed=1, analysis="x"))
        >>> w.shape, w.sum(axis=1).tolist()
        ((5, 3), [3, 3, 3, 3, 3])
    """
    if n_resamples < 1:
        raise DataError(f"a bootstrap of {n_resamples} resamples", hint="Ask for at least one; 10,000 is usual.")
    groups = _codes(clusters)[1].size
    narrow = groups < 256
    shape = (n_resamples, groups)
    counts: Counts = np.empty(shape, dtype=np.uint8) if narrow else np.empty(shape, dtype=np.uint16)
    offsets = np.arange(min(DRAW_CHUNK, n_resamples), dtype=np.intp)[:, None] * groups
    for start in range(0, n_resamples, DRAW_CHUNK):
        rows = min(DRAW_CHUNK, n_resamples - start)
        draws = rng.integers(0, groups, size=(rows, groups), dtype=np.uint16 if groups <= 65_536 else np.uint32)
        flat = np.bincount((draws + offsets[:rows]).ravel(), minlength=rows * groups)
        counts[start : start + rows] = flat.reshape(rows, groups)
    return counts


def draws_digest(*, weights: Counts) -> str:
    """Return the SHA-256 of the draws for the record, whatever integer width holds them.

    Example:
        >>> small = np.array([[1, 0]], dtype=np.uint8)
        >>> draws_digest(weights=small) == draws_digest(weights=small.astype(np.uint16))
        True
    """
    return sha256_hex(f"{weights.shape}".encode() + weights.astype("<u2").tobytes())


def bootstrap_means(*, values: FloatArray, clusters: Labels, weights: Counts) -> FloatArray:
    """Return the mean of every arm in every resample.

    Args:
        values: One row per case and one column per arm, shape (n, arms).
        clusters: One label per row.
        weights: From `cluster_weights` of the same clusters, shape (B, G).

    Returns:
        Shape (B, arms); the difference of two columns is the paired difference.

    Raises:
        DataError: Shapes do not fit or a value is not finite.

    Example:
        >>> w = np.array([[1, 1], [2, 0]], dtype=np.uint8)
        >>> bootstrap_means(values=np.array([[1.0], [3.0]]), clusters=np.array([0, 1]), weights=w).ravel().tolist()
        [2.0, 1.0]
    """
    codes, sizes = _fitting(values, clusters, weights)
    sums = np.zeros((sizes.size, values.shape[1]))
    np.add.at(sums, codes, values)
    means: FloatArray = (weights @ sums) / (weights @ sizes)[:, None]
    return means


def bootstrap_medians(*, values: FloatArray, clusters: Labels, weights: Counts) -> FloatArray:
    r"""Return the median of every arm in every resample: of absolute percentage errors, the MdAPE.

    Equal, bit for bit, to repeating the rows as drawn and taking `numpy.median`. Each arm is sorted once; the number
    of drawn rows below a window around the sample median comes from one matrix product for all arms, and only inside
    the window are counts added up. A resample whose middle falls outside its window is counted in full.

    Args:
        values: One row per case and one column per arm, shape (n, arms).
        clusters: One label per row.
        weights: From `cluster_weights` of the same clusters, shape (B, G).

    Returns:
        Shape (B, arms); the difference of two columns is the paired difference.

    Raises:
        DataError: Shapes do not fit or a value is not finite.

    Example:
        >>> w = np.array([[1, 1], [2, 0]], dtype=np.uint8)
        >>> bootstrap_medians(values=np.array([[1.0], [3.0]]), clusters=np.array([0, 1]), weights=w).ravel().tolist()
        [2.0, 1.0]
    """
    codes, sizes = _fitting(values, clusters, weights)
    arms = values.shape[1]
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    cluster_of = codes[order]
    first, last = _windows(cluster_of, sizes)
    # Integers below 2^24 are exact in float32, so the matrix product counts without error.
    exact = np.float32 if sizes.size * int(sizes.max()) < _FLOAT32_INTEGERS else np.float64
    counted = np.empty((sizes.size, arms + 1), dtype=exact)
    counted[:, arms] = sizes
    for arm in range(arms):
        counted[:, arm] = np.bincount(cluster_of[: first[arm], arm], minlength=sizes.size)
    medians = np.empty((len(weights), arms))
    for start in range(0, len(weights), _MEDIAN_CHUNK):
        drawn = weights[start : start + _MEDIAN_CHUNK].astype(exact)
        by_cluster = np.ascontiguousarray(drawn.T)
        before = np.ascontiguousarray((drawn @ counted).T)
        # Ranks of the two middle rows; they are one when the number of rows drawn is odd.
        low, high = np.floor((before[arms] + 1) / 2), np.floor(before[arms] / 2) + 1
        for arm in range(arms):
            window = cluster_of[first[arm] : last[arm], arm]
            upto = np.empty((window.size, len(drawn)), dtype=exact)
            running = before[arm]
            for step, cluster in enumerate(window):
                running = np.add(running, by_cluster[cluster], out=upto[step])
            i = first[arm] + np.count_nonzero(upto < low, axis=0)
            j = first[arm] + np.count_nonzero(upto < high, axis=0)
            missed = np.flatnonzero((before[arm] >= low) | (j >= last[arm]))
            if missed.size:
                full = np.cumsum(drawn[missed][:, cluster_of[:, arm]], axis=1, dtype=np.float64)
                i[missed] = np.count_nonzero(full < low[missed, None], axis=1)
                j[missed] = np.count_nonzero(full < high[missed, None], axis=1)
            medians[start : start + len(drawn), arm] = 0.5 * (ordered[i, arm] + ordered[j, arm])
    return medians


def _windows(cluster_of: npt.NDArray[np.intp], sizes: npt.NDArray[np.intp]) -> tuple[list[int], list[int]]:
    """Return for each arm the sorted positions between which a resample's middle falls, but for about one in 10^5."""
    rows, arms = cluster_of.shape
    middle = rows // 2
    first, last = [], []
    for arm in range(arms):
        surplus = np.bincount(cluster_of[:middle, arm], minlength=sizes.size) - sizes / 2
        sd = np.sqrt(max(float((surplus**2).sum() - surplus.sum() ** 2 / sizes.size), 0.0))
        half = int(_WINDOW_SD * sd + _WINDOW_MARGIN)
        first.append(max(middle - half, 0))
        last.append(min(middle + half, rows))
    return first, last


def _codes(clusters: Labels) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    if clusters.ndim != 1 or clusters.size == 0:
        raise DataError(f"cluster labels of shape {clusters.shape}", hint="Give one label per row, at least one row.")
    _, codes, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    return codes, sizes


def _fitting(
    values: FloatArray, clusters: Labels, weights: Counts
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    codes, sizes = _codes(clusters)
    if values.ndim != 2 or len(values) != codes.size or weights.ndim != 2 or weights.shape[1] != sizes.size:
        raise DataError(
            f"values {values.shape}, {codes.size} labels in {sizes.size} clusters and draws {weights.shape} do not fit",
            hint="Values are rows by arms; draw the weights from the same clusters.",
        )
    if not np.isfinite(values).all():
        raise DataError(
            "a value is not finite", hint="Compare arms on cases that all of them answered and count the others."
        )
    return codes, sizes
