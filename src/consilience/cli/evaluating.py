"""``consilience evaluate`` and ``report``: what the arms were worth, in a table and on a page."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.cli.console import Grid, counted, note, show
from consilience.cli.place import Json, Place, place_of
from consilience.errors import ConfigError, DataError, IntegrityError

if TYPE_CHECKING:
    import polars as pl

    from consilience.experiments.evaluation import Evaluation
    from consilience.experiments.looks import Look
    from consilience.reports.deviations import Label
    from consilience.reports.scope import Source
    from consilience.reports.tables import Table
    from consilience.valuation.schema import Manifest

SINGLE = "E_single"
"""The arm that differences are taken from where no other is named."""

Runs = Annotated[list[str] | None, typer.Argument(metavar="[RUN]...", help="Runs to read, one per arm; default: all.")]
Simulated = Annotated[
    bool, typer.Option("--include-simulated", help="Read simulated and synthetic runs too; their ids begin with _.")
]
Primary = Annotated[str, typer.Option(help="Aggregation rule fixed beforehand.")]
Again = Annotated[
    str | None, typer.Option(help="Why test or holdout is looked at once more; kept in results/looks.jsonl.")
]
Baseline = Annotated[
    str,
    typer.Option("--baseline", help="Arm that all differences are taken from, such as a cost-matched single agent."),
]
Truths = Annotated[Path | None, typer.Option(help="JSONL file that holds the truths of question sets.")]


def evaluate(
    context: typer.Context,
    runs: Runs = None,
    include_simulated: Simulated = False,
    primary: Primary = "median",
    baseline: Baseline = SINGLE,
    questions: Truths = None,
    again: Again = None,
    as_json: Json = False,
) -> None:
    """Compare arms: error, coverage, cost, and the difference from a single agent with its interval.

    Every look at test or holdout is noted in results/looks.jsonl. After the freeze each is looked at once.
    """
    from consilience.reports.evaluation import main_table, rules_table  # noqa: PLC0415 - heavy

    place = place_of(context)
    found = evaluated(
        place, runs, include_simulated=include_simulated, primary=primary, baseline=baseline, questions=questions
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
        "about": main.caption,
        "warnings": [*result.warnings, *found.said],
        "look": None if look is None else look.model_dump(mode="json"),
        "protocol": [{**vars(label), "protocol": label.kept()} for label in found.labels],
    }
    show(document, *shown(main), *_remarks(found, look), as_json=as_json)


def report(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    runs: Runs = None,
    include_simulated: Simulated = False,
    primary: Primary = "median",
    baseline: Baseline = SINGLE,
    questions: Truths = None,
    output: Annotated[Path | None, typer.Option(help="The page; by default results/report.html.")] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = "Consilience report",
    again: Again = None,
    as_json: Json = False,
) -> None:
    """Write the comparison of arms as one HTML page that needs nothing else.

    The page of tables that evaluate has shown is no new look at test or holdout; any other is.
    """
    place = place_of(context)
    found = evaluated(
        place, runs, include_simulated=include_simulated, primary=primary, baseline=baseline, questions=questions
    )
    look = looked(place, found, again=again, repeated=True)
    path = output or place.root / "results" / "report.html"
    write_page(place, found, path, title=title, look=look)
    result = found.evaluation
    show(
        {
            "report": str(path),
            "simulated": result.simulated,
            "run_ids": list(result.run_ids),
            "look": None if look is None else look.model_dump(mode="json"),
        },
        f"{counted(len(result.overall.arms), 'arm')}{' (simulated)' if result.simulated else ''} in {path}",
        *_remarks(found, look),
        as_json=as_json,
    )


@dataclass(frozen=True)
class Found:
    """An evaluation and what was left out of it.

    Attributes:
        evaluation: The evaluation.
        skipped: Simulated runs that were not read.
        unfinished: Runs without predictions so far.
        single_questions: Runs of ``ask``, of which no truth is known.
        apart: Runs that are no arm to compare: repetitions and perturbed evidence.
        notes: Sentences about the data that every report says.
        sources: Where the items come from.
        heads: Head hash of each run's journal, which was checked.
        partial: Runs read although they are not finished.
        labels: How each run stands to the freeze; empty where there is nothing to tell.
        freeze: Head of the freeze there is; None for none.
    """

    evaluation: Evaluation
    skipped: tuple[str, ...]
    unfinished: tuple[str, ...]
    single_questions: tuple[str, ...]
    apart: tuple[str, ...]
    notes: tuple[str, ...]
    sources: tuple[Source, ...]
    heads: dict[str, str]
    partial: tuple[str, ...]
    labels: tuple[Label, ...]
    freeze: str | None

    @property
    def said(self) -> tuple[str, ...]:
        """What must be said of the data and of runs that did not keep to the protocol."""
        from consilience.reports.deviations import label_warnings  # noqa: PLC0415 - heavy

        return (*self.notes, *label_warnings(self.labels))


def evaluated(
    place: Place,
    runs: Sequence[str] | None,
    *,
    include_simulated: bool,
    primary: str = "median",
    baseline: str = SINGLE,
    questions: Path | None = None,
) -> Found:
    """Evaluate runs of the project on the truths of its tables and question files.

    Raises:
        ConfigError: A run does not exist or lies in another project.
        DataError: There is nothing to evaluate, or an item has no truth.
        IntegrityError: A run's record or predictions are not what was written; run and record are named.
    """
    import polars as pl  # noqa: PLC0415 - heavy

    from consilience.experiments.evaluate import evaluate as evaluate_predictions  # noqa: PLC0415 - heavy
    from consilience.experiments.frozen import read_freeze, truth_deviations  # noqa: PLC0415 - the same
    from consilience.experiments.predictions import load_baselines, load_runs  # noqa: PLC0415 - the same
    from consilience.reports.deviations import read_label, telling  # noqa: PLC0415 - the same

    frozen = read_freeze(place.root / "results")
    head = None if frozen is None else frozen.head
    names = [_of_project(place, run) for run in runs or ()]
    loaded = load_runs(place.root / "results", names or None, include_simulated=include_simulated)
    heads, partial = _checked(place, loaded.run_ids)
    asked = set(loaded.predictions["item_id"])
    truth, notes, sources = _truths(place, questions, asked)
    based = load_baselines(
        place.root / "results",
        split=loaded.predictions["split"][0],
        items=asked,
        include_simulated=include_simulated,
    )
    if frozen is not None:
        notes += _other_rule(frozen.primary_rules("estimate").values(), primary)
        notes += truth_deviations(place.root, frozen)
    labels = [read_label(place.run_folder(run_id), frozen=head) for run_id in loaded.run_ids]
    return Found(
        evaluate_predictions(
            pl.concat([loaded.predictions, based], how="diagonal"), truth, primary=primary, baseline_arm=baseline
        ),
        loaded.skipped_simulated,
        loaded.unfinished,
        loaded.single_questions,
        loaded.apart,
        tuple(notes),
        tuple(sources),
        heads,
        partial,
        telling(labels, frozen=head),
        head,
    )


def _other_rule(frozen: Collection[str], primary: str) -> list[str]:
    if primary in frozen:
        return []
    return [f"The primary rule of the freeze is {' or '.join(frozen)}; {primary} is for exploration."]


def looked(place: Place, found: Found, *, again: str | None, repeated: bool = False) -> Look | None:
    """Note a look at a judged split before it is shown; None for a split that may be looked at freely.

    Args:
        place: The project.
        found: What is about to be shown.
        again: Why a split is looked at once more.
        repeated: Tables that were shown before are no new look.

    Raises:
        PlanError: The split was looked at under a freeze before and no reason was given; nothing is changed.
        DataError: The log cannot be read or written.
        IntegrityError: A line of the log was changed.
    """
    from consilience.cli.running import now  # noqa: PLC0415 - heavy
    from consilience.core.canonical import tagged_hash  # noqa: PLC0415 - the same
    from consilience.experiments.looks import COUNTED, LOOKS, Glance, note_look  # noqa: PLC0415 - the same
    from consilience.reports.evaluation import main_table, rules_table  # noqa: PLC0415 - the same

    result = found.evaluation
    if result.split not in COUNTED:
        if again is not None:
            note(f"--again was not needed: {result.split or 'a set of questions'} may be looked at freely")
        return None
    tables = tagged_hash("tables", [table(result).to_json() for table in (main_table, rules_table)])
    glance = Glance(result.split, result.simulated, result.run_ids, tables)
    path = place.root / "results" / LOOKS
    at = now()
    look = note_look(path, glance, at=at, freeze_sha256=found.freeze, again=again, repeated=repeated)
    if again is not None and look.at != at:
        note(f"--again was not needed and is not kept: these tables were shown before, in look {look.number}")
    return look


def _checked(place: Place, run_ids: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the head of every run and those that are not finished."""
    from consilience.experiments.verification import verify_run  # noqa: PLC0415 - heavy

    heads: dict[str, str] = {}
    partial: list[str] = []
    for run_id in run_ids:
        found = verify_run(place.run_folder(run_id))
        error = found.error()
        # What is made from the record beside the predictions may be gone: nothing here is read from it.
        read = [one for one in found.files if not one.derived or one.file == "predictions.parquet"]
        if error is not None and (read or not found.journal.ok):
            raise IntegrityError(f"run {run_id}: {error.message}", hint=error.hint)
        heads[run_id] = found.journal.head or ""
        partial += [] if found.journal.finished else [run_id]
    return heads, tuple(partial)


