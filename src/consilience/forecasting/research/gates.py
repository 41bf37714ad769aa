"""The five gates: what an agent's work must show, judged in code. Each says what it found, and when it cannot judge.

Whether a failure is only reported or enforced is the caller's to apply; no gate changes anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import Field, JsonValue

from consilience.core.answers import AnyAnswer
from consilience.core.question import Strict
from consilience.forecasting.research.actions import EvidenceType
from consilience.forecasting.research.citations import cited_ids, missing_quotes, unknown_ids
from consilience.forecasting.research.state import AgentState, GateName, GateResult, GateStatus
from consilience.forecasting.search.dates import parse_date

FEWEST_ITEMS = 3
OLDEST = timedelta(hours=24)
EXTREME = 0.01
"""A probability is extreme when it is nearer than this to 0 or 1."""
_TWO_READINGS = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2001, 7, 15, tzinfo=UTC))
"""Days so far apart that what is read alike on both does not count from them."""


class HealthLimits(Strict):
    """The largest shares that are still healthy, each in [0, 1]; a share on its limit passes.

    Attributes:
        exact_half: Of accepted probabilities that are exactly 0.5 (a member that failed and was counted shows here).
        extreme: Of accepted probabilities below .01 or above .99 (more is one half of the leak signature).
        retries: Of replies that were rejected.
        missing_horizons: Of targets without an answer, over accepted artefacts.
    """

    exact_half: float = Field(default=0.2, ge=0, le=1)
    extreme: float = Field(default=0.8, ge=0, le=1)
    retries: float = Field(default=0.2, ge=0, le=1)
    missing_horizons: float = Field(default=0.0, ge=0, le=1)


class Vitals(Strict):
    """What the health gate reads of one artefact.

    Attributes:
        status: Of the artefact.
        probabilities: Accepted probabilities of yes, one per target; empty for other kinds and without an answer.
        replies: Replies of the model.
        rejected: How many of them were no valid action.
        horizons: Targets that were asked for.
        answered: How many of them have an answer.
    """

    status: Literal["accepted", "abstained", "failed"]
    probabilities: tuple[float, ...] = ()
    replies: int = Field(ge=0)
    rejected: int = Field(ge=0)
    horizons: int = Field(default=1, ge=1)
    answered: int = Field(ge=0)


def run_gates(
    state: AgentState,
    answer: AnyAnswer | None,
    contents: Mapping[str, JsonValue],
    *,
    as_of: datetime,
    given: Mapping[str, EvidenceType] | None = None,
    closed_book: bool = False,
) -> tuple[GateResult, ...]:
    """Return what the four gates of one agent find, in order: coverage, freshness, consistency, support.

    Args:
        state: What it gathered.
        answer: What it answered; None where it did not.
        contents: Content of everything it could cite, by id, whether retrieved or given.
        as_of: The instant for which the answer is made.
        given: What the evidence counts as that it was given without searching, by id.
        closed_book: The run searches nothing, and says so.
    """
    return (
        coverage(state, given=given, closed_book=closed_book),
        freshness({item.id: item.retrieved_at for item in state.evidence}, as_of=as_of),
        consistency({item.id: item.published for item in state.evidence}, cutoff=state.cutoff),
        support(answer, contents),
    )


def coverage(
    state: AgentState, *, given: Mapping[str, EvidenceType] | None = None, closed_book: bool = False
) -> GateResult:
    """Judge whether there are three pieces of evidence or more, one of them classified as a base rate.

    Evidence that was given counts like evidence that was found.
    A closed-book run has nothing to enforce. A trace that kept results but recorded no evidence (an import) cannot be
    judged; an agent that found nothing fails.
    """
    if closed_book:
        return GateResult(name="coverage", status="nothing_to_enforce", message="the run searches nothing, as declared")
    if not state.evidence and any(record.kept for record in state.trace):
        return _untyped("coverage")
    types: dict[str, EvidenceType | None] = {**(given or {}), **{item.id: item.type for item in state.evidence}}
    items = len(types)
    rates: list[JsonValue] = [name for name, kind in types.items() if kind == "base_rate"]
    unclassified: list[JsonValue] = [name for name, kind in types.items() if kind is None]
    lacking = [f"{FEWEST_ITEMS - items} more pieces of evidence"] if items < FEWEST_ITEMS else []
    lacking += [] if rates else ["a base rate"]
    message = f"{items} pieces of evidence, {len(rates)} of them base rates"
    return GateResult(
        name="coverage",
        status="fail" if lacking else "pass",
        message=f"{message}; lacking: {' and '.join(lacking)}" if lacking else message,
        details={"items": items, "base_rates": rates, "unclassified": unclassified},
    )


def freshness(retrieved: Mapping[str, datetime | None], *, as_of: datetime) -> GateResult:
    """Judge whether everything was retrieved in the 24 hours up to ``as_of``; exactly 24 hours pass.

    What was retrieved after ``as_of`` fails, and so does an instant that is missing or has no time zone. Without
    evidence there is nothing to judge.
    """
    if not retrieved:
        return _untyped("freshness")
    ages = {
        name: None if when is None or when.utcoffset() is None else as_of - when for name, when in retrieved.items()
    }
    missing: list[JsonValue] = [name for name, age in ages.items() if age is None]
    future: list[JsonValue] = [name for name, age in ages.items() if age is not None and age < timedelta(0)]
    stale: list[JsonValue] = [name for name, age in ages.items() if age is not None and age > OLDEST]
    return _counted(
        "freshness",
        f"{len(retrieved)} pieces of evidence, retrieved within 24 hours before {as_of.isoformat()}",
        {"without a time": missing, "after that instant": future, "older": stale},
    )


def consistency(published: Mapping[str, datetime | str | None], *, cutoff: datetime | None) -> GateResult:
    """Judge whether every result is dated, its date can be read, and lies strictly before the cutoff.

    Without a cutoff there is nothing to enforce. A trace without typed evidence cannot be judged, which is no failure.

    Args:
        published: Date by id; a text is a date as an import found it, and is read here. None is undated.
        cutoff: The first inadmissible instant; None for an open question.

    Example:
        >>> from datetime import UTC
        >>> consistency({"D01": "2025-02-19T23:30-05:00"}, cutoff=datetime(2025, 2, 20, tzinfo=UTC)).status
        'fail'
        >>> consistency({}, cutoff=datetime(2025, 2, 20, tzinfo=UTC)).status
        'not_answerable'
    """
    if cutoff is None:
        message = "the question has no cutoff, so there is nothing to enforce"
        undated: list[JsonValue] = [name for name, when in published.items() if _instant(when) is None]
        return GateResult(
            name="consistency", status="nothing_to_enforce", message=message, details={"undated": undated}
        )
    if not published:
        return _untyped("consistency")
    dates = {name: _instant(when) for name, when in published.items()}
    return _counted(
        "consistency",
        f"{len(published)} results, dated before {cutoff.isoformat()}",
        {
            "undated": [name for name, when in published.items() if when is None],
            "with a date that cannot be read": [
                name for name, when in published.items() if when is not None and dates[name] is None
            ],
            "at or after the cutoff": [name for name, when in dates.items() if when is not None and when >= cutoff],
        },
    )


def _instant(when: datetime | str | None) -> datetime | None:
    """Return an instant; a relative age has none, for nobody knows any more from when it counts."""
    if isinstance(when, str):
        first, second = (parse_date(when, retrieved_at=day) for day in _TWO_READINGS)
        return first if first == second else None
    return None if when is None or when.utcoffset() is None else when


def support(answer: AnyAnswer | None, contents: Mapping[str, JsonValue]) -> GateResult:
    """Judge whether every cited id exists and every quote stands in the item it names.

    An answer that cites nothing has nothing to enforce. A quote of an item whose content is None (its text was not
    kept) cannot be judged.

    Args:
        answer: The answer; None where there is none.
        contents: Content of everything that could be cited, by id; None where it was not recorded.
    """
    if answer is None:
        return GateResult(name="support", status="not_answerable", message="there is no answer")
    cited = cited_ids(answer)
    if not cited:
        return GateResult(name="support", status="nothing_to_enforce", message="the answer cites nothing")
    kept = {name: content for name, content in contents.items() if content is not None}
    unchecked: list[JsonValue] = [
        quote.evidence_id for quote in answer.quotes if quote.evidence_id in contents and quote.evidence_id not in kept
    ]
    found = _counted(
        "support",
        f"{len(cited)} cited ids and {len(answer.quotes)} quotes",
        {
            "ids that do not exist": list(unknown_ids(answer, contents)),
            "quotes not found in": [quote.evidence_id for quote in missing_quotes(answer, kept)],
        },
    )
    if unchecked and found.status == "pass":
        return GateResult(
            name="support",
            status="not_answerable",
            message=f"{len(unchecked)} quotes are of texts that were not kept",
            details={"unchecked": unchecked},
        )
    return found


def health(artefacts: Sequence[Vitals], limits: HealthLimits | None = None) -> GateResult:
    """Judge a set of artefacts by four shares: exactly 0.5, extreme, rejected replies, missing horizons.

    A share of nothing is unknown, not 0; if all are, the gate cannot judge. Abstained and failed artefacts count in
    the share of rejected replies alone, for they have no answer to be odd.
    """
    limits = limits or HealthLimits()
    accepted = [artefact for artefact in artefacts if artefact.status == "accepted"]
    values = [p for artefact in accepted for p in artefact.probabilities]
    horizons = sum(artefact.horizons for artefact in accepted)
    shares = {
        "exact_half": _share(sum(p == 0.5 for p in values), len(values)),
        "extreme": _share(sum(p < EXTREME or p > 1 - EXTREME for p in values), len(values)),
        "retries": _share(sum(one.rejected for one in artefacts), sum(one.replies for one in artefacts)),
        "missing_horizons": _share(horizons - sum(artefact.answered for artefact in accepted), horizons),
    }
    bounds = limits.model_dump()
    over: list[JsonValue] = [name for name, share in shares.items() if share is not None and share > bounds[name]]
    known = [f"{name} {share:.3f} (limit {bounds[name]:g})" for name, share in shares.items() if share is not None]
    status: GateStatus = "fail" if over else "pass" if known else "not_answerable"
    return GateResult(
        name="health",
        status=status,
        message=f"{len(artefacts)} artefacts: {', '.join(known) or 'nothing to count'}",
        details={"shares": dict(shares), "limits": bounds, "over": over, "accepted": len(accepted)},
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _untyped(name: GateName) -> GateResult:
    return GateResult(name=name, status="not_answerable", message="the trace holds no typed evidence to judge")


def _counted(name: GateName, subject: str, wrong: Mapping[str, list[JsonValue]]) -> GateResult:
    """Return a failure when any list of what is wrong holds something, with all that do."""
    found = {what: names for what, names in wrong.items() if names}
    told = ", ".join(f"{len(names)} {what}" for what, names in found.items())
    return GateResult(
        name=name, status="fail" if found else "pass", message=f"{subject}: {told or 'all'}", details=dict(found)
    )
