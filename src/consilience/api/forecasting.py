"""Forecasts of a project: who is asked, the question as typed, and the traces that tell of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from consilience.api.running import now
from consilience.api.sources import Sources, client_of
from consilience.core.question import Option, option_label
from consilience.errors import ConfigError, QuorumError, reason
from consilience.experiments.artefact import load_artefact
from consilience.experiments.calibrations import Calibration
from consilience.experiments.orders import Job, Orders, RunReport
from consilience.experiments.settings import Flags, keys_and_urls, settle
from consilience.forecasting.pipeline import ForecastTerms, Research, forecast_items, forecast_job
from consilience.forecasting.questions import ForecastQuestion, MarketPrice
from consilience.forecasting.recorded import check_calibration, final_row, write_traces
from consilience.forecasting.traces import FinalForecast, RunTrace
from consilience.registry import nearest

KINDS: Final = ("binary", "multiple_choice", "numeric")
_EPOCH, _LAST = date(1970, 1, 1).toordinal(), date.max.toordinal()


@dataclass(frozen=True)
class Asking:
    """Who is asked, as typed.

    Attributes:
        arm: Name of a treatment.
        panel: A panel or a YAML file; None for the arm's own.
        model: One model for all seats; None for a committee.
        tier: Price tier.
        max_spend_usd: Spend cap.
        seed: Decides shuffling, assignment and simulated answers.
        live: Real models speak.
        concurrency: Questions in flight.
        retry_failed: Ask turns again that have no answer.
        final: Name of the final rule.
        single: A question of its own, no arm of a study.
        split: The split that the questions belong to; None for none.
        calibration: A frozen recalibration; None for none.
    """

    arm: str
    panel: str | None
    model: str | None
    tier: str | None
    max_spend_usd: str | None
    seed: int | None
    live: bool
    concurrency: int | None
    retry_failed: bool
    final: str
    single: bool
    split: str | None = None
    calibration: Path | None = None


def plainly(arm: str) -> Asking:
    """Return an arm's own way of being asked one question: its panel, simulated, without a cap."""
    return Asking(
        arm=arm,
        panel=None,
        model=None,
        tier=None,
        max_spend_usd=None,
        seed=None,
        live=False,
        concurrency=None,
        retry_failed=False,
        final="panel_only",
        single=True,
    )


@dataclass(frozen=True)
class PreparedForecasts:
    """Forecasts that can be carried out.

    Attributes:
        job: The run.
        orders: How it is carried out.
        questions: The question behind each item.
        final: Name of the final rule.
        calibration: A frozen recalibration; None for none.
    """

    job: Job
    orders: Orders
    questions: dict[str, ForecastQuestion]
    final: str
    calibration: Calibration | None


@dataclass(frozen=True)
class Forecasted:
    """A run of forecasts, ended or stopped.

    Attributes:
        job: What was asked.
        report: What the run left.
        traces: The run traces, in order of items.
        questions: The question behind each item.
    """

    job: Job
    report: RunReport
    traces: list[Path]
    questions: dict[str, ForecastQuestion]


def prepared_forecasts(
    root: Path,
    environment: Mapping[str, str],
    questions: Sequence[ForecastQuestion],
    asking: Asking,
    sources: Sources,
    research: Research,
) -> PreparedForecasts:
    """Return the run that forecasts some questions; nothing is written, searched or called.

    Raises:
        ConfigError: A name is unknown, nothing says where to search, or a live model has no key.
        DataError: The corpus cannot be read.
        PlanError: Parts cannot work together, a question is no forecast any more, or a calibration is not for it.
    """
    final_row(asking.final, "probability", 1)  # a mistyped rule is told before anything is asked
    flags = Flags(
        max_spend_usd=asking.max_spend_usd,
        tier=asking.tier,
        committee=asking.model,
        concurrency=asking.concurrency,
        seed=asking.seed,
    )
    settings = settle(root, flags, environment)
    environ = keys_and_urls(root, environment)
    if asking.model is not None:
        settings.catalogue.spec(asking.model)
    terms = ForecastTerms(
        arm=asking.arm,
        panel=asking.panel,
        committee=settings.committee,
        tier=settings.tier,
        live=asking.live,
        seed=settings.seed,
        catalogue=settings.catalogue,
        environ=environ,
        max_spend_nano=settings.max_spend_nano,
        concurrency=settings.concurrency,
        retry_failed=asking.retry_failed,
        results=root / "results",
    )
    learnt = None if asking.calibration is None else load_artefact(Calibration, asking.calibration)
    client = client_of(sources, environ, live=asking.live, seed=settings.seed)
    job, orders = forecast_job(questions, terms, research, client, single=asking.single, split=asking.split)
    if learnt is not None:
        check_calibration(learnt, job.items)
    behind = {name: question for name, (_, question) in forecast_items(questions, research).items()}
    return PreparedForecasts(job, orders, behind, asking.final, learnt)


