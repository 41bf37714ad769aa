"""Pages of what is found by name: rules, protocols, sources, clients, feeds, baselines, gates."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, get_args

from book.wording import body, code, page, parameters, text_of
from consilience.aggregation.answers import PRIMARY_RULES
from consilience.aggregation.distributions import DISTRIBUTION_RULES, DistributionRule
from consilience.aggregation.intervals import INTERVAL_RULES, IntervalRule
from consilience.aggregation.numbers import POINT_RULES, PointRule
from consilience.aggregation.pooling import ProbabilityRule
from consilience.aggregation.probabilities import PROBABILITY_RULES
from consilience.aggregation.tallies import VoteRule
from consilience.aggregation.votes import VOTE_RULES
from consilience.forecasting.feeds import FEEDS
from consilience.forecasting.research import gates
from consilience.forecasting.research.state import GateName
from consilience.forecasting.search.clients import SEARCH_CLIENTS, ClientEntry
from consilience.protocols import PROTOCOLS, Protocol
from consilience.registry import Registry
from consilience.valuation.adapters import ADAPTERS
from consilience.valuation.baselines import BASELINES
from consilience.valuation.exclusions import EXCLUSION_SETS, ExclusionSet

FITTED = (
    "A rule that learns has what it needs from `consilience fit-weights` or `calibrate`; without it there is no row."
)


def rules_page() -> str:
    """Return the page of aggregation rules, by kind of answer."""
    return page(
        "Aggregation rules",
        "A rule makes one answer of several. All rules that can be computed stand in every prediction file, a row "
        "each; one of them was named the primary one beforehand. What is said here of a rule (that the order of "
        "members changes nothing, that equal answers give that answer) is checked by the tests over the registry.",
        _primary(),
        *_section("Numbers", POINT_RULES, PointRule),
        *_section("Intervals", INTERVAL_RULES, IntervalRule),
        *_section("Probabilities", PROBABILITY_RULES, ProbabilityRule),
        FITTED,
        *_section("Distributions", DISTRIBUTION_RULES, DistributionRule),
        *_section("Votes", VOTE_RULES, VoteRule),
    )


def _primary() -> str:
    lines = []
    for kind, by_seats in PRIMARY_RULES.items():
        told = (code(name) + (f" from {least} members up" if least > 1 else "") for least, name in by_seats.items())
        lines.append(f"- {kind}: {', '.join(told)}")
    return "\n".join(["The primary rule, where nobody names another:", "", *lines])


def protocols_page() -> str:
    """Return the page of protocols."""
    return page(
        "Protocols",
        "A protocol is the order of asking, nothing else. An arm names one with its parameters "
        "(`configs/treatments.yaml`); `{debate: {rounds: 2}}` is how it is written.",
        *_entries(PROTOCOLS, Protocol, level=2),
    )


def sources_page() -> str:
    """Return the page of what data come from, and of what they are put beside."""
    return page(
        "Sources and baselines",
        *_section("Sales", ADAPTERS, None),
        *_section("Exclusions", EXCLUSION_SETS, None),
        *_section("Baselines", BASELINES, None),
        *_section("Searches", SEARCH_CLIENTS, None),
        *_section("Feeds of questions", FEEDS, None),
    )


def gates_page() -> str:
    """Return the page of gates."""
    found = [getattr(gates, name) for name in get_args(GateName)]
    return page(
        "Gates",
        "A gate judges in code what an agent's work must show. `--gates report` tells what it found; `--gates enforce` "
        "sends the agent to gather more once, and then it abstains.",
        *(part for gate in found for part in (f"## {gate.__name__}", body(text_of(gate)))),
    )


def _section(title: str, registry: Registry[Any], base: type | None) -> Iterator[str]:
    yield f"## {title}"
    yield from _entries(registry, base, level=3)


def _entries(registry: Registry[Any], base: type | None, *, level: int) -> Iterator[str]:
    for entry in registry:
        yield f"{'#' * level} {entry.name}"
        yield _says(entry)
        yield parameters(entry)
        yield _declared(entry, base)


def _says(entry: object) -> str:
    if isinstance(entry, ClientEntry):
        made = entry.make
        owner = made.__self__ if inspect.ismethod(made) else made
        when = "answers as of a cutoff by itself" if entry.point_in_time else "sees today's world; filtered afterwards"
        return f"{body(text_of(owner))}\n\nNeeds: {entry.needs or 'nothing'}. Point in time: {when}."
    if isinstance(entry, ExclusionSet):
        rules = "\n".join(f"- `{rule.name}`: sales with the flag {code(rule.flags)}" for rule in entry.rules)
        return rules or "Leaves nothing out."
    return body(text_of(entry))


def _declared(entry: object, base: type | None) -> str:
    """Return what is declared of an entry: the class variables that its base annotates."""
    if base is None:
        return ""
    names = [name for name, hint in inspect.get_annotations(base).items() if "ClassVar" in str(hint) and name != "name"]
    facts = [f"{name.replace('_', ' ')}: {code(getattr(entry, name))}" for name in names]
    return f"*{'; '.join(facts)}*" if facts else ""
