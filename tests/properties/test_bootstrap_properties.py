"""The fast bootstrap equals the plain one, bit for bit, on the same draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilience.inference import bootstrap
from consilience.inference.bootstrap import analysis_rng, bootstrap_means, bootstrap_medians, cluster_weights


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 90),
    groups=st.integers(1, 90),
    decimals=st.sampled_from((1, 12)),
    sd=st.sampled_from((0.0, 4.5)),
)
def test_medians_equal_repeat_and_median(seed: int, rows: int, groups: int, decimals: int, sd: float) -> None:
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, groups, rows) ** 2 // max(groups, 1)  # uneven sizes
    values = np.round(np.abs(rng.standard_normal((rows, 3))), decimals).astype(
        np.float64
    )  # one decimal makes many ties
    weights = cluster_weights(clusters=clusters, n_resamples=17, rng=analysis_rng(seed=seed, analysis="p"))
    with pytest.MonkeyPatch.context() as patch:
        if sd == 0:  # a window too narrow for most resamples: the full count must step in
            patch.setattr(bootstrap, "_WINDOW_SD", sd)
            patch.setattr(bootstrap, "_WINDOW_MARGIN", 1)
        fast = bootstrap_medians(values=values, clusters=clusters, weights=weights)
    codes = np.unique(clusters, return_inverse=True)[1]
    plain = [[np.median(np.repeat(column, draw[codes])) for column in values.T] for draw in weights]
    assert (fast == np.array(plain)).all()
    means = [[np.repeat(column, draw[codes]).mean() for column in values.T] for draw in weights]
    assert bootstrap_means(values=values, clusters=clusters, weights=weights) == pytest.approx(
        np.array(means), rel=1e-12
    )
