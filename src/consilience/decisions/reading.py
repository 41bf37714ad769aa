"""A decision's run read as its result: the votes, the ladder, who dissented and moved, and what it cost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from consilience.aggregation.ballots import Ballot, ballot_of
from consilience.aggregation.minority import MOST_SEATS, MarginOfVictory, margin_of_victory, would_have_won
from consilience.aggregation.tallies import VoteRule
from consilience.aggregation.votes import VOTE_RULES
from consilience.core.answers import Choice
from consilience.core.canonical import tagged_hash
from consilience.core.panel import seating_of
from consilience.decisions.decide import Prepared
from consilience.decisions.result import SINGLE, STRONG, WEAK, DecisionResult, Flip, Step, Vote
from consilience.errors import IntegrityError, reason
from consilience.experiments.orders import RunReport
from consilience.journal.events import Where
from consilience.journal.reader import read_events
from consilience.models.prices import NANO
from consilience.protocols.escalation import DEBATE, FULL, QUICK, TIE, Escalation
from consilience.runtime.briefing import Briefing

STEP_OF = {"critique": DEBATE, "revision": DEBATE, "moderation": TIE}


def result_of(prepared: Prepared, report: RunReport) -> DecisionResult:
    """Return what a decision's run came to, from what the run left.

    Raises:
        IntegrityError: The transcript it left cannot be read.
    """
    job = prepared.job
    (item,) = job.items
    path = job.folder / "transcripts" / f"{item.question.id}.json"
    try:
        told: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise IntegrityError(
            f"{path} cannot be read: {reason(error)}", hint="Decide again: it is made anew."
        ) from error
    made = _Made(prepared, report, told)
    return made.result()


def ballot_turns(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every turn of a transcript in which a ballot was asked for, with what it came to."""
    return [
        {"seat": turn["seat"], "round": turn["round"], "kind": turn["kind"], "outcome": turn["outcome"]}
        for turn in told["turns"]
        if turn["kind"] in {"estimate", "revision", "moderation"}
    ]


def voted(
    ladder: Escalation | None, members: Sequence[str], told: Mapping[str, Any], options: Collection[str]
) -> dict[str, str]:
    """Return the option that each valid ballot of a transcript's last vote chooses, by seat, in the order asked."""
    counted = {ballot.seat: ballot.first for ballot in _cast(ladder, members, told, options)}
    rows = ((row["seat"], counted.get(row["seat"])) for row in told["final"])
    return {seat: option for seat, option in rows if option is not None}


def _cast(
    ladder: Escalation | None, members: Sequence[str], told: Mapping[str, Any], options: Collection[str]
) -> tuple[Ballot, ...]:
    own = {} if ladder is None else dict(zip(members, ladder.own, strict=False))
    cast = [ballot_of(seat, said, own=own.get(seat) or None) for seat, said in _said(told).items()]
    return _rule(ladder).split(ballots=cast, options=tuple(options))[0] if cast else ()


def _said(told: Mapping[str, Any]) -> dict[str, Choice]:
    return {
        row["seat"]: Choice.model_validate(row["answer"], strict=False)
        for row in told["final"]
        if row["answer"] is not None
    }


def _rule(ladder: Escalation | None) -> VoteRule:
    return VOTE_RULES["plurality"] if ladder is None else ladder.rule()


