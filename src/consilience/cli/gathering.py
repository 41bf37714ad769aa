"""What ``evaluate``, ``report`` and ``calibrate`` read: runs that were checked, truths, and what lies beside them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilience.cli.place import Place
from consilience.cli.truths import truths_of
from consilience.errors import ConfigError, DataError, IntegrityError

if TYPE_CHECKING:
    import polars as pl

    from consilience.experiments.bound import Bound
    from consilience.experiments.calibrations import Calibration
    from consilience.experiments.evaluate import Beside
    from consilience.experiments.evaluation import Evaluation
    from consilience.experiments.frozen import Freeze
    from consilience.experiments.item_days import Days
    from consilience.experiments.verification import RunVerification
    from consilience.reports.deviations import Label
    from consilience.reports.scope import Source

SINGLE = "E_single"
"""The arm that differences are taken from where no other is named."""


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
        predictions: What was evaluated, baselines among it.
        truth: Of the items: ``item_id, truth, option, cluster``.
        bound: Digest of the truths of each run, as they are now.
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
    predictions: pl.DataFrame
    truth: pl.DataFrame
    bound: dict[str, Bound]

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
    calibration: Path | None = None,
) -> Found:
    """Evaluate runs of the project on the truths of its tables and question files.

    Args:
        place: The project.
        runs: Their ids; None reads all. Repetitions tell how much a run differs from itself.
        include_simulated: Read simulated and synthetic runs, too.
        primary: Aggregation rule of numbers.
        baseline: Arm that differences are taken from.
        questions: JSONL file that holds truths.
        calibration: A frozen calibration; None leaves answers as they are.

    Raises:
        ConfigError: A run does not exist or lies in another project.
        DataError: There is nothing to evaluate, or an item has no truth.
        IntegrityError: A run's record or predictions are not what was written; run and record are named.
    """
    import polars as pl  # noqa: PLC0415 - heavy

    from consilience.api.running import now  # noqa: PLC0415 - heavy
    from consilience.experiments.bound import (  # noqa: PLC0415 - the same
        TRUTHS,
        bound_now,
        differing,
        read_bound,
        refuse_other_questions,
    )
    from consilience.experiments.evaluate import evaluate as evaluate_predictions  # noqa: PLC0415 - heavy
    from consilience.experiments.frozen import read_freeze, truth_deviations  # noqa: PLC0415 - the same
    from consilience.experiments.predictions import load_baselines, load_runs  # noqa: PLC0415 - the same
    from consilience.reports.deviations import read_label, telling  # noqa: PLC0415 - the same

    frozen = read_freeze(place.root / "results")
    head = None if frozen is None else frozen.head
    results = place.root / "results"
    models = [run for run in runs or () if is_baseline(place, run)]
    named = [_of_project(place, run) for run in runs or () if run not in models]
    first, again = _first_runs(place, named)
    only = [] if models and not named else first or None  # named baselines alone read no run
    least = 0 if not named and any((results / "baselines").glob("*/card.json")) else 1
    loaded = load_runs(results, only, include_simulated=include_simulated, least=least)
    alone = loaded.predictions.is_empty()
    heads, unfinished = checked(place, loaded.run_ids)
    based = load_baselines(
        results,
        split=None if alone else loaded.predictions["split"][0],
        items=None if alone else set(loaded.predictions["item_id"]),
        include_simulated=include_simulated,
        run_ids=models or None,
    )
    if alone and based.is_empty():
        raise DataError(
            f"no run to evaluate in {results / 'runs'}, and no baseline; simulated runs skipped: "
            f"{len(loaded.skipped_simulated)}",
            hint="Finish a run first." if include_simulated else "Add --include-simulated to evaluate simulated ones.",
        )
    asked = set(loaded.predictions["item_id"]) | set(based["item_id"])
    truth, notes, sources = truths_of(place, questions, asked)
    if alone and baseline == SINGLE:
        baseline = min(based["arm"])
        notes.append(f"No language model was asked: differences are taken from {baseline}.")
    if questions is not None:
        refuse_other_questions(questions, _questions_of(place, loaded.run_ids))
    bound = bound_now(loaded.predictions, truth, loaded.run_ids, at=now())
    notes += differing(read_bound(results / TRUTHS), bound)
    again += repeated(place, loaded.apart)
    if frozen is not None:
        notes += _other_rule(frozen.primary_rules("estimate").values(), primary)
        notes += truth_deviations(place.root, frozen)
    labels = [read_label(place.run_folder(run_id), frozen=head) for run_id in loaded.run_ids]
    predictions = pl.concat([loaded.predictions, based], how="diagonal")
    made, said = (None, []) if calibration is None else read_calibration(place, calibration, frozen)
    notes += said
    beside = _beside(place, loaded.predictions, again, truth=truth, calibration=made)
    result = evaluate_predictions(predictions, truth, primary=primary, baseline_arm=baseline, beside=beside)
    return Found(
        result,
        loaded.skipped_simulated,
        loaded.unfinished,
        loaded.single_questions,
        tuple(run for run in loaded.apart if run not in again),
        tuple(notes),
        tuple(sources),
        heads,
        unfinished,
        telling(labels, frozen=head),
        head,
        predictions,
        truth,
        bound,
    )


def is_baseline(place: Place, run: str) -> bool:
    """Return whether a name is that of a baseline of the project, and of no run."""
    results = place.root / "results"
    return run == Path(run).name and (results / "baselines" / run).is_dir() and not (results / "runs" / run).is_dir()


def _questions_of(place: Place, run_ids: Sequence[str]) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """Yield run, item and question of every packet of runs."""
    for run_id in run_ids:
        for path in sorted((place.run_folder(run_id) / "packets").glob("*.json")):
            yield run_id, path.stem, json.loads(path.read_bytes())["question"]


def _first_runs(place: Place, named: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the runs that ask for the first time, and those that only repeat; alone, these are runs like others."""
    again = repeated(place, named)
    first = [run for run in named if run not in again]
    return (first, again) if first else (again, [])