def _of_project(place: Place, run: str) -> str:
    folder = place.run_folder(run)
    if folder.resolve().parent != (place.root / "results" / "runs").resolve():
        raise ConfigError(f"{folder} is no run of the project {place.root}", hint="Name its project: --project DIR.")
    return folder.name


def _truths(place: Place, questions: Path | None, asked: set[str]) -> tuple[pl.DataFrame, list[str], list[Source]]:
    """Return ``item_id, truth, cluster`` of the items asked, what must be said of their sources, and these."""
    import polars as pl  # noqa: PLC0415 - heavy

    from consilience.core.canonical import sha256_hex  # noqa: PLC0415 - the same
    from consilience.experiments.questions import read_questions  # noqa: PLC0415 - the same
    from consilience.reports.scope import Source  # noqa: PLC0415 - the same
    from consilience.valuation.schema import read_analytic, read_manifest  # noqa: PLC0415 - the same

    known: list[pl.DataFrame] = []
    notes: list[str] = []
    sources: list[Source] = []
    for study in (place.project, place.town):
        if not study.analytic.is_file():
            continue
        sales = read_analytic(study.analytic).filter(pl.col("tx_id").is_in(asked))
        known.append(sales.select(item_id="tx_id", truth="price", cluster="parcel_id"))
        made = read_manifest(study.analytic)
        later = made.later_snapshots()
        if sales.height:
            sources.append(_source_of(made, sales))
        if later and sales.height:
            notes.append(f"These columns are one snapshot later than the sales: {', '.join(later)}.")
    if questions is not None:
        items = read_questions(questions)
        sources.append(Source("questions", questions.name, sha256_hex(questions.read_bytes()), len(items)))
        rows = [
            {"item_id": item.question.id, "truth": float(item.truth), "cluster": item.cluster}
            for item in items
            if item.truth is not None and not isinstance(item.truth, str)
        ]
        known.append(pl.DataFrame(rows, schema={"item_id": pl.String, "truth": pl.Float64, "cluster": pl.String}))
    if not known:
        raise DataError(
            f"there is no truth to compare with: no table in {place.project.analytic}",
            hint="Build the table the items were drawn from, or give the questions: --questions FILE.jsonl.",
        )
    return pl.concat(known).unique(), notes, sources


