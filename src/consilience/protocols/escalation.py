"""Votes that escalate: two members, then all, then a debate with a secret final vote, then a declared tie rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal

from consilience.aggregation.ballots import Ballot, ballot_of
from consilience.aggregation.heads import Supermajority
from consilience.aggregation.ranked import Borda
from consilience.aggregation.tallies import TOLERANCE, Score, Tally, VoteRule, leaders
from consilience.aggregation.ties import safest
from consilience.aggregation.votes import VOTE_RULES
from consilience.core.answers import Choice
from consilience.core.deliberation import Deliberation, Standing, Stopped, Table, first_table, present
from consilience.core.panel import seeded_order
from consilience.core.question import Kind, Question
from consilience.core.showing import Ask, Others, Planned, Seating, Shown
from consilience.core.turn import Turn, TurnKind
from consilience.errors import ConfigError, PlanError
from consilience.protocols.base import Protocol, Session, ask_all, critiques_said, planned_rounds
from consilience.registry import nearest

MODERATOR = "moderator"
QUICK, FULL, DEBATE, TIE = "quick_vote", "full_vote", "full_debate", "tie_rule"
TIE_RULES = ("safety_order", MODERATOR, "human", "random")
BY_SHARE = ("weighted", "confidence_weighted")
"""Methods whose strength is the share of their own scores; of all others it is the share of heads."""
ALL_ASKED = ("unanimity", "supermajority")
"""Methods that demand a share of everybody, so that two members cannot decide for all."""
MOST_PASSES = 3
REVEALS = ("positions", "arguments")


@dataclass(frozen=True)
class Escalation(Protocol):
    """The ladder of a decision: each step is taken only where the one before decided nothing.

    1. ``quick_vote``: the first members vote. A head majority (of two: both) with at least ``quick_share`` of the
       summed confidence, and where all agree that much mean confidence, decides, if by the method too it wins their
       ballots. Left out by methods that ask all.
    2. ``full_vote``: the others vote too. A winner by the method with at least ``full_share`` decides.
    3. ``full_debate``: critiques of the votes of step 2, then a secret final vote, by the same method and share. Only
       ballots cast in it count: who casts none has none, whatever it voted before. Below the quorum there is no result.
    4. The tie rule, in the declared order, among those that tie for the lead. Where one option leads and what is
       demanded was not reached there is no tie: no safety order and no lot overrules the lead, and a moderator may only
       confirm it.

    Attributes:
        method: Name of the vote rule.
        threshold: What a supermajority demands, such as ``2/3``; empty for the method's own.
        truncated: Whether Borda takes rankings that are cut short.
        quick: Members of the quick vote, at least 2; 0 leaves it out.
        quick_share: Share of confidence that a quick vote demands.
        full_share: Share that a full vote and a final vote demand.
        passes: Most passes of the debate, from 0 to 3.
        reveal: In the debate, votes with reasons (``positions``) or reasons alone (``arguments``).
        quorum: Valid ballots that are needed of all members; 0 for more than half.
        ties: The tie rule, in order, of ``safety_order``, ``moderator``, ``human`` and ``random``.
        safety_order: All option ids, safest first; needed by ``safety_order``.
        weights: Of the members, in seat order, declared before the vote; empty for equal ones.
        own: Of the members, in seat order, the option each may not vote for, empty for none; empty for nobody.
        draw: Seeds ``random``.

    Raises:
        ConfigError: Method or tie rule are unknown.
        PlanError: A parameter is out of range, or they contradict each other.

    Example:
        >>> seating = Seating(("a", "b", "c"), {"moderator": "m"})
        >>> [(planned.seat, planned.turn.kind) for planned in Escalation(passes=0).plan(seating)]
        [('a', 'estimate'), ('b', 'estimate'), ('c', 'estimate')]
    """

    name: ClassVar[str] = "escalation"
    kinds: ClassVar[tuple[Kind, ...]] = ("choice",)
    parts: ClassVar[tuple[str, ...]] = (MODERATOR,)
    method: str = "majority"
    threshold: str = ""
    truncated: Literal["refuse", "average"] = "refuse"
    quick: int = 2
    quick_share: float = 0.85
    full_share: float = 0.66
    passes: int = 1
    reveal: Literal["positions", "arguments"] = "positions"
    quorum: int = 0
    ties: tuple[str, ...] = ("safety_order", "human")
    safety_order: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    own: tuple[str, ...] = ()
    draw: int = 0

    def __post_init__(self) -> None:
        for name, value, known in (
            *(("tie rule", rule, TIE_RULES) for rule in self.ties),
            ("reveal", self.reveal, REVEALS),
        ):
            if value not in known:
                raise ConfigError(f'unknown {name} "{value}"', hint=nearest(value, known))
        shares = (self.quick_share, self.full_share)
        wrong = {
            "the tie rule names a step twice, or random before its end": len(set(self.ties)) != len(self.ties)
            or "random" in self.ties[:-1],
            "quick_share and full_share lie above 0, at most at 1": not all(0 < share <= 1 for share in shares),
            f"a debate has from 0 to {MOST_PASSES} passes": not 0 <= self.passes <= MOST_PASSES,
            "a quick vote has 2 members or more, or 0": self.quick < 0 or self.quick == 1,
            "a quorum is 0 (more than half) or more": self.quorum < 0,
            "only a supermajority has a threshold": bool(self.threshold) and self.method != "supermajority",
            "only the method weighted reads weights": bool(self.weights) and self.method != "weighted",
            "weights are numbers of at least 0, and not all of them 0": not all(
                math.isfinite(weight) and weight >= 0 for weight in self.weights
            )
            or (bool(self.weights) and not any(self.weights)),
        }
        for what, broken in wrong.items():
            if broken:
                raise PlanError(
                    f"escalation: {what}", hint="Mend the parameters; they are fixed before the first vote."
                )
        self.rule()

    def rule(self) -> VoteRule:
        """Return the rule that counts.

        Raises:
            ConfigError: No such method.
            PlanError: The threshold is no share.
        """
        rule = VOTE_RULES[self.method]
        if isinstance(rule, Supermajority) and self.threshold:
            try:
                share = Fraction(self.threshold)
            except (ValueError, ZeroDivisionError) as error:
                raise PlanError(f'the threshold "{self.threshold}" is no share', hint="Write such as 2/3.") from error
            if not Fraction(1, 2) < share <= 1:
                raise PlanError(f"the threshold is {self.threshold}", hint="Give more than 1/2, at most 1.")
            return replace(rule, threshold=share)
        return replace(rule, truncated=self.truncated) if isinstance(rule, Borda) else rule

    def seated(self, seating: Seating, question: Question) -> None:
        """Pass in silence where seats and options fit the declared order, weights and own options.

        Raises:
            PlanError: They do not.
        """
        ids = [option.id for option in question.options]
        n = len(seating.members)
        if self.safety_order and sorted(self.safety_order) != sorted(ids):
            raise PlanError("the safety order does not name every option once", hint=f"Order {', '.join(ids)}.")
        for name, values in (("weights", self.weights), ("own", self.own)):
            if values and len(values) != n:
                raise PlanError(f"{len(values)} {name} of {n} members", hint="Give one per member, in seat order.")
        if any(option and option not in ids for option in self.own):
            raise PlanError("a member's own option is none", hint=f"Options: {', '.join(ids)}.")
        if self.quick > max(n, 2):
            raise PlanError(f"a quick vote of {self.quick} of {n} members", hint="Ask fewer; 0 leaves it out.")
        if self.quorum > n:
            raise PlanError(f"a quorum of {self.quorum} of {n} members", hint="Ask more members, or lower it.")

    async def run(self, session: Session) -> Deliberation:
        """Take the steps of the ladder until one decides."""
        self.seated(session.seating, session.question)
        return await _Ladder(self, session).climb()

    def variants(self) -> tuple[str, ...]:
        """Return the moderator's answer, where the tie rule may ask for it."""
        return (MODERATOR,) if MODERATOR in self.ties else ()

    def plan(self, seating: Seating) -> tuple[Planned, ...]:
        """Return every step: all votes, each pass of the debate, and the moderator."""
        rounds: list[tuple[TurnKind, int]] = [("estimate", 0)]
        for number in range(1, self.passes + 1):
            rounds += [("critique", number), ("revision", number)]
        asked = planned_rounds(seating, rounds)
        if MODERATOR not in self.ties:
            return asked
        turn = Turn(kind="moderation", round=self.passes + 1)
        return (*asked, Planned(seating.parts[MODERATOR], turn, len(seating.members)))


