from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest

from consilience.aggregation.fitted import FittedRole
from consilience.aggregation.location import FloatArray, inverse_variance_pool, student_t_location, trimmed_mean
from consilience.aggregation.numbers import (
    DEFAULT_POINT_RULE,
    POINT_RULES,
    Aggregate,
    Fitted,
    PointRule,
    RobustBayes,
    Scale,
    TrimmedMean,
)
from consilience.errors import ConfigError, DataError, QuorumError

SEATS = tuple("abcdefghijkl")
PROPERTIES = ("order_invariant", "unanimity", "within_range", "unit_equivariant")
RULES = list(POINT_RULES)
LOG_FITTED = {
    seat: FittedRole(
        rows=3 if i == 0 else 40, variance=0.01 * (i + 1), scale=0.05 + 0.01 * i, stacking=i % 3, stacking_nnls=i % 2
    )
    for i, seat in enumerate(SEATS)
}


def panels() -> list[FloatArray]:
    rng = np.random.default_rng(20_261_101)
    made = [np.exp(12 + 0.3 * rng.standard_normal(n)) for n in (1, 2, 3, 4, 5, 8, 12) for _ in range(8)]
    split = [np.array([1e5] * k + [3e5] * (5 - k)) for k in range(6)]
    return made + split


def outcomes(rule: PointRule, points: FloatArray, scale: Scale, weights: Fitted | None) -> tuple[Aggregate, FloatArray]:
    return rule(points=points, scale=scale, seats=SEATS[: points.size], weights=weights), points


def keeps(rule: PointRule, name: str) -> bool:
    """Whether no panel contradicts the property."""
    settings: tuple[tuple[Scale, Fitted | None], ...] = (("log", None), ("linear", None), ("log", LOG_FITTED))
    for points in panels():
        for scale, weights in settings:
            if not HOLDS[name](rule, points, scale, weights):
                return False
    return True


def order_holds(rule: PointRule, points: FloatArray, scale: Scale, weights: Fitted | None) -> bool:
    made, _ = outcomes(rule, points, scale, weights)
    for seed in range(3):
        shuffled = np.random.default_rng(seed).permutation(points.size)
        again = rule(points=points[shuffled], scale=scale, seats=tuple(SEATS[i] for i in shuffled), weights=weights)
        if again != made:  # values and weights compared bit by bit
            return False
    return True


def unanimity_holds(rule: PointRule, points: FloatArray, scale: Scale, weights: Fitted | None) -> bool:
    same = np.full(points.size, points[0])
    return bool(outcomes(rule, same, scale, weights)[0].value == points[0])


def range_holds(rule: PointRule, points: FloatArray, scale: Scale, weights: Fitted | None) -> bool:
    value = outcomes(rule, points, scale, weights)[0].value
    return bool(points.min() * (1 - 1e-12) <= value <= points.max() * (1 + 1e-12))


def unit_holds(rule: PointRule, points: FloatArray, scale: Scale, weights: Fitted | None) -> bool:
    value = outcomes(rule, points, scale, weights)[0].value
    factors = (1000.0, 0.092903)
    return all(
        math.isclose(outcomes(rule, points * factor, scale, weights)[0].value, value * factor, rel_tol=1e-9)
        for factor in factors
    )


