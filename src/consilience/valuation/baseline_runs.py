"""Baselines over a project: fit the chosen ones, predict a split into the common frame, keep models and cards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from consilience.core.canonical import canonical_json, sha256_hex
from consilience.errors import DataError, PlanError
from consilience.experiments.predictions import QUANTILES, SIMULATED_PREFIX, predictions_frame, write_predictions
from consilience.experiments.storage import write_json, write_whole
from consilience.registry import nearest
from consilience.valuation.adapters.base import file_sha256
from consilience.valuation.baselines import BASELINES, Baseline, FittedBaseline, Prediction
from consilience.valuation.baselines.cards import card_markdown, model_card, parameters, periods_of
from consilience.valuation.baselines.imported import ImportedPredictions
from consilience.valuation.features import AsOf, FeatureMatrix, build_feature_matrix
from consilience.valuation.pipeline import Project, subsample
from consilience.valuation.rolling import roll
from consilience.valuation.sampling import select_items
from consilience.valuation.schema import Manifest, read_analytic, read_manifest
from consilience.valuation.splits import read_splits

PREDICTED: Final = ("validation", "test", "holdout", "prospective")
NO_COMMITTEE: Final = "none"
AGGREGATION: Final = "model"
VALIDATION: Final = "validation"
HELD_BACK: Final = 0.2
"""Share of train, the latest, that stands in for validation where validation itself is predicted."""


@dataclass(frozen=True)
class BaselineRun:
    """One baseline that was fitted and, where a split was asked for, predicted.

    Attributes:
        run_id: Its folder under ``results/baselines``; begins with ``_`` for synthetic data.
        folder: Where ``model.json``, ``card.json``, ``card.md``, the model's own files and ``predictions.parquet`` lie.
        arm: The baseline.
        information_date: Latest day that its parameters saw.
        subjects: Sales predicted; 0 where nothing was asked.
        answered: Those with a prediction.
        notes: What a reader has to know.
    """

    run_id: str
    folder: Path
    arm: str
    information_date: date
    subjects: int
    answered: int
    notes: tuple[str, ...]


def chosen_baselines(names: Sequence[str] = (), *, imported: ImportedPredictions | None = None) -> list[Baseline]:
    """Return baselines by the names of their arms, in the registry's order; all by default.

    Args:
        names: Arms; empty takes all, `ImportedPredictions` only where a table is given.
        imported: The table of ``X_import``.

    Raises:
        ConfigError: A name is unknown.

    Example:
        >>> [baseline.name for baseline in chosen_baselines(["D_index", "A_hedonic"])]
        ['A_hedonic', 'D_index']
    """
    wanted = {BASELINES[name].name for name in names}
    made: list[Baseline] = []
    for kind in BASELINES:
        if kind is ImportedPredictions:
            if kind.name in wanted or (not wanted and imported is not None):
                made.append(imported or kind())
        elif not wanted or kind.name in wanted:
            made.append(kind())
    return made


@dataclass(frozen=True)
class Bench:
    """The table of a project as features, with what names it.

    Attributes:
        matrix: All its sales.
        manifest: Of the analytic table.
        hashes: SHA-256 of table and splits.
    """

    matrix: FeatureMatrix
    manifest: Manifest
    hashes: Mapping[str, str]

    @property
    def prefix(self) -> str:
        """What ids begin with."""
        return SIMULATED_PREFIX if self.manifest.adapter == "synthetic" else ""


def open_bench(project: Project, *, as_of: AsOf = "frozen") -> Bench:
    """Return the features of a project's table.

    Raises:
        DataError: The table or its splits are missing or broken.
    """
    sales = read_analytic(project.analytic)
    splits = read_splits(project.splits, sales=sales)
    hashes = {"table": file_sha256(project.analytic), "splits": file_sha256(project.splits)}
    return Bench(build_feature_matrix(sales, splits, as_of=as_of), read_manifest(project.analytic), hashes)


def fit_baselines(bench: Bench, results: Path, baselines: Sequence[Baseline]) -> list[BaselineRun]:
    """Fit baselines on train and validation and keep their models and cards, without predictions.

    Args:
        bench: The table.
        results: The results folder.
        baselines: What to fit.

    Raises:
        DataError: Train or validation is too small, or a file cannot be written.
        ConfigError: A baseline lacks a parameter.
    """
    train, valid = teaching(bench.matrix, None)
    runs = []
    for baseline in baselines:
        kept = _Kept(baseline.name, {"": baseline.fit(train, valid)})
        runs.append(_keep(bench, results, baseline, kept, label="fit", asked={}))
    return runs


def predict_baselines(
    bench: Bench, results: Path, baselines: Sequence[Baseline], *, split: str, items: Sequence[str] | None = None
) -> list[BaselineRun]:
    """Fit baselines and write what they predict for a split, with models and cards.

    Where the bench is ``rolling``, parameters are fitted anew as time goes (`roll`) and the arm's name ends in
    ``_rolling``; an imported table is what it is. The same table, splits, parameters and items give the same bytes.

    Args:
        bench: The table.
        results: The results folder; each baseline has a folder in ``baselines`` there.
        baselines: What to fit.
        split: ``validation``, ``test``, ``holdout`` or ``prospective``; nothing is predicted on train.
        items: Ids of the sales to predict; None takes the whole split.

    Raises:
        PlanError: The split is none to predict.
        DataError: The split holds no sale, train or validation is too small, or a file cannot be written.
        ConfigError: A baseline lacks a parameter.
    """
    subjects = _subjects(bench.matrix, split, items)
    asked = {"split": split, "items": "all" if items is None else sha256_hex(canonical_json(sorted(items)))}
    chosen = pl.col("tx_id").is_in(subjects.frame["tx_id"].implode())
    runs = []
    for baseline in baselines:
        if bench.matrix.as_of == "rolling" and not isinstance(baseline, ImportedPredictions):
            rolled = roll(baseline, bench.matrix, subjects=chosen)
            fits = {day.isoformat(): fitted for day, fitted in rolled.fits.items()}
            kept = _Kept(rolled.arm, fits, (rolled.subjects, rolled.prediction))
        else:
            fitted = baseline.fit(*teaching(bench.matrix, split))
            kept = _Kept(baseline.name, {"": fitted}, (subjects, fitted.predict(subjects)))
        runs.append(_keep(bench, results, baseline, kept, label=split, asked=asked))
    return runs


def teaching(matrix: FeatureMatrix, split: str | None) -> tuple[FeatureMatrix, FeatureMatrix]:
    """Return what a baseline is fitted on, and what it is tuned and calibrated on, before it predicts a split.

    Train and validation teach whoever predicts a later split. Whoever predicts validation must not have seen it: the
    last fifth of train by date stands in for it then.

    Args:
        matrix: All sales.
        split: The split to be predicted; None for none.
    """
    if split != VALIDATION:
        return matrix.part("train"), matrix.part(VALIDATION)
    train = matrix.part("train")
    first = train.frame["sale_date"].quantile(1 - HELD_BACK, interpolation="lower")
    return train.where(pl.col("sale_date") < first), train.where(pl.col("sale_date") >= first)


def stored_items(project: Project, *, split: str, n: int) -> list[str]:
    """Return the ids of the first ``n`` sales of a split's stored subsample: those that agents are asked about.

    Raises:
        ConfigError: The split has no subsample, or it holds fewer.
    """
    return select_items(subsample(project), split=split, n=n)


def prediction_rows(
    arm: str, run_id: str, subjects: FeatureMatrix, predicted: Prediction, *, information: date
) -> pl.DataFrame:
    """Return predictions in the common frame: committee ``none``, aggregation ``model``, cost 0.

    A subject without a prediction abstains. ``exposure`` says whether a sale lies after what the parameters saw.

    Args:
        arm: The baseline.
        run_id: Its run.
        subjects: Who was predicted.
        predicted: What for.
        information: Latest day the parameters saw, where rows do not differ.
    """
    frame = subjects.frame
    days = predicted.information_dates or (information,) * len(subjects)
    rows = []
    answered = predicted.answered.tolist()
    numbers = np.column_stack([predicted.point, predicted.quantiles]).tolist()
    keys = frame.select("tx_id", "split", "sale_date", "cutoff").iter_rows()
    for (tx_id, split, sale_date, cutoff), there, values, day in zip(keys, answered, numbers, days, strict=True):
        known = [None if value != value else value for value in values]  # noqa: PLR0124 - NaN is unknown
        rows.append(
            {
                "item_id": tx_id,
                "split": split,
                "arm": arm,
                "committee": NO_COMMITTEE,
                "aggregation": AGGREGATION,
                **dict(zip(("point", *QUANTILES), known, strict=True)),
                "cost_usd": 0.0,
                "tokens": 0,
                "run_id": run_id,
                "n_answered": int(there),
                "n_seats": 1,
                "status": "answered" if there else "abstained",
                "information_date": day,
                "cutoff": cutoff,
                "exposure": "after" if sale_date > day else "before",
                "paid_usd": 0.0,
            }
        )
    return predictions_frame(rows)


def _subjects(matrix: FeatureMatrix, split: str, items: Sequence[str] | None) -> FeatureMatrix:
    if split not in PREDICTED:
        raise PlanError(f'nothing is predicted on split "{split}"', hint=nearest(split, PREDICTED))
    subjects = matrix.part(split)
    if items is not None:
        subjects = subjects.where(pl.col("tx_id").is_in(list(items)))
    if not len(subjects):
        raise DataError(
            f"split {split} holds no sale to predict", hint="Choose other boundaries: consilience data splits."
        )
    # Prices of subjects are withheld, so that no prediction can read its own.
    return subjects.blind()


@dataclass(frozen=True)
class _Kept:
    """What one baseline came to: its fits by day of refit ("" where there is one alone), and what they predicted."""

    arm: str
    fits: Mapping[str, FittedBaseline]
    predicted: tuple[FeatureMatrix, Prediction] | None = None

    @property
    def last(self) -> FittedBaseline:
        return list(self.fits.values())[-1]

    @property
    def record(self) -> dict[str, Any]:
        if "" in self.fits:
            return self.fits[""].record()
        return {"refits": {day: fitted.record() for day, fitted in self.fits.items()}}

    @property
    def files(self) -> dict[str, bytes]:
        return {
            f"{day}-{name}" if day else name: text.encode()
            for day, fitted in self.fits.items()
            for name, text in fitted.files().items()
        }


def _keep(
    bench: Bench, results: Path, baseline: Baseline, kept: _Kept, *, label: str, asked: Mapping[str, Any]
) -> BaselineRun:
    """Write what one baseline left and return where."""
    record = kept.record
    identity = {
        "arm": kept.arm,
        "parameters": parameters(baseline),
        "as_of": bench.matrix.as_of,
        **asked,
        **bench.hashes,
        "model": sha256_hex(canonical_json(record)),
    }
    run_id = f"{bench.prefix}{kept.arm}-{label}-{sha256_hex(canonical_json(identity))[:10]}"
    folder = results / "baselines" / run_id
    hashes = {**bench.hashes, "model.json": write_json(folder / "model.json", record)}
    for name, data in sorted(kept.files.items()):
        write_whole(folder / name, partial(Path.write_bytes, data=data))
        hashes[name] = sha256_hex(data)
    subjects, answered, crossing = 0, 0, None
    notes: tuple[str, ...] = ()
    if kept.predicted is not None:
        rows = prediction_rows(kept.arm, run_id, *kept.predicted, information=kept.last.information_date)
        hashes["predictions.parquet"] = write_predictions(rows, folder / "predictions.parquet")
        subjects, answered = rows.height, int((rows["status"] == "answered").sum())
        notes, crossing = kept.predicted[1].notes, kept.predicted[1].crossing_rate
    fitted_on = ("train",) if label == VALIDATION else ("train", VALIDATION)
    used = periods_of(bench.matrix.frame, *fitted_on, *([label] if kept.predicted else []))
    card = {
        **model_card(baseline, kept.last, manifest=bench.manifest, periods=used, hashes=hashes),
        "arm": kept.arm,
        "run_id": run_id,
        "as_of": bench.matrix.as_of,
        "refits": [day for day in kept.fits if day],
        "predicted": None if kept.predicted is None else {"split": label, "subjects": subjects, "answered": answered},
        "crossing_rate": crossing,
        "notes": list(notes),
    }
    text = json.dumps(card, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(folder / "card.json", lambda target: target.write_text(text, encoding="utf-8"))
    write_whole(folder / "card.md", lambda target: target.write_text(card_markdown(card), encoding="utf-8"))
    return BaselineRun(run_id, folder, kept.arm, kept.last.information_date, subjects, answered, notes)
