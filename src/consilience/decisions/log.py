"""The decisions log: what became of decisions, and what that says of the panel and of those who voted.

Hit rate and weights come from outcomes alone. That a voter agreed with the winner says nothing about either.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import AwareDatetime

from consilience.core.canonical import tagged_hash
from consilience.decisions.result import SINGLE
from consilience.errors import ConfigError, IntegrityError, PlanError, reason
from consilience.experiments.chained import ChainedLine, ChainedLog
from consilience.protocols.escalation import TIE
from consilience.registry import nearest
from consilience.scoring.summaries import wilson

OUTCOMES: Final = "decisions.jsonl"
COUNT: Final = "decisions_last.json"
"""Beside the log: the number of outcomes and the hash of the last, so that any taken out at its end are missed."""
LEAST: Final = 10
"""Below so many resolved ballots a voter has the weight of all voters together."""


class Resolved(ChainedLine):
    """What became of one decision.

    Attributes:
        at: When it was recorded.
        run_id: The decision.
        outcome: Id of the option that turned out right; None where nobody can know.
        note: Where that is known from, or why it cannot be.
        corrects: It takes the place of an earlier record of the same decision.
        decision_sha256: Hash of the decision at that time.
    """

    at: AwareDatetime
    run_id: str
    outcome: str | None
    note: str
    corrects: bool = False
    decision_sha256: str


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
        step: The step that decided; None where none did.
        ballots: Role and option id of each ballot of the last vote.
        simulated: No real model spoke.
    """

    run_id: str
    at: str
    question: str
    options: Mapping[str, str]
    outcome: str
    winner: str | None
    step: str | None
    ballots: tuple[tuple[str, str], ...]
    simulated: bool

    @property
    def sha256(self) -> str:
        """Hash of all that an outcome is compared with, which a later edition of the record's file leaves alone."""
        return tagged_hash("decided", {**vars(self), "options": dict(self.options)})


@dataclass(frozen=True)
class HitRate:
    """How often the panel was right.

    Attributes:
        right: Decisions whose winner turned out right.
        n: Decisions with a known outcome whose winner the panel's vote elected.
        low: Lower end of the 95 % Wilson interval; None without decisions.
        high: Upper end.
        without: Resolved decisions without such a winner, neither right nor wrong: by what they came to, or by the
            step that decided instead, ``tie_rule`` or ``single_agent``.
        unknown: Decisions whose outcome is not known yet.
        unknowable: Decisions whose outcome nobody can know.
    """

    right: int
    n: int
    low: float | None
    high: float | None
    without: Mapping[str, int]
    unknown: int
    unknowable: int


@dataclass(frozen=True)
class EarnedWeight:
    """The weight a voter earned.

    Attributes:
        role: The voter.
        right: Its ballots that turned out right.
        n: Its ballots in resolved decisions.
        weight: ``log(p / (1 - p))`` of its shrunken share of right ballots, at least 0.
        flags: ``pooled`` (too few ballots), ``worse_than_chance`` (the weight would be below 0 and is held there: a bad
            voter is not turned round), ``many_options`` (some of its ballots had more than two options to choose from,
            where an equal share of right ballots tells more than the weight says).
    """

    role: str
    right: int
    n: int
    weight: float
    flags: tuple[str, ...]


