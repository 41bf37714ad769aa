"""The work of ``run-arm``: from what was asked to a run and what is printed of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from consilience.aggregation.answers import OPTION_PREFIX, default_rule
from consilience.cli.console import Grid, counted, note, number, show
from consilience.cli.lost import lost_of
from consilience.cli.place import Place, titled
from consilience.cli.planning import Asked, planned
from consilience.cli.running import (
    carry_out,
    casting_of,
    check_keys,
    items_of,
    items_unwritten,
    models_of,
    run_name,
)
from consilience.cli.unanswered import unanswered
from consilience.cli.watch import spent
from consilience.core.packet import Item
from consilience.errors import StoppedError
from consilience.experiments.casting import batch_vendors
from consilience.experiments.diagnostics import told
from consilience.experiments.engines.base import Engine, Local
from consilience.experiments.foresight import Foresight, foresee
from consilience.experiments.orders import Job, Orders, RunReport
from consilience.experiments.plan import Plan
from consilience.journal.budget import usd
from consilience.models.batch import DISCOUNT
from consilience.models.prices import NANO

SHOWN_ITEMS = 24


def preview(place: Place, asked: Asked, *, as_json: bool) -> None:
    """Print what a run may take at worst; nothing is written into the project."""
    items = items_unwritten(asked.wanted.by(asked.arm), project=place.project, town=place.town)
    plan, items = planned(place, asked, items)
    discount = DISCOUNT if asked.batch else 1
    ahead = foresee(plan, items, catalogue=asked.settings.catalogue, discount=discount)
    run_id = run_name(plan, asked.run_id, synthetic=asked.wanted.synthetic)
    cap = asked.settings.max_spend_nano
    document = {
        "run_id": run_id,
        "dry_run": True,
        "simulated": plan.simulated,
        "arm": plan.arm,
        "committee": plan.committee,
        "models": list(plan.models),
        "items": len(items),
        "turns": ahead.turns,
        "expected_tokens": ahead.tokens,
        "worst_tokens": ahead.worst_tokens,
        "expected_cost_usd": _dollars(ahead.expected_nano),
        "worst_cost_usd": _dollars(ahead.worst_nano),
        "max_spend_usd": _dollars(cap),
        "panel_warnings": list(plan.warnings()),
    }
    row = (
        f"{plan.arm}{' (simulated)' if plan.simulated else ''}",
        str(len(items)),
        f"{ahead.turns:,}",
        f"{ahead.tokens:,}",
        f"{ahead.worst_tokens:,}",
        _money(ahead.expected_nano),
        _money(ahead.worst_nano),
    )
    show(
        document,
        Grid(
            ("arm", "items", "turns at most", "tokens expected", "tokens at most", "cost expected", "cost at most"),
            (row,),
        ),
        "expected: four bytes a token, replies of the assumed length, nothing stops early; at most: a token per byte "
        "and every reply at its limit; corrective retries come on top of both",
        _about_cap(cap, ahead),
        *_warnings(plan),
        f"run {titled(place.project.runs / run_id)}; nothing was written and nothing was spent",
        as_json=as_json,
    )


def _dollars(nano: int | None) -> float | None:
    return None if nano is None else nano / NANO


def _money(nano: int | None) -> str:
    return "unknown" if nano is None else usd(nano)


def _about_cap(cap: int | None, ahead: Foresight) -> str:
    if cap is None:
        return "no spend cap: set one with --max-spend-usd"
    if ahead.worst_nano is not None and ahead.worst_nano <= cap:
        return f"a cap of {usd(cap)} bears even the most it can cost"
    if ahead.expected_nano is not None and ahead.expected_nano <= cap:
        return f"a cap of {usd(cap)} bears the expected cost, not the most it can cost"
    return f"a cap of {usd(cap)} does not bear the expected cost: the run would stop there and could be resumed"


def _warnings(plan: Plan) -> list[str]:
    return [f"panel: {text}" for text in plan.warnings()]


def perform(place: Place, asked: Asked, *, accept: frozenset[str], retry_failed: bool, as_json: bool) -> None:
    """Run or resume one arm and print what it left.

    Raises:
        BudgetError: The spend cap ended the run; what was answered is kept and was printed.
        StoppedError: The user ended it; likewise.
    """
    if asked.live:
        check_keys(asked.settings, root=place.root)
    wanted = items_of(asked.wanted.by(asked.arm), project=place.project, town=place.town)
    report, items = executed(place, asked, wanted, accept=accept, retry_failed=retry_failed)
    turns = report.manifest["turns"]
    silent = unanswered(report.folder) if sum(turns.values()) > turns["answered"] else []
    document = {**_document(report, items), "without_answer": [vars(one) for one in silent]}
    show(document, *_parts(report, items), *map(str, silent), as_json=as_json)
    if isinstance(report.stopped_by, StoppedError):
        raise StoppedError(report.stopped_by.message, hint=f"To resume: {place.command}")
    if report.stopped_by is not None:
        raise report.stopped_by


def executed(
    place: Place,
    asked: Asked,
    wanted: Sequence[Item],
    *,
    accept: frozenset[str] = frozenset(),
    retry_failed: bool = False,
) -> tuple[RunReport, list[Item]]:
    """Run or resume one arm over items, and return what it left and the items as it showed them."""
    plan, items = planned(place, asked, wanted)
    run_id = run_name(plan, asked.run_id, synthetic=asked.wanted.synthetic)
    for text in _warnings(plan):
        note(text)
    if plan.weights is not None and not plan.weights.panels:
        note(f"weights: {plan.weights_source}")
    catalogue = asked.settings.catalogue
    models = models_of(plan, catalogue, root=place.root)
    batch = batch_vendors(models) if asked.batch else None
    job = Job(plan, items, run_id, place.project.runs / run_id, models, catalogue, batch)
    orders = Orders(
        max_spend_nano=asked.settings.max_spend_nano,
        concurrency=asked.settings.concurrency,
        accept=accept,
        retry_failed=retry_failed,
        engine=_engine(place, asked, plan),
    )
    return carry_out(job, orders), items


def _engine(place: Place, asked: Asked, plan: Plan) -> Engine:
    """Return where turns are taken.

    Raises:
        ConfigError: It is Ray, and Ray is not installed.
    """
    if asked.engine == "local":
        return Local()
    from consilience.experiments.engines.ray import RayEngine, ray_module  # noqa: PLC0415 - its package is an extra

    ray_module()
    return RayEngine(casting_of(plan, asked.settings.catalogue, root=place.root), asked.workers)


def residual(arm: str, told_of: dict[str, Any]) -> str:
    """Return what a matched arm left over, or took too much, in words."""
    money = told_of["unit"] == "usd"

    def amount(value: float | None) -> str:
        if value is None:
            return "unknown"
        return f"{'−' if value < 0 else ''}${abs(value):.4f}" if money else f"{value:,.0f} tokens"

    fewest, most = told_of["samples"]
    over = (
        "" if (told_of["residual"] or 0) >= 0 else ", more than it was allowed: what was taken to learn the cost counts"
    )
    capped = (
        f"; {counted(len(told_of['capped_items']), 'item')} cut at the most samples" if told_of["capped_items"] else ""
    )
    return (
        f"{arm}: matched to {told_of['source']}, allowed {amount(told_of['allowed'])}, took "
        f"{amount(told_of['taken'])}, residual {amount(told_of['residual'])}; {fewest} to {most} samples an item"
        f"{over}{capped}"
    )


def _primary(report: RunReport, items: Sequence[Item]) -> list[dict[str, Any]]:
    """Return each item's row under the primary rule of its kind and of the panel's declared seats."""
    kinds = {item.question.id: item.question.kind for item in items}
    rows = report.predictions.to_dicts()
    return [row for row in rows if row["aggregation"] == default_rule(kinds[row["item_id"]], row["n_seats"])]


def _rules(rows: Sequence[dict[str, Any]]) -> str:
    return ", ".join(sorted({row["aggregation"] for row in rows}))


def _answer(row: dict[str, Any]) -> str:
    """Return an item's answer in one cell: a number, or the likeliest or most chosen options with their share."""
    shares = {
        name.removeprefix(OPTION_PREFIX): share
        for name, share in row.items()
        if name.startswith(OPTION_PREFIX) and share is not None
    }
    if not shares:
        return number(row["point"] if row["point"] is not None else row.get("p"))
    most = max(shares.values())
    return f"{' = '.join(name for name, share in shares.items() if share == most)}: {most:.0%}"


