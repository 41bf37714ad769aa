"""What ``ask`` prints: the answer, who gave it, who differs, what it took, and where the record is."""

from __future__ import annotations

from pathlib import Path

from consilience.api.result import Member, Result
from consilience.api.wording import amount, answer_text, cost_text, headline, percent
from consilience.cli.console import Grid
from consilience.cli.place import Place
from consilience.core.answers import LEVELS

SIMULATED = "simulated: no real model spoke, so the answer says nothing about the world"


def parts_of(result: Result, place: Place) -> list[str | Grid]:
    """Return a result as texts and tables; whoever prints them strips terminal escapes."""
    members = tuple(_member(result, member) for member in result.members)
    told: list[str | Grid] = [SIMULATED] if result.simulated else []
    told.append(headline(result))
    told += _detail(result)
    told.append(Grid(("seat", "role", "model", "answer", "differs"), members, words=5))
    told += _dissent(result)
    told += [] if result.diagnostics is None else result.diagnostics["told"]
    calls = f"{result.calls} calls" if result.calls else "0 calls: answered from the record"
    tokens = "tokens unknown" if result.tokens is None else f"{result.tokens:,} tokens"
    at = "" if place.root == Path() else f" --project {place.root}"
    return [
        *told,
        f"{calls}; {tokens}; {cost_text(result)}",
        f"run {result.run_id}{' (simulated)' if result.simulated else ''}",
        f"  every turn and answer            {result.trace}",
        f"  every prompt and reply, as sent  {result.folder / 'events-00001.jsonl'}",
        f"  the record, checked              consilience{at} verify {result.run_id}",
    ]


def _detail(result: Result) -> list[str | Grid]:
    """Return the quantiles of an estimate or the options' shares."""
    if result.quantiles is not None:
        cells = tuple(amount(value) for value in result.quantiles)
        return [Grid(tuple(f"q{round(100 * level):02d}" for level in LEVELS), (cells,), words=0)]
    tally = result.tally
    if tally is not None:
        votes = ((result.label(name), str(count), percent(count / tally.n)) for name, count in tally.counts.items())
        return [Grid(("option", "ballots", "share"), tuple(votes))]
    if result.distribution is not None:
        shares = tuple((label, percent(p)) for label, p in result.distribution.items())
        return [Grid(("option", "probability"), shares)]
    return []


def _member(result: Result, member: Member) -> tuple[str, ...]:
    if member.answer is None:
        said = f"{member.status}: {member.why}"
    else:
        carried = "" if member.carried_from_round is None else f" (of round {member.carried_from_round})"
        said = answer_text(result.question, member.answer) + carried
    differs = any(one.member.seat == member.seat for one in result.minority_report)
    return member.seat, member.role, member.model, said, "yes" if differs else ""


def _dissent(result: Result) -> list[str | Grid]:
    if result.row is None:
        return []
    if not result.minority_report:
        return ["minority report: nobody dissented"]
    return [
        "minority report:",
        *(
            f"  {one.member.seat} ({one.member.role}): {' '.join(one.reasons.split())}"
            for one in result.minority_report
        ),
    ]
