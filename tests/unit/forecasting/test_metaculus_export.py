"""An export holds what the server takes, and is refused with every problem named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from consilience.core.question import Option
from consilience.errors import DataError
from consilience.forecasting.cdf import BuiltCdf, Grid, panel_cdf
from consilience.forecasting.export import (
    Submission,
    binary,
    continuous,
    metaculus_export,
    multiple_choice,
    write_export,
)

OPTIONS = (Option(id="r", label="Red"), Option(id="b", label="Blue & green"))
GRID = Grid(lower=0, upper=10, open_lower=True, open_upper=True)


def test_an_export_of_every_kind(tmp_path: Path) -> None:
    narrow = panel_cdf([[5, 5, 5, 5, 5]], GRID)
    path = tmp_path / "deep" / "export.json"
    made = [binary(1, 0.25), multiple_choice(2, {"b": 0.75, "r": 0.25}, OPTIONS), continuous(3, narrow)]
    write_export(made, path)
    read = json.loads(path.read_bytes())
    assert read["schema_version"] == 1
    first, second, third = read["forecasts"]
    assert first == {
        "question": 1,
        "source": "api",
        "probability_yes": 0.25,
        "probability_yes_per_category": None,
        "continuous_cdf": None,
    }
    assert second["probability_yes_per_category"] == {"Red": 0.25, "Blue & green": 0.75}
    assert third["continuous_cdf"] == list(narrow.values)
    assert [change["rule"] for change in read["adjustments"]["3"]] == [
        "open_lower_mass",
        "open_upper_mass",
        "least_slope",
        "largest_step",
    ]
    assert list(read["adjustments"]) == ["3"]


def test_every_problem_of_every_forecast_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    wrong = BuiltCdf(grid=GRID, values=(0.0, *[0.5] * 199, 1.0), adjustments=())
    made = [
        binary(1, 0.9999),
        multiple_choice(2, {"r": 0.5}, OPTIONS),
        continuous(3, wrong),
        binary(4, 0.5),
        binary(4, 0.6),
    ]
    with pytest.raises(DataError) as caught:
        write_export(made, tmp_path / "export.json")
    for told in (
        "question 1: binary_range",
        "question 2: options_missing (options have no probability; at 'Blue & green')",
        "question 2: options_sum",
        "question 3: cdf_step_too_small",
        "question 3: cdf_step_too_large",
        "question 3: cdf_open_lower",
        "question 3: cdf_open_upper",
        "question 4: answered 2 times",
    ):
        assert told in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_options_are_told_by_id_and_sent_by_label() -> None:
    with pytest.raises(DataError, match="no option has the id"):
        multiple_choice(2, {"Red": 0.5, "b": 0.5}, OPTIONS)
    with pytest.raises(DataError, match="share a label"):
        multiple_choice(2, {"r": 0.5, "b": 0.5}, (OPTIONS[0], Option(id="b", label="Red")))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"probability_yes": 0.5, "probability_yes_per_category": {"a": 0.5}, "options": ("a",)},
        {"probability_yes": 0.5, "options": ("a",)},
        {"probability_yes_per_category": {"a": 1.0}},
        {"probability_yes": float("nan")},
    ],
)
def test_a_submission_is_of_one_kind(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Submission.model_validate({"question": 1} | given)


def test_an_empty_export_is_one() -> None:
    assert metaculus_export([])["forecasts"] == []