def _source_of(made: Manifest, sales: pl.DataFrame) -> Source:
    """Return where sales come from, and the places they lie in."""
    from consilience.reports.scope import Source  # noqa: PLC0415 - heavy

    words = {"region": made.region.region, "municipality": made.region.municipality}
    places = tuple((word, tuple(sales[column].drop_nulls().unique().sort())) for column, word in words.items())
    return Source(
        made.adapter,
        made.source_file,
        made.source_sha256,
        made.rows,
        made_up=made.adapter == "synthetic",
        places=places,
    )


def write_page(place: Place, found: Found, path: Path, *, title: str, look: Look | None = None) -> None:
    """Write the report page of an evaluation, and which look it shows."""
    from consilience.experiments.looks import look_text  # noqa: PLC0415 - heavy
    from consilience.experiments.storage import write_whole  # noqa: PLC0415 - heavy
    from consilience.reports.html import render_report  # noqa: PLC0415 - the same
    from consilience.reports.scope import Scope, read_asked  # noqa: PLC0415 - the same

    result = found.evaluation
    scope = Scope(tuple(read_asked(place.run_folder(run_id)) for run_id in found.heads), found.sources)
    page = render_report(
        result,
        title=title,
        heads=found.heads,
        simulated=result.simulated,
        scope=scope,
        labels=found.labels,
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
