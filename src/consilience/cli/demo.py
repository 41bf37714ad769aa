"""``consilience demo``: the whole thing offline, on a synthetic town."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from consilience.cli.console import counted, note, show
from consilience.cli.place import Json, Place, place_of

if TYPE_CHECKING:
    from pathlib import Path

    from consilience.experiments.matching import Match
    from consilience.experiments.plan import Plan
    from consilience.models.prices import Catalogue

ARMS = ("E_single", "F_independent", "G_debate", "H_skeptic", "I_placebo")
BASELINES = ("A_hedonic", "A2_adjusted_comps", "B_hierarchical", "C_boosting", "D_avm")
"""What needs no language model: the bar that a panel has to pass."""
BOOSTED = ("C_boosting", "D_avm")
"""Of these, what needs the extra `baselines`."""
SINGLE, PRICED_AS = "J_single_matched", "G_debate"
"""The single agent that is given the money of an arm; differences are taken from it."""
ASKED = "alder-01"
"""The question of the demonstration corpus that is forecast."""
DECISION = {
    "question": "Should the town reassess all homes this year?",
    "options": ["reassess now", "reassess a sample first", "wait a year"],
    "context": ["The last assessment is six years old; appeals rose by 40% last year; the budget covers one tenth."],
    "full_share": 0.6,
    "safety_order": ["wait a year", "reassess a sample first", "reassess now"],
}
SEED = 2026
N = 24


def demo(context: typer.Context, as_json: Json = False) -> None:
    """See it work, offline and free: a synthetic town, baselines, six arms of simulated analysts, a table, a page."""
    from consilience.cli.data import TOWN_SEED  # noqa: PLC0415 - heavy below
    from consilience.cli.evaluating import evaluated, record, shown, write_page  # noqa: PLC0415 - heavy
    from consilience.cli.running import carry_out, models_of  # noqa: PLC0415 - the same
    from consilience.experiments.matching import match_of  # noqa: PLC0415 - the same
    from consilience.experiments.orders import Job, Orders  # noqa: PLC0415 - the same
    from consilience.experiments.plan import Choices, make_plan  # noqa: PLC0415 - the same
    from consilience.models.prices import load_catalogue  # noqa: PLC0415 - the same
    from consilience.reports.evaluation import main_table  # noqa: PLC0415 - the same
    from consilience.valuation.baseline_runs import (  # noqa: PLC0415 - the same
        chosen_baselines,
        open_bench,
        predict_baselines,
    )
    from consilience.valuation.pipeline import VALUATION, load_items, synthetic_project  # noqa: PLC0415 - the same

    place = Place(place_of(context).root / "results" / "demo", ())
    note("a synthetic town of 2,000 sales, asked about by simulated analysts: no key, no network, no money")
    synthetic_project(place.project, seed=TOWN_SEED)
    items = load_items(place.project, split="validation", n=N)
    catalogue = load_catalogue()
    ids = [item.question.id for item in items]

    def run(arm: str, *, match: Match | None = None) -> str:
        choices = Choices(
            arm=arm, rounds=(), committee="mixed_random", tier="mid", split="validation", seed=SEED, match=match
        )
        plan = make_plan(VALUATION, items, choices, catalogue=catalogue)
        run_id = _run_id(plan, catalogue, root=place.root)
        models = models_of(plan, catalogue, root=place.root)
        carry_out(Job(plan, items, run_id, place.project.runs / run_id, models, catalogue), Orders())
        return run_id

    bench = open_bench(place.project)
    predict_baselines(bench, place.root / "results", chosen_baselines(demo_baselines()), split="validation", items=ids)
    runs = {arm: run(arm) for arm in ARMS}
    match = match_of(runs[PRICED_AS], ids, run_folder=place.run_folder)
    runs[SINGLE] = run(SINGLE, match=match)
    found = evaluated(place, list(runs.values()), include_simulated=True, baseline=f"{SINGLE}.{match.label}")
    path, folder = place.root / "report.html", place.project.runs / runs[PRICED_AS]
    write_page(place, found, path, title="Consilience demo")
    foreseen, voted = _forecast(place), _decide(place)
    show(
        {
            "simulated": True,
            "report": str(path),
            "run_ids": list(runs.values()),
            "arms": record(found.evaluation),
            "warnings": list(found.evaluation.warnings),
            "forecast": foreseen.record,
            "decision": voted.record,
        },
        *shown(main_table(found.evaluation)),
        "",
        *foreseen.told,
        *voted.told,
        "",
        "Everything above is simulated: the sales are made up and no real model spoke. Costs are what the same tokens "
        "cost at list price.",
        "Where to look next:",
        f"  the report page           {path}",
        f"  every turn and reply      {folder / 'transcripts'}",
        f"  the evidence shown        {folder / 'packets'}",
        f"  all that was sent         {folder}/events-*.jsonl (the journal)",
        f"  the record, checked       consilience --project {place.root} verify {runs[PRICED_AS]}",
        f"  the same without a call   consilience --project {place.root} replay {runs[PRICED_AS]}",
        f"  what it cost, by role     consilience --project {place.root} ledger {runs[PRICED_AS]} --by role",
        f"  what a forecast rests on  consilience trace show {foreseen.record['trace']}",
        f"  how a decision was made   {voted.record['page']}",
        as_json=as_json,
    )


def demo_baselines() -> tuple[str, ...]:
    """Return the baselines whose libraries are installed, and say which are left out."""
    from importlib.util import find_spec  # noqa: PLC0415 - beside its one use

    if all(find_spec(name) is not None for name in ("lightgbm", "sklearn")):
        return BASELINES
    note(f"left out, since they need more than this installation has: {', '.join(BOOSTED)}")
    note('  pip install "consilience[baselines]" brings them')
    return tuple(name for name in BASELINES if name not in BOOSTED)


@dataclass(frozen=True)
class _Told:
    """One answer of the demonstration: as JSON values, and in lines."""

    record: dict[str, Any]
    told: list[str]


def _forecast(place: Place) -> _Told:
    """Forecast one question of the demonstration's corpus by a panel of research agents."""
    from consilience.api.forecasting import headline, plainly  # noqa: PLC0415 - heavy
    from consilience.api.sources import Sources  # noqa: PLC0415 - the same
    from consilience.cli import researching  # noqa: PLC0415 - heavy below
    from consilience.forecasting import demo as demonstration  # noqa: PLC0415 - the same
    from consilience.forecasting.feeds import FEEDS  # noqa: PLC0415 - the same
    from consilience.forecasting.pipeline import Research  # noqa: PLC0415 - the same
    from consilience.forecasting.traces import read_trace  # noqa: PLC0415 - the same

    with (
        demonstration.on_disk(demonstration.QUESTIONS) as questions,
        demonstration.on_disk(demonstration.DOCUMENTS) as corpus,
    ):
        asked = next(one for one in FEEDS["files"].read(questions) if one.id == ASKED)
        sources = Sources(None, corpus, None)
        done = researching.forecasted(place, [asked], plainly("F_independent"), sources, Research())
    trace = read_trace(done.traces[0])
    p = None if trace.final is None else trace.final.probability
    record = {"question": asked.text, "probability": p, "trace": str(done.traces[0])}
    found = sum(agent.counts.before for agent in trace.agents)
    told = [
        f"One probability (simulated): {asked.text}",
        f"  {headline(trace.final)}; {len(trace.agents)} agents, {found} results dated before the cutoff",
    ]
    return _Told(record, told)