HOLDS: dict[str, Callable[[PointRule, FloatArray, Scale, Fitted | None], bool]] = {
    "order_invariant": order_holds,
    "unanimity": unanimity_holds,
    "within_range": range_holds,
    "unit_equivariant": unit_holds,
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("name", PROPERTIES)
def test_properties_are_as_declared(rule: PointRule, name: str) -> None:
    assert keeps(rule, name) is getattr(rule, name)


@dataclasses.dataclass(frozen=True)
class Planted(PointRule):
    """Breaks all four properties, and says so."""

    name: ClassVar[str] = "planted"
    order_invariant: ClassVar[bool] = False
    unanimity: ClassVar[bool] = False
    within_range: ClassVar[bool] = False
    unit_equivariant: ClassVar[bool] = False

    def __call__(
        self, *, points: FloatArray, scale: Scale, seats: tuple[str, ...], weights: Fitted | None = None
    ) -> Aggregate:
        del scale, weights
        return Aggregate(value=float(points[0] + points.max() + 1), weights={seats[0]: 1.0}, flags=(), n=points.size)

    def _combine(
        self, x: FloatArray, seats: tuple[str, ...], fitted: Fitted | None
    ) -> tuple[float, FloatArray, tuple[str, ...]]:
        del x, seats, fitted
        raise AssertionError


@pytest.mark.parametrize("name", PROPERTIES)
def test_the_search_for_counter_examples_finds_a_planted_one(name: str) -> None:
    assert not keeps(Planted(), name)


def test_registry_holds_the_seven_rules_and_names_the_nearest() -> None:
    assert POINT_RULES.names() == [
        "mean",
        "median",
        "trimmed_mean_20",
        "inverse_variance",
        "stacking",
        "stacking_nnls",
        "robust_bayes",
    ]
    assert POINT_RULES[DEFAULT_POINT_RULE].kinds == ("estimate",)
    with pytest.raises(ConfigError, match='Did you mean "median"'):
        POINT_RULES["medain"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_fields_are_parameters(rule: PointRule) -> None:
    fields = dataclasses.asdict(rule)  # type: ignore[call-overload]
    assert "name" not in fields
    assert type(rule)(**fields) == rule
    assert TrimmedMean(proportion=0.1).name == "trimmed_mean_10"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_hard_counts(rule: PointRule) -> None:
    with pytest.raises(QuorumError, match="no answers"):
        rule(points=np.array([]), scale="log", seats=())
    one = rule(points=np.array([123_456.7]), scale="log", seats=("a",))
    assert one == Aggregate(value=123_456.7, weights={"a": 1.0}, flags=("single_agent",), n=1)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("fitted", [None, LOG_FITTED], ids=["unfitted", "fitted"])
def test_weights_are_shares_of_all_seats(rule: PointRule, fitted: Fitted | None) -> None:
    points = np.array([100.0, 110, 90, 105, 400])
    made = rule(points=points, scale="log", seats=tuple("edcba"), weights=fitted)
    assert list(made.weights) == list("abcde")
    assert math.fsum(made.weights.values()) == pytest.approx(1.0, rel=1e-12)
    assert min(made.weights.values()) >= 0
    assert made.n == 5
    by_weights = math.exp(math.fsum(made.weights[s] * math.log(p) for s, p in zip("edcba", points, strict=True)))
    assert by_weights == pytest.approx(made.value, rel=1e-9)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    ("points", "seats"),
    [
        (np.array([1.0, -1.0]), ("a", "b")),
        (np.array([1.0, 0.0]), ("a", "b")),
        (np.array([1.0, np.nan]), ("a", "b")),
        (np.array([1.0, np.inf]), ("a", "b")),
        (np.array([1.0, 2.0]), ("a", "a")),
        (np.array([1.0, 2.0]), ("a",)),
    ],
)
def test_bad_input_is_refused(rule: PointRule, points: FloatArray, seats: tuple[str, ...]) -> None:
    with pytest.raises(DataError):
        rule(points=points, scale="log", seats=seats)


def test_without_weights_fitted_rules_say_so() -> None:
    points = np.array([100.0, 200, 400, 800, 1600])
    flags = {rule.name: rule(points=points, scale="log", seats=tuple("abcde")).flags for rule in RULES}
    assert flags["inverse_variance"] == flags["stacking"] == flags["stacking_nnls"] == ("equal_weights",)
    assert "mad_scale" in flags["robust_bayes"]
    assert flags["mean"] == flags["median"] == flags["trimmed_mean_20"] == ()


def fit(**changes: float | None) -> FittedRole:
    given: dict[str, float | None] = {"variance": 0.01, "scale": 0.07, "stacking": 0.5, "stacking_nnls": 0.5}
    return FittedRole(rows=40, **(given | changes))  # type: ignore[arg-type]


def made_with(name: str, fitted: Fitted, n: int = 3) -> Aggregate:
    return POINT_RULES[name](points=np.array([1.0, 2.0, 4.0])[:n], scale="linear", seats=SEATS[:n], weights=fitted)


def test_fitted_weights_are_applied() -> None:
    fitted = {"a": fit(stacking=0.75, stacking_nnls=0.25), "b": fit(stacking=0.25, stacking_nnls=0.75)}
    assert made_with("stacking", fitted, n=2).value == 1.25
    assert made_with("stacking_nnls", fitted, n=2).value == 1.75


def test_a_role_missing_on_a_question_renormalises_the_others() -> None:
    fitted = {"a": fit(stacking=0.2), "b": fit(stacking=0.2), "absent": fit(stacking=0.6)}
    made = made_with("stacking", fitted, n=2)
    assert made.weights == {"a": 0.5, "b": 0.5}
    assert made.flags == ("weights_renormalised",)


def test_present_roles_without_any_weight_share_equally() -> None:
    fitted = {"a": fit(stacking=0.0), "b": fit(stacking=0.0), "absent": fit(stacking=1.0)}
    assert made_with("stacking", fitted, n=2).flags == ("weights_renormalised", "zero_weights", "equal_weights")


@pytest.mark.parametrize("name", ["inverse_variance", "stacking", "stacking_nnls", "robust_bayes"])
def test_a_seat_nobody_fitted_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="no fitted weights for b, c"):
        made_with(name, {"a": fit()})


