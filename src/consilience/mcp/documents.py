"""What assistants are told: one shape for every answer, errors by their class, texts in which nothing can hide."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from consilience.api.deciding import unsettled as undecided
from consilience.api.forecasting import Forecasted, forecast_document, unforeseen
from consilience.api.forecasting import headline as forecast_headline
from consilience.api.result import Result
from consilience.api.wording import answer_text
from consilience.api.wording import headline as answer_headline
from consilience.decisions.result import DecisionResult
from consilience.decisions.sheet import headline as decision_headline
from consilience.errors import ConsilienceError, Explained, explained
from consilience.evidence.visible import visible_text
from consilience.experiments.orders import Progress, RunReport
from consilience.forecasting.traces import RunTrace
from consilience.journal.budget import usd

SIMULATED: Final = "simulated: no real model spoke, so this says nothing about the world"
UNREAL: Final = "Agreement is not accuracy, and no confidence. No professional, legal or investment advice."
NOBODY: Final = "nobody dissented"
DETAILS: Final = "details"
"""Where everything else of an answer stands; long, and left out unless it is asked for."""


def answer_document(result: Result, report: RunReport, results: Path) -> dict[str, Any]:
    """Return what is told of a question that a panel answered."""
    members = {member.seat: member for member in result.members}
    dissent = [
        {
            "seat": one.member.seat,
            "role": one.member.role,
            "answer": None if one.member.answer is None else answer_text(result.question, one.member.answer),
            "reasons": one.reasons,
            "counterarguments": list(one.counterarguments),
        }
        for one in result.minority_report
    ]
    share = result.agreement_share
    details = {name: value for name, value in result.to_dict().items() if name not in {"folder", "trace"}}
    return {
        **_common(report, answer_headline(result), dissent, result.unsettled, results=results, trace=result.trace),
        "value": result.value,
        "quantiles": None if result.quantiles is None else list(result.quantiles),
        "agreement_share": None if share is None else str(share),
        "answered": [sum(member.answer is not None for member in members.values()), len(members)],
        "cost_usd": result.cost_usd,
        "warnings": list(result.warnings),
        DETAILS: details,
    }


def decision_document(result: DecisionResult, report: RunReport, written: Path, results: Path) -> dict[str, Any]:
    """Return what is told of a decision."""
    details = result.to_dict()
    dissent = [{**vote, "option": result.options.get(vote["option"], vote["option"])} for vote in details["minority"]]
    winner = None if result.winner is None else result.options[result.winner]
    return {
        **_common(report, decision_headline(result), dissent, undecided(result), results=results, trace=written),
        "value": winner,
        "agreement_share": details["agreement_share"],
        "answered": list(result.heads),
        "requires_human_review": result.requires_human_review,
        "review": list(result.review),
        "necessity": details["necessity"],
        "cost_usd": result.cost_usd,
        "warnings": list(result.warnings),
        DETAILS: details,
    }


def forecast_told(done: Forecasted, trace: RunTrace, panel: Result, results: Path) -> dict[str, Any]:
    """Return what is told of a forecast; who dissents is judged by the panel's own rule."""
    told = answer_document(panel, done.report, results)
    final = trace.final
    if final is not None and final.distribution is not None:
        shares = {panel.label(option): p for option, p in final.distribution.items()}
        final = final.model_copy(update={"distribution": shares})
    value = None if final is None else final.probability if final.probability is not None else final.distribution
    return {
        **told,
        **_common(
            done.report,
            forecast_headline(final),
            told["minority_report"],
            unforeseen(trace),
            results=results,
            trace=done.traces[0],
        ),
        "value": value,
        "quantiles": None if final is None or final.quantiles is None else list(final.quantiles),
        "warnings": [*panel.warnings, *(() if final is None else final.flags)],
        DETAILS: {key: value for key, value in forecast_document(done, trace).items() if key != "trace"},
    }


def _common(
    report: RunReport,
    headline: str,
    dissent: list[dict[str, Any]],
    error: ConsilienceError | None,
    *,
    results: Path,
    trace: Path,
) -> dict[str, Any]:
    simulated = bool(report.manifest["simulated"])
    return {
        "status": "answered" if error is None else "unsettled",
        "headline": headline,
        "simulated": simulated,
        "says": [SIMULATED, UNREAL] if simulated else [UNREAL],
        "minority_report": dissent,
        "minority_says": None if dissent else NOBODY,
        "error": None if error is None else error_of(explained(error)),
        "spent_usd": report.manifest["spent_usd"],
        "max_spend_usd": report.manifest["max_spend_usd"],
        "calls": report.calls,
        "deviations": list(report.manifest.get("protocol_deviations") or ()),
        "run_id": report.run_id,
        "trace": trace.relative_to(results).as_posix(),
    }


def running_document(run_id: str, progress: Progress | None, *, simulated: bool) -> dict[str, Any]:
    """Return what is told of a run that still goes on.

    Example:
        >>> running_document("_ask-choice-0", None, simulated=True)["status"]
        'running'
    """
    return {
        "status": "running",
        "headline": "still running" if progress is None else f"still running: {progress_line(progress)}",
        "simulated": simulated,
        "error": None,
        "run_id": run_id,
        "next": "Ask again with the same arguments: it attaches to this run and nothing is paid twice.",
    }


def progress_line(now: Progress) -> str:
    """Return how far a run is in one line.

    Example:
        >>> progress_line(Progress(0, 1, 3, 0, 1234, 3, 40_000_000, 500_000_000))
        'items 0 of 1, turns 3, without answer 0, tokens 1,234, $0.04 of $0.50 spent'
    """
    money = f"{usd(now.spent_nano)} spent" if now.cap_nano is None else f"{usd(now.spent_nano)} of {usd(now.cap_nano)}"
    return (
        f"items {now.items_done} of {now.items_total}, turns {now.turns:,}, without answer {now.failures:,}, "
        f"tokens {now.tokens:,}, {money}{'' if now.cap_nano is None else ' spent'}"
    )


def error_of(error: Explained) -> dict[str, Any]:
    """Return an error as JSON values: its class, what its exit code means, what happened, and what to do."""
    return {
        "name": error.name,
        "exit_code": error.exit_code,
        "meaning": error.meaning,
        "message": error.message,
        "hint": error.hint,
    }


def error_document(error: Explained, *, run_id: str | None = None) -> dict[str, Any]:
    """Return what is told where there is no answer at all; a run that was begun is named."""
    return {"status": "error", "error": error_of(error), "run_id": run_id}


def shown(value: Any) -> Any:
    r"""Return JSON values with every text such that a reader sees all of it, and nothing acts on a terminal.

    Example:
        >>> shown({"options": ["a\u202eb", "\x1b[2J"]})
        {'options': ['a\\u202eb', '\\u001b[2J']}
    """
    if isinstance(value, str):
        return visible_text(value)
    if isinstance(value, Mapping):
        return {visible_text(str(key)): shown(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [shown(one) for one in value]
    return value
