"""What a protocol has a member shown besides its view, and whom it asks what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from consilience.core.answers import AnyAnswer, CritiqueSet
from consilience.core.deliberation import Table
from consilience.core.turn import Turn

Others = Literal["reasons", "numbers", "arguments", "hidden"]


@dataclass(frozen=True)
class Argument:
    """What one advocate said in its turn, for the other and for the judge to read."""

    side: str
    said: AnyAnswer


@dataclass(frozen=True)
class Shown:
    """What a member is shown besides its view.

    Attributes:
        table: Everybody's standings; the member's own answer is read from here too. None shows neither.
        others: Of the others' rows: their numbers with their reasons, their numbers alone, their reasons without any
            verdict or confidence, or nothing at all.
        critiques: By author; a member is shown those addressed to it, the author hidden.
        flags: Verification flags on the member's own answer are shown, and it must address them.
        arguments: Advocates' arguments so far, in order.
        displaced: How far the others' answers are moved before they are shown, as a share (on the scale of the
            question: logarithms of positive quantities, log-odds of probabilities); the sign is drawn per member.
        whole_packet: The whole packet is shown, not only the member's own sections.
        among: Option ids still in question, where a vote is to be settled; empty for all.
    """

    table: Table | None = None
    others: Others = "reasons"
    critiques: Mapping[str, CritiqueSet] = field(default_factory=dict)
    flags: bool = False
    arguments: tuple[Argument, ...] = ()
    displaced: float = 0.0
    whole_packet: bool = False
    among: tuple[str, ...] = ()


NOTHING = Shown()
"""The member's view alone."""


@dataclass(frozen=True)
class Ask:
    """One turn of one seat.

    Attributes:
        seat: Its label.
        turn: What is asked for.
        shown: What it is shown besides its view.
    """

    seat: str
    turn: Turn
    shown: Shown = NOTHING


@dataclass(frozen=True)
class Seating:
    """Who sits where: the members, who deliberate, and the seats with a part of their own beside them.

    Attributes:
        members: Labels in seat order.
        parts: Label by part, such as ``{"skeptic": "analyst_12"}``.
    """

    members: tuple[str, ...]
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Planned:
    """A turn that will be taken when nothing stops early.

    Attributes:
        seat: The label of the seat.
        turn: What is asked for.
        rows: How many other answers stand in what it is shown, each with its reasons and critiques.
    """

    seat: str
    turn: Turn
    rows: int = 0
