"""The application for forecasts: its roles, its simulated analysts, and what stands behind their seats in a replay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from consilience.experiments.panels import Shelf
from consilience.experiments.plan import Application
from consilience.forecasting.analysts import read_forecast
from consilience.forecasting.research.agent import ResearchAgents
from consilience.forecasting.research.conduct import conduct_from
from consilience.forecasting.search.none import NoSearch
from consilience.forecasting.search.replay import Replay

SHELF: Final = Shelf(
    application="forecasting",
    known=(
        *("outside_view", "inside_view", "status_quo", "contrarian", "resolution_criteria"),
        *("generalist", "skeptic", "advocate_yes", "advocate_no", "judge", "supervisor"),
        *("placebo_1", "placebo_2", "placebo_3", "placebo_4", "placebo_5"),
    ),
)


def replaying(answering: Mapping[str, Any]) -> ResearchAgents:
    """Return the research agents of a plan for its replay: what was searched comes from the record."""
    conduct = conduct_from(dict(answering))
    return ResearchAgents(conduct, NoSearch() if conduct.closed_book else Replay({}))


FORECASTING: Final = Application(
    name="forecasting", roles_for=SHELF.roles_for, reader=read_forecast, answerer=replaying
)
