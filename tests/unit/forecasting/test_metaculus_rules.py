"""Both sides of every rule of the server, and that all problems are told at once."""

from __future__ import annotations

import math

import pytest

from consilience.forecasting.metaculus_rules import (
    binary_problems,
    cdf_problems,
    largest_step,
    option_problems,
    smallest_step,
)


def line(first: float, last: float, steps: int = 200) -> list[float]:
    return [round(first + (last - first) * i / steps, 10) for i in range(steps + 1)]


def kinked(at: int, rise: float, steps: int = 200) -> list[float]:
    """A closed function with one step of a given rise and all others alike."""
    other = (1 - rise) / (steps - 1)
    values = [round(other * i + (rise - other) * (i > at), 10) for i in range(steps + 1)]
    return [0.0, *values[1:-1], 1.0]


def rules(values: list[float], *, lower: bool = False, upper: bool = False, steps: int = 200) -> list[str]:
    return [problem.rule for problem in cdf_problems(values, open_lower=lower, open_upper=upper, steps=steps)]


@pytest.mark.parametrize(
    ("values", "opened", "broken"),
    [
        (line(0, 1), (False, False), []),
        (line(0.001, 0.999), (True, True), []),
        (line(0.0009999999, 0.999), (True, True), ["cdf_open_lower"]),
        (line(0.001, 0.9990000001), (True, True), ["cdf_open_upper"]),
        (line(0.0000000001, 1), (False, False), ["cdf_closed_lower"]),
        (line(0, 0.9999999999), (False, False), ["cdf_closed_upper"]),
        (line(0.5, 1), (True, False), []),
        (line(0, 0.5), (False, True), []),
        (line(0, 1), (True, True), ["cdf_open_lower", "cdf_open_upper"]),
        (line(0.001, 0.999), (False, False), ["cdf_closed_lower", "cdf_closed_upper"]),
        (kinked(7, 0.00005), (False, False), []),
        (kinked(7, 0.0000499999), (False, False), ["cdf_step_too_small"]),
        (kinked(7, 0.2), (False, False), []),
        (kinked(7, 0.2000000001), (False, False), ["cdf_step_too_large"]),
        (kinked(199, 0.3), (False, False), ["cdf_step_too_large"]),
        (line(0.4, 0.41), (True, True), []),
        (line(0.4, 0.4099), (True, True), ["cdf_step_too_small"]),
        ([0.0, *line(0, 1)[1:-1], 1.0][:-1], (False, False), ["cdf_length"]),
        ([*line(0, 1), 1.0], (False, False), ["cdf_length"]),
        ([], (False, False), ["cdf_length"]),
        ([*line(0, 1)[:100], math.nan, *line(0, 1)[101:]], (False, False), ["cdf_finite"]),
        ([*line(0, 1)[:100], 0.50000000001, *line(0, 1)[101:]], (False, False), ["cdf_decimals"]),
        ([*line(0, 1)[:100], 0.5000000001, *line(0, 1)[101:]], (False, False), []),
        (line(1, 0), (False, False), ["cdf_step_too_small", "cdf_closed_lower", "cdf_closed_upper"]),
    ],
)
def test_each_rule_of_a_cdf_has_two_sides(values: list[float], opened: tuple[bool, bool], broken: list[str]) -> None:
    assert rules(values, lower=opened[0], upper=opened[1]) == broken


@pytest.mark.parametrize(
    ("steps", "values", "broken"),
    [
        (3, [0.0, 0.003333333, 0.5, 1.0], []),
        (3, [0.0, 0.0033333329, 0.5, 1.0], ["cdf_step_too_small"]),
        (2, [0.0, 0.995, 1.0], []),
        (2, [0.0, 0.9950000001, 1.0], ["cdf_step_too_small"]),
        (100, kinked(3, 0.4, 100), []),
        (100, kinked(3, 0.4000000001, 100), ["cdf_step_too_large"]),
        (40, kinked(3, 0.9, 40), []),
    ],
)
def test_limits_of_steps_follow_their_number(steps: int, values: list[float], broken: list[str]) -> None:
    assert rules(values, steps=steps) == broken
    assert smallest_step(steps) == round(0.01 / steps, 9)
    assert largest_step(steps) * steps == pytest.approx(40)


def test_a_problem_says_where() -> None:
    values = line(0, 1)
    values[50] = values[51] = values[52]
    (small,) = cdf_problems(values, open_lower=False, open_upper=False)
    assert small.rule == "cdf_step_too_small"
    assert small.where == (50, 51)
    assert "2 steps rise by less than 0.000050000" in small.message


@pytest.mark.parametrize(
    ("p", "accepted"),
    [
        (0.001, True),
        (0.999, True),
        (0.5, True),
        (0.0009999, False),
        (0.9990001, False),
        (0.0, False),
        (math.nan, False),
    ],
)
def test_binary(p: float, accepted: bool) -> None:
    assert [problem.rule for problem in binary_problems(p)] == ([] if accepted else ["binary_range"])


@pytest.mark.parametrize(
    ("given", "options", "broken"),
    [
        ({"a": 0.001, "b": 0.999}, ["a", "b"], []),
        ({"a": 0.0009, "b": 0.9991}, ["a", "b"], ["option_range"]),
        ({"a": 0.2, "b": 0.3, "c": 0.5}, ["c", "b", "a"], []),
        ({"a": 0.2, "b": 0.3, "c": 0.5000001}, ["a", "b", "c"], ["options_sum"]),
        ({"a": 0.1, "b": 0.2, "c": 0.7}, ["a", "b", "c"], []),
        ({"a": 0.5, "b": 0.5}, ["a"], ["options_unknown"]),
        ({"a": 0.999}, ["a", "b"], ["options_missing", "options_sum"]),
        ({"a": 0.5, "b": 0.5}, ["a", "b", "a"], ["options_repeated"]),
        ({"a": math.nan, "b": 0.5}, ["a", "b"], ["option_range", "options_sum"]),
        ({"a": math.inf, "b": -math.inf}, ["a", "b"], ["option_range", "options_sum"]),
        ({}, ["a", "b"], ["options_missing", "options_sum"]),
    ],
)
def test_options(given: dict[str, float], options: list[str], broken: list[str]) -> None:
    assert [problem.rule for problem in option_problems(given, options)] == broken
