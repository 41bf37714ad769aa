"""The report page: one HTML file that needs no script, no font and no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from consilience.experiments.evaluation import Comparison, Evaluation
from consilience.reports.cells import judged, partly_simulated
from consilience.reports.deviations import Label, deviations_table, label_warnings
from consilience.reports.evaluation import (
    asked_table,
    describe_resampling,
    difference_text,
    main_table,
    outcomes_table,
    rules_table,
    runs_table,
)
from consilience.reports.exhibits import Exhibit
from consilience.reports.facts import DEFINITIONS, FACTS, NOTICE, Fact
from consilience.reports.figures import ForestRow, forest
from consilience.reports.scope import Scope, scope_facts
from consilience.reports.tables import Table, plain
from consilience.reports.written import Drawn

_EXPOSURE = {
    "before": "Items before the models’ training cutoff (may have been seen)",
    "after": "Items after the models’ training cutoff",
    "unknown": "Items for which this is unknown",
}

_SHOWN = ("missingness", "deviations")
"""Tables that every page has in a place of their own."""
_FOLDED = ("exploration", "strata", "environment")


def render_report(  # noqa: PLR0913 - all that a page says
    evaluation: Evaluation,
    *,
    title: str,
    heads: Mapping[str, str],
    simulated: bool,
    scope: Scope | None = None,
    labels: Sequence[Label] = (),
    notes: Sequence[str] = (),
    tables: Sequence[Exhibit] = (),
    drawn: Sequence[Drawn] = (),
    facts: Sequence[Fact] = FACTS,
) -> str:
    """Return the report of an evaluation as one self-contained HTML page; the same arguments give the same bytes.

    Args:
        evaluation: From `evaluate`.
        title: Heading of the page.
        heads: Journal head hash by run id; a run that is absent is shown as unknown.
        simulated: Models or data are simulated; an evaluation of simulated runs says so whatever is passed.
        scope: What was asked of whom about what; None where the runs' files are not at hand.
        labels: How each run stands to the freeze; empty where nothing was frozen and no run resumed with other code.
        tables: What stands beside the tables that every page has.
        drawn: Pictures, in order.
        notes: Sentences about the data, such as a declared later snapshot of attributes.
        facts: What readers are told about panels.
    """
    environment = Environment(
        loader=PackageLoader("consilience.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    overall = evaluation.overall
    scope = scope or Scope()
    told = judged(evaluation)
    beside = {one.name: (plain(one.title), _safe(one.table, breaking=True)) for one in tables if one.name not in _SHOWN}
    return environment.get_template("report.html.jinja").render(
        title=plain(title),
        simulated=simulated or evaluation.simulated,
        partly=partly_simulated(evaluation),
        split=None if evaluation.split is None else plain(evaluation.split),
        n_arms=len({one.arm for one in told}),
        n_items=max(one.n_items for one in told),
        baseline=plain(evaluation.baseline_arm),
        warnings=[plain(text) for text in (*evaluation.warnings, *label_warnings(labels), *notes)],
        asked=scope_facts(scope, primary=evaluation.primary),
        who=_safe(asked_table(evaluation, scope)) if scope.runs else None,
        terms=DEFINITIONS,
        glance=beside.pop("main", None),
        beside=list(beside.items()),
        folded=_FOLDED,
        pictures=[
            (plain(one.picture.title), Markup(one.svg), plain(one.picture.caption))  # noqa: S704 - escaped by `inline`
            for one in drawn
        ],
        main=_safe(main_table(evaluation)) if overall.arms else None,
        figure=None if drawn else _forest(evaluation, overall),
        figure_caption=describe_resampling(overall),
        outcomes=_safe(outcomes_table(evaluation, scope)) if overall.arms else None,
        exposure=[
            (_EXPOSURE[level], _safe(main_table(evaluation, part))) for level, part in evaluation.by_exposure.items()
        ],
        rules=_safe(rules_table(evaluation, scope)) if overall.arms else None,
        deviations=_safe(deviations_table(labels, simulated=evaluation.simulated)) if labels else None,
        runs=_safe(runs_table(evaluation, heads)),
        facts=facts,
        notice=NOTICE,
    )


def _safe(table: Table, *, breaking: bool = False) -> Markup:
    return Markup(table.to_html(breaking=breaking))  # noqa: S704 - the table writer has escaped every text


def _forest(evaluation: Evaluation, comparison: Comparison) -> Markup | None:
    rows = [
        ForestRow(
            label=arm.arm,
            text=difference_text(arm.difference.point, arm.difference.low, arm.difference.high),
            point=arm.difference.point,
            low=arm.difference.low,
            high=arm.difference.high,
        )
        for arm in comparison.arms
        if arm.difference is not None
    ]
    if not rows:
        return None
    title = f"Difference in median absolute percentage error from {evaluation.baseline_arm}, in percentage points"
    drawn = forest(rows, title=title, axis="percentage points of MdAPE")
    return Markup(drawn)  # noqa: S704 - the figure writer has escaped every text
