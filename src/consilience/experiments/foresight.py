"""What a run will take, before anything is written or spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from consilience.core.packet import Item
from consilience.experiments.matching import SampleCost, probing, share_out
from consilience.experiments.plan import Plan
from consilience.models.prices import Catalogue
from consilience.protocols import Protocol, Single
from consilience.runtime.answerer import Answerer
from consilience.runtime.briefing import Briefing, Foreseen

NO_SECRET = "0" * 32
"""Fence tags of a run have this length; nobody ever sees those of a dry run."""


@dataclass(frozen=True)
class Foresight:
    """What the planned turns of a run will take, corrective retries apart.

    Attributes:
        by_item: One per item, in the order of ids.
    """

    by_item: tuple[Foreseen, ...]

    @property
    def turns(self) -> int:
        """Planned turns when nothing stops early."""
        return sum(item.turns for item in self.by_item)

    @property
    def tokens(self) -> int:
        """Expected tokens."""
        return sum(item.tokens for item in self.by_item)

    @property
    def worst_tokens(self) -> int:
        """The most tokens it can take."""
        return sum(item.worst_tokens for item in self.by_item)

    @property
    def expected_nano(self) -> int | None:
        """Expected cost; None when a model has no price."""
        return _sum([item.expected_nano for item in self.by_item])

    @property
    def worst_nano(self) -> int | None:
        """The most it can cost; None when a model has no price."""
        return _sum([item.worst_nano for item in self.by_item])


def _sum(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def foresee(
    plan: Plan, items: Sequence[Item], *, catalogue: Catalogue, discount: int = 1, answerer: Answerer | None = None
) -> Foresight:
    """Return what a plan will take, where every call costs the list price divided by ``discount``.

    Turns that ``answerer`` takes are as many calls as they have steps.

    Raises:
        LeakError: Evidence gives a target away.
    """
    protocol = plan.make_protocol()
    prices = {name: catalogue.spec(name).price for name in plan.models}
    settings = plan.settings(run_secret=NO_SECRET)
    ordered = sorted(items, key=lambda item: item.question.id)
    briefings = [
        Briefing(item, seats=plan.seats(item.question.id), prompts=plan.prompts, settings=settings) for item in ordered
    ]
    protocols: dict[str, Protocol] = dict.fromkeys((item.question.id for item in ordered), protocol)
    if plan.match is not None and isinstance(protocol, Single):
        once = {
            briefing.item.question.id: briefing.foreseen(
                probing(protocol, samples=1), prices, discount=discount, answerer=answerer
            )
            for briefing in briefings
        }
        usd = plan.match.unit == "usd"
        costs = {item: SampleCost(ahead.expected_nano if usd else ahead.tokens) for item, ahead in once.items()}
        protocols |= {item: allotted.protocol for item, allotted in share_out(plan.match, costs, protocol).items()}
    return Foresight(
        tuple(
            briefing.foreseen(protocols[briefing.item.question.id], prices, discount=discount, answerer=answerer)
            for briefing in briefings
        )
    )
