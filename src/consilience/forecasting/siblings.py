"""Which of several questions would tell an agent the answer to another if it were shown both.

A scan of what is written, by four rules. It finds what shares its wording, page or option names; two questions that
bear on one event in different words are beyond it, and what it does not find is not proven apart.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Literal

from consilience.core.question import Strict
from consilience.forecasting.questions import ForecastQuestion
from consilience.forecasting.resolutions import midnight
from consilience.forecasting.search.urls import canonical_url, urls_in

RevealRule = Literal["same", "ladder", "opened_after", "names_outcome"]

SHORTEST_NAME = 4
"""Characters; shorter outcomes (a number, "yes") stand in too many texts to tell anything."""

_WORDS = re.compile(r"\w+")
_VARYING = re.compile(
    r"\d[\d.,:%]*|"
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
)


class Reveal(Strict):
    """One question that would tell something of another's answer.

    Attributes:
        revealing: Id of the one that must not be shown with the other.
        revealed: Id of the other.
        rule: Why. ``same``: the same text. ``ladder``: the same text but for its numbers and months, so that the answer
            to one bounds the other. ``opened_after``: of the same page or wording, and opened on or after the day on
            which the other's outcome was known. ``names_outcome``: it names what the other turned out to be, as the
            other's own text does not.
    """

    revealing: str
    revealed: str
    rule: RevealRule


def sibling_reveals(questions: Sequence[ForecastQuestion]) -> tuple[Reveal, ...]:
    """Return the pairs of siblings that are not to be shown together, in the order of the questions.

    Siblings have the same page, the same text but for numbers and months, or one links to the other's page. A pair is
    listed once per direction, under the first rule that holds. Nothing found is no proof that nothing is there.

    Example:
        >>> low, high = (ForecastQuestion(text=f"Will it snow more than {n} cm?", kind="binary") for n in (10, 20))
        >>> [reveal.rule for reveal in sibling_reveals([low, high])]
        ['ladder', 'ladder']
    """
    order = {id(question): place for place, question in enumerate(questions)}
    found = []
    for revealing, revealed in sorted(_siblings(questions), key=lambda pair: (order[id(pair[0])], order[id(pair[1])])):
        rule = _rule(revealing, revealed)
        if rule is not None:
            found.append(Reveal(revealing=revealing.id, revealed=revealed.id, rule=rule))
    return tuple(found)


def _siblings(questions: Sequence[ForecastQuestion]) -> Iterator[tuple[ForecastQuestion, ForecastQuestion]]:
    """Yield each ordered pair of siblings once."""
    groups: defaultdict[tuple[str, str], list[ForecastQuestion]] = defaultdict(list)
    for question in questions:
        groups["wording", _masked(question.text)].append(question)
        page = _page(question)
        if page is not None:
            groups["page", page].append(question)
    pairs = [pair for group in groups.values() for pair in permutations(group, 2)]
    for question in questions:
        for url in urls_in(_written(question)):
            pairs += [(question, other) for other in groups.get(("page", url), ()) if other is not question]
    yield from {(id(one), id(other)): (one, other) for one, other in pairs}.values()


def _rule(revealing: ForecastQuestion, revealed: ForecastQuestion) -> RevealRule | None:
    if _folded(revealing.text) == _folded(revealed.text):
        return "same"
    if _masked(revealing.text) == _masked(revealed.text):
        return "ladder"
    known = [resolution.known_on for _, resolution in revealed.horizons() if resolution and resolution.known_on]
    if revealing.open_date is not None and known and midnight(revealing.open_date) >= midnight(min(known)):
        return "opened_after"
    shown, own = f" {_folded(_written(revealing))} ", f" {_folded(revealed.text)} "
    names = (f" {_folded(name)} " for name in _outcome_names(revealed))
    return "names_outcome" if any(name in shown and name not in own for name in names) else None


def _outcome_names(question: ForecastQuestion) -> Iterator[str]:
    """Yield what the outcome is called, where that is a name."""
    labels = {option.id: option.label for option in question.options}
    for _, resolution in question.horizons():
        if resolution is None:
            continue
        for name in (labels.get(str(resolution.outcome)), resolution.said):
            if name is not None and len(_folded(name)) >= SHORTEST_NAME and not _folded(name).isdecimal():
                yield name


def _written(question: ForecastQuestion) -> str:
    return f"{question.text}\n{question.description}\n{question.resolution_criteria}"


def _page(question: ForecastQuestion) -> str | None:
    return None if question.url is None else canonical_url(question.url)


def _folded(text: str) -> str:
    return " ".join(_WORDS.findall(text.casefold()))


def _masked(text: str) -> str:
    return _folded(_VARYING.sub(" 0 ", text.casefold()))
