"""What a decision came to: the winner or why there is none, by which step, who dissents, and what it cost."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any, Final, Literal

from consilience.aggregation.minority import MarginOfVictory

Outcome = Literal["winner", "tie", "no_decision", "no_quorum"]
SINGLE: Final = "single_agent"
STRONG: Final = Fraction("0.66")
WEAK: Final = Fraction("0.51")


@dataclass(frozen=True)
class Vote:
    """One ballot.

    Attributes:
        seat: The voter's label.
        role: Its role.
        model: The model that spoke.
        option: Id of its choice; None where it cast no ballot.
        confidence: As it says, uncalibrated.
        rationale: Its reasons.
        risks: What could go wrong with its choice: text and whether it is critical.
        why: Why it cast none; None where it did.
    """

    seat: str
    role: str
    model: str
    option: str | None
    confidence: float | None
    rationale: str
    risks: tuple[tuple[str, bool], ...]
    why: str | None


@dataclass(frozen=True)
class Step:
    """One step of the ladder.

    Attributes:
        name: ``quick_vote``, ``full_vote``, ``full_debate`` (once per pass), ``tie_rule`` or ``single_agent``.
        decided: It settled the matter.
        record: What was counted.
        calls: Calls of its turns.
        cost_usd: Their cost at list price; None where unknown.
    """

    name: str
    decided: bool
    record: dict[str, Any]
    calls: int
    cost_usd: float | None


@dataclass(frozen=True)
class Flip:
    """A voter whose last ballot is not its first.

    Attributes:
        seat: Its label.
        role: Its role.
        before: Id of its first choice.
        after: Id of its last.
        heard: What others said about its vote before it moved: their labels and points.
    """

    seat: str
    role: str
    before: str
    after: str
    heard: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class DecisionResult:
    """What a decision came to, and its audit record.

    Attributes:
        outcome: ``winner``, ``tie``, ``no_decision`` or ``no_quorum``.
        winner: Id of the option; None without one.
        needs_human: Only a person can settle it.
        among: Ids of the options still in question, where there is no winner or the tie rule chose it.
        step: The step that decided; None where none did.
        decided_by: The method, or what of the tie rule settled it; None without a winner.
        method: The method that counted.
        agreement_share: Share of the valid ballots behind the winner, exact; no confidence. None without a ballot.
        heads: Ballots behind it, and valid ballots.
        counts: Valid ballots behind each option; for approval a ballot stands behind all it approves.
        is_strong: At least .66 of several heads, and no tie rule.
        review: Why a person should look at it; empty where nothing asks for it.
        completed: Voters that cast a ballot.
        missing: Why each other voter did not, by seat.
        votes: The last ballot of every voter asked.
        steps: The ladder, in order.
        minority: Every ballot that does not stand behind the winner; empty says that nobody dissented.
        would_have_won: By option, the methods under which it alone wins these ballots.
        margin: How many voters would have had to vote otherwise; None where it was not counted.
        flips: Voters that moved.
        necessity: Whether a panel is justified, with its score, and hints.
        cost_usd: At list price; None where unknown.
        full_path_usd: What every step is foreseen to cost: what was spent, and turns not taken by what turns of their
            kind took here beside their foresight, or all turns where none was taken; None where unknown.
        duration_s: From the first call to the last answer, as the models tell.
        options: Label by id.
        audit: Session, times, agents (``sampling``: the effort asked for, and other parameters, of which none is sent:
            the vendor's own hold), rules with their hash, ballots by round, journal head.
        simulated: No real model spoke.
        warnings: What makes the panel less than one, and what models say of themselves.
        run_id: The run that holds the record.
    """

    outcome: Outcome
    winner: str | None
    needs_human: bool
    among: tuple[str, ...]
    step: str | None
    decided_by: str | None
    method: str
    agreement_share: Fraction | None
    heads: tuple[int, int]
    counts: dict[str, int]
    is_strong: bool
    review: tuple[str, ...]
    completed: tuple[str, ...]
    missing: dict[str, str]
    votes: tuple[Vote, ...]
    steps: tuple[Step, ...]
    minority: tuple[Vote, ...]
    would_have_won: dict[str, tuple[str, ...]]
    margin: MarginOfVictory | None
    flips: tuple[Flip, ...]
    necessity: dict[str, Any]
    cost_usd: float | None
    full_path_usd: float | None
    duration_s: float | None
    options: dict[str, str]
    audit: dict[str, Any]
    simulated: bool
    warnings: tuple[str, ...]
    run_id: str

    @property
    def requires_human_review(self) -> bool:
        """Whether a person should look at it."""
        return bool(self.review)

    def case_for(self) -> dict[str, dict[str, list[str]]]:
        """Return, by option still in question, what voters said for it and what could go wrong with it."""
        asked = self.among or tuple(self.options)
        return {
            option: {
                "for": [vote.rationale for vote in self.votes if vote.option == option],
                "against": [text for vote in self.votes if vote.option == option for text, _ in vote.risks],
            }
            for option in asked
        }

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values; shares are exact, such as ``"2/3"``."""
        told = asdict(self)
        share = self.agreement_share
        told |= {
            "agreement_share": None if share is None else str(share),
            "requires_human_review": self.requires_human_review,
            "case_for": self.case_for() if self.needs_human else None,
            "minority_says": None if self.minority else "nobody dissented",
        }
        plain: dict[str, Any] = json.loads(json.dumps(told, default=str))
        return plain


def decided_at(result: DecisionResult) -> datetime:
    """Return when a decision was made."""
    return datetime.fromisoformat(str(result.audit["ended_at"]))