def test_few_validation_rows_take_the_pooled_variance() -> None:
    thin = FittedRole(rows=4, variance=1e-9, scale=1e-9, stacking=1.0, stacking_nnls=1.0)
    made = made_with("inverse_variance", {"a": thin, "b": fit(), "c": fit()})
    assert made.flags == ("pooled_variance",)
    assert made.weights["a"] < 0.4
    assert "pooled_scale" in made_with("robust_bayes", {"a": thin, "b": fit(), "c": fit()}).flags


def test_unknown_variances_everywhere_mean_equal_weights() -> None:
    bare = FittedRole(rows=1, variance=None, scale=None, stacking=1.0, stacking_nnls=1.0)
    fitted = dict.fromkeys("abc", bare)
    assert made_with("inverse_variance", fitted).flags == ("equal_weights",)
    assert made_with("robust_bayes", fitted).flags == ("mad_scale",)


def test_robust_bayes_reports_a_split_panel_and_a_floored_scale() -> None:
    split = dict.fromkeys("abcd", fit(scale=0.05))
    points = np.array([10.0, 10, 11, 11])
    made = RobustBayes()(points=points, scale="linear", seats=tuple("abcd"), weights=split)
    assert made.value == pytest.approx(10.0101, abs=1e-4)
    assert "second_mode" in made.flags
    agreed = RobustBayes()(points=np.array([10.0, 10, 10, 99]), scale="linear", seats=tuple("abcd"))
    assert agreed.value == pytest.approx(10.0, rel=1e-6)
    assert "scale_floored" in agreed.flags


def test_student_t_does_not_depend_on_the_order_or_the_level() -> None:
    x = np.array([12.1, 12.15, 12.05, 12.2, 12.12, 13.5])
    near = student_t_location(x=x, scale=0.1).value
    assert student_t_location(x=x[::-1] - 12, scale=0.1).value == pytest.approx(near - 12, abs=1e-12)


def test_raw_statistics_refuse_nonsense() -> None:
    empty, two = np.array([]), np.array([1.0, 2.0])
    with pytest.raises(DataError, match="no values"):
        trimmed_mean(x=empty, proportion=0.2)
    with pytest.raises(DataError, match="trim"):
        trimmed_mean(x=two, proportion=0.5)
    with pytest.raises(DataError, match="variances"):
        inverse_variance_pool(x=two, variance=two[:1])
    with pytest.raises(DataError, match="negative"):
        inverse_variance_pool(x=two, variance=-two)
    with pytest.raises(DataError, match="scales"):
        student_t_location(x=two, scale=-1.0)
    with pytest.raises(DataError, match="scales"):
        student_t_location(x=empty, scale=1.0)
