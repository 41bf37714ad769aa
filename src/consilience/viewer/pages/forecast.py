"""One forecast: what was searched and found, dated or not, how the agents came to differ, and the stages to the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from consilience.experiments.predictions import SIMULATED_PREFIX
from consilience.forecasting.search.records import Filtered
from consilience.forecasting.timeline import timeline
from consilience.forecasting.traces import RunTrace, read_trace
from consilience.viewer.shown import page
from consilience.viewer.study import Study, read_json


def forecast_page(study: Study, folder: Path, item_id: str, path: Path) -> str:
    """Return the page of a forecast.

    Raises:
        IntegrityError: The trace was changed.
    """
    trace = read_trace(path)
    transcript = study.file(folder, "transcripts", f"{item_id}.json")
    return page(
        "forecast.html.jinja",
        title=f"Forecast {item_id}",
        here="runs",
        run_id=folder.name,
        item_id=item_id,
        simulated_run=folder.name.startswith(SIMULATED_PREFIX),
        trace=trace,
        shown=timeline(trace),
        counts=counts_of(trace),
        rejected=rejected_of(trace),
        gaps=gaps_of({} if transcript is None else read_json(transcript)),
    )


def counts_of(trace: RunTrace) -> dict[str, int]:
    """Return how many results were dated before the cutoff, undated, dated after it, and rejected."""
    found = {"before": 0, "undated": 0, "after": 0, "rejected": 0}
    for agent in trace.agents:
        for name, count in agent.counts.model_dump().items():
            found[name] = found.get(name, 0) + count
        found["rejected"] += sum(len(record.filtered) for record in agent.tool_log)
    return found


def rejected_of(trace: RunTrace) -> dict[tuple[str, int | None, str | None], tuple[Filtered, ...]]:
    """Return the results that were not kept, by agent, step and what was asked."""
    return {
        (agent.agent_id, record.step, record.query if record.tool == "search" else record.evidence_id): record.filtered
        for agent in trace.agents
        for record in agent.tool_log
    }


def gaps_of(transcript: Mapping[str, Any]) -> list[tuple[int, float, float, int]]:
    """Return by round the least and the greatest probability, and how many spoke; empty for other questions."""
    rounds: dict[int, list[float]] = {}
    turns: Sequence[Mapping[str, Any]] = transcript.get("turns", ())
    for turn in turns:
        p = (turn["outcome"].get("said") or {}).get("p_yes")
        if isinstance(p, int | float):
            rounds.setdefault(turn["round"], []).append(float(p))
    return [(number, min(said), max(said), len(said)) for number, said in sorted(rounds.items())]