def decided_of(path: Path) -> tuple[dict[str, Any], Decided]:
    """Return a decision's file: all that it says, and what outcomes are compared with.

    Raises:
        IntegrityError: It cannot be read, or lies in the folder of another.
    """
    try:
        told = json.loads(path.read_bytes())
        if told["run_id"] != path.parent.name:
            raise ValueError(f"it is a copy of {told['run_id']}")  # noqa: TRY301 - told like any other flaw
        return told, Decided(
            run_id=str(told["run_id"]),
            at=str(told["audit"]["ended_at"]),
            question=str(told["audit"]["question"]["text"]),
            options=dict(told["options"]),
            outcome=str(told["outcome"]),
            winner=told["winner"],
            step=told["step"],
            ballots=tuple((vote["role"], vote["option"]) for vote in told["votes"] if vote["option"]),
            simulated=bool(told["simulated"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            f"{path} is no decision: {reason(error)}",
            hint="Decide again with the same words: it is made anew. A copy, take away.",
        ) from error


def read_outcomes(path: Path) -> tuple[Resolved, ...]:
    """Return every recorded outcome, oldest first.

    Raises:
        DataError: The log cannot be read.
        IntegrityError: A line was changed or taken out, the last ones too; it is named.
    """
    return _log(path).read()


def _log(path: Path) -> ChainedLog[Resolved]:
    return ChainedLog(path, path.with_name(COUNT), Resolved, "outcome", "recorded", "Nothing was recorded")


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
        ConfigError: There is no such option (the nearest one is named), several bear the label, or the note is empty.
        PlanError: The outcome is recorded already and this is no correction, or there is nothing to correct.
        IntegrityError: The log was changed.
        DataError: It cannot be written; nothing was recorded.
    """
    option = None if outcome is None else _option(decided, outcome)
    if not note.strip():
        raise ConfigError("an outcome without a note", hint="Say where it is known from, with --note.")
    with _log(path).opened() as log:
        known = latest(log.lines).get(decided.run_id)
        if known is not None and not corrects:
            raise PlanError(
                f"the outcome of {decided.run_id} was recorded on {known.at:%Y-%m-%d}",
                hint="--correct records another beside it; both stay.",
            )
        if known is None and corrects:
            raise PlanError(f"no outcome of {decided.run_id} is recorded", hint="Leave --correct out.")
        made = Resolved(
            at=at,
            run_id=decided.run_id,
            outcome=option,
            note=note.strip(),
            corrects=corrects,
            decision_sha256=decided.sha256,
            torn_bytes=log.torn_bytes,
            previous_sha256=log.previous_sha256,
        )
        log.append(made)
    return made


def _option(decided: Decided, said: str) -> str:
    """Return the id of the option that an id or a label names."""
    named = [option for option, label in decided.options.items() if said in {option, label}]
    if len(named) > 1:
        raise ConfigError(
            f'several options are called "{said}"',
            hint=f"Name one by what is its own alone, its id or its words; they are {_told(decided, named)}.",
        )
    if not named:
        known = (*decided.options, *decided.options.values())
        raise ConfigError(f'the decision has no option "{said}"', hint=nearest(said, known))
    return named[0]


def _told(decided: Decided, named: Sequence[str]) -> str:
    return ", ".join(f'{option} ("{decided.options[option]}")' for option in named)


def _check(decisions: Sequence[Decided]) -> None:
    """Raise where decisions cannot be counted together.

    Raises:
        PlanError: Simulated and real ones are mixed, or one is there twice.
    """
    if len({one.simulated for one in decisions}) > 1:
        raise PlanError("simulated and real decisions are mixed", hint="One never teaches about the other.")
    twice = [name for name, n in Counter(one.run_id for one in decisions).items() if n > 1]
    if twice:
        raise PlanError(f"decision {twice[0]} is there twice", hint="Each is counted once.")


def _record(decided: Decided, known: Mapping[str, Resolved]) -> Resolved | None:
    """Return what was recorded of a decision.

    Raises:
        IntegrityError: The decision was changed since.
    """
    record = known.get(decided.run_id)
    if record is not None and record.decision_sha256 != decided.sha256:
        raise IntegrityError(
            f"the record of {decided.run_id} was changed after its outcome was recorded",
            hint="Decide again with the same words to write it anew, or resolve it again with --correct.",
        )
    return record


def hit_rate(decisions: Sequence[Decided], outcomes: Sequence[Resolved]) -> HitRate:
    """Return how often the panel's winner turned out right.

    What the tie rule or one agent alone decided is no vote of the panel and counts apart. The interval takes decisions
    to be independent.

    Args:
        decisions: Simulated ones, or real ones.
        outcomes: What became of them.

    Raises:
        PlanError: Simulated and real decisions are mixed, or one is there twice.
        IntegrityError: A decision's record was changed after its outcome was recorded.

    Example:
        >>> hit_rate((), ()).n
        0
    """
    _check(decisions)
    known = latest(outcomes)
    right = n = unknown = unknowable = 0
    without: Counter[str] = Counter()
    for one in decisions:
        record = _record(one, known)
        if record is None:
            unknown += 1
        elif record.outcome is None:
            unknowable += 1
        elif one.winner is None:
            without[one.outcome] += 1
        elif one.step in {TIE, SINGLE}:
            without[one.step] += 1
        else:
            n += 1
            right += one.winner == record.outcome
    low, high = wilson(k=right, n=n) if n else (None, None)
    return HitRate(right, n, low, high, dict(without), unknown, unknowable)


def earned_weights(
    decisions: Sequence[Decided], outcomes: Sequence[Resolved], roles: Iterable[str] = (), *, least: int = LEAST
) -> dict[str, EarnedWeight]:
    """Return the weights that voters earned, by role: the log-odds of being right (Nitzan & Paroush 1982).

    The weight is ``log((r + 1) / (n - r + 1))`` of r right ballots out of n, which is the log-odds of the share shrunk
    by one right and one wrong ballot, a Beta(1, 1) prior. Under ``least`` resolved ballots a voter has the weight of
    all ballots together. Below 0 a weight is held at 0. Who won is not looked at. The weights are the best ones for two
    options and independent voters; for m options log(m - 1) would come on top of each (Ben-Yashar & Paroush 2001).

    Args:
        decisions: Simulated ones, or real ones: one never teaches about the other.
        outcomes: What became of them.
        roles: Voters to be weighed beside those who voted.
        least: Resolved ballots that a weight of one's own needs.

    Raises:
        PlanError: Simulated and real decisions are mixed, or one is there twice.
        IntegrityError: A decision's record was changed after its outcome was recorded.

    Example:
        >>> earned_weights((), (), ["optimist"])["optimist"].flags
        ('pooled',)
    """
    _check(decisions)
    known = latest(outcomes)
    right: Counter[str] = Counter()
    total: Counter[str] = Counter()
    many: set[str] = set()
    for one in decisions:
        record = _record(one, known)
        outcome = None if record is None else record.outcome
        for role, option in one.ballots if outcome is not None else ():
            total[role] += 1
            right[role] += option == outcome
            if len(one.options) > 2:
                many.add(role)
    pooled = _log_odds(right.total(), total.total())
    made = {}
    for role in sorted({*total, *roles}):
        few = total[role] < least
        weight = pooled if few else _log_odds(right[role], total[role])
        flags = {"pooled": few, "worse_than_chance": weight < 0, "many_options": role in many}
        told = tuple(flag for flag, holds in flags.items() if holds)
        made[role] = EarnedWeight(role, right[role], total[role], max(weight, 0.0), told)
    return made


def _log_odds(right: int, n: int) -> float:
    return math.log((right + 1) / (n - right + 1))