@dataclass
class _Ladder:
    """One decision on its way up."""

    rules: Escalation
    session: Session
    steps: list[dict[str, Any]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    moderator: Standing | None = None

    @property
    def members(self) -> tuple[str, ...]:
        return self.session.seating.members

    async def climb(self) -> Deliberation:
        first = self.members[: self.rules.quick] if self._quick() else ()
        table: Table = ()
        if first:
            table = first_table(first, await self._vote(first))
            if self._quickly(table):
                return self._ended(table, QUICK)
        rest = self.members[len(first) :]
        table = (*table, *first_table(rest, await self._vote(rest)))
        tally = self._count(FULL, table)
        if tally is None:
            return self._ended(table, None)
        if self.steps[-1]["decided"]:
            return self._ended(table, FULL)
        self.tables.append(table)
        for number in range(1, self.rules.passes + 1):
            table = await self._debate(table, number)
            tally = self._count(DEBATE, table)
            if tally is None:
                return self._ended(table, None)
            if self.steps[-1]["decided"]:
                return self._ended(table, DEBATE)
            self.tables.append(table)
        return await self._settle(table, tally)

    def _quick(self) -> bool:
        return bool(self.rules.quick) and self.rules.method not in ALL_ASKED and self.rules.quick < len(self.members)

    async def _vote(self, seats: Sequence[str]) -> Any:
        turn = Turn(kind="estimate", round=0)
        return await self.session.ask([Ask(seat, turn) for seat in seats])

    async def _debate(self, table: Table, number: int) -> Table:
        """Let all criticise, then vote in secret: nobody is shown a ballot of the final vote before all are in.

        A ballot of an earlier vote is none of this one, so a member that casts none here has none.
        """
        others: Others = "reasons" if self.rules.reveal == "positions" else "arguments"
        said = await ask_all(self.session, Turn(kind="critique", round=number), Shown(table=table, others=others))
        shown = Shown(table=table, others=others, critiques=critiques_said(self.members, said))
        votes = await ask_all(self.session, Turn(kind="revision", round=number), shown)
        return first_table(self.members, votes, round_=number)

    def _ballots(self, table: Table) -> list[Ballot]:
        own = dict(zip(self.members, self.rules.own, strict=False))
        votes = [(seat, said) for seat, said in present(table) if isinstance(said, Choice)]
        return [ballot_of(seat, said, own=own.get(seat) or None) for seat, said in votes]

    @property
    def _options(self) -> tuple[str, ...]:
        return tuple(option.id for option in self.session.question.options)

    def _quickly(self, table: Table) -> bool:
        """Count the quick vote: by heads and confidence, whether that is enough, and whether the method agrees."""
        ballots, rule = self._ballots(table), self.rules.rule()
        used = rule.split(ballots=ballots, options=self._options)[0] if ballots else ()
        step: dict[str, Any] = {"step": QUICK, "asked": [row.seat for row in table], "decided": False}
        self.steps.append(step)
        if len(used) < len(table):
            step["why"] = "not all of them cast a ballot that the method can count"
            return False
        tally = VOTE_RULES["majority"](ballots=used, options=self._options)
        winner = tally.winner
        behind = [ballot.confidence or 0.0 for ballot in used if ballot.first == winner]
        total = sum(ballot.confidence or 0.0 for ballot in used)
        share = sum(behind) / total if total else 0.0
        mean = sum(behind) / len(behind) if behind else 0.0
        unanimous = len(behind) == len(used)
        enough = share >= self.rules.quick_share and (not unanimous or mean >= self.rules.quick_share)
        decided = winner is not None and enough and (unanimous or len(used) > 2)
        if decided and rule(ballots=used, options=self._options, weights=self._weights()).winner != winner:
            decided, step["why"] = False, f"by {self.rules.method} their ballots do not elect it"
        step |= {"tally": tally.record(), "confidence_share": share, "mean_confidence": mean, "decided": decided}
        return decided

    def _count(self, name: str, table: Table) -> Tally | None:
        """Count a vote of all by the method; None without a quorum."""
        ballots, rule = self._ballots(table), self.rules.rule()
        used, unused = rule.split(ballots=ballots, options=self._options) if ballots else ((), {})
        needed = self.rules.quorum or len(self.members) // 2 + 1
        step: dict[str, Any] = {"step": name, "asked": [row.seat for row in table], "decided": False}
        self.steps.append(step)
        if len(used) < needed:
            step |= {"why": f"{len(used)} valid ballots, {needed} are needed", "unused": unused}
            return None
        tally = rule(ballots=ballots, options=self._options, n_seats=len(self.members), weights=self._weights())
        strength = tally.strength if self.rules.method in BY_SHARE else tally.agreement_share
        share = None if tally.winner is None else strength
        decided = share is not None and _reaches(share, self.rules.full_share)
        step |= {"tally": tally.record(), "share": None if share is None else float(share), "decided": decided}
        return tally

    def _weights(self) -> dict[str, float] | None:
        return dict(zip(self.members, self.rules.weights, strict=False)) or None

    async def _settle(self, table: Table, tally: Tally) -> Deliberation:
        """Apply the tie rule, in its order; what it settles by is what is recorded.

        In question are the options that tie, or without a winner those with most ballots. A single one that leads
        without what is demanded is no tie: it is overruled neither by the safety order nor by lots.
        """
        among = tally.winners or tuple(option for option in leaders(tally.counts) if tally.counts[option])
        tied = len(among) > 1
        step: dict[str, Any] = {"step": TIE, "asked": [], "among": list(among), "decided": False}
        self.steps.append(step)
        left_out = [rule for rule in self.rules.ties if rule in {"safety_order", "random"} and not tied]
        if left_out:
            found = (
                "one option leads without the share demanded, which is no tie" if among else "no option has a ballot"
            )
            step["why"] = f"{found}: {' and '.join(rule.replace('_', ' ') for rule in left_out)} not applied"
        for rule in self.rules.ties:
            winner: str | None = None
            if rule in left_out:
                continue
            if rule == "safety_order" and self.rules.safety_order:
                winner = safest(among, safety_order=self.rules.safety_order)
            elif rule == MODERATOR and among:
                step["asked"] = [self.session.seating.parts[MODERATOR]]
                winner = await self._moderate(table, among)
            elif rule == "human":
                voted = tuple(option for option, count in tally.counts.items() if count)
                return self._ended(table, None, needs_human=True, among=among if tied else voted)
            elif rule == "random":
                order = seeded_order(len(among), self.rules.draw, self.session.question.id, "tie")
                winner = among[order[0]]
            if winner is not None:
                step |= {"decided": True, "winner": winner, "by": rule}
                return self._ended(table, TIE, among=among)
        return self._ended(table, None, among=among)

    async def _moderate(self, table: Table, among: tuple[str, ...]) -> str | None:
        """Ask the moderator once; an option that is no longer in question settles nothing."""
        seat = self.session.seating.parts[MODERATOR]
        turn = Turn(kind="moderation", round=self.rules.passes + 1)
        shown = Shown(table=table, whole_packet=True, among=among)
        (outcome,) = await self.session.ask([Ask(seat, turn, shown)])
        (self.moderator,) = first_table([seat], [outcome], round_=turn.round)
        said = self.moderator.answer
        return said.choice if isinstance(said, Choice) and said.choice in among else None

    def _ended(
        self, table: Table, step: str | None, *, needs_human: bool = False, among: tuple[str, ...] = ()
    ) -> Deliberation:
        last = self.steps[-1]
        winner = last.get("winner") or (last["tally"]["winners"][0] if last["decided"] else None)
        outcome = "winner" if winner is not None else self._undecided()
        told = {
            "outcome": outcome,
            "winner": winner,
            "step": step,
            "decided_by": last.get("by") or (self.rules.method if winner is not None else None),
            "among": list(among),
            "needs_human": needs_human,
            "steps": self.steps,
        }
        tables = (*self.tables, table) if not self.tables or self.tables[-1] is not table else tuple(self.tables)
        return Deliberation(
            tables=tables,
            stopped=None if step in {None, TIE} else Stopped(step or "", len(tables) - 1),
            variants={} if self.moderator is None else {MODERATOR: self.moderator},
            notes=told,
        )

    def _undecided(self) -> str:
        last = [one for one in self.steps if one["step"] in {FULL, DEBATE}][-1]
        if "tally" not in last:
            return "no_quorum"
        return "tie" if last["tally"]["decided"] == "tie" else "no_decision"


def _reaches(share: Score, demanded: float) -> bool:
    """Return whether a share is what is demanded, or more: exactly for heads, to 1e-12 for sums of weights."""
    return share >= demanded - TOLERANCE if isinstance(share, float) else share >= Fraction(str(demanded))
