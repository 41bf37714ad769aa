"""Cost-matching: how often one agent may be asked for the money, or the tokens, that a panel took."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from consilience.errors import ConfigError, PlanError
from consilience.experiments.predictions import read_predictions
from consilience.experiments.spending import amount_nano
from consilience.experiments.totals import Totals
from consilience.models.prices import NANO
from consilience.protocols import Protocol, Single
from consilience.protocols.single import MOST_SAMPLES, REFINE_TURNS

PROBES: Final = 2
"""Samples of an item that are taken to learn what one costs: the first may fill a cache, the next one reads from it."""

Unit = Literal["usd", "tokens"]


class Match(BaseModel):
    """What each item may take.

    Attributes:
        unit: Dollars at list price, or tokens.
        source: Where the amounts come from: a run, or ``usd:X`` or ``tokens:N`` per item as given.
        label: What tables call it: the arm that the run was of, or the amount.
        allowance: By item: nano-dollars, or tokens.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    unit: Unit
    source: str
    label: str
    allowance: dict[str, int]


def match_of(text: str, item_ids: Sequence[str], *, run_folder: Callable[[str], Path]) -> Match:
    """Return what each item may take: ``usd:X`` or ``tokens:N`` per item, or what a finished run took for it.

    Args:
        text: As the user gave it.
        item_ids: The items asked about.
        run_folder: Finds the folder of a run.

    Raises:
        ConfigError: An amount is none above 0, or there is no such run.
        PlanError: The run is not finished, lacks an item, or the cost of one is unknown.
        DataError: The run's predictions cannot be read.
        IntegrityError: The run's record or predictions are not what was written.

    Example:
        >>> match_of("usd:0.05", ["a"], run_folder=Path).allowance
        {'a': 50000000}
    """
    unit, _, amount = text.partition(":")
    if unit in {"usd", "tokens"} and amount:
        return _fixed("usd" if unit == "usd" else "tokens", amount, text, item_ids)
    if not text.strip():
        raise ConfigError("--match names nothing", hint="Give a run, usd:X or tokens:N.")
    folder = run_folder(text)
    from consilience.experiments.verification import verify_run  # noqa: PLC0415 - it reads plans, which hold matches

    error = verify_run(folder).error()
    if error is not None:
        raise error
    path = folder / "predictions.parquet"
    if not path.is_file():
        raise PlanError(
            f"--match {text}: that run has no results yet",
            hint=f"Finish {folder.name} first: its own command resumes it.",
        )
    predictions = read_predictions(path)
    costs = predictions.group_by("item_id").agg(_most("cost_usd"))
    told: dict[str, float | None] = dict(costs.iter_rows())
    taken: dict[str, float] = {}
    for item in item_ids:
        cost = told.get(item)
        if cost is None:
            what = "is not among its items" if item not in told else "has an unknown cost there"
            raise PlanError(
                f"--match {text}: item {item} {what}",
                hint=f"Match a finished run over the same items; if {folder.name} was stopped, finish it first.",
            )
        taken[item] = cost
    arm = predictions.sort("cost_usd", "arm")["arm"].to_list()[-1]  # of nested rounds the longest
    return Match(
        unit="usd", source=folder.name, label=arm, allowance={item: round(taken[item] * NANO) for item in taken}
    )


def _fixed(unit: Unit, amount: str, text: str, item_ids: Sequence[str]) -> Match:
    """Return the same amount for every item."""
    if unit == "tokens" and not (amount.isascii() and amount.isdecimal()):
        raise ConfigError(f"--match {text}: {amount} is no number of tokens", hint="Such as tokens:30000.")
    allowed = amount_nano(amount, where="--match usd") if unit == "usd" else int(amount)
    if allowed <= 0:
        raise ConfigError(f"--match {text} allows nothing", hint="Give an amount above 0.")
    plain = f"{Decimal(allowed) / NANO:f}" if unit == "usd" else str(allowed)
    return Match(
        unit=unit, source=f"{unit}:{plain}", label=f"{unit}{plain}", allowance=dict.fromkeys(item_ids, allowed)
    )


def _most(column: str) -> Any:
    """Return an item's cost: that of the longest of several nested courses, unknown where any row's is."""
    import polars as pl  # noqa: PLC0415 - heavy

    return pl.when(pl.col(column).is_null().any()).then(None).otherwise(pl.col(column).max()).alias(column)


def check_match(match: Match, protocol: Protocol, item_ids: Sequence[str]) -> None:
    """Raise where a match cannot be carried out.

    Raises:
        PlanError: The protocol does not sample one agent, or an item has no allowance.

    Example:
        >>> check_match(Match(unit="tokens", source="tokens:9", label="9", allowance={"a": 9}), Single(), ["a"])
    """
    if not isinstance(protocol, Single):
        raise PlanError(
            f"protocol {protocol.name} takes the turns it declares and cannot be matched in cost",
            hint="Use --match with J_single_matched.",
        )
    lost = [item for item in item_ids if item not in match.allowance]
    if lost:
        raise PlanError(f"the match {match.source} allows nothing for item {lost[0]}", hint="Match the same items.")


def probing(protocol: Protocol, *, samples: int) -> Single:
    """Return the protocol that takes the first samples alone, which tell what a sample of an item costs."""
    declared = protocol if isinstance(protocol, Single) else Single()
    return replace(declared, samples=samples, refine=False)


