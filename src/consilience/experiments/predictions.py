"""The one frame that every arm and baseline writes its predictions in: checked on write and on read."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import polars as pl
from polars.exceptions import PolarsError

from consilience.aggregation.answers import OPTION_PREFIX
from consilience.core.canonical import sha256_hex
from consilience.errors import ConfigError, DataError, IntegrityError
from consilience.experiments.storage import write_frame
from consilience.registry import nearest

QUANTILES: Final = ("q05", "q25", "q50", "q75", "q95")
STATUSES: Final = ("answered", "abstained", "unreadable", "failed", "no_quorum", "not_asked")
"""``not_asked``: a row of its own, such as a refined answer, that this item had no money for."""
EXPOSURES: Final = ("before", "after", "unknown")
SIMULATED_PREFIX: Final = "_"
"""Ids of runs with simulated models or synthetic data begin so."""
PERTURBED: Final = "perturbed"
ASK_PREFIX: Final = "ask-"
"""Ids of runs that answer one question of a user begin so, behind the prefix of simulated ones; no truth is known."""

PREDICTIONS: Final = pl.Schema(
    {
        "item_id": pl.String(),
        "split": pl.String(),
        "arm": pl.String(),
        "committee": pl.String(),
        "aggregation": pl.String(),
        "point": pl.Float64(),
        "q05": pl.Float64(),
        "q25": pl.Float64(),
        "q50": pl.Float64(),
        "q75": pl.Float64(),
        "q95": pl.Float64(),
        "cost_usd": pl.Float64(),
        "latency_s": pl.Float64(),
        "tokens": pl.Int64(),
        "run_id": pl.String(),
        "n_answered": pl.Int64(),
        "n_seats": pl.Int64(),
        "status": pl.String(),
        "information_date": pl.Date(),
        "cutoff": pl.Date(),
        "exposure": pl.String(),
        "paid_usd": pl.Float64(),
    }
)
"""Columns of a run that asks for numbers. Runs over probabilities and choices add ``p`` and ``option:<id>`` columns.

``cost_usd`` is the cost of the answers used, as if the arm ran alone, ``paid_usd`` what this run paid; both are null
when unknown. ``exposure`` says whether the item lies ``before`` the model's training cutoff (it may have been seen).
"""

_KEY: Final = ("item_id", "arm", "aggregation", "committee", "run_id")
_REQUIRED: Final = (*_KEY, "n_answered", "n_seats", "status", "exposure")
_NOT_NEGATIVE: Final = ("cost_usd", "latency_s", "tokens", "paid_usd", "n_answered")
_SUM_TOLERANCE: Final = 1e-9


def predictions_frame(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Return checked predictions from one mapping per row; a key left out is null.

    Raises:
        DataError: As `validate_predictions`, or a value has the wrong type.

    Example:
        >>> row = {"item_id": "a", "arm": "E_single", "committee": "none", "aggregation": "median", "run_id": "_r",
        ...        "status": "failed", "n_answered": 0, "n_seats": 1, "exposure": "unknown"}
        >>> predictions_frame([row])["point"].to_list()
        [None]
    """
    rows = list(rows)
    extra = sorted({key for row in rows for key in row} - set(PREDICTIONS))
    schema = pl.Schema({**PREDICTIONS, **{name: pl.Float64() for name in extra}})
    try:
        frame = pl.DataFrame(rows, schema=schema, strict=True)
    except (PolarsError, TypeError) as error:
        raise DataError(
            f"a prediction does not fit its column: {str(error).splitlines()[0]}", hint="Give every column its type."
        ) from error
    return validate_predictions(frame)


