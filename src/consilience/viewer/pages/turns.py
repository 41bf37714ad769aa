"""The turns of an item as its journal holds them, down to the exact bytes sent and received."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from consilience.core.canonical import canonical_json, sha256_hex
from consilience.journal.events import (
    AttemptError,
    AttemptLost,
    AttemptReserved,
    AttemptResponse,
    ToolReturned,
    TurnAccepted,
    TurnFailed,
    Where,
)
from consilience.journal.reader import expand
from consilience.viewer.shown import page
from consilience.viewer.study import Study


@dataclass
class Try:
    """One attempt.

    Attributes:
        seq: Number of its reservation's record.
        at: When it left.
        reserved: The reservation.
        outcome: What came of it; None while it is on its way.
    """

    seq: int
    at: str
    reserved: AttemptReserved
    outcome: AttemptResponse | AttemptError | AttemptLost | None = None

    @property
    def status(self) -> str:
        """What came of it, in a word."""
        words = {AttemptResponse: "answered", AttemptError: "error", AttemptLost: "lost"}
        return "on its way" if self.outcome is None else words[type(self.outcome)]

    @property
    def cost_nano(self) -> int | None:
        """What it counts for."""
        if self.outcome is None:
            return self.reserved.reserved_nano
        return self.outcome.cost_nano if isinstance(self.outcome, AttemptResponse) else self.outcome.charged_nano

    @property
    def tokens(self) -> int | None:
        """All tokens it took; None where nobody reported them."""
        usage = self.outcome.completion.get("usage") if isinstance(self.outcome, AttemptResponse) else None
        return sum(count for count in usage.values() if count) if usage else None


@dataclass
class TurnShown:
    """One turn.

    Attributes:
        where: Its coordinates.
        tries: Its attempts.
        tools: What it used.
        ended: How it ended; None while it has not.
    """

    where: Where
    tries: list[Try] = field(default_factory=list)
    tools: list[ToolReturned] = field(default_factory=list)
    ended: TurnAccepted | TurnFailed | None = None

    @property
    def role(self) -> str | None:
        """Who spoke."""
        return self.tries[0].reserved.role if self.tries else None

    @property
    def model(self) -> str | None:
        """The model that spoke for it."""
        return self.tries[0].reserved.model if self.tries else None

    @property
    def status(self) -> str:
        """How it ended."""
        return "in progress" if self.ended is None else str(self.ended.outcome["status"])

    @property
    def cost_nano(self) -> int | None:
        """What its attempts count for; None as soon as one is unknown."""
        costs = [one.cost_nano for one in self.tries]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def tokens(self) -> int | None:
        """Tokens of its attempts, as far as reported; None where none were."""
        known = [one.tokens for one in self.tries if one.tokens is not None]
        return sum(known) if known else None

    @property
    def query(self) -> dict[str, Any]:
        """Its coordinates, for an address."""
        return {name: value for name, value in self.where._asdict().items() if value is not None and name != "item"}


def turns_of(study: Study, folder: Path, item_id: str) -> list[TurnShown]:
    """Return the turns of an item, by round, seat and kind.

    Raises:
        IntegrityError: The journal holds what is no record.
    """
    turns: dict[Where, TurnShown] = {}
    for record in study.index(folder, item=item_id).records(item_id):
        event, where = record.event, record.where
        if where.seat is None:
            continue
        turn = turns.setdefault(where, TurnShown(where))
        if isinstance(event, AttemptReserved):
            turn.tries.append(Try(record.seq, record.at, event))
        elif isinstance(event, AttemptResponse | AttemptError | AttemptLost):
            for one in turn.tries:
                if (one.reserved.ask, one.reserved.attempt) == (event.ask, event.attempt):
                    one.outcome = event
        elif isinstance(event, ToolReturned):
            turn.tools.append(event)
        elif isinstance(event, TurnAccepted | TurnFailed):
            turn.ended = event
    return [turns[where] for where in sorted(turns, key=Where.sort_key)]


def turn_at(turns: Sequence[TurnShown], query: Mapping[str, str]) -> TurnShown | None:
    """Return the turn at the coordinates of an address; None where there is none."""
    wanted = {name: query.get(name) for name in ("round", "seat", "kind", "sample")}
    for one in turns:
        if all(str(getattr(one.where, name)) == value for name, value in wanted.items()):
            return one
    return None


@dataclass(frozen=True)
class Exchange:
    """One attempt with what was sent and what came back, long texts put back.

    Attributes:
        made: The attempt.
        sent: The body as it was sent, as bytes of canonical JSON.
        system: Texts of the system prompt.
        messages: Role and text of each message.
        received: The reply's text; None without one.
        raw: Everything that was recorded of the outcome, as JSON values.
    """

    made: Try
    sent: bytes
    system: tuple[str, ...]
    messages: tuple[tuple[str, str], ...]
    received: str | None
    raw: Any

    @property
    def sent_sha256(self) -> str:
        """SHA-256 of the body."""
        return sha256_hex(self.sent)

    @property
    def received_sha256(self) -> str | None:
        """SHA-256 of the reply's UTF-8 bytes."""
        return None if self.received is None else sha256_hex(self.received.encode("utf-8", "surrogatepass"))


def exchange(made: Try, texts: Mapping[str, str]) -> Exchange:
    """Return an attempt with its texts.

    Raises:
        IntegrityError: A text is not in the journal.
    """
    body = expand(made.reserved.body, texts)
    outcome: Any = None if made.outcome is None else expand(dict(vars(made.outcome)), texts)
    received = outcome["completion"]["text"] if isinstance(made.outcome, AttemptResponse) else None
    system = body.get("system", body.get("instructions", ()))
    messages = body.get("messages", body.get("input", ()))
    return Exchange(
        made,
        canonical_json(body),
        _texts(system),
        tuple((str(one.get("role", "")), "\n".join(_texts(one.get("content")))) for one in _objects(messages)),
        received,
        outcome,
    )


def _objects(value: Any) -> list[Mapping[str, Any]]:
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return [one for one in value or () if isinstance(one, dict)]


def _texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a system prompt or of a message's content, in whatever of the vendors' shapes they come."""
    if isinstance(value, str):
        return (value,)
    return tuple(str(one["text"]) for one in value or () if isinstance(one, dict) and "text" in one)


def turn_page(study: Study, folder: Path, item_id: str, turn: TurnShown) -> str:
    """Return the page of a turn."""
    index = study.index(folder, item=item_id)
    return page(
        "turn.html.jinja",
        title=f"{turn.where.seat}, round {turn.where.round}",
        here="runs",
        run_id=folder.name,
        item_id=item_id,
        turn=turn,
        exchanges=[exchange(one, index) for one in turn.tries],
        tools=[(one, expand(one.result, index)) for one in turn.tools],
    )


def bytes_of(study: Study, folder: Path, turn: TurnShown, query: Mapping[str, str]) -> bytes | None:
    """Return exactly what was sent or received in one attempt; None where there is nothing."""
    index = study.index(folder, item=turn.where.item)
    for made in turn.tries:
        if query.get("seq") == str(made.seq):
            found = exchange(made, index)
            if query.get("part") == "sent":
                return found.sent
            return None if found.received is None else found.received.encode("utf-8", "surrogatepass")
    return None