@dataclass(frozen=True)
class SampleCost:
    """What samples of one item take, in the unit of the match; None where it is unknown, because they failed.

    Attributes:
        first: The first one, which may fill a cache.
        next: Every later one, which may read from it; None where a second one was not taken.
    """

    first: int | None
    next: int | None = None

    @property
    def marginal(self) -> int | None:
        """What one more sample takes, as far as that is known."""
        return self.first if self.next is None else self.next


@dataclass(frozen=True)
class Allotment:
    """How an item is asked under a match.

    Attributes:
        protocol: With its number of samples, and whether the first one is refined.
        allowed: What it may take, with what earlier items left or took too much.
        capped: The number of samples was cut at the most that are allowed.
    """

    protocol: Single
    allowed: int
    capped: bool


def share_out(match: Match, costs: Mapping[str, SampleCost], protocol: Single) -> dict[str, Allotment]:
    """Return how each item is asked so that its turns take what it may take, as far as that is known beforehand.

    Items follow each other by id. Every turn after an item's first sample is taken to cost what its second sample did;
    the first sample is refined where that leaves one more sample. What is left over, or was too much, is carried to the
    next item.

    Args:
        match: What items may take.
        costs: What the first samples of each item took.
        protocol: As declared; a protocol without refining never refines.

    Raises:
        PlanError: Samples take nothing, so that no number of them matches.

    Example:
        >>> shared = share_out(Match(unit="tokens", source="tokens:50", label="50", allowance={"a": 50, "b": 50}),
        ...                    {"a": SampleCost(9), "b": SampleCost(9)}, Single())
        >>> [allotted.protocol.samples for allotted in shared.values()]
        [3, 4]
    """
    marginals = [cost.marginal for cost in costs.values()]
    known = [cost for cost in marginals if cost is not None and cost > 0]
    if not known and 0 in marginals:
        raise PlanError("samples cost nothing, so no number of them matches a price", hint="Use --match tokens:N.")
    typical = round(statistics.median(known)) if known else None
    carried = 0
    shared: dict[str, Allotment] = {}
    for item in sorted(costs):
        allowed = match.allowance[item] + carried
        more = costs[item].marginal or typical
        if more is None:
            shared[item] = Allotment(replace(protocol, samples=1, refine=False), allowed, capped=False)
            continue
        first = costs[item].first or more
        refining = more * len(REFINE_TURNS)
        least = 1 if costs[item].next is None else 2  # what was taken to learn the cost is taken
        refine = protocol.refine and allowed >= first + (least - 1) * more + refining
        wanted = max(least, 1 + (allowed - first - (refining if refine else 0)) // more)
        samples = min(wanted, MOST_SAMPLES)
        shared[item] = Allotment(replace(protocol, samples=samples, refine=refine), allowed, capped=samples < wanted)
        carried = allowed - first - (samples - 1) * more - (refining if refine else 0)
    return shared


class Matching:
    """The match of one run as it goes: samples to learn what they cost, then how every item is asked.

    Args:
        match: What items may take.
        protocol: As declared.
    """

    def __init__(self, match: Match, protocol: Single) -> None:
        self._match = match
        self._protocol = protocol
        self._costs: dict[str, SampleCost] = {}
        self._allotted: dict[str, Allotment] = {}

    def probe(self, item: str) -> Single | None:
        """Return how to learn more of what samples of an item cost: by its first, then by its second; None when done.

        The second one, which may read what the first one put into a cache, is taken where the allowance bears it.
        """
        known = self._costs.get(item)
        if known is None:
            return probing(self._protocol, samples=1)
        bears = known.first is not None and 2 * known.first <= self._match.allowance[item]
        return probing(self._protocol, samples=2) if bears and known.next is None else None

    def learn(self, item: str, taken: Sequence[Totals | None]) -> None:
        """Keep what the samples of a probe took, answered or not; None for one that never was answered for."""
        self._costs[item] = SampleCost(*(None if took is None else took.of(self._match.unit) for took in taken))

    def settle(self) -> None:
        """Fix how every item is asked."""
        self._allotted = share_out(self._match, self._costs, self._protocol)

    def protocol(self, item: str) -> Single | None:
        """Return how an item is asked; None before that is settled."""
        allotted = self._allotted.get(item)
        return None if allotted is None else allotted.protocol

    def asked(self, item: str) -> dict[str, Any]:
        """Return how an item was asked, as the record keeps it: samples, and whether the first one was refined."""
        allotted = self._allotted.get(item)
        return {} if allotted is None else {"samples": allotted.protocol.samples, "refine": allotted.protocol.refine}

    def record(self, taken: Mapping[str, Totals]) -> dict[str, Any] | None:
        """Return what came of the match over the items asked to their end, as JSON values; None before there are any.

        ``residual`` is what they were allowed and did not take (negative: they took more), null when unknown.

        Args:
            taken: What each finished item took.
        """
        done = [item for item in sorted(taken) if item in self._allotted]
        if not done:
            return None
        scale = NANO if self._match.unit == "usd" else 1
        known = [amount for item in done if (amount := taken[item].of(self._match.unit)) is not None]
        allowed = sum(self._match.allowance[item] for item in done) / scale
        spent = sum(known) / scale if len(known) == len(done) else None
        samples = [self._allotted[item].protocol.samples for item in done]
        return {
            "unit": self._match.unit,
            "source": self._match.source,
            "items": len(done),
            "allowed": allowed,
            "taken": spent,
            "residual": None if spent is None else allowed - spent,
            "samples": [min(samples), max(samples)],
            "refined": sum(self._allotted[item].protocol.refine for item in done),
            "capped_items": [item for item in done if self._allotted[item].capped],
        }
