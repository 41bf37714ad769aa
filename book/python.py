"""The pages of the Python reference: which modules stand on which page. What they say is read from the docstrings."""

from __future__ import annotations

from importlib import import_module
from typing import Final

from book.listed import modules_of
from book.wording import page

ROOMS: Final = {
    "api": "One question to a panel, from Python. `from consilience import ask` is all it takes.",
    "core": "What a judgement is: answers, contracts, questions, packets, roles, panels.",
    "evidence": "Views, prompts with fences, the leak guard, verification.",
    "journal": "The record, the budget, the ledger, verification of the chain.",
    "aggregation": "Rules that make one answer of several: pure functions on arrays.",
    "scoring": "What an answer was worth: one number per case.",
    "inference": "Intervals, tests, power, influence.",
    "models": "Who answers, and how it is called.",
    "protocols": "The order of asking.",
    "runtime": "One question, put to one panel.",
    "decisions": "Votes that escalate.",
}
"""Rooms with a page of their own, and what the page begins with."""

EXTENDING: Final = (
    "consilience.errors",
    "consilience.registry",
    "consilience.config",
    "consilience.experiments.arms",
    "consilience.experiments.panels",
    "consilience.forecasting.questions",
    "consilience.forecasting.feeds.base",
    "consilience.forecasting.search.base",
    "consilience.valuation.adapters.base",
    "consilience.valuation.baselines.base",
)
"""What is extended or caught, and lies in no room above."""


def python_pages() -> dict[str, str]:
    """Return the pages by name; the docs tool puts the docstrings in the place of each ``:::`` line."""
    made = {room: _page(f"consilience.{room}", says, _modules(room)) for room, says in ROOMS.items()}
    return made | {"extending": _page("To extend", "Bases, registries, errors.", EXTENDING)}


def _modules(room: str) -> tuple[str, ...]:
    module = import_module(f"consilience.{room}")
    return (module.__name__, *modules_of(module)) if room == "api" else tuple(modules_of(module))


def _page(title: str, says: str, modules: tuple[str, ...]) -> str:
    return page(title, says, *(f"::: {module}" for module in modules))
