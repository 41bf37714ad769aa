"""What a journal records: a tagged union of frozen dataclasses, checked alike when written and when read.

An event stands in the journal as one flat JSON object: ``seq``, ``type``, ``at``, the logical coordinates that apply
(`Where`), and the event's own fields. The journal is in arrival order; everything derived from it is sorted by `Where`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, ClassVar, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

from consilience.errors import IntegrityError, JournalError

TOKEN_BUCKETS = ("input", "cache_write_5m", "cache_write_1h", "cache_read", "output_visible", "output_reasoning")
"""The disjoint token counts of ``completion["usage"]``; a bucket that the vendor did not report is None."""


class Where(NamedTuple):
    """Logical coordinates: a turn is (item, round, seat, kind, sample), an item is (item,), a run has none.

    Example:
        >>> Where(item="sale-1", round=0, seat="analyst_01", kind="estimate", sample=0).label()
        'item sale-1, round 0, seat analyst_01, kind estimate, sample 0'
    """

    item: str | None = None
    round: int | None = None
    seat: str | None = None
    kind: str | None = None
    sample: int | None = None

    def label(self) -> str:
        """Return the coordinates as words for a message."""
        return ", ".join(f"{name} {value}" for name, value in self._asdict().items() if value is not None) or "the run"

    def sort_key(self) -> tuple[Any, ...]:
        """Return a key that orders any coordinates; an absent one comes first."""
        return tuple((value is not None, value if value is not None else "") for value in self)


NOWHERE = Where()


@dataclass(frozen=True, kw_only=True)
class RunStarted:
    """The first record; its ``run_id`` seeds the hash chain."""

    type: ClassVar[str] = "run.started"
    run_id: str
    protocol_sha256: str
    package_version: str


@dataclass(frozen=True, kw_only=True)
class RunResumed:
    """The run goes on after a stop; ``accepted`` lists deviations the user allowed by name."""

    type: ClassVar[str] = "run.resumed"
    accepted: list[Any]
    torn_bytes: int


@dataclass(frozen=True, kw_only=True)
class ItemStarted:
    """An item was admitted; ``data`` holds packet hash, committee assignment, permutations and the like."""

    type: ClassVar[str] = "item.started"
    data: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class TextStored:
    """A long text, once; others refer to it as ``{"$text": sha256}`` (or ``{"$json": sha256}`` for a JSON value)."""

    type: ClassVar[str] = "text.stored"
    sha256: str
    text: str


@dataclass(frozen=True, kw_only=True)
class AttemptReserved:
    """An attempt is about to leave; durable before the request does.

    Attributes:
        key: SHA-256 of the exact call (wire body, provider, host, versions, replicate index).
        key_version: How ``key`` was computed.
        ask: 0 for the question, 1 and 2 for corrective asks.
        attempt: 0-based try of this ask; tries of a resumed run go on counting.
        role: Role behind the seat.
        model: Model id.
        provider: Provider name.
        tier: Price tier, such as ``standard`` or ``batch``.
        body: Wire body with long strings interned.
        reserved_nano: Worst case in nano-USD; None when the model has no price.
    """

    type: ClassVar[str] = "attempt.reserved"
    key: str
    key_version: int
    ask: int
    attempt: int
    role: str
    model: str
    provider: str
    tier: str
    body: dict[str, Any]
    reserved_nano: int | None


@dataclass(frozen=True, kw_only=True)
class AttemptResponse:
    """The vendor answered; durable before the answer is used.

    Attributes:
        key: As reserved.
        ask: As reserved.
        attempt: As reserved.
        completion: ``text``, ``stop_reason``, ``usage`` (`TOKEN_BUCKETS` or None), ``request_id``, ``latency_s``, raw
            metadata; long strings interned.
        cost_nano: Cost at list price in nano-USD; None when unknown.
        estimated: The cost is the reservation, because the vendor reported no usage.
        saved_nano: What the answer would have cost, when it came from a recorded run and cost 0.
    """

    type: ClassVar[str] = "attempt.response"
    key: str
    ask: int
    attempt: int
    completion: dict[str, Any]
    cost_nano: int | None
    estimated: bool
    saved_nano: int | None = None


@dataclass(frozen=True, kw_only=True)
class AttemptError:
    """The attempt failed; ``error`` holds type, message, status and retry_after_s."""

    type: ClassVar[str] = "attempt.error"
    key: str
    ask: int
    attempt: int
    error: dict[str, Any]
    charged_nano: int | None


@dataclass(frozen=True, kw_only=True)
class AttemptLost:
    """A reserved attempt without outcome, found at resume: charged as reserved, since it may have been billed."""

    type: ClassVar[str] = "attempt.lost"
    key: str
    ask: int
    attempt: int
    charged_nano: int | None


@dataclass(frozen=True, kw_only=True)
class ToolReturned:
    """A tool that a member used has returned; durable before the result is used, so that a replay uses no tool.

    Attributes:
        tool: Its name.
        step: 0-based step of the turn.
        arguments: What it was given.
        result: What it gave, failures included; long strings interned.
    """

    type: ClassVar[str] = "tool.returned"
    tool: str
    step: int
    arguments: dict[str, Any]
    result: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class BatchSubmitted:
    """A vendor accepted a batch; durable before it is polled, so that a crash takes it up again."""

    type: ClassVar[str] = "batch.submitted"
    provider: str
    batch_id: str
    calls: list[Any]


@dataclass(frozen=True, kw_only=True)
class SegmentTaken:
    """Records of a worker's segment follow, as far as no end of the process cut them short.

    Attributes:
        worker: Name of the worker.
        first: Number of the first of them in its segment.
        last: Number of the last.
        head: Hash of the last there, which binds the whole segment up to it.
    """

    type: ClassVar[str] = "segment.taken"
    worker: str
    first: int
    last: int
    head: str


@dataclass(frozen=True, kw_only=True)
class TurnAccepted:
    """A turn ended with an answer; ``key`` is that of the attempt that gave it, ``asks`` how often was asked.

    ``data`` tells what was shown (permutation, consensus of the others) and what verification flagged.
    """

    type: ClassVar[str] = "turn.accepted"
    key: str
    asks: int
    outcome: dict[str, Any]
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TurnFailed:
    """A turn ended without an answer; that too is an outcome and is not asked again."""

    type: ClassVar[str] = "turn.failed"
    outcome: dict[str, Any]
    error: dict[str, Any]
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ProtocolNote:
    """Something the protocol did: ``stopped_early``, ``carried_from_round``, ``verification`` or ``adjusted``."""

    type: ClassVar[str] = "protocol.note"
    note: str
    data: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ItemFinished:
    """An item has its result."""

    type: ClassVar[str] = "item.finished"
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RunStopped:
    """The run stopped before its end: ``spend_cap``, ``interrupted`` or ``error``."""

    type: ClassVar[str] = "run.stopped"
    reason: str
    message: str


@dataclass(frozen=True, kw_only=True)
class RunFinished:
    """The last record: how many records stand before it and the hash of the one before it."""

    type: ClassVar[str] = "run.finished"
    events: int
    head: str
    counts: dict[str, Any]


Event: TypeAlias = (
    RunStarted
    | RunResumed
    | ItemStarted
    | TextStored
    | AttemptReserved
    | AttemptResponse
    | AttemptError
    | AttemptLost
    | ToolReturned
    | BatchSubmitted
    | SegmentTaken
    | TurnAccepted
    | TurnFailed
    | ProtocolNote
    | ItemFinished
    | RunStopped
    | RunFinished
)
EVENT_TYPES: dict[str, type[Event]] = {cls.type: cls for cls in get_args(Event)}


class Record(NamedTuple):
    """One event as it stands in the journal.

    Attributes:
        seq: 1-based number of the record in the run.
        at: ISO 8601 time of writing.
        where: Logical coordinates.
        event: The event.
        hash: Chain hash, over all records up to this one.
        segment: Number of the file it stands in.
        offset: Byte offset in that file.
    """

    seq: int
    at: str
    where: Where
    event: Event
    hash: str
    segment: int
    offset: int


def _field_types(cls: type[Any]) -> dict[str, frozenset[type]]:
    """Return the exact run-time types each field takes; what is inside a container is for the JSON encoder to check."""
    hints = {name: hint for name, hint in get_type_hints(cls).items() if get_origin(hint) is not ClassVar}
    return {
        name: frozenset(
            get_origin(kind) or kind for kind in (get_args(hint) if isinstance(hint, UnionType) else (hint,))
        )
        for name, hint in hints.items()
    }


_FIELDS = {name: _field_types(cls) for name, cls in EVENT_TYPES.items()}
_WHERE = {name: types - {NoneType} for name, types in _field_types(Where).items()}
_SOUND: set[tuple[type, ...]] = set()  # field types found right before; few, since the fields' types are
_ENVELOPE = {"seq": frozenset({int}), "at": frozenset({str})}


def _wrong(values: Mapping[str, Any], allowed: Mapping[str, frozenset[type]]) -> str | None:
    for name, kinds in allowed.items():
        if name not in values:
            return f'field "{name}" is missing'
        if type(values[name]) not in kinds:
            wanted = " or ".join(sorted("null" if kind is NoneType else kind.__name__ for kind in kinds))
            return f'field "{name}" is {type(values[name]).__name__}, not {wanted}'
    return None


def to_json(event: Event, where: Where) -> dict[str, Any]:
    """Return an event with its coordinates as one flat JSON object, without ``seq`` and ``at``.

    Raises:
        JournalError: A field has another type than declared.

    Example:
        >>> to_json(ItemFinished(data={"n": 1}), Where(item="a"))
        {'data': {'n': 1}, 'type': 'item.finished', 'item': 'a'}
    """
    cls = event.__class__
    values = dict(event.__dict__)
    signature = (cls, *map(type, values.values()))  # a dataclass always lists its fields in their declared order
    if signature not in _SOUND:
        problem = _wrong(values, _FIELDS[cls.type])
        if problem is not None:
            raise JournalError(f"event {cls.type} cannot be recorded: {problem}", hint="Mend the calling code.")
        _SOUND.add(signature)
    values["type"] = cls.type
    if where is not NOWHERE:
        values |= {name: value for name, value in zip(Where._fields, where, strict=True) if value is not None}
    return values


def from_json(values: dict[str, Any]) -> tuple[int, str, Where, Event]:
    """Return (seq, at, where, event) of a recorded JSON object.

    Raises:
        IntegrityError: The type is unknown, or a field is missing, superfluous or of another type.

    Example:
        >>> from_json({"seq": 1, "at": "t", "type": "item.finished", "item": "a", "data": {}})[2].item
        'a'
    """
    cls = EVENT_TYPES.get(str(values.get("type")))
    if cls is None:
        raise IntegrityError(
            f"event type {values.get('type')!r} is unknown", hint="Read the run with the version that wrote it."
        )
    types = _FIELDS[cls.type]
    there = {name: kinds for name, kinds in _WHERE.items() if name in values}
    problem = _wrong(values, _ENVELOPE) or _wrong(values, there) or _wrong(values, types)
    if problem is None and len(values) != len(types) + len(there) + 3:
        extra = sorted(values.keys() - types.keys() - there.keys() - {"seq", "at", "type"})
        problem = f"unknown fields {', '.join(extra)}"
    if problem is not None:
        raise IntegrityError(f"event {cls.type}: {problem}", hint="Read the run with the version that wrote it.")
    where = Where(**{name: values[name] for name in there}) if there else NOWHERE
    return values["seq"], values["at"], where, cls(**{name: values[name] for name in types})
