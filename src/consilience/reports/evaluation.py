"""The tables of an evaluation: no arm stands without its cost and its difference from the single agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast

from consilience.experiments.answers_judged import ChoiceComparison, ProbabilityComparison
from consilience.experiments.evaluation import ArmResult, Comparison, Evaluation
from consilience.experiments.predictions import SIMULATED_PREFIX, STATUSES
from consilience.inference.intervals import ENOUGH, LEAST
from consilience.reports.drawn import flagged
from consilience.reports.scope import Scope
from consilience.reports.tables import ABSENT, Column, Record, Table, Value, count, dollars, percent, plain, points

_ROUGH: Final = 50
_ANY_RULE: Final = "any (one member)"


def arm_record(result: ArmResult, evaluation: Evaluation, *, cost_ratio: float | None = None) -> dict[str, Value]:
    """Return an arm's result as flat JSON values; shares and differences are fractions, unknown is None."""
    record: dict[str, Value] = {
        "arm": result.arm,
        "aggregation": result.aggregation,
        "committee": result.committee,
        "simulated": result.simulated,
        "baseline": result.arm == evaluation.baseline_arm,
        "n_items": result.n_items,
        **{status: result.outcomes[status] for status in STATUSES},
    }
    for name in ("mdape", "ppe10", "ppe20", "bias"):
        record[name] = None if result.points is None else getattr(result.points, name)
    for name, share in (("coverage50", result.coverage50), ("coverage90", result.coverage90)):
        for suffix, part in (("", "value"), ("_low", "low"), ("_high", "high")):
            record[name + suffix] = None if share is None else getattr(share, part)
    gap = result.difference
    return record | {
        "width90": result.width90,
        "cost_usd": result.cost_usd,
        "cost_per_item_usd": result.cost_per_item_usd,
        "cost_ratio": cost_ratio,
        "tokens": result.tokens,
        "difference": None if gap is None else gap.point,
        "difference_low": None if gap is None else gap.low,
        "difference_high": None if gap is None else gap.high,
        "difference_interval": None if gap is None else gap.rule,
        "difference_flags": None if gap is None else " ".join(gap.flags),
    }


def main_table(evaluation: Evaluation, comparison: Comparison | None = None) -> Table:
    """Return one row per arm: median error, PPE10, coverage, cost, difference from the single agent.

    Args:
        evaluation: The evaluation.
        comparison: A part of it, such as one level of exposure; None is the whole.
    """
    comparison = comparison or evaluation.overall
    columns = (
        _ARM,
        Column("MdAPE", lambda r: percent(_number(r["mdape"]))),
        Column("PPE10", lambda r: percent(_number(r["ppe10"]))),
        Column("Coverage of 90 % interval", lambda r: percent(_number(r["coverage90"]))),
        _COST,
        _difference(evaluation),
    )
    said = (
        f"By the rule {evaluation.primary}. In brackets behind a cost: relative to {evaluation.baseline_arm}. "
        f"{describe_resampling(comparison)}"
    )
    if evaluation.baseline_arm == "E_single":
        said += " E_single answers once per item; it is not given the other arms' money."
    return Table(_caption(evaluation, said), columns, _records(evaluation, comparison, comparison.arms))


def rules_table(evaluation: Evaluation, scope: Scope | None = None) -> Table:
    """Return one row per arm and aggregation rule with every measure; coverage with Wilson intervals.

    Args:
        evaluation: The evaluation.
        scope: What was asked; with it an arm of one member has one row, since all rules give the same.
    """
    scope = scope or Scope()
    columns = (
        _ARM,
        Column("Rule", lambda r: str(r["aggregation"]), numeric=False),
        Column("Answered", lambda r: f"{r['answered']} of {r['n_items']}"),
        Column("MdAPE", lambda r: percent(_number(r["mdape"]))),
        Column("PPE10", lambda r: percent(_number(r["ppe10"]))),
        Column("PPE20", lambda r: percent(_number(r["ppe20"]))),
        Column("Bias (log)", lambda r: ABSENT if r["bias"] is None else f"{r['bias']:+.3f}".replace("-", "−")),
        Column("Coverage of 50 %", lambda r: _covered(r, "coverage50")),
        Column("Coverage of 90 %", lambda r: _covered(r, "coverage90")),
        Column("Width of 90 %", lambda r: percent(_number(r["width90"]), 0)),
        _COST,
        Column("Tokens", lambda r: count(cast("int | None", r["tokens"]))),
        _difference(evaluation),
    )
    said = (
        "Every arm under every rule. Coverage with 95 % Wilson intervals; width is the median of (q95 − q05) / point. "
        f"Rules other than the primary one are for exploration. {scope.weights()}"
    ).strip()
    lone = scope.lone_arms()
    folded = {result.arm: replace(result, aggregation=_ANY_RULE) for result in evaluation.overall.arms}
    results = [result for result in evaluation.overall.rules if result.arm not in lone]
    results += [folded[arm] for arm in folded if arm in lone]
    shown = tuple(sorted(results, key=lambda result: (result.arm, result.aggregation)))
    return Table(_caption(evaluation, said), columns, _records(evaluation, evaluation.overall, shown))


def outcomes_table(evaluation: Evaluation, scope: Scope | None = None) -> Table:
    """Return what came of every item, by name, and how many turns of members came to nothing.

    Args:
        evaluation: The evaluation.
        scope: What was asked; without it the turns are unknown.
    """
    scope = scope or Scope()
    columns = (
        _ARM,
        Column("Items", lambda r: str(r["n_items"])),
        *(Column(status.replace("_", " ").capitalize(), lambda r, s=status: str(r[s])) for status in STATUSES),  # type: ignore[misc]
        Column("Turns without answer", lambda r: scope.unanswered(str(r["arm"]))),
    )
    said = (
        "What came of every item. Errors and coverage are of the answered ones; nothing was filled in. An item can be "
        "answered although turns of some members have no answer: those members do not enter."
    )
    return Table(_caption(evaluation, said), columns, _records(evaluation, evaluation.overall, evaluation.overall.arms))