def written_forecasts(prepared: PreparedForecasts, report: RunReport) -> Forecasted:
    """Return what a run of forecasts left, and write a trace per question.

    Raises:
        DataError: A file cannot be written.
        IntegrityError: A trace that is there was changed.
    """
    traces = write_traces(
        prepared.job, report, prepared.questions, final=prepared.final, calibration=prepared.calibration
    )
    return Forecasted(prepared.job, report, traces, prepared.questions)


def forecast_document(done: Forecasted, trace: RunTrace) -> dict[str, Any]:
    """Return one forecast of a run as JSON values: the final one, its stages, its agents without their documents."""
    return {
        "simulated": done.job.plan.simulated,
        "run_id": done.report.run_id,
        "trace": str(done.traces[0]),
        "final": None if trace.final is None else trace.final.model_dump(mode="json"),
        "stages": [stage.model_dump(mode="json") for stage in trace.stages],
        "agents": [agent.model_dump(mode="json", exclude={"documents", "tool_log"}) for agent in trace.agents],
        "calls": done.report.calls,
        "spent_usd": done.report.manifest["spent_usd"],
    }


def unforeseen(trace: RunTrace) -> QuorumError | None:
    """Return why there is no forecast, as an error; None where there is one."""
    if trace.final is not None and has_forecast(trace.final):
        return None
    return QuorumError("too few agents forecast", hint="See the trace; ask again with --retry-failed.")


def question_of(  # noqa: PLR0913 - what was typed
    text: str,
    *,
    kind: str,
    options: list[str],
    criteria: str,
    description: str,
    cutoff: str | None,
    resolution_date: datetime | None,
    bounds: tuple[float | None, float | None],
    unit: str | None,
    market_price: float | None,
) -> ForecastQuestion:
    """Return the question that a user typed.

    Raises:
        ConfigError: The kind is unknown, or the question does not fit.
    """
    if kind not in KINDS:
        raise ConfigError(f'--kind: unknown "{kind}"', hint=f"{nearest(kind, KINDS)} Others come by --questions.")
    lower, upper = bounds
    try:
        return ForecastQuestion.model_validate(
            {
                "text": text,
                "kind": kind,
                "options": tuple(Option(id=option_label(at), label=label) for at, label in enumerate(options)),
                "description": description,
                "resolution_criteria": criteria,
                "cutoff": cutoff,
                "resolution_date": None if resolution_date is None else resolution_date.date(),
                "lower": lower,
                "upper": upper,
                "unit": unit,
                "market": None
                if market_price is None
                else MarketPrice(price=market_price, source="given by the user", as_of=None if cutoff else now()),
            }
        )
    except ValidationError as error:
        raise ConfigError(
            f"the question does not fit: {reason(error)}", hint="See consilience forecast --help."
        ) from error


def headline(final: FinalForecast | None, asked: ForecastQuestion | None = None) -> str:
    """Return a forecast in one line; of a question that is given, options are told by label and days as dates.

    Example:
        >>> headline(None)
        'no forecast'
    """
    if final is None or not has_forecast(final):
        return "no forecast"
    by = f"({final.rule.replace('_', ' ')}{'; ' if final.flags else ''}{', '.join(final.flags)})"
    if final.probability is not None:
        return f"probability of yes: {final.probability:.1%} {by}"
    if final.distribution is not None:
        labels = {option.id: option.label for option in (asked.options if asked is not None else ())}
        shares = ", ".join(f"{labels.get(name, name)} {p:.1%}" for name, p in final.distribution.items())
        return f"probabilities: {shares} {by}"
    q05, _, q50, _, q95 = final.quantiles or (float("nan"),) * 5
    tell = _day if asked is not None and asked.kind == "date" else _number
    return f"median {tell(q50)}, 90 % interval {tell(q05)} to {tell(q95)} {by}"


def _number(value: float) -> str:
    return f"{value:,.6g}"


def _day(days: float) -> str:
    """Return the day that a number of days since 1970-01-01 UTC falls on, where the calendar has it."""
    ordinal = _EPOCH + days
    return date.fromordinal(int(ordinal)).isoformat() if 1 <= ordinal < _LAST else f"{_number(days)} days since 1970"


def has_forecast(final: FinalForecast) -> bool:
    """Return whether there is a forecast at all, of whatever kind.

    Example:
        >>> has_forecast(FinalForecast(rule="panel_only", probability=0.3))
        True
    """
    return any(part is not None for part in (final.probability, final.distribution, final.quantiles))
