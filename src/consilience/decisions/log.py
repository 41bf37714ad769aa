"""The decisions log: what became of decisions, and what that says of the panel and of those who voted.

Hit rate and weights come from outcomes alone. That a voter agreed with the winner says nothing about either.
"""

from __future__ import annotations

import fcntl
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from consilience.core.canonical import sha256_hex
from consilience.errors import ConfigError, DataError, IntegrityError, PlanError, reason
from consilience.experiments.storage import json_line, write_whole
from consilience.registry import nearest
from consilience.scoring.summaries import wilson

OUTCOMES: Final = "decisions.jsonl"
LEAST: Final = 10
"""Below so many resolved ballots a voter has the weight of all voters together."""


class Resolved(BaseModel):
    """What became of one decision.

    Attributes:
        at: When it was recorded.
        run_id: The decision.
        outcome: Id of the option that turned out right; None where nobody can know.
        note: Where that is known from, or why it cannot be.
        corrects: It takes the place of an earlier record of the same decision.
        decision_sha256: Hash of the decision's record at that time.
        previous_sha256: Hash of the line before; None for the first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    at: AwareDatetime
    run_id: str
    outcome: str | None
    note: str
    corrects: bool = False
    decision_sha256: str
    previous_sha256: str | None


@dataclass(frozen=True)
class Decided:
    """One decision, as its record tells it.

    Attributes:
        run_id: Its run.
        at: When it was made, ISO 8601.
        question: What was asked.
        options: Label by id.
        outcome: ``winner``, ``tie``, ``no_decision`` or ``no_quorum``.
        winner: Id; None without one.
        ballots: Role and option id of each ballot of the last vote.
        simulated: No real model spoke.
        sha256: Hash of the record.
    """

    run_id: str
    at: str
    question: str
    options: Mapping[str, str]
    outcome: str
    winner: str | None
    ballots: tuple[tuple[str, str], ...]
    simulated: bool
    sha256: str


@dataclass(frozen=True)
class HitRate:
    """How often the panel was right.

    Attributes:
        right: Decisions whose winner turned out right.
        n: Decisions with a winner and a known outcome.
        low: Lower end of the 95 % Wilson interval; None without decisions.
        high: Upper end.
        without: Resolved decisions without a winner, by what they came to; neither right nor wrong.
        unknown: Decisions whose outcome is not known yet, or cannot be.
    """

    right: int
    n: int
    low: float | None
    high: float | None
    without: Mapping[str, int]
    unknown: int


@dataclass(frozen=True)
class EarnedWeight:
    """The weight a voter earned.

    Attributes:
        role: The voter.
        right: Its ballots that turned out right.
        n: Its ballots in resolved decisions.
        weight: ``log(p / (1 - p))`` of its shrunken share of right ballots, at least 0.
        flags: ``pooled`` (too few ballots), ``worse_than_chance`` (held at 0: a bad voter is not turned round).
    """

    role: str
    right: int
    n: int
    weight: float
    flags: tuple[str, ...]


def read_decisions(folder: Path) -> list[Decided]:
    """Return the decisions under ``results/decisions``, oldest first.

    Raises:
        IntegrityError: One of them cannot be read.
    """
    found = []
    for path in sorted(folder.glob("*/decision.json")):
        try:
            data = path.read_bytes()
            told = json.loads(data)
            found.append(
                Decided(
                    run_id=str(told["run_id"]),
                    at=str(told["audit"]["ended_at"]),
                    question=str(told["audit"]["question"]["text"]),
                    options=dict(told["options"]),
                    outcome=str(told["outcome"]),
                    winner=told["winner"],
                    ballots=tuple((vote["role"], vote["option"]) for vote in told["votes"] if vote["option"]),
                    simulated=bool(told["simulated"]),
                    sha256=sha256_hex(data),
                )
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise IntegrityError(
                f"{path} is no decision: {reason(error)}", hint="Decide again with the same words: it is made anew."
            ) from error
    return sorted(found, key=lambda one: (one.at, one.run_id))


def read_outcomes(path: Path) -> tuple[Resolved, ...]:
    """Return every recorded outcome, oldest first.

    Raises:
        DataError: The log cannot be read.
        IntegrityError: A line was changed or taken out; it is named.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}", hint="Check its permissions.") from error
    found: list[Resolved] = []
    previous: str | None = None
    for number, line in enumerate(lines, start=1):
        try:
            one = Resolved.model_validate_json(line)
        except ValidationError as error:
            raise IntegrityError(
                f"line {number} of {path} is no outcome: {reason(error)}", hint="Restore the log from a copy."
            ) from error
        if one.previous_sha256 != previous:
            raise IntegrityError(
                f"line {number} of {path} does not follow the line before it",
                hint="A line was changed or taken out; restore the log from a copy.",
            )
        previous = sha256_hex(line)
        found.append(one)
    return tuple(found)


def latest(outcomes: Sequence[Resolved]) -> dict[str, Resolved]:
    """Return the outcome that counts of every decision: the last one recorded.

    Example:
        >>> latest(())
        {}
    """
    return {one.run_id: one for one in outcomes}