def repeated(place: Place, run_ids: Sequence[str]) -> list[str]:
    """Return the runs that ask some items again, as they were asked."""
    from consilience.experiments.predictions import PERTURBED  # noqa: PLC0415 - heavy
    from consilience.experiments.protocol import read_frozen  # noqa: PLC0415 - the same

    begun = [run for run in run_ids if (place.run_folder(run) / "protocol.json").is_file()]
    plans = {run: read_frozen(place.run_folder(run)).plan for run in begun}
    return [run for run, plan in plans.items() if plan.replicate and plan.treatment.evidence != PERTURBED]


def _beside(
    place: Place,
    predictions: pl.DataFrame,
    again: Sequence[str],
    *,
    truth: pl.DataFrame,
    calibration: Calibration | None,
) -> Beside:
    """Return what is known of the runs beside their predictions."""
    import anyio  # noqa: PLC0415 - heavy
    import polars as pl  # noqa: PLC0415 - the same

    from consilience.experiments.evaluate import Beside  # noqa: PLC0415 - the same
    from consilience.experiments.panel_scores import told_panel  # noqa: PLC0415 - the same
    from consilience.experiments.predictions import read_predictions  # noqa: PLC0415 - the same
    from consilience.experiments.protocol import read_frozen  # noqa: PLC0415 - the same

    run_ids = predictions["run_id"].unique().sort().to_list()
    known = truths_by_item(truth)
    folders = [place.run_folder(run_id) for run_id in run_ids]
    panels = [one for folder in folders for one in anyio.run(partial(told_panel, folder, truths=known))]
    paths = {run: place.run_folder(run) / "predictions.parquet" for run in again}
    finished = [run for run in again if paths[run].is_file()]
    checked(place, finished)
    frames = [read_predictions(paths[run]) for run in finished]
    kept = [
        frame.filter(pl.col("arm").is_in(predictions["arm"].unique()))
        for frame in frames
        if frame["split"].unique().to_list() == predictions["split"].unique().to_list()
    ]
    return Beside(
        strata=strata_of(place, predictions),
        times=times_of(place, predictions),
        panels=tuple(panels),
        levels={run_id: read_frozen(folder).plan.levels for run_id, folder in zip(run_ids, folders, strict=True)},
        repetitions=pl.concat(kept, how="diagonal") if kept else None,
        calibration=calibration,
    )