def asked_table(evaluation: Evaluation, scope: Scope) -> Table:
    """Return one row per run: in which order who was asked, with which models and by which seed."""
    records = tuple(
        {
            "arm": run.arm,
            "simulated": run.run_id.startswith(SIMULATED_PREFIX),
            "protocol": run.protocol,
            "members": len(run.roles),
            "roles": " ".join(run.roles),
            "models": ", ".join(run.models),
            "committee": run.committee,
            "tier": run.tier,
            "split": run.split,
            "seed": run.seed,
        }
        for run in scope.runs
    )
    columns = (
        _ARM,
        Column("Order of asking", lambda r: str(r["protocol"]), numeric=False),
        Column("Members", lambda r: str(r["members"])),
        Column("Models", lambda r: str(r["models"]), numeric=False),
        Column("Committee", lambda r: str(r["committee"]), numeric=False),
        Column("Tier", lambda r: str(r["tier"]), numeric=False),
        Column("Split", lambda r: str(r["split"] or ABSENT), numeric=False),
        Column("Seed", lambda r: str(r["seed"])),
    )
    return Table(_caption(evaluation, "Who was asked, as the manifest of each run says."), columns, records)


def runs_table(evaluation: Evaluation, heads: Mapping[str, str]) -> Table:
    """Return the head hash of each run's journal: whoever notes it elsewhere can see any later change."""
    records = tuple({"run_id": run, "head": heads.get(run)} for run in evaluation.run_ids)
    columns = (
        Column("Run", lambda r: str(r["run_id"]), numeric=False),
        Column("Journal head", lambda r: str(r["head"] or "unknown"), numeric=False),
    )
    return Table(_caption(evaluation, "Check a record with consilience verify RUN --head HASH."), columns, records)


def describe_resampling(comparison: Comparison | ProbabilityComparison | ChoiceComparison) -> str:
    """Return n, G, B, seed and the type of interval of the differences, in one sentence."""
    drawn = comparison.resampling
    if drawn is None:
        return "There are no common items, so no differences."
    groups = drawn.clusters
    interval = "percentile" if groups.n_clusters >= ENOUGH else "standard error × t(G − 1)"
    rough = " With so few items the interval is rough." if LEAST <= drawn.n_items < _ROUGH else ""
    if groups.n_clusters < LEAST:
        interval, rough = "none from one cluster", ""
    return (
        f"Differences on n = {drawn.n_items:,} common items in G = {groups.n_clusters:,} clusters (largest "
        f"{percent(groups.largest_share, 0)} of items, effective number {groups.effective:.1f}); 95 % "
        f"cluster-bootstrap interval ({interval}), B = {drawn.n_resamples:,}, seed {drawn.seed}.{rough}"
    )


def difference_text(point: float, low: float | None, high: float | None) -> str:
    r"""Return a difference in percentage points with its interval, which no line break splits, where there is one.

    Example:
        >>> difference_text(-0.012, -0.02, 0.004)
        '−1.2 [−2.0,\xa0+0.4]'
    """
    return points(point) if low is None or high is None else f"{points(point)} [{points(low)},\xa0{points(high)}]"


def arm_label(record: Record) -> str:
    """Return an arm's name, with the word *simulated* where its models or data are."""
    return f"{plain(str(record['arm']))}{' (simulated)' if record['simulated'] else ''}"


def _records(evaluation: Evaluation, comparison: Comparison, results: tuple[ArmResult, ...]) -> tuple[Record, ...]:
    base = [arm.cost_per_item_usd for arm in comparison.arms if arm.arm == evaluation.baseline_arm]
    single = base[0] if base else None

    def ratio(result: ArmResult) -> float | None:
        own = result.cost_per_item_usd
        return own / single if own is not None and single else None

    return tuple(arm_record(result, evaluation, cost_ratio=ratio(result)) for result in results)


def _caption(evaluation: Evaluation, text: str) -> str:
    return f"Simulated. {text}" if evaluation.simulated else text


def _number(value: Value) -> float | None:
    return cast("float | None", value)


def _covered(record: Record, name: str) -> str:
    if record[name] is None:
        return ABSENT
    low, high = (f"{cast('float', record[f'{name}_{end}']) * 100:.0f}" for end in ("low", "high"))
    return f"{percent(_number(record[name]), 0)} [{low},\xa0{high}]"


def _cost(record: Record) -> str:
    if record["cost_per_item_usd"] == 0:
        return "free"
    each = dollars(_number(record["cost_per_item_usd"]))
    return each if record["cost_ratio"] is None else f"{each} ({_times(record['cost_ratio'])})"


def _times(ratio: Value) -> str:
    """Return a ratio of costs, small ones with two significant digits so that none looks free."""
    if not isinstance(ratio, int | float):
        raise TypeError(f"no ratio: {ratio!r}")
    return f"{ratio:.1f}×" if ratio >= 0.1 else f"{ratio:.2g}×"


def _difference_cell(record: Record) -> str:
    if record["baseline"]:
        return "baseline"
    gap = _number(record["difference"])
    if gap is None:
        return "not on common items"
    text = difference_text(gap, _number(record["difference_low"]), _number(record["difference_high"]))
    return flagged(text, record["difference_flags"])


def _difference(evaluation: Evaluation) -> Column:
    return Column(f"Points of MdAPE from {evaluation.baseline_arm} [95 %]", _difference_cell)


_ARM = Column("Arm", arm_label, numeric=False)
_COST = Column("Cost per item", _cost)