def resolve(
    path: Path, decided: Decided, outcome: str | None, *, note: str, at: AwareDatetime, corrects: bool = False
) -> Resolved:
    """Record what became of a decision, and return the record.

    Args:
        path: The log.
        decided: The decision.
        outcome: Id or label of the option that turned out right; None where nobody can know.
        note: Where that is known from, or why it cannot be.
        at: Now.
        corrects: It takes the place of an earlier record, which stays.

    Raises:
        ConfigError: There is no such option (the nearest one is named), or the note is empty.
        PlanError: The outcome is recorded already and this is no correction, or there is nothing to correct.
        IntegrityError: The log was changed.
        DataError: It cannot be written; nothing was recorded.
    """
    named = {**{label: option for option, label in decided.options.items()}, **{name: name for name in decided.options}}
    if outcome is not None and outcome not in named:
        raise ConfigError(f'the decision has no option "{outcome}"', hint=nearest(outcome, named))
    if not note.strip():
        raise ConfigError("an outcome without a note", hint="Say where it is known from, with --note.")
    with _locked(path):
        before = read_outcomes(path)
        known = latest(before).get(decided.run_id)
        if known is not None and not corrects:
            raise PlanError(
                f"the outcome of {decided.run_id} was recorded on {known.at:%Y-%m-%d}",
                hint="--correct records another beside it; both stay.",
            )
        if known is None and corrects:
            raise PlanError(f"no outcome of {decided.run_id} is recorded", hint="Leave --correct out.")
        data = path.read_bytes() if before else b""
        previous = sha256_hex(data.splitlines()[-1]) if before else None
        made = Resolved(
            at=at,
            run_id=decided.run_id,
            outcome=None if outcome is None else named[outcome],
            note=note.strip(),
            corrects=corrects,
            decision_sha256=decided.sha256,
            previous_sha256=previous,
        )
        line = json_line(made.model_dump(mode="json"))
        write_whole(path, lambda target: target.write_bytes(data + line))
    return made


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time append: two outcomes at once would both follow the same line."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_suffix(".lock").open("wb") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise DataError(
            f"{path} cannot be written: {reason(error)}", hint="Nothing was recorded; check permissions and space."
        ) from error


def _outcome(decided: Decided, known: Mapping[str, Resolved]) -> str | None:
    record = known.get(decided.run_id)
    if record is None:
        return None
    if record.decision_sha256 != decided.sha256:
        raise IntegrityError(
            f"the record of {decided.run_id} was changed after its outcome was recorded",
            hint="Decide again with the same words to write it anew, or resolve it again with --correct.",
        )
    return record.outcome


def hit_rate(decisions: Sequence[Decided], outcomes: Sequence[Resolved]) -> HitRate:
    """Return how often the panel's winner turned out right.

    Raises:
        IntegrityError: A decision's record was changed after its outcome was recorded.

    Example:
        >>> hit_rate((), ()).n
        0
    """
    known = latest(outcomes)
    right = n = unknown = 0
    without: Counter[str] = Counter()
    for one in decisions:
        outcome = _outcome(one, known)
        if outcome is None:
            unknown += 1
        elif one.winner is None:
            without[one.outcome] += 1
        else:
            n += 1
            right += one.winner == outcome
    low, high = wilson(k=right, n=n) if n else (None, None)
    return HitRate(right, n, low, high, dict(without), unknown)


def earned_weights(
    decisions: Sequence[Decided], outcomes: Sequence[Resolved], roles: Iterable[str] = (), *, least: int = LEAST
) -> dict[str, EarnedWeight]:
    """Return the weights that voters earned, by role: the log-odds of being right (Nitzan & Paroush 1982).

    A voter's share of right ballots is shrunk by one right and one wrong ballot. Under ``least`` resolved ballots it
    has the weight of all voters together. Voters worse than chance have weight 0.

    Args:
        decisions: Simulated ones, or real ones: one never teaches about the other.
        outcomes: What became of them.
        roles: Voters to be weighed beside those who voted.
        least: Resolved ballots that a weight of one's own needs.

    Raises:
        PlanError: Simulated and real decisions are mixed.
        IntegrityError: A decision's record was changed after its outcome was recorded.

    Example:
        >>> earned_weights((), (), ["optimist"])["optimist"].flags
        ('pooled',)
    """
    if len({one.simulated for one in decisions}) > 1:
        raise PlanError("simulated and real decisions are mixed", hint="One never teaches about the other.")
    known = latest(outcomes)
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for one in decisions:
        outcome = _outcome(one, known)
        for role, option in one.ballots if outcome is not None else ():
            total[role] += 1
            right[role] += option == outcome
    pooled = _log_odds(right.total(), total.total())
    made = {}
    for role in sorted({*total, *roles}):
        few = total[role] < least
        weight = pooled if few else _log_odds(right[role], total[role])
        flags = (*(["pooled"] if few else []), *(["worse_than_chance"] if weight < 0 else []))
        made[role] = EarnedWeight(role, right[role], total[role], max(weight, 0.0), flags)
    return made


def _log_odds(right: int, n: int) -> float:
    return math.log((right + 1) / (n - right + 1))
