"""A decision as people read it: one sheet of sections, shown as Markdown, as a page, or on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from consilience.decisions.result import DecisionResult, Vote
from consilience.reports.tables import markdown, plain

ADVICE: Final = "No professional, legal or investment advice: people decide."
SIMULATED: Final = "simulated: no real model spoke, so the decision says nothing about the world"
UNCALIBRATED: Final = "Confidence is as the voters report it and not calibrated; agreement is not accuracy."


@dataclass(frozen=True)
class Section:
    """One part of a sheet; all of its texts may be hostile.

    Attributes:
        title: Its heading; empty for the first.
        lines: Paragraphs.
        headings: Of its table.
        rows: Of its table; none without one.
    """

    title: str
    lines: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


def sheet_of(result: DecisionResult) -> tuple[Section, ...]:
    """Return everything that is said of a decision, what is missing first."""
    sections = (_outcome(result), _missing(result), _ladder(result), _ballots(result), _minority(result))
    return tuple(
        section
        for section in (*sections, _case(result), _flips(result), _cost(result))
        if section.lines or section.rows
    )


def headline(result: DecisionResult) -> str:
    """Return a decision in one line."""
    names = result.options
    if result.winner is not None:
        by = result.decided_by or ""
        return f"decided: {names[result.winner]} (by {by.replace('_', ' ')}, in the {_step(result.step)})"
    among = " and ".join(names[option] for option in result.among)
    human = "; a person must settle it" if result.needs_human else ""
    said = {
        "tie": f"a tie between {among}: nobody won",
        "no_decision": "no decision: no option reached what was demanded",
        "no_quorum": "no quorum: too few valid ballots",
    }
    return said[result.outcome] + human


def _step(step: str | None) -> str:
    return (step or "ladder").replace("_", " ")


def _outcome(result: DecisionResult) -> Section:
    lines = [headline(result)]
    behind, cast = result.heads
    if result.agreement_share is not None:
        strength = "strong" if result.is_strong else "not strong"
        lines.append(f"Agreement share: {behind} of {cast} ballots ({_percent(result.agreement_share)}), {strength}.")
    if result.margin is not None and result.winner is not None:
        told = result.margin.switches
        least = f"at least {result.margin.at_least}" if told is None else str(told)
        lines.append(f"Margin: for another result {least} of the voters would have had to vote otherwise.")
    lines += [f"A person should look at this: {why}." for why in result.review]
    need = result.necessity
    lines.append(f"Was a panel justified? {need['why']}")
    lines += [f"Before a panel: {hint}" for hint in need["hints"]]
    return Section("", tuple(lines))


def _missing(result: DecisionResult) -> Section:
    rows = tuple((seat, why) for seat, why in result.missing.items())
    return Section("Voters without a ballot", (), ("seat", "why"), rows)


def _ladder(result: DecisionResult) -> Section:
    rows = []
    for step in result.steps:
        counts = step.record.get("tally", {}).get("counts", {})
        told = ", ".join(f"{label} {counts[option]}" for option, label in result.options.items() if counts.get(option))
        why = step.record.get("by") or step.record.get("why") or told
        rows.append(
            (_step(step.name), "yes" if step.decided else "no", str(why), str(step.calls), _dollars(step.cost_usd))
        )
    return Section("Steps", (), ("step", "decided", "count", "calls", "cost"), tuple(rows))


def _ballots(result: DecisionResult) -> Section:
    rows = tuple(
        (vote.seat, vote.role, result.options[vote.option], _confidence(vote))
        for vote in result.votes
        if vote.option is not None
    )
    return Section("Ballots", (UNCALIBRATED,) if rows else (), ("seat", "role", "option", "confidence"), rows)


def _minority(result: DecisionResult) -> Section:
    if not result.minority:
        return Section("Minority report", ("Nobody dissented.",))
    rows = tuple(
        (
            vote.role,
            result.options[vote.option or ""],
            _percent(Fraction(result.counts[vote.option or ""], result.heads[1])),
            vote.rationale,
            "; ".join(f"{text} (critical)" if critical else text for text, critical in vote.risks) or "–",
        )
        for vote in result.minority
    )
    won = {option: names for option, names in result.would_have_won.items() if names and option != result.winner}
    told = tuple(f"{result.options[option]} would have won by {', '.join(names)}." for option, names in won.items())
    return Section("Minority report", told, ("role", "option", "share", "rationale", "risks"), rows)


def _case(result: DecisionResult) -> Section:
    if not result.needs_human:
        return Section("For who settles it")
    rows = tuple(
        (result.options[option], "; ".join(case["for"]) or "–", "; ".join(case["against"]) or "–")
        for option, case in result.case_for().items()
    )
    return Section("For who settles it", (), ("option", "for", "against"), rows)


def _flips(result: DecisionResult) -> Section:
    rows = tuple(
        (
            flip.role,
            result.options[flip.before],
            result.options[flip.after],
            "; ".join(f"{seat}: {' '.join(points)}" for seat, points in flip.heard) or "nobody addressed it",
        )
        for flip in result.flips
    )
    return Section("Who moved", (), ("role", "from", "to", "after hearing"), rows)


def _cost(result: DecisionResult) -> Section:
    whole = result.full_path_usd is not None and result.full_path_usd == result.cost_usd
    path = (
        "every step was taken"
        if whole
        else f"taking every step is foreseen to cost {_dollars(result.full_path_usd)}, by what these calls took"
    )
    lines = [f"Cost: {_dollars(result.cost_usd)} at list price; {path}."]
    if result.duration_s is not None:
        lines.append(f"Duration, as the models tell: {result.duration_s:.1f} s.")
    lines += [f"The panel: {warning}." for warning in result.warnings]
    lines.append(f"Record: run {result.run_id}, journal head {result.audit['journal_head']}.")
    return Section("Cost and record", (*lines, ADVICE))


def _confidence(vote: Vote) -> str:
    return "–" if vote.confidence is None else f"{vote.confidence:.2f}"


def _percent(share: Fraction) -> str:
    return f"{100 * float(share):.3g} %"


def _dollars(value: float | None) -> str:
    return "unknown" if value is None else f"${value:.4f}"


def to_markdown(result: DecisionResult) -> str:
    """Return the sheet in Markdown."""
    question = str(result.audit["question"]["text"])
    lines = [f"# {_line(question)}", ""]
    lines += [f"*{SIMULATED}*", ""] if result.simulated else []
    for section in sheet_of(result):
        lines += [f"## {section.title}", ""] if section.title else []
        lines += [f"{_line(text)}\n" for text in section.lines]
        if section.rows:
            lines += [f"| {' | '.join(section.headings)} |", f"| {' | '.join('---' for _ in section.headings)} |"]
            lines += [f"| {' | '.join(map(_line, row))} |" for row in section.rows]
            lines.append("")
    return "\n".join(lines)


def _line(text: str) -> str:
    """Return a text as one line of Markdown that begins no heading, list or rule of its own."""
    flat = markdown(plain(" ".join(text.split())))
    return f"\\{flat}" if flat[:1] in {"#", "-", "+", ">", "=", "~", "_"} else flat


def to_html(result: DecisionResult) -> str:
    """Return the sheet as one page that needs no script, no font and no network."""
    environment = Environment(
        loader=PackageLoader("consilience.decisions"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template("decision.html.jinja").render(
        question=plain(str(result.audit["question"]["text"])),
        simulated=SIMULATED if result.simulated else None,
        sections=[_plain(section) for section in sheet_of(result)],
    )


def _plain(section: Section) -> Section:
    def each(texts: Sequence[str]) -> tuple[str, ...]:
        return tuple(plain(text) for text in texts)

    return Section(section.title, each(section.lines), section.headings, tuple(each(row) for row in section.rows))
