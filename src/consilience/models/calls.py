"""What surrounds a call: its limits, which ask of which turn it is, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass

from consilience.journal.budget import Envelope
from consilience.journal.events import Where
from consilience.models.request import Completion


@dataclass(frozen=True)
class Limits:
    """How a model is called.

    Attributes:
        concurrency: Calls in flight per model id, unless its own rates say otherwise.
        attempts: Tries per ask, the first included.
        attempt_s: Seconds one try may take.
        total_s: Seconds all tries of one ask may take, waiting included.
        backoff_s: Base of the exponential back-off with full jitter.
        backoff_cap_s: Longest wait between tries.
        batch_quiet_s: In batch mode, a batch is closed when no call has come for so long.
        batch_poll_s: Seconds from a batch's first poll to the next; the pauses grow to a minute.
    """

    concurrency: int = 6
    attempts: int = 5
    attempt_s: float = 120.0
    total_s: float = 180.0
    backoff_s: float = 0.5
    backoff_cap_s: float = 30.0
    batch_quiet_s: float = 0.5
    batch_poll_s: float = 5.0


@dataclass(frozen=True)
class Call:
    """One answered ask.

    Attributes:
        key: The call's key.
        completion: The answer.
        cost_nano: Cost at list price; None where no price is known.
        estimated: The cost is the reservation, since no usage was reported.
        retries: How many tries of this ask were made before it, by earlier processes too.
    """

    key: str
    completion: Completion
    cost_nano: int | None
    estimated: bool
    retries: int


@dataclass(frozen=True)
class Asked:
    """Which ask of which turn a call belongs to.

    Attributes:
        where: The turn.
        role: Role behind the seat.
        ask: 0 for the question, then one more per corrective or enlarged ask.
        tries_before: Tries that an earlier process made for this ask.
        envelope: What the item holds against the cap.
        pending: The last of those tries, if it is still in a batch at the vendor.
    """

    where: Where
    role: str
    ask: int
    tries_before: int
    envelope: Envelope | None
    pending: Pending | None = None


@dataclass(frozen=True)
class Pending:
    """A try in a batch that an earlier process submitted.

    Attributes:
        batch_id: The batch.
        attempt: Number of the try.
        reserved_nano: What it was reserved at.
    """

    batch_id: str
    attempt: int
    reserved_nano: int | None


@dataclass
class Stop:
    """A request to stop that whoever runs the pool may set at any time."""

    requested: bool = False