def _document(report: RunReport, items: Sequence[Item]) -> dict[str, Any]:
    stopped = report.stopped_by
    rows = _primary(report, items)
    return {
        **{name: value for name, value in report.manifest.items() if name != "configuration"},
        "folder": str(report.folder),
        "calls": report.calls,
        "lost_now": report.lost,
        "torn_bytes": report.torn_bytes,
        "stopped_by": None if stopped is None else {"error": type(stopped).__name__, "message": stopped.message},
        "aggregation": _rules(rows) or None,
        "predictions": rows,
    }


def _parts(report: RunReport, items: Sequence[Item]) -> list[str | Grid]:
    manifest = report.manifest
    units = {item.question.id: item.question.unit or "" for item in items}
    rows = _primary(report, items)
    nested = len(manifest["levels"]) > 1
    shown = tuple(
        (
            row["item_id"],
            *([row["arm"]] if nested else []),
            row["status"],
            units[row["item_id"]],
            _answer(row),
            number(row["q05"]),
            number(row["q95"]),
            f"{row['n_answered']} of {row['n_seats']}",
            "unknown" if row["cost_usd"] is None else f"${row['cost_usd']:.4f}",
        )
        for row in rows[:SHOWN_ITEMS]
    )
    words = ("item", *(["arm"] if nested else []), "status", "unit")
    headings = (*words, _rules(rows), "q05", "q95", "answers", "cost")
    parts: list[str | Grid] = [Grid(headings, shown, words=len(words))] if shown else []
    if len(rows) > SHOWN_ITEMS:
        parts.append(f"and {len(rows) - SHOWN_ITEMS} more in {report.folder / 'predictions.parquet'}")
    done, turns = manifest["items"], manifest["turns"]
    failed = sum(turns.values()) - turns["answered"]
    taken = sum(turns.values())
    parts.append(
        f"{titled(report.folder)}: {sum(done.values()) - done['not_run']} of {counted(sum(done.values()), 'item')}, "
        f"{counted(taken, 'turn')}, {failed:,} without answer"
    )
    cap = manifest["max_spend_usd"]
    money = spent(round(manifest["spent_usd"] * NANO), None if cap is None else round(cap * NANO))
    parts += manifest["said_of_models"]
    if manifest["cached_share"]:
        parts.append(f"{manifest['cached_share']:.0%} of the input was read from a cache")
    priced = f"{'simulated, ' if manifest['simulated'] else ''}at list price"
    parts.append(f"{counted(report.calls, 'call')}; {money} ({priced}{lost_of(report).told})")
    if report.calls > taken:
        cut = ", turns of items that are not finished" if done["not_run"] else ""
        parts.append(f"more calls than turns: replies that were corrected, calls that were repeated{cut}")
    elif report.calls < taken:
        parts.append("turns that were on record were not asked again")
    parts += [] if report.panel is None else told(report.panel)
    parts += [] if manifest["match"] is None else [residual(manifest["arm"], manifest["match"])]
    parts.append(f"artefacts in {report.folder}")
    return parts