class _Made:
    """A result in the making."""

    def __init__(self, prepared: Prepared, report: RunReport, told: Mapping[str, Any]) -> None:
        self.prepared, self.report, self.told = prepared, report, told
        (item,) = prepared.job.items
        self.item, self.plan = item, prepared.job.plan
        protocol = self.plan.make_protocol()
        self.ladder = protocol if isinstance(protocol, Escalation) else None
        seats = self.plan.seats(item.question.id)
        self.members = seating_of(seats).members
        self.seats = {seat.label: seat for seat in seats}
        self.ids = tuple(option.id for option in item.question.options)
        self.course: Mapping[str, Any] = told["course"] if self.ladder is not None else self._single()

    def _single(self) -> dict[str, Any]:
        """Return the course of one agent that answered alone."""
        (row,) = self.told["final"]
        winner = None if row["answer"] is None else row["answer"]["choice"]
        outcome = "no_quorum" if winner is None else "winner"
        step = {"step": SINGLE, "asked": [row["seat"]], "decided": winner is not None}
        return {
            "outcome": outcome,
            "winner": winner,
            "step": SINGLE if winner is not None else None,
            "decided_by": SINGLE if winner is not None else None,
            "among": [],
            "needs_human": False,
            "steps": [step],
        }

    def result(self) -> DecisionResult:
        course, votes = self.course, self._votes()
        winner = course["winner"]
        ballots, behind = self._ballots(), self._behind()
        counts = {option: sum(option in stood for stood in behind.values()) for option in self.ids}
        heads = counts[winner] if winner is not None else max(counts.values())
        share = Fraction(heads, len(ballots)) if ballots else None
        minority = tuple(vote for vote in votes if vote.option is not None and winner not in behind[vote.seat])
        missing = {vote.seat: vote.why or "" for vote in votes if vote.option is None}
        by_tie = course["step"] == TIE
        several = len(self.members) > 1
        totals = self.told["totals"]
        return DecisionResult(
            outcome=course["outcome"],
            winner=winner,
            needs_human=course["needs_human"],
            among=tuple(course["among"]),
            step=course["step"],
            decided_by=course["decided_by"],
            method=SINGLE if self.ladder is None else self.ladder.method,
            agreement_share=share,
            heads=(heads, len(ballots)),
            counts=counts,
            is_strong=winner is not None and several and not by_tie and share is not None and share >= STRONG,
            review=tuple(self._review(share, minority, missing)),
            completed=tuple(vote.seat for vote in votes if vote.option is not None),
            missing=missing,
            votes=votes,
            steps=self._steps(),
            minority=minority,
            would_have_won=self._otherwise(ballots),
            margin=self._margin(ballots),
            flips=self._flips(),
            necessity=asdict(self.prepared.need),
            cost_usd=totals["cost_usd"],
            full_path_usd=self._full_path(totals["cost_usd"]),
            duration_s=totals["latency_s"],
            options={option.id: option.label for option in self.item.question.options},
            audit=self._audit(),
            simulated=self.plan.simulated,
            warnings=(*self.report.manifest["said_of_models"], *self.report.manifest["panel_warnings"]),
            run_id=self.report.run_id,
        )

    def _answers(self) -> dict[str, Choice]:
        return _said(self.told)

    def _ballots(self) -> list[Ballot]:
        return list(_cast(self.ladder, self.members, self.told, self.ids))

    def _behind(self) -> dict[str, tuple[str, ...]]:
        """Return the options that each ballot stands behind under the method, by seat."""
        rule = _rule(self.ladder)
        return {ballot.seat: rule.behind(ballot) for ballot in self._ballots()}

    def _votes(self) -> tuple[Vote, ...]:
        said, counted = self._answers(), {ballot.seat: ballot for ballot in self._ballots()}
        asked = [row["seat"] for row in self.told["final"]]
        return tuple(self._vote(seat, said.get(seat), counted.get(seat)) for seat in asked)

    def _vote(self, label: str, said: Choice | None, ballot: Ballot | None) -> Vote:
        seat = self.seats[label]
        return Vote(
            seat=label,
            role=seat.role.id,
            model=seat.model,
            option=None if ballot is None else ballot.first,
            confidence=None if said is None else said.confidence,
            rationale="" if said is None else said.rationale or said.reasoning_summary,
            risks=() if said is None else tuple((risk.text, risk.critical) for risk in said.risks),
            why=self._why(label, said) if ballot is None else None,
        )

    def _why(self, label: str, said: Choice | None) -> str:
        if said is not None:
            return f"its ballot is none under {self.course['decided_by'] or 'the method'}"
        turns = [turn for turn in self.told["turns"] if turn["seat"] == label and turn["kind"] != "critique"]
        outcome = turns[-1]["outcome"]
        why = (
            outcome.get("message")
            or "; ".join(outcome.get("problems", ()))
            or outcome.get("said", {}).get("reason", "")
        )
        return f"{outcome['status']}: {why}"

    def _review(self, share: Fraction | None, minority: Sequence[Vote], missing: Mapping[str, str]) -> list[str]:
        reasons = [] if self.course["winner"] is not None else [f"there is no winner: {self.course['outcome']}"]
        if share is not None and share < WEAK:
            reasons.append(f"agreement share {share} of heads is below .51")
        critical = [vote for vote in minority if any(grave for _, grave in vote.risks)]
        reasons += [f"{vote.role} dissents and marks a risk as critical" for vote in critical]
        if missing:
            reasons.append(
                f"the panel is degraded: {len(missing)} of {len(missing) + len(self._ballots())} cast no ballot"
            )
        return reasons

    def _steps(self) -> tuple[Step, ...]:
        names = [step["step"] for step in self.course["steps"]]
        quick = set(self.course["steps"][0]["asked"]) if names[0] == QUICK else set()
        debates = [index for index, name in enumerate(names) if name == DEBATE]
        turns: list[list[Mapping[str, Any]]] = [[] for _ in names]
        for turn in self.told["turns"]:
            name = STEP_OF.get(turn["kind"]) or (
                QUICK if turn["seat"] in quick else FULL if FULL in names else names[0]
            )
            at = debates[turn["round"] - 1] if name == DEBATE else names.index(name)
            turns[at].append(turn)
        return tuple(self._step(step, taken) for step, taken in zip(self.course["steps"], turns, strict=True))

    def _step(self, step: Mapping[str, Any], turns: Sequence[Mapping[str, Any]]) -> Step:
        costs = [ask["cost_usd"] for turn in turns for ask in turn["asks"]]
        known = [cost for cost in costs if cost is not None]
        return Step(
            name=step["step"],
            decided=step["decided"],
            record={name: value for name, value in step.items() if name not in {"step", "decided"}},
            calls=len(costs),
            cost_usd=sum(known) if len(known) == len(costs) else None,
        )

    def _otherwise(self, ballots: Sequence[Ballot]) -> dict[str, tuple[str, ...]]:
        return would_have_won(ballots=ballots, options=self.ids, rules=VOTE_RULES) if ballots else {}

    def _margin(self, ballots: Sequence[Ballot]) -> MarginOfVictory | None:
        if self.ladder is None or not ballots or len(ballots) > MOST_SEATS or self.course["step"] in {QUICK, None, TIE}:
            return None
        weights = dict(zip(self.members, self.ladder.weights, strict=False)) or None
        return margin_of_victory(
            rule=self.ladder.rule(), ballots=ballots, options=self.ids, n_seats=len(self.members), weights=weights
        )

    def _flips(self) -> tuple[Flip, ...]:
        first = {
            turn["seat"]: turn["outcome"]["said"]["choice"]
            for turn in self.told["turns"]
            if turn["kind"] == "estimate" and turn["outcome"]["status"] == "answered"
        }
        return tuple(
            Flip(seat, self.seats[seat].role.id, first[seat], said.choice, self._heard(seat))
            for seat, said in self._answers().items()
            if seat in first and first[seat] != said.choice
        )

    def _heard(self, seat: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return tuple(
            (turn["seat"], tuple(critique["points"]))
            for turn in self.told["turns"]
            if turn["kind"] == "critique" and turn["outcome"]["status"] == "answered"
            for critique in turn["outcome"]["said"]["critiques"]
            if critique["target_role"] == seat
        )

    def _full_path(self, spent_usd: float | None) -> float | None:
        """Return what was spent and what the turns that were not taken are foreseen to cost.

        A turn's foresight is scaled by what the turns of its kind that were taken cost beside theirs, and where none
        was, by what all of them did: replies are foreseen at a length that few reach.
        """
        job = self.prepared.job
        settings = self.plan.settings(run_secret="")
        seats = self.plan.seats(self.item.question.id)
        briefing = Briefing(self.item, seats=seats, prompts=self.plan.prompts, settings=settings)
        taken = {
            Where(self.item.question.id, turn["round"], turn["seat"], turn["kind"], turn["sample"])
            for turn in self.told["turns"]
        }
        prices = {name: job.catalogue.spec(name).price for name in self.plan.models}
        protocol = self.plan.make_protocol()
        planned = {
            Where(self.item.question.id, one.turn.round, one.seat, one.turn.kind, one.turn.sample)
            for one in protocol.plan(seating_of(seats))
        }
        paid = Counter[str]()
        for turn in self.told["turns"]:
            paid[turn["kind"]] += sum(ask["cost_usd"] or 0 for ask in turn["asks"])

        def foreseen(some: Collection[Where]) -> int | None:
            return briefing.foreseen(protocol, prices, ended=planned.difference(some)).expected_nano

        total = spent_usd
        for kind in {one.kind for one in planned - taken}:
            alike = {one for one in taken if one.kind == kind}
            left, seen = foreseen({one for one in planned - taken if one.kind == kind}), foreseen(alike or taken)
            if total is None or left is None or seen is None:
                return None
            cost = paid[str(kind)] if alike else sum(paid.values())
            total += left / NANO * (cost / (seen / NANO) if seen else 1)
        return total

    def _audit(self) -> dict[str, Any]:
        times = [record.at for record in read_events(self.prepared.job.folder)]
        rules = {} if self.ladder is None else dict(vars(self.ladder))
        return {
            "session_id": self.report.run_id,
            "started_at": times[0],
            "ended_at": times[-1],
            "question": self.item.question.model_dump(mode="json"),
            "agents": [
                {
                    "seat": seat.label,
                    "role": seat.role.id,
                    "model": seat.model,
                    "framing": seat.role.framing,
                    "sampling": {"effort": self.plan.effort, "parameters": None},
                    "part": seat.part,
                }
                for seat in self.seats.values()
            ],
            "rules": rules,
            "rules_sha256": tagged_hash("decision rules", json.loads(json.dumps(rules))),
            "ballots": ballot_turns(self.told),
            "journal_head": self.report.manifest["journal_head"],
        }
