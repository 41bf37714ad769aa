"""``consilience evaluate`` and ``report``: what the arms were worth, in a table and on a page."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.cli.console import Grid, counted, note, show
from consilience.cli.gathering import SINGLE, Found
from consilience.cli.gathering import evaluated as evaluated  # noqa: PLC0414 - its older address stays valid
from consilience.cli.outputs import check_folder, check_output
from consilience.cli.place import Json, Place, place_of

if TYPE_CHECKING:
    from consilience.experiments.evaluation import Evaluation
    from consilience.experiments.looks import Look
    from consilience.reports.tables import Table

_WHOLE = (
    *("contrasts", "strata", "panels", "convergence", "run_to_run", "probabilities", "choices"),
    "calibration_sha256",
)
"""Parts of an evaluation that the JSON document holds under their own names."""

Runs = Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Runs to read, one per arm; default: all.")]
Simulated = Annotated[
    bool, typer.Option("--include-simulated", help="Read simulated and synthetic runs too; their ids begin with _.")
]
Primary = Annotated[str, typer.Option(help="Aggregation rule fixed beforehand.")]
Again = Annotated[
    str | None,
    typer.Option(help="Why test or holdout is looked at once more or unfrozen; kept in results/looks.jsonl."),
]
Baseline = Annotated[
    str,
    typer.Option("--baseline", help="Arm that all differences are taken from, such as a cost-matched single agent."),
]
Truths = Annotated[Path | None, typer.Option(help="JSONL file that holds the truths of question sets.")]
Frozen = Annotated[
    Path | None,
    typer.Option("--calibration", help="File of consilience calibrate, shown beside the answers as they are."),
]


def evaluate(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    runs: Runs = None,
    include_simulated: Simulated = False,
    primary: Primary = "median",
    baseline: Baseline = SINGLE,
    questions: Truths = None,
    calibration: Frozen = None,
    again: Again = None,
    as_json: Json = False,
) -> None:
    """Compare arms: error, coverage, cost, the declared contrasts; yes-no questions and choices are scored apart.

    Every look at test or holdout is noted in results/looks.jsonl. Each is looked at once, after the freeze.
    """
    from consilience.experiments.measures import plain  # noqa: PLC0415 - heavy
    from consilience.reports.evaluation import main_table, rules_table  # noqa: PLC0415 - the same

    place = place_of(context)
    found = evaluated(
        place,
        runs,
        include_simulated=include_simulated,
        primary=primary,
        baseline=baseline,
        questions=questions,
        calibration=calibration,
    )
    look = looked(place, found, again=again)
    result = found.evaluation
    main = main_table(result)
    document = {
        "simulated": result.simulated,
        "split": result.split,
        "primary": result.primary,
        "baseline_arm": result.baseline_arm,
        "run_ids": list(result.run_ids),
        "skipped_simulated": list(found.skipped),
        "unfinished": list(found.unfinished),
        "partial": list(found.partial),
        "single_questions": list(found.single_questions),
        "apart": list(found.apart),
        "arms": main.to_json(),
        "rules": rules_table(result).to_json(),
        "scores": [arm.record() for arm in result.overall.arms],
        "resampling": plain(result.overall.resampling),
        "by_exposure": plain(result.by_exposure),
        **{name: plain(getattr(result, name)) for name in _WHOLE},
        "about": main.caption,
        "warnings": [*result.warnings, *found.said],
        "look": None if look is None else look.model_dump(mode="json"),
        "protocol": [{**vars(label), "protocol": label.kept()} for label in found.labels],
    }
    show(document, *_tables(result, main), *_remarks(found, look), as_json=as_json)


def _tables(result: Evaluation, main: Table) -> list[str | Grid]:
    """Return what a person reads: arms, declared contrasts, coverage, then other kinds of answers."""
    from consilience.reports.answers import choices_table, probabilities_table  # noqa: PLC0415 - the same
    from consilience.reports.judged import contrasts_table  # noqa: PLC0415 - heavy
    from consilience.reports.scored import calibration_table, coverage_table  # noqa: PLC0415 - the same

    parts: list[str | Grid] = []
    if result.overall.arms:
        parts += shown(main)
    told = result.contrasts
    if told is not None and told.declared:
        parts += ["", *shown(contrasts_table(replace(result, contrasts=replace(told, exploratory=()))))]
    if told is not None and told.exploratory:
        parts.append(f"{counted(len(told.exploratory), 'other pair')} compared for exploration: add --json")
    if any(arm.intervals is not None for arm in result.overall.arms):
        parts += ["", *shown(coverage_table(result))]
    if result.probabilities is not None:
        parts += ["", *shown(probabilities_table(result)), "", *shown(calibration_table(result))]
    if result.choices is not None:
        parts += ["", *shown(choices_table(result))]
    return parts


def report(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    runs: Runs = None,
    include_simulated: Simulated = False,
    primary: Primary = "median",
    baseline: Baseline = SINGLE,
    questions: Truths = None,
    calibration: Frozen = None,
    output: Annotated[Path | None, typer.Option(help="The page; by default results/report.html.")] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Consilience report",
    again: Again = None,
    as_json: Json = False,
) -> None:
    """Write the comparison of arms as one HTML page that needs nothing else.

    The page of tables that evaluate has shown is no new look at test or holdout; any other is.
    """
    from consilience.reports.cells import judged  # noqa: PLC0415 - heavy

    place = place_of(context)
    path = output or place.root / "results" / "report.html"
    check_output(path, option="--output", root=place.root, inputs=[questions, calibration])
    folder = path.with_suffix("") if path.suffix else path.with_name(f"{path.name}_files")
    check_folder(folder, option="--output", root=place.root)
    found = evaluated(
        place,
        runs,
        include_simulated=include_simulated,
        primary=primary,
        baseline=baseline,
        questions=questions,
        calibration=calibration,
    )
    look = looked(place, found, again=again, repeated=True)
    write_page(place, found, path, title=title, look=look, folder=folder)
    result = found.evaluation
    n_arms = len({one.arm for one in judged(result)})
    show(
        {
            "report": str(path),
            "files": str(folder),
            "simulated": result.simulated,
            "run_ids": list(result.run_ids),
            "look": None if look is None else look.model_dump(mode="json"),
        },
        f"{counted(n_arms, 'arm')}{' (simulated)' if result.simulated else ''} in {path}",
        f"tables and figures in {folder}",
        *_remarks(found, look),
        as_json=as_json,
    )


def looked(place: Place, found: Found, *, again: str | None, repeated: bool = False) -> Look | None:
    """Note a look at a judged split before it is shown; None for a split that may be looked at freely.

    Args:
        place: The project.
        found: What is about to be shown.
        again: Why a split is looked at once more, or without a freeze.
        repeated: Tables that were shown before are no new look.

    Raises:
        PlanError: The study is not frozen, or the split was looked at under a freeze before, and no reason was given;
            nothing is changed.
        DataError: The log cannot be read or written.
        IntegrityError: A line of the log was changed.
    """
    from consilience.api.running import now  # noqa: PLC0415 - heavy
    from consilience.core.canonical import tagged_hash  # noqa: PLC0415 - the same
    from consilience.experiments.bound import TRUTHS, keep_first  # noqa: PLC0415 - the same
    from consilience.experiments.looks import COUNTED, LOOKS, Glance, note_look  # noqa: PLC0415 - the same
    from consilience.experiments.measures import plain  # noqa: PLC0415 - the same
    from consilience.reports.evaluation import main_table, rules_table  # noqa: PLC0415 - the same

    result, truths = found.evaluation, place.root / "results" / TRUTHS
    if result.split not in COUNTED:
        keep_first(truths, found.bound)
        if again is not None:
            note(f"--again was not needed: {result.split or 'a set of questions'} may be looked at freely")
        return None
    others = (result.probabilities, result.choices, result.calibration_sha256)
    shown_too = [plain(one) for one in others if one is not None]
    tables = tagged_hash("tables", [*(table(result).to_json() for table in (main_table, rules_table)), *shown_too])
    glance = Glance(result.split, result.simulated, result.run_ids, tables)
    path = place.root / "results" / LOOKS
    at = now()
    look = note_look(path, glance, at=at, freeze_sha256=found.freeze, again=again, repeated=repeated)
    keep_first(truths, found.bound)
    if again is not None and look.at != at:
        note(f"--again was not needed and is not kept: these tables were shown before, in look {look.number}")
    return look


def write_page(
    place: Place, found: Found, path: Path, *, title: str, look: Look | None = None, folder: Path | None = None
) -> None:
    """Write the report page of an evaluation, and which look it shows.

    Args:
        place: The project.
        found: What is shown.
        path: The page.
        title: Its heading.
        look: The look it shows; None for none.
        folder: Where its tables and figures go; None draws no figures.
    """
    import anyio  # noqa: PLC0415 - heavy

    from consilience.experiments.looks import look_text  # noqa: PLC0415 - heavy
    from consilience.experiments.storage import write_whole  # noqa: PLC0415 - heavy
    from consilience.reports.exhibits import exhibits  # noqa: PLC0415 - the same
    from consilience.reports.html import render_report  # noqa: PLC0415 - the same
    from consilience.reports.scope import Scope, read_asked  # noqa: PLC0415 - the same
    from consilience.reports.written import write_report  # noqa: PLC0415 - the same

    result = found.evaluation
    scope = Scope(tuple(read_asked(place.run_folder(run_id)) for run_id in found.heads), found.sources)
    made = anyio.run(
        partial(
            exhibits,
            result,
            folder_of=place.run_folder,
            predictions=found.predictions,
            truth=found.truth,
            scope=scope,
            labels=found.labels,
        )
    )
    page = render_report(
        result,
        title=title,
        heads=found.heads,
        simulated=result.simulated,
        scope=scope,
        labels=found.labels,
        tables=made.tables,
        drawn=() if folder is None else write_report(made, folder, title=title),
        notes=[*found.notes, *([] if look is None else [f"{look_text(look)}."])],
    )
    write_whole(path, lambda target: target.write_text(page, encoding="utf-8"))


def shown(table: Table) -> tuple[Grid, str]:
    """Return a table as it is printed, with its caption."""
    grid = Grid(tuple(column.label for column in table.columns), tuple(tuple(row) for row in table.cells()))
    return grid, table.caption


def _remarks(found: Found, look: Look | None) -> list[str]:
    from consilience.experiments.looks import look_text  # noqa: PLC0415 - heavy

    lines = [] if look is None else [look_text(look)]
    if look is not None and look.torn_bytes:
        lines.append(f"note: {counted(look.torn_bytes, 'byte')} of a look that was never shown were cut off in the log")
    lines += [f"note: {text}" for text in (*found.evaluation.warnings, *found.said)]
    if found.partial:
        lines.append(f"note: not finished, so only the items done so far are counted: {', '.join(found.partial)}")
    if found.skipped:
        lines.append(f"note: left out {counted(len(found.skipped), 'simulated run')}: add --include-simulated")
    if found.single_questions:
        lines.append(
            f"note: left out {counted(len(found.single_questions), 'single question')}: no truth is known of them"
        )
    if found.apart:
        lines.append(
            f"note: left out {counted(len(found.apart), 'run')} that are no arm to compare (repetitions, perturbed "
            "evidence)"
        )
    if found.unfinished:
        lines.append(f"note: not finished, left out: {', '.join(found.unfinished)}")
    return lines


def record(result: Evaluation) -> list[dict[str, Any]]:
    """Return the arms of an evaluation as JSON values."""
    from consilience.reports.evaluation import main_table  # noqa: PLC0415 - heavy

    return [dict(row) for row in main_table(result).to_json()]
