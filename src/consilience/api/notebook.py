"""A result as a piece of HTML for notebooks; every text in it is escaped."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from html import escape

from consilience.api.result import Member, Result
from consilience.api.wording import amount, answer_text, cost_text, headline
from consilience.evidence.visible import visible_text
from consilience.reports.drawings.fan import draw_fan, fan_of


def html_of(result: Result) -> str:
    """Return answer, fan over rounds, members, minority report, cost and run id of a result, without script or link."""
    differing = {one.member.seat for one in result.minority_report}
    word = "<p><em>Simulated: no real model spoke.</em></p>" if result.simulated else ""
    spread = ""
    if result.interval is not None:
        low, high = result.interval
        spread = f"<p>{_safe(f'90 % interval {amount(low)} to {amount(high)}')}</p>"
    rows = "".join(_row(result, member, differs=member.seat in differing) for member in result.members)
    fan = fan_of(
        result.rounds,
        question=result.question,
        members=[member.seat for member in result.members],
        row=result.row,
    )
    picture = "" if fan is None else f'<p><img alt="{_safe(fan.alt)}" src="{_embedded(draw_fan(fan, "light"))}"></p>'
    dissent = "".join(f"<li>{_safe(f'{one.member.seat}: {one.reasons}')}</li>" for one in result.minority_report)
    return (
        f"<div><p>{_safe(result.question.text)}</p>{word}<p><strong>{_safe(headline(result))}</strong></p>{spread}{picture}"
        f"<table><thead><tr>{_cells(('seat', 'role', 'model', 'answer', 'differs'), 'th')}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        f"<p>Minority report{'</p><ul>' + dissent + '</ul>' if dissent else ': nobody dissented.</p>'}"
        f"<p>{_safe(f'{cost_text(result)}; run {result.run_id}')}</p></div>"
    )


def _row(result: Result, member: Member, *, differs: bool) -> str:
    said = f"{member.status}: {member.why}" if member.answer is None else answer_text(result.question, member.answer)
    return f"<tr>{_cells((member.seat, member.role, member.model, said, 'yes' if differs else ''), 'td')}</tr>"


def _cells(texts: Iterable[str], tag: str) -> str:
    return "".join(f"<{tag}>{_safe(text)}</{tag}>" for text in texts)


def _embedded(svg: bytes) -> str:
    """Return a picture as an address that holds it, so that it is an image and nothing in it can act."""
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def _safe(text: str) -> str:
    """Return a text that shows itself and does nothing, hidden and direction characters included."""
    return escape(visible_text(text))
