"""Import of the founding notebooks' run traces: what is known is kept, what is derived is computed anew beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from pydantic import JsonValue, ValidationError

from consilience.aggregation.odds import sqrt_neff
from consilience.aggregation.probabilities import PROBABILITY_RULES, ready_rules
from consilience.aggregation.stages import CONFIDENCE, Confidence, Supervisor, blend, strict
from consilience.core.canonical import sha256_hex, strict_json
from consilience.core.question import Strict
from consilience.errors import DataError, reason
from consilience.forecasting.founding_gaps import Gap, gaps
from consilience.forecasting.founding_shape import FoundAgent, FoundAggregation, FoundTrace
from consilience.forecasting.research.derived import evidence_volume, extremity, key_findings, sentiment, uncertainties

ASSUMED_RHO: Final = 0.3
"""Correlation of errors that the notebooks used, where a file tells neither it nor what follows from it."""
TOLERANCE: Final = 1e-4
"""Founding values are rounded to four decimals, and later stages were computed from rounded ones."""
_RHO_NAMES: Final = ("rho", "correlation", "neyman_rho", "error_correlation", "rho_assumed")
_RULES: Final = {
    "mean": "mean",
    "simple_average": "mean",
    "median": "median",
    "geometric_mean_of_odds": "geometric_odds",
}
_KNOWN_ACTIONS: Final = frozenset(
    {"search", "forecast", "abstain", "invalid", "forced_default", "supplied_evidence", "provider_error"}
)
_STATUSES: Final = ("accepted", "abstained", "failed")

RhoSource = Literal["params", "effective_n", "extremization_factor", "assumed"]


class Beside(Strict):
    """A founding value and ours.

    Attributes:
        founding: As it stands in the file; null where it does not.
        ours: Computed anew; null where there is nothing to compute.
        agrees: Whether they are the same, numbers within `TOLERANCE`; None where one of them is missing.
    """

    founding: JsonValue
    ours: JsonValue
    agrees: bool | None

    @classmethod
    def of(cls, founding: JsonValue, ours: JsonValue) -> Beside:
        """Return both with whether they agree."""
        if founding is None or ours is None:
            return cls(founding=founding, ours=ours, agrees=None)
        if isinstance(founding, int | float) and isinstance(ours, int | float):
            return cls(founding=founding, ours=ours, agrees=math.isclose(founding, ours, rel_tol=0, abs_tol=TOLERANCE))
        return cls(founding=founding, ours=ours, agrees=founding == ours)


class ImportedAgent(Strict):
    """One agent, judged by our rules.

    Attributes:
        agent_id: As in the file.
        status: ``accepted`` alone enters averages.
        reason: Why it is not accepted: ``step_budget`` (the founding value stood in for a forecast that was never
            made), ``no_probability``, ``out_of_range``, ``unknown_status``, or what the file says.
        p_yes: What enters averages; None for every agent that is not accepted.
        founding_p_yes: What the file says, counted or not.
        derived: Founding and ours, by our name; ``extremity`` is what the notebooks called confidence. Heuristic.
        actions: Every action in order, unknown ones as the model sent them.
    """

    agent_id: str
    status: Literal["accepted", "abstained", "failed"]
    reason: str | None
    p_yes: float | None
    founding_p_yes: float | None
    derived: dict[str, Beside]
    actions: tuple[str | None, ...]


class ImportedAggregate(Strict):
    """How the agents' probabilities become one, in the notebooks and here.

    Attributes:
        method: As the file names it.
        rho: Correlation of errors of the founding rule; None for a rule without one.
        rho_source: Where that comes from.
        founding: The founding value, extremised where it was.
        replayed: The founding rule on the founding inputs; None for a rule we do not know.
        ours: The founding rule on the accepted agents, with equal weights.
        raw: Mean before it was moved, founding and ours.
        rules: All our rules that need no fit, on the accepted agents.
    """

    method: str | None
    rho: float | None
    rho_source: RhoSource | None
    founding: float | None
    replayed: float | None
    ours: float | None
    raw: Beside
    rules: dict[str, float]


class ImportedFinal(Strict):
    """The last probability.

    Attributes:
        founding: As the file has it.
        rule: The preset that gives it from the founding stages: ``blend``, ``strict`` or ``panel_only``; None for none.
        replayed: What each preset gives from the founding stages.
        ours: What each gives with the accepted agents' aggregate in place of the founding one.
        confidence: High .8, medium .6, low .5 by the supervisor's word, founding and ours.
    """

    founding: float | None
    rule: str | None
    replayed: dict[str, float]
    ours: dict[str, float]
    confidence: Beside


class Imported(Strict):
    """A founding trace, read.

    Attributes:
        sha256: Of the file's bytes; the file itself has no hash.
        trace: Everything in it, also what no known generation has.
        agents: In the file's order.
        aggregate: None where no agent's probability counts and the file has none.
        final: The last probability.
        calls: Calls that are recorded; failed ones are not.
        results: Search results in the agents' traces.
        supervisor_results: Those of the supervisor.
        gaps: What the file cannot prove.
    """

    sha256: str
    trace: FoundTrace
    agents: tuple[ImportedAgent, ...]
    aggregate: ImportedAggregate | None
    final: ImportedFinal
    calls: int
    results: int
    supervisor_results: int
    gaps: tuple[Gap, ...]


def import_founding(content: bytes | str) -> Imported:
    """Return a founding trace with our judgement beside it.

    Args:
        content: The file.

    Raises:
        DataError: It is no JSON, or no founding trace: that has a ``question`` and ``agents``.

    Example:
        >>> read = import_founding('{"question": {"question": "?"}, "agents": [{"agent_id": "a", "p_yes": 0.75}]}')
        >>> read.agents[0].p_yes, read.agents[0].derived["extremity"].ours
        (0.75, 0.5)
    """
    raw = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    try:
        trace = FoundTrace.model_validate_json(raw)
        strict_json(raw)  # values of any type would let NaN through, and of two equal keys the last would count
    except (ValidationError, ValueError, RecursionError) as error:
        raise DataError(
            f"this is no run trace of the founding notebooks: {reason(error)}",
            hint="Give a JSON file with question and agents; our own traces are shown with consilience trace show.",
        ) from error
    agents = tuple(map(_agent, trace.agents))
    aggregate = _aggregate(trace, agents)
    return Imported(
        sha256=sha256_hex(raw),
        trace=trace,
        agents=agents,
        aggregate=aggregate,
        final=_final(trace, aggregate),
        calls=len(trace.calls()),
        results=sum(len(agent.results()) for agent in trace.agents),
        supervisor_results=len(trace.supervisor_results()),
        gaps=(*gaps(trace), *_own_gaps(trace, agents, aggregate)),
    )


def _agent(found: FoundAgent) -> ImportedAgent:
    status, why = _status(found)
    p, text = found.p_yes, found.rationale or ""
    judged = p if p is not None and 0 <= p <= 1 else None
    sources = len({result.url or result.title for result in found.results()})
    queries = len({" ".join(step.query.split()).casefold() for step in found.steps() if step.query})
    ours: list[tuple[str, JsonValue, JsonValue]] = [
        ("extremity", found.confidence, None if judged is None else extremity(judged)),
        ("sentiment", found.sentiment, None if judged is None else sentiment(judged)),
        ("key_findings", _list(found.key_findings), list(key_findings(text))),
        ("uncertainties", _list(found.uncertainties), list(uncertainties(text))),
        ("evidence_volume", found.evidence_quality, evidence_volume(sources=sources, queries=queries)),
        ("queries", _count(found.search_queries_made), queries),
        ("sources", _count(found.sources_consulted), sources),
    ]
    return ImportedAgent(
        agent_id=found.agent_id,
        status=status,
        reason=why,
        p_yes=p if status == "accepted" else None,
        founding_p_yes=p,
        derived={name: Beside.of(theirs, mine) for name, theirs, mine in ours},
        actions=tuple(step.action for step in found.steps()),
    )


def _status(found: FoundAgent) -> tuple[Literal["accepted", "abstained", "failed"], str | None]:
    actions = [(step.action or "").strip().casefold() for step in found.steps()]
    if found.forecast_produced is False or "forced_default" in actions:
        return "failed", "step_budget"
    if found.status == "abstained" or (found.status is None and found.p_yes is None and "abstain" in actions):
        return "abstained", found.failure_reason or "abstained"
    if found.status == "failed":
        return "failed", found.failure_reason or "failed"
    if found.status not in {None, "accepted"}:
        return "failed", "unknown_status"
    if found.p_yes is None:
        return "failed", found.failure_reason or ("provider_error" if "provider_error" in actions else "no_probability")
    return ("accepted", None) if 0 <= found.p_yes <= 1 else ("failed", "out_of_range")


def _list(values: Sequence[str] | None) -> JsonValue:
    return None if values is None else list(values)


def _count(value: JsonValue) -> JsonValue:
    """Return a number, of a list how long it is; anything else stays as it is."""
    return len(value) if isinstance(value, list) else value


def _aggregate(trace: FoundTrace, agents: Sequence[ImportedAgent]) -> ImportedAggregate | None:
    counted = {f"{i:03d} {agent.agent_id}": agent.p_yes for i, agent in enumerate(agents) if agent.p_yes is not None}
    found = trace.aggregation
    if not counted and found is None:
        return None
    found = found or FoundAggregation()
    p = list(counted.values())
    method = (found.method or "").casefold()
    moved = not method or "neyman" in method
    rho, source = _rho(trace, found) if moved else (None, None)
    theirs = [value for value in found.input_probabilities or [] if 0 <= value <= 1]
    complete = len(theirs) == len(found.input_probabilities or [])
    founding = found.raw_probability if found.extremized_probability is None else found.extremized_probability
    return ImportedAggregate(
        method=found.method,
        rho=rho,
        rho_source=source,
        founding=founding,
        replayed=_pooled(theirs, method, rho, _weights(found)) if complete else None,
        ours=_pooled(p, method, rho, None),
        raw=Beside.of(found.raw_probability, math.fsum(p) / len(p) if p else None),
        rules={
            rule.name: rule(probabilities=np.array(p), seats=tuple(counted)).value for rule in ready_rules() if counted
        },
    )


def _weights(found: FoundAggregation) -> list[float] | None:
    """Return weights that can be used; None weighs all alike, as equal ones do."""
    weights = found.input_weights or []
    usable = len(weights) == len(found.input_probabilities or []) and all(w >= 0 for w in weights) and sum(weights) > 0
    return list(weights) if usable and len(set(weights)) > 1 else None


def _pooled(p: Sequence[float], method: str, rho: float | None, weights: Sequence[float] | None) -> float | None:
    if not p:
        return None
    if rho is not None:
        return sqrt_neff(p, rho=rho, weights=weights).value
    name = _RULES.get(method)
    if name is None or weights is not None:
        return None
    return PROBABILITY_RULES[name](probabilities=np.array(p), seats=tuple(f"{i:03d}" for i in range(len(p)))).value


def _rho(trace: FoundTrace, found: FoundAggregation) -> tuple[float, RhoSource]:
    """Return the correlation of errors, said or worked out from what follows from it (rounded to two decimals)."""
    for name in _RHO_NAMES:
        said = trace.params.get(name)
        if isinstance(said, int | float) and not isinstance(said, bool) and 0 <= said <= 1:
            return float(said), "params"
    p, factor = found.input_probabilities or [], found.extremization_factor
    n = sqrt_neff(p, rho=0.0, weights=_weights(found)).n_weighted if p else 1.0
    if n > 1 and found.effective_n is not None and 1 <= found.effective_n <= n:
        return round((n / found.effective_n - 1) / (n - 1), 2), "effective_n"
    if n > 1 and factor is not None and 1 <= factor * factor <= n:  # a product overflows to inf, a power raises
        return round((n / (factor * factor) - 1) / (n - 1), 2), "extremization_factor"
    return ASSUMED_RHO, "assumed"


def _final(trace: FoundTrace, aggregate: ImportedAggregate | None) -> ImportedFinal:
    founding = trace.final_probability
    replayed: dict[str, float] = {}
    ours: dict[str, float] = {}
    if aggregate is not None:
        replayed = _presets(trace, aggregate.founding, _probability(aggregate.raw.founding))
        ours = _presets(trace, aggregate.ours, _probability(aggregate.raw.ours))
    gives = [name for name, value in replayed.items() if founding is not None and abs(value - founding) <= TOLERANCE]
    supervisor = _supervisor(trace)
    confidence = None if supervisor is None else CONFIDENCE[supervisor.confidence]
    return ImportedFinal(
        founding=founding,
        rule=gives[0] if gives else None,
        replayed=replayed,
        ours=ours,
        confidence=Beside.of(trace.final_confidence, confidence),
    )


def _presets(trace: FoundTrace, panel: float | None, mean: float | None) -> dict[str, float]:
    """Return what the final rules give; ``panel_only`` first, because without later stages the others equal it."""
    debate, supervisor = trace.debate, _supervisor(trace)
    advocates = None
    if debate is not None:
        bull, bear = _probability(debate.bull_final_probability), _probability(debate.bear_final_probability)
        advocates = None if bull is None or bear is None else (bull, bear)
    made: dict[str, float] = {}
    panel, mean = _probability(panel), _probability(mean)
    if panel is not None:
        made["panel_only"] = panel
        made["blend"] = blend(panel=panel, advocates=advocates, supervisor=supervisor).value
    if mean is not None:
        consensus = debate is not None and bool(debate.consensus_reached)
        made["strict"] = strict(panel=mean, advocates=advocates, consensus=consensus, supervisor=supervisor).value
    return made


def _supervisor(trace: FoundTrace) -> Supervisor | None:
    found = trace.supervisor
    p, label = (None, None) if found is None else (_probability(found.p_yes), _label(found.confidence))
    return None if p is None or label is None else Supervisor(p, label)


def _label(said: str | None) -> Confidence | None:
    return next((label for label in CONFIDENCE if label == (said or "").strip().casefold()), None)


def _probability(value: JsonValue) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None


def _own_gaps(
    trace: FoundTrace, agents: Sequence[ImportedAgent], aggregate: ImportedAggregate | None
) -> tuple[Gap, ...]:
    """Return what only our judgement shows: agents left out, actions and methods nobody knows."""
    out = [agent for agent in agents if agent.status != "accepted"]
    told = ", ".join(f"{agent.agent_id} ({agent.reason}, founding {agent.founding_p_yes})" for agent in out)
    actions = [action for agent in agents for action in agent.actions if action not in _KNOWN_ACTIONS]
    said = trace.supervisor.confidence if trace.supervisor is not None else None
    found = [
        Gap(
            name="agents_without_forecast",
            answer="yes" if out else "no",
            message=f"agents without a forecast of their own, in no average: {told}" if out else "all agents forecast",
            count=len(out),
            of=len(agents),
        ),
        Gap(
            name="unknown_actions",
            answer="yes" if actions else "no",
            message="actions kept as sent: " + ", ".join(sorted({repr(a) for a in actions})) if actions else "none",
            count=len(actions),
        ),
    ]
    if aggregate is not None and aggregate.founding is not None and aggregate.replayed is None:
        message = f"the founding aggregate by {aggregate.method!r} cannot be computed from what the file holds"
        found.append(Gap(name="aggregation_not_recomputed", answer="yes", message=message))
    if said is not None and _label(said) is None:
        message = f"the supervisor's confidence {said!r} is none of high, medium and low, so it enters no rule"
        found.append(Gap(name="supervisor_confidence_unknown", answer="yes", message=message))
    return tuple(found)
