"""Forecasts as they are told in a line or two, and those of a file of questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.cli.console import counted, note, show
from consilience.cli.lost import lost_of
from consilience.cli.place import Place
from consilience.errors import ConfigError, QuorumError
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.api.forecasting import Forecasted
    from consilience.forecasting.questions import ForecastQuestion

SIMULATED = "simulated: no real model spoke, so the forecast says nothing about the world"
ADVICE = "A forecast is no professional, legal or investment advice."


@dataclass(frozen=True)
class Told:
    """What is told of one forecast of several.

    Attributes:
        document: For ``--json``.
        lines: For people.
        forecast: Whether there is one.
    """

    document: dict[str, Any]
    lines: tuple[str, ...]
    forecast: bool


def asked_of(question: str | None, path: Path | None, feed: str | None, *, also: bool) -> list[ForecastQuestion]:
    """Return the questions of a file; none where one question was typed instead.

    Args:
        question: As typed; None without.
        path: The file; None without.
        feed: Its format; None for the default.
        also: Something was typed that describes one question.

    Raises:
        ConfigError: Both or neither was given, or an option that belongs to the other.
        DataError: The file cannot be read.
    """
    from consilience.forecasting.feeds import FEEDS  # noqa: PLC0415 - heavy

    if (question is None) == (path is None):
        raise ConfigError(
            "forecast needs QUESTION or --questions, one of them", hint='Such as: forecast "Will it rain by Friday?"'
        )
    if path is None:
        if feed is not None:
            raise ConfigError("--feed is the format of --questions", hint="Leave it out.")
        return []
    if also:
        raise ConfigError(
            "kind, dates, range, options and price belong to QUESTION", hint="A file of questions tells its own."
        )
    name = feed or "files"
    if name not in FEEDS:
        raise ConfigError(f'--feed: unknown "{name}"', hint=nearest(name, FEEDS.names()))
    return sorted(FEEDS[name].read(path), key=lambda one: one.id)


def told_of(traces: Sequence[Path]) -> list[Told]:
    """Return what is told of each forecast, in the order of the traces."""
    from consilience.api.forecasting import has_forecast, headline  # noqa: PLC0415 - heavy
    from consilience.forecasting.traces import read_trace  # noqa: PLC0415 - the same

    found = []
    for path in traces:
        trace = read_trace(path)
        asked, final = trace.question, trace.final
        document = {
            "question_id": asked.id,
            "kind": asked.kind,
            "trace": str(path),
            "final": None if final is None else final.model_dump(mode="json"),
        }
        text = " ".join(asked.text.split())
        lines = (f"{path.stem}: {text}", f"  {headline(final, asked)}", f"  trace {path}")
        found.append(Told(document, lines, final is not None and has_forecast(final)))
    return found


def show_forecasts(place: Place, done: Forecasted, *, as_json: bool) -> None:
    """Print the forecasts of a file of questions.

    Raises:
        QuorumError: Too few agents forecast one of them.
    """
    plan, at = done.job.plan, "" if place.root == Path() else f" --project {place.root}"
    for warning in plan.warnings():
        note(f"panel: {warning}")
    told = told_of(done.traces)
    lost = lost_of(done.report)
    spent = done.report.manifest["spent_usd"]
    show(
        {
            "simulated": plan.simulated,
            "run_id": done.report.run_id,
            "forecasts": [one.document for one in told],
            "calls": done.report.calls,
            "spent_usd": spent,
            "lost": asdict(lost),
        },
        *([SIMULATED] if plan.simulated else []),
        *(line for one in told for line in one.lines),
        ADVICE,
        f"{counted(done.report.calls, 'call')}; ${spent:.4f} at list price{lost.told}",
        f"run {done.report.run_id}; everything behind a forecast: consilience{at} trace show TRACE",
        as_json=as_json,
    )
    missing = sum(not one.forecast for one in told) + len(plan.items) - len(told)
    if missing:
        raise QuorumError(
            f"too few agents forecast {counted(missing, 'question')}", hint="See the traces; ask with --retry-failed."
        )


def withheld(search: str) -> list[str]:
    """Return what must be said where a client never shows what is later than the cutoff.

    Example:
        >>> withheld("none")
        []
    """
    if search != "corpus":
        return []
    return ["(the corpus withholds what is dated at or after a cutoff: 0 after does not say that none exists)"]
