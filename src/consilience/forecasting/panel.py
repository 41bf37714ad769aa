"""The application for forecasts: its roles and its simulated analysts."""

from __future__ import annotations

from typing import Final

from consilience.experiments.panels import Shelf
from consilience.experiments.plan import Application
from consilience.forecasting.analysts import read_forecast

SHELF: Final = Shelf(
    application="forecasting",
    known=(
        *("outside_view", "inside_view", "status_quo", "contrarian", "resolution_criteria"),
        *("generalist", "skeptic", "advocate_yes", "advocate_no", "judge", "supervisor"),
        *("placebo_1", "placebo_2", "placebo_3", "placebo_4", "placebo_5"),
    ),
)


FORECASTING: Final = Application(name="forecasting", roles_for=SHELF.roles_for, reader=read_forecast)
