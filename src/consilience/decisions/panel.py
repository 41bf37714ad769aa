"""The application for decisions: its roles and its simulated voters."""

from __future__ import annotations

from typing import Any, Final

from consilience.experiments.general import read_anything
from consilience.experiments.panels import Shelf
from consilience.experiments.plan import Application
from consilience.models.simulated import Mind

SHELF: Final = Shelf(
    application="decisions",
    known=(
        *("risk_analyst", "optimist", "devils_advocate", "neutral_analyst", "domain_expert"),
        *("moderator", "generalist"),
        *("placebo_1", "placebo_2", "placebo_3", "placebo_4", "placebo_5"),
    ),
)


def read_decision(mind: Mind) -> dict[str, Any]:
    """Return what a simulated voter replies: preferences drawn by name; a moderator keeps to what is in question."""
    said = read_anything(mind)
    among = (mind.prompt.committee or {}).get("still_in_question")
    answer = said.get("answer")
    if not among or answer is None:
        return said
    ranking = sorted(answer["ranking"], key=lambda option: option not in among)
    return {"answer": {**answer, "choice": ranking[0], "ranking": ranking, "approvals": [ranking[0]]}}


DECISIONS: Final = Application(name="decisions", roles_for=SHELF.roles_for, reader=read_decision)
