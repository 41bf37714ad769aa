from __future__ import annotations

import numpy as np
import pytest

from consilience.errors import DataError
from consilience.inference.intervals import difference_interval

DRAWS = np.random.default_rng(2).standard_normal(2000) * 0.02 + 0.05


@pytest.mark.parametrize(
    ("clusters", "rule", "flags"),
    [
        (1, None, ("no_interval",)),
        (2, "se_t", ("descriptive_only",)),
        (9, "se_t", ("descriptive_only",)),
        (10, "se_t", ("few_clusters",)),
        (19, "se_t", ("few_clusters",)),
        (20, "percentile", ()),
        (500, "percentile", ()),
    ],
)
def test_rule_by_number_of_clusters(clusters: int, rule: str | None, flags: tuple[str, ...]) -> None:
    made = difference_interval(point=0.05, draws=DRAWS, n_clusters=clusters)
    assert (made.rule, made.flags) == (rule, flags)
    if rule is None:
        assert {made.se, made.low, made.high, made.percentile, made.se_t} == {None}
        return
    assert made.percentile is not None
    assert made.se_t is not None
    assert (made.low, made.high) == (made.percentile if rule == "percentile" else made.se_t)


def test_numbers() -> None:
    made = difference_interval(point=0.05, draws=DRAWS, n_clusters=10)
    assert made.se == pytest.approx(DRAWS.std(ddof=1))
    # Student's t with 9 degrees of freedom, upper 2.5 %
    assert made.high == pytest.approx(0.05 + 2.2621571627 * DRAWS.std(ddof=1), rel=1e-9)
    assert made.percentile == pytest.approx(np.quantile(DRAWS, (0.025, 0.975)))


def test_identical_arms_are_called_identical() -> None:
    same = difference_interval(point=0.0, draws=np.zeros(50), n_clusters=40)
    assert same.flags == ("identical",)
    assert (same.low, same.high) == (0.0, 0.0)
    assert difference_interval(point=0.1, draws=np.full(50, 0.1), n_clusters=40).flags == ()


def test_nonsense_is_refused() -> None:
    for draws in (DRAWS[:1], DRAWS * np.nan, DRAWS.reshape(2, -1)):
        with pytest.raises(DataError, match="draws"):
            difference_interval(point=0.0, draws=draws, n_clusters=30)
    with pytest.raises(DataError, match="draws"):
        difference_interval(point=float("nan"), draws=DRAWS, n_clusters=30)
    with pytest.raises(DataError, match="level"):
        difference_interval(point=0.0, draws=DRAWS, n_clusters=0)
    with pytest.raises(DataError, match="level"):
        difference_interval(point=0.0, draws=DRAWS, n_clusters=30, level=1.0)