def validate_predictions(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the predictions with columns in order and rows sorted, if they are sound.

    Rows are sorted by item, arm and aggregation (then committee and run), columns as in `PREDICTIONS`, then ``p``, then
    options by name. A row that is not answered has null numbers; an answered one has a finite point with all five
    quantiles or none, or a probability, or a number per option that sum to 1 (shares of ballots for a choice).

    Raises:
        DataError: A column is missing, unknown or of another type, a required cell is empty, a word is not one of the
            admitted, a number is not finite or out of range, or a row stands twice; the first bad row is named.

    Example:
        >>> validate_predictions(pl.DataFrame(schema=PREDICTIONS)).height
        0
    """
    frame = _columns(frame)
    _rows(frame, pl.any_horizontal(pl.col(_REQUIRED).is_null()), f"lacks one of {', '.join(_REQUIRED)}")
    for column, words in (("status", STATUSES), ("exposure", EXPOSURES)):
        _rows(frame, ~pl.col(column).is_in(words), f"has a {column} other than {', '.join(words)}")
    floats = [name for name, kind in frame.schema.items() if kind == pl.Float64()]
    _rows(frame, pl.any_horizontal(pl.col(floats).is_finite().not_()), "holds a number that is not finite")
    _rows(frame, pl.any_horizontal(pl.col(_NOT_NEGATIVE) < 0), f"has a negative number in {', '.join(_NOT_NEGATIVE)}")
    _rows(frame, pl.col("n_answered") > pl.col("n_seats"), "counts more answers than seats")
    options = [name for name in frame.columns if name.startswith(OPTION_PREFIX)]
    shares = [name for name in ("p", *options) if name in frame.columns]
    numbers = pl.col(["point", *QUANTILES, *shares])
    answered = pl.col("status") == "answered"
    _rows(frame, ~answered & pl.any_horizontal(numbers.is_not_null()), "has a number without being answered")
    _rows(frame, answered & pl.all_horizontal(pl.col(["point", *shares]).is_null()), "is answered but has no number")
    missing = pl.sum_horizontal(pl.col(QUANTILES).is_null().cast(pl.Int64))
    _rows(frame, ~missing.is_in([0, len(QUANTILES)]), "has some of the five quantiles but not all")
    _rows(frame, pl.col("point").is_null() & (missing == 0), "has quantiles but no point")
    crossing = [pl.col(low) > pl.col(high) for low, high in pairwise(QUANTILES)]
    _rows(frame, pl.any_horizontal(crossing), "has crossing quantiles")
    if shares:
        _rows(frame, pl.any_horizontal(~pl.col(shares).is_between(0, 1)), "has a probability outside [0, 1]")
    if options:
        told = pl.any_horizontal(pl.col(options).is_not_null())
        off = (pl.sum_horizontal(options) - 1).abs() > _SUM_TOLERANCE
        _rows(frame, told & off, "has options that do not sum to 1")
    _rows(frame, pl.struct(_KEY).is_duplicated(), f"stands twice with the same {', '.join(_KEY)}")
    return frame.sort(_KEY)


def write_predictions(frame: pl.DataFrame, path: Path) -> str:
    """Write checked predictions as Parquet, whole or not at all, and return the SHA-256 of the file.

    The same rows give the same bytes.

    Raises:
        DataError: As `validate_predictions`, or the folder cannot be written or the disk is full.
    """
    # Statistics and chunks would let equal rows differ in bytes.
    whole = validate_predictions(frame).rechunk()
    write_frame(whole, path, statistics=False)
    return sha256_hex(path.read_bytes())


def read_predictions(path: Path) -> pl.DataFrame:
    """Read and check a prediction file.

    Raises:
        DataError: The file is missing or no Parquet, or as `validate_predictions`.
    """
    if not path.is_file():
        raise DataError(f"there is no file {path}", hint="The run has not finished; run the same command again.")
    try:
        with path.open("rb") as file:
            frame = pl.read_parquet(file)
    except (PolarsError, OSError) as error:
        raise DataError(
            f"{path} is no readable Parquet: {str(error).splitlines()[0]}",
            hint="Rebuild it from the journal: consilience replay RUN.",
        ) from error
    try:
        return validate_predictions(frame)
    except DataError as error:
        raise DataError(f"{path}: {error.message}", hint=error.hint) from error


@dataclass(frozen=True)
class LoadedRuns:
    """Predictions of several runs.

    Attributes:
        predictions: Their rows in one frame.
        run_ids: Runs read, sorted.
        skipped_simulated: Simulated or synthetic runs left out.
        single_questions: Runs of one user's question, left out unless they are named.
        unfinished: Runs without predictions so far, sorted.
        apart: Runs left out because they are no arm to compare: repetitions, unless named, and perturbed evidence.
    """

    predictions: pl.DataFrame
    run_ids: tuple[str, ...]
    skipped_simulated: tuple[str, ...]
    single_questions: tuple[str, ...]
    unfinished: tuple[str, ...]
    apart: tuple[str, ...]


def load_runs(
    results: Path, run_ids: Sequence[str] | None = None, *, include_simulated: bool = False, least: int = 1
) -> LoadedRuns:
    """Read the predictions under ``results/runs``.

    Args:
        results: The results folder.
        run_ids: Runs to read; None reads all but those of single questions.
        include_simulated: Read also runs whose id begins with ``_``.
        least: Runs without which there is nothing to read; 0 where baselines can stand alone.

    Raises:
        ConfigError: A named run does not exist.
        DataError: Nothing is left to read, a named run has no predictions or answers questions that were changed on
            purpose, or a file breaks its schema.
    """
    folder = results / "runs"
    known = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    for run_id in run_ids or ():
        if run_id not in known:
            raise ConfigError(f'there is no run "{run_id}" in {folder}', hint=nearest(run_id, known))
    single = [run for run in known if run.removeprefix(SIMULATED_PREFIX).startswith(ASK_PREFIX) and run_ids is None]
    chosen = [run for run in known if run not in single] if run_ids is None else sorted(set(run_ids))
    skipped = tuple(run for run in chosen if run.startswith(SIMULATED_PREFIX) and not include_simulated)
    chosen = [run for run in chosen if run not in skipped]
    plans = {run: _plan_of(folder / run) for run in chosen}
    changed = [run for run in chosen if plans[run].get("treatment", {}).get("evidence") == PERTURBED]
    if changed and run_ids is not None:
        raise DataError(
            f"the amounts in the evidence of {changed[0]} were changed on purpose, and its answers with them",
            hint="Compare its answers with the factors in its packets instead; leave it out here.",
        )
    apart = tuple(run for run in chosen if run in changed or (plans[run].get("replicate") and run_ids is None))
    chosen = [run for run in chosen if run not in apart]
    path_of = {run: folder / run / "predictions.parquet" for run in chosen}
    unfinished = tuple(run for run in chosen if run_ids is None and not path_of[run].is_file())
    read = {run: read_predictions(path_of[run]) for run in chosen if run not in unfinished}
    if len(read) < least:
        raise DataError(
            f"no run to evaluate in {folder}: {len(skipped)} simulated skipped, {len(unfinished)} unfinished",
            hint="Add --include-simulated to evaluate simulated runs." if skipped else "Finish a run first.",
        )
    return LoadedRuns(
        predictions=pl.concat([pl.DataFrame(schema=PREDICTIONS), *read.values()], how="diagonal"),
        run_ids=tuple(read),
        skipped_simulated=skipped,
        single_questions=tuple(single),
        unfinished=unfinished,
        apart=apart,
    )


def load_baselines(
    results: Path,
    *,
    split: str | None,
    items: Collection[str] | None,
    include_simulated: bool,
    run_ids: Collection[str] | None = None,
) -> pl.DataFrame:
    """Return what baselines under ``results/baselines`` predicted for the items that arms were asked about.

    The same arm may have been fitted for a whole split and for a few of its items: what agrees stands once.

    Args:
        results: The results folder.
        split: Split of the arms.
        items: Their items; None where baselines stand alone, and all they predict is read, of any split.
        include_simulated: Read also baselines over synthetic sales, whose ids begin with ``_``.
        run_ids: Baselines to read; None reads all.

    Raises:
        IntegrityError: Predictions are not those of the baseline's card.
        DataError: Two fits of one arm predict an item differently.
    """
    frames: list[pl.DataFrame] = []
    for card in sorted((results / "baselines").glob("*/card.json")):
        path = card.parent / "predictions.parquet"
        if not path.is_file() or (card.parent.name.startswith(SIMULATED_PREFIX) and not include_simulated):
            continue
        if run_ids is not None and card.parent.name not in run_ids:
            continue
        if sha256_hex(path.read_bytes()) != json.loads(card.read_bytes())["hashes"]["predictions.parquet"]:
            raise IntegrityError(f"{path} is not what the card beside it says", hint="Predict with the baseline again.")
        frame = read_predictions(path)
        if items is not None:
            frame = frame.filter((pl.col("split") == split) & pl.col("item_id").is_in(list(items)))
        frames.append(frame)
    if not frames:
        return pl.DataFrame(schema=PREDICTIONS)
    told = [name for name in PREDICTIONS if name != "run_id"]
    once = pl.concat(frames).sort("run_id").unique(told, keep="first", maintain_order=True)
    twice = once.filter(pl.struct("item_id", "arm").is_duplicated()).sort("arm", "run_id")
    if twice.height:
        named = ", ".join(twice["run_id"].unique().sort())
        raise DataError(
            f"baseline {twice['arm'][0]} predicts item {twice['item_id'][0]} in several ways: {named}",
            hint="Move the folders of older fits away from results/baselines.",
        )
    return once


def _plan_of(folder: Path) -> dict[str, Any]:
    """Return the plan that a run recorded; empty where there is none to read, which verification tells."""
    try:
        plan = json.loads((folder / "protocol.json").read_bytes())["plan"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return plan if isinstance(plan, dict) else {}


def _columns(frame: pl.DataFrame) -> pl.DataFrame:
    for name in frame.columns:
        if name not in PREDICTIONS and name != "p" and not name.startswith(OPTION_PREFIX):
            raise DataError(f'predictions have an unknown column "{name}"', hint=nearest(name, [*PREDICTIONS, "p"]))
    for name in PREDICTIONS:
        if name not in frame.columns:
            raise DataError(f'predictions lack the column "{name}"', hint="Write null where a value is unknown.")
    extra = sorted((name for name in frame.columns if name not in PREDICTIONS), key=lambda name: (name != "p", name))
    for name, kind in {**PREDICTIONS, **{name: pl.Float64() for name in extra}}.items():
        if frame.schema[name] != kind:
            raise DataError(f'column "{name}" holds {frame.schema[name]}, not {kind}', hint="Cast it before writing.")
    return frame.select(*PREDICTIONS, *extra)


def _rows(frame: pl.DataFrame, bad: pl.Expr, what: str) -> None:
    """Raise about the first row for which ``bad`` is true; null counts as false."""
    found = frame.with_row_index("row").filter(bad)
    if found.height:
        row = found.row(0, named=True)
        where = f"row {row['row']} (item {row['item_id']}, arm {row['arm']}, rule {row['aggregation']})"
        raise DataError(f"{where} of the predictions {what}", hint=f"{found.height} row(s) do; mend what wrote them.")