def _decide(place: Place) -> _Told:
    """Put one small decision to a panel of voters."""
    from consilience.api.deciding import decision_terms  # noqa: PLC0415 - heavy
    from consilience.cli.deciding import decided  # noqa: PLC0415 - heavy below
    from consilience.decisions.case import Case  # noqa: PLC0415 - the same
    from consilience.decisions.sheet import headline  # noqa: PLC0415 - the same

    case = Case.model_validate(DECISION)
    result, files = decided(place, case, decision_terms(place.root, os.environ, seed=SEED))
    behind, cast = result.heads
    page = next(path for path in files if path.suffix == ".html")
    record = {"question": case.question, "outcome": result.outcome, "winner": result.winner, "page": str(page)}
    told = [
        f"One decision (simulated): {case.question}",
        f"  {headline(result)}; {behind} of {cast} ballots, {counted(len(result.minority), 'dissenter')}",
    ]
    return _Told(record, told)


def _run_id(plan: Plan, catalogue: Catalogue, *, root: Path) -> str:
    """Return an id that differs wherever plan, models, prices or code do, so that a demo never meets an older one."""
    from consilience.cli.running import models_of  # noqa: PLC0415 - heavy
    from consilience.experiments.protocol import protocol_of  # noqa: PLC0415 - the same

    fixed = protocol_of(plan, models_of(plan, catalogue, root=root), catalogue=catalogue, run_secret="")
    return f"_{plan.arm}-demo-{fixed.sha256[:10]}"
