"""What came of one question: the answer, each member's, who differed, what it took, and where the record is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.aggregation.answers import (
    NUMBER_COLUMNS,
    OPTION_PREFIX,
    AnswerRow,
    aggregate_answers,
    default_rule,
)
from consilience.aggregation.dissent import dissenters
from consilience.aggregation.distributions import Pooled
from consilience.aggregation.tallies import Tally
from consilience.core.answers import AnyAnswer, Choice, Distribution, Estimate, Probability
from consilience.core.question import Kind, Question
from consilience.errors import IntegrityError, NeedsHumanError, QuorumError
from consilience.experiments.orders import RunReport

if TYPE_CHECKING:
    import polars as pl

ANSWERS: dict[Kind, type[AnyAnswer]] = {
    "estimate": Estimate,
    "probability": Probability,
    "distribution": Distribution,
    "choice": Choice,
}


@dataclass(frozen=True)
class Member:
    """One member of the panel and what it answered last.

    Attributes:
        seat: Its label, by which the others know it.
        role: Its role.
        model: The model that speaks for it.
        status: ``answered``, ``abstained``, ``unreadable`` or ``failed``.
        answer: Its latest valid answer; None when it never gave one.
        why: Why it has no answer; None when it has.
        carried_from_round: The round of the answer when its last revision gave none.
    """

    seat: str
    role: str
    model: str
    status: str
    answer: AnyAnswer | None
    why: str | None
    carried_from_round: int | None


@dataclass(frozen=True)
class Dissent:
    """One answer that differs from the panel's, with its reasons.

    Attributes:
        member: Who differs.
        reasons: Its reasoning, at most 120 words.
        counterarguments: What it holds against its own answer.
    """

    member: Member
    reasons: str
    counterarguments: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """What came of one question.

    Attributes:
        question: As asked, options with their ids.
        status: ``answered``, or why there is no answer: ``no_quorum``, or a single seat's own outcome.
        row: The panel's answer under the primary rule of its kind; None when there is no answer.
        members: Everybody, in seat order.
        rounds: Round by round, from the independent answers on, what each seat newly answered in it.
        minority_report: Every answer that differs from the panel's; empty when nobody dissented.
        diagnostics: Spread by round, who moved toward whom, which evidence is shared; None for a single answer.
        models: The models asked.
        simulated: No real model spoke.
        cost_usd: At list price; None when any price or usage is unknown.
        tokens: All tokens; None when unknown.
        calls: Calls made now: 0 when the question had been answered before.
        warnings: What makes the panel less than one.
        run_id: The run that holds the record.
        folder: Its folder.
    """

    question: Question
    status: str
    row: AnswerRow | None
    members: tuple[Member, ...]
    rounds: tuple[tuple[int, Mapping[str, AnyAnswer]], ...]
    minority_report: tuple[Dissent, ...]
    diagnostics: dict[str, Any] | None
    models: tuple[str, ...]
    simulated: bool
    cost_usd: float | None
    tokens: int | None
    calls: int
    warnings: tuple[str, ...]
    run_id: str
    folder: Path

    @property
    def rule(self) -> str:
        """The rule, fixed beforehand, that makes one answer of several."""
        return default_rule(self.question.kind, len(self.members))

    @property
    def value(self) -> float | dict[str, float] | str | None:
        """The answer: a number, a probability, ``{label: probability}`` or a label; None on a tie or without one."""
        if self.question.kind == "choice":
            return self.choice
        if self.question.kind == "distribution":
            return self.distribution
        return None if self.row is None else float(self.row.headline)

    @property
    def probability(self) -> float | None:
        """The probability of yes; None for other kinds or without an answer."""
        return None if self.row is None or self.question.kind != "probability" else float(self.row.headline)

    @property
    def quantiles(self) -> tuple[float, ...] | None:
        """The five quantiles of an estimate at .05, .25, .50, .75, .95; None for other kinds or without an answer."""
        return None if self.row is None or self.row.interval is None else self.row.interval[1]

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 90 % interval of an estimate; None for other kinds or without an answer."""
        quantiles = self.quantiles
        return None if quantiles is None else (quantiles[0], quantiles[-1])

    @property
    def distribution(self) -> dict[str, float] | None:
        """Probabilities by label; None for other kinds or without an answer."""
        if self.row is None or not isinstance(self.row.made, Pooled):
            return None
        return {self.label(option): p for option, p in self.row.made.probabilities.items()}

    @property
    def tally(self) -> Tally | None:
        """The count of a vote, by option id; None for other kinds or without an answer."""
        return self.row.made if self.row is not None and isinstance(self.row.made, Tally) else None

    @property
    def choice(self) -> str | None:
        """The label of the option that won; None on a tie, for other kinds or without an answer."""
        tally = self.tally
        return None if tally is None or tally.winner is None else self.label(tally.winner)

    @property
    def tied(self) -> tuple[str, ...]:
        """The labels of the options that tied; empty when one won."""
        tally = self.tally
        return () if tally is None or tally.winner is not None else tuple(map(self.label, tally.winners))

    @property
    def agreement_share(self) -> Fraction | None:
        """The exact share of the ballots behind the winner, or behind each of the tied; None for other kinds."""
        tally = self.tally
        return None if tally is None else tally.agreement_share

    @property
    def why(self) -> str | None:
        """Why there is no answer; None when there is one."""
        if self.row is not None:
            return None
        silent = [member for member in self.members if member.answer is None]
        reasons: dict[str, list[str]] = {}
        for member in silent:
            reasons.setdefault(f"{member.status}: {member.why}", []).append(member.seat)
        told = "; ".join(f"{', '.join(seats)} {reason}" for reason, seats in reasons.items())
        return f"{len(self.members) - len(silent)} of {len(self.members)} answered and more than half must; {told}"

    @property
    def trace(self) -> Path:
        """The transcript: every turn with its replies, hashes, tokens and cost."""
        return self.folder / "transcripts" / f"{self.question.id}.json"

    def label(self, option_id: str) -> str:
        """Return the label of an option."""
        return next(option.label for option in self.question.options if option.id == option_id)

    @property
    def unsettled(self) -> QuorumError | NeedsHumanError | None:
        """Why no answer stands alone, as an error: no quorum, or a tie. None where one does."""
        if self.row is None:
            return QuorumError(
                f"the panel has no answer: {self.why}",
                hint="Ask again with --retry-failed (retry_failed=True), or give the panel more to go by.",
            )
        if self.tied:
            return NeedsHumanError(
                f"the vote is tied between {' and '.join(self.tied)}",
                hint="Only a person can settle it; no lot is drawn.",
            )
        return None

    def demand(self) -> AnswerRow:
        """Return the panel's answer.

        Raises:
            QuorumError: There is none.
        """
        if self.row is None:
            raise self.unsettled or TypeError("there is neither an answer nor a reason")
        return self.row

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values; options stand under their ids, shares of ballots as exact fractions."""
        return {
            "question": self.question.model_dump(mode="json"),
            "status": self.status,
            "why": self.why,
            "simulated": self.simulated,
            "rule": self.rule,
            "value": None if self.row is None else self.row.headline,
            "quantiles": None if self.quantiles is None else list(self.quantiles),
            "record": None if self.row is None else self.row.record(),
            "members": [_member_json(member) for member in self.members],
            "minority_report": [
                {"seat": one.member.seat, "reasons": one.reasons, "counterarguments": list(one.counterarguments)}
                for one in self.minority_report
            ],
            "diagnostics": self.diagnostics,
            "models": list(self.models),
            "cost_usd": self.cost_usd,
            "tokens": self.tokens,
            "calls": self.calls,
            "warnings": list(self.warnings),
            "run_id": self.run_id,
            "folder": str(self.folder),
            "trace": str(self.trace),
        }

    def to_polars(self) -> pl.DataFrame:
        """Return a row per answer: seat, role, model, round, the answer's numbers, and whether the last one differs.

        Numbers stand in ``point, q05 … q95``, ``p_yes``, ``choice`` and ``confidence``, or ``option:<id>``, by kind.
        """
        import polars as pl  # noqa: PLC0415 - heavy, and only for who asks for it

        by_seat = {member.seat: member for member in self.members}
        differing = {one.member.seat for one in self.minority_report}
        rows = [
            {
                "seat": seat,
                "role": by_seat[seat].role,
                "model": by_seat[seat].model,
                "round": number,
                **_cells(answer),
                "differs": seat in differing if answer == by_seat[seat].answer else None,
            }
            for number, said in self.rounds
            for seat, answer in said.items()
            if seat in by_seat
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def _repr_html_(self) -> str:
        from consilience.api.notebook import html_of  # noqa: PLC0415 - only where a notebook shows it

        return html_of(self)


def _cells(answer: AnyAnswer) -> dict[str, float | str]:
    """Return what an answer says, by column."""
    if isinstance(answer, Estimate):
        return {name: getattr(answer, name) for name in NUMBER_COLUMNS}
    if isinstance(answer, Distribution):
        return {f"{OPTION_PREFIX}{option}": p for option, p in answer.as_dict().items()}
    if isinstance(answer, Choice):
        return {"choice": answer.choice, "confidence": answer.confidence}
    return {"p_yes": answer.p_yes}


def _member_json(member: Member) -> dict[str, Any]:
    answer = None if member.answer is None else member.answer.model_dump(mode="json")
    return {**vars(member), "answer": answer}


def result_of(report: RunReport, question: Question) -> Result:
    """Return what a run of one question came to, from what the run left.

    Raises:
        IntegrityError: The transcript it left cannot be read.
    """
    path = report.folder / "transcripts" / f"{question.id}.json"
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise IntegrityError(f"{path} cannot be read: {error}", hint="Ask again: it is made anew.") from error
    members = _members(told, question)
    answers = [(member.seat, member.answer) for member in members if member.answer is not None]
    row = None
    if told["status"] == "answered":
        rows = aggregate_answers(question, answers)
        row = next(row for row in rows if row.rule == default_rule(question.kind, len(members)))
    differing = () if row is None else dissenters(row, answers)
    tokens = told["totals"]["tokens"]
    return Result(
        question=question,
        status=told["status"],
        row=row,
        members=members,
        rounds=rounds_of(told["turns"], question),
        minority_report=tuple(_dissent(member) for member in members if member.seat in differing),
        diagnostics=told["diagnostics"],
        models=tuple(report.manifest["models"]),
        simulated=report.manifest["simulated"],
        cost_usd=told["totals"]["cost_usd"],
        tokens=None if tokens is None else sum(tokens.values()),
        calls=report.calls,
        warnings=(*report.manifest["said_of_models"], *report.manifest["panel_warnings"]),
        run_id=report.run_id,
        folder=report.folder,
    )


def _members(told: Mapping[str, Any], question: Question) -> tuple[Member, ...]:
    final = {row["seat"]: row for row in told["final"]}
    return tuple(
        Member(
            **seated,
            status=told["without_answer"].get(seated["seat"], "answered"),
            answer=_answer(final[seated["seat"]]["answer"], question),
            why=_why(told["turns"], seated["seat"]) if seated["seat"] in told["without_answer"] else None,
            carried_from_round=final[seated["seat"]]["carried_from_round"],
        )
        for seated in told["committee"]
        if seated["seat"] in final  # advocates argue and answer nothing
    )


def _answer(stored: Mapping[str, Any] | None, question: Question) -> AnyAnswer | None:
    return None if stored is None else ANSWERS[question.kind].model_validate(stored, strict=False)


def rounds_of(
    turns: Sequence[Mapping[str, Any]], question: Question
) -> tuple[tuple[int, Mapping[str, AnyAnswer]], ...]:
    """Return by round what each seat answered in it, from the turns of a transcript; samples of one agent are none."""
    found: dict[int, dict[str, AnyAnswer]] = {}
    for turn in turns:
        if turn["outcome"].get("said_type") == question.kind and turn["sample"] == 0:
            answer = ANSWERS[question.kind].model_validate(turn["outcome"]["said"], strict=False)
            found.setdefault(turn["round"], {})[turn["seat"]] = answer
    return tuple(sorted(found.items()))


def _why(turns: Sequence[Mapping[str, Any]], seat: str) -> str:
    """Return why a member has no answer, from the last turn that should have given one."""
    outcome = [turn["outcome"] for turn in turns if turn["seat"] == seat and turn["kind"] != "critique"][-1]
    if outcome["status"] == "abstained":
        return str(outcome["said"]["reason"])
    return "; ".join(outcome["problems"]) if outcome["status"] == "unreadable" else str(outcome["message"])


def _dissent(member: Member) -> Dissent:
    if member.answer is None:
        raise TypeError(f"{member.seat} has no answer that could differ")
    return Dissent(member, member.answer.reasoning_summary, member.answer.counterarguments)