def read_calibration(place: Place, path: Path, frozen: Freeze | None) -> tuple[Calibration, list[str]]:
    """Return a frozen calibration, and what must be said of it.

    Args:
        place: The project.
        path: The artefact.
        frozen: The study's freeze; None where there is none.

    Raises:
        ConfigError: The file holds no calibration that could have been kept.
        IntegrityError: It was changed, or a run that it was fitted on was.
    """
    from consilience.experiments.artefact import load_artefact  # noqa: PLC0415 - heavy
    from consilience.experiments.calibrations import Calibration  # noqa: PLC0415 - the same
    from consilience.experiments.frozen_data import CALIBRATION  # noqa: PLC0415 - the same
    from consilience.experiments.verification import verify_run  # noqa: PLC0415 - the same

    made = load_artefact(Calibration, path)
    notes: list[str] = []
    for run_id, head in sorted(made.runs.items()):
        folder = place.root / "results" / "runs" / run_id
        if not folder.is_dir():
            notes.append(
                f"Run {run_id}, which the calibration was fitted on, is not in this project: it is not checked."
            )
            continue
        found = verify_run(folder, head)
        error = found.error()
        if error is not None and _matters(found):
            raise IntegrityError(
                f"the calibration {path} was fitted on run {run_id} with head {head[:12]}: {error.message}",
                hint="Restore the run from a copy, or calibrate again.",
            )
    pinned = None if frozen is None else frozen.data.get(CALIBRATION)
    if frozen is not None and (pinned is None or pinned.sha256 != made.sha256):
        word = "none was frozen" if pinned is None else f"frozen was {pinned.sha256[:12]}"
        notes.append(f"Protocol deviation of the calibration: {made.sha256[:12]} is applied, {word}.")
    return made, notes


def strata_of(place: Place, predictions: pl.DataFrame) -> dict[str, dict[str, str]]:
    """Return the groups of every item, as its packet in the first of its runs says."""
    return {item: told["strata"] for item, told in _packets(place, predictions).items()}


def times_of(place: Place, predictions: pl.DataFrame) -> dict[str, Days]:
    """Return when every item was asked and its truth known, as its packet in the first of its runs says."""
    from consilience.experiments.item_days import days_of  # noqa: PLC0415 - heavy

    return {item: days_of(told["packet"]) for item, told in _packets(place, predictions).items()}


def _packets(place: Place, predictions: pl.DataFrame) -> dict[str, Any]:
    import polars as pl  # noqa: PLC0415 - heavy

    first = predictions.group_by("item_id").agg(run=pl.col("run_id").min())
    pairs = first.sort("item_id").iter_rows()
    paths = {item: place.run_folder(run_id) / "packets" / f"{item}.json" for item, run_id in pairs}
    return {item: json.loads(path.read_bytes()) for item, path in paths.items() if path.is_file()}


def truths_by_item(truth: pl.DataFrame) -> dict[str, float | str]:
    """Return the truth of every item that has one: a number, or the id of an option."""
    pairs = truth.select("item_id", "truth", "option").iter_rows()
    return {
        item: option if number is None else number for item, number, option in pairs if (number, option) != (None, None)
    }


def _other_rule(frozen: Collection[str], primary: str) -> list[str]:
    if primary in frozen:
        return []
    return [f"The primary rule of the freeze is {' or '.join(frozen)}; {primary} is for exploration."]


def checked(place: Place, run_ids: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the head of every run and those that are not finished.

    Raises:
        IntegrityError: A run is not what was written; it is told as ``consilience verify`` tells it.
    """
    from consilience.experiments.verification import verify_run  # noqa: PLC0415 - heavy

    heads: dict[str, str] = {}
    partial: list[str] = []
    for run_id in run_ids:
        found = verify_run(place.run_folder(run_id))
        error = found.error()
        if error is not None and _matters(found):
            raise IntegrityError(f"run {run_id}: {error.message}", hint=error.hint)
        heads[run_id] = found.journal.head or ""
        partial += [] if found.journal.finished else [run_id]
    return heads, tuple(partial)


def _matters(found: RunVerification) -> bool:
    """Return whether something is wrong with what is read; transcripts are made from the record and not read here."""
    return not found.journal.ok or any(not (one.derived and one.file.startswith("transcripts/")) for one in found.files)


def _of_project(place: Place, run: str) -> str:
    folder = place.run_folder(run)
    if folder.resolve().parent != (place.root / "results" / "runs").resolve():
        raise ConfigError(f"{folder} is no run of the project {place.root}", hint="Name its project: --project DIR.")
    return folder.name
