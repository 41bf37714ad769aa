"""Frozen calibrations: what validation taught about an arm's intervals and probabilities, applied unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import ClassVar, Final, Literal, Self

import numpy as np
import polars as pl
from pydantic import model_validator

from consilience.aggregation.recalibration import Recalibration
from consilience.core.question import Strict
from consilience.errors import PlanError
from consilience.experiments.artefact import CALIBRATION_FILE, Artefact
from consilience.experiments.comparing import simulated
from consilience.experiments.evaluable import PROBABILITY
from consilience.experiments.held_out import Change, Frequencies, Inside
from consilience.experiments.item_days import Times, asked_on
from consilience.experiments.predictions import QUANTILES
from consilience.experiments.weights import FITTED_SPLIT
from consilience.inference.conformal import Cqr, least_rows

FILE: Final = CALIBRATION_FILE
LEAST_QUESTIONS: Final = 30
"""Fewer earlier questions teach no map of probabilities."""
STRATUM: Final = "property_class"
"""Groups that have margins of their own where there are enough items."""
ENDS: Final = {0.5: ("q25", "q75"), 0.1: ("q05", "q95")}
"""Columns of the interval that misses this share."""

Strata = Mapping[str, Mapping[str, str]]


class Gain(Strict):
    """What a calibration learnt on earlier items gained on later ones: mean loss before less after.

    Attributes:
        measure: ``interval score`` or ``Brier score``.
        n_fitted: Earlier items.
        n_judged: Later items.
        gain: Above 0 is better.
        low: Lower end of its 95 % cluster-bootstrap interval.
        high: Upper end.
        before: The later items as they were answered; None in artefacts of earlier versions and where unknown.
        after: The same items, calibrated by what the earlier ones taught; likewise.
        n_unresolved: Earlier items left out, as their truths were not known when the first later one was asked.
    """

    measure: str
    n_fitted: int
    n_judged: int
    gain: float
    low: float
    high: float
    before: Inside | Frequencies | None = None
    after: Inside | Frequencies | None = None
    n_unresolved: int = 0


def _check(gain: Gain, least: int) -> None:
    """Raise where a correction that is said to be kept could not have been.

    Raises:
        ValueError: With what is wrong.
    """
    if not 0 < gain.low <= gain.high:
        raise ValueError(f"gained {gain.gain:g} [{gain.low:g}, {gain.high:g}]: only what surely gains is kept")
    if gain.n_fitted < least or gain.n_judged < 1 or gain.n_unresolved < 0:
        raise ValueError(
            f"was learnt from {gain.n_fitted} items and judged on {gain.n_judged}; at least {least} and 1 are needed"
        )


class Subject(Strict):
    """Whose answers they are.

    Attributes:
        arm: Label of the arm.
        aggregation: Its primary rule.
        committee: How models were assigned to roles.
        simulated: The answers were simulated; such a calibration is never used for real ones.
    """

    arm: str
    aggregation: str
    committee: str
    simulated: bool


class IntervalEntry(Strict):
    """The correction of one interval of an arm.

    Attributes:
        subject: Whose.
        cqr: Margins in logarithms, by `STRATUM`, learnt on all items.
        gain: Of the same correction, time-forward.
    """

    subject: Subject
    cqr: Cqr
    gain: Gain

    @model_validator(mode="after")
    def _gained(self) -> Self:
        _check(self.gain, least_rows(self.cqr.alpha))
        return self


class ProbabilityEntry(Strict):
    """The map of an arm's probabilities.

    Attributes:
        subject: Whose.
        recalibration: Fitted on all questions.
        gain: Of the same map, time-forward.
    """

    subject: Subject
    recalibration: Recalibration
    gain: Gain

    @model_validator(mode="after")
    def _gained(self) -> Self:
        _check(self.gain, LEAST_QUESTIONS)
        return self


class Refused(Strict):
    """A calibration that was not kept.

    Attributes:
        subject: Whose.
        what: ``50 % interval``, ``90 % interval`` or ``probability``.
        reason: Why.
        gain: What it gained; None where it could not be judged.
    """

    subject: Subject
    what: str
    reason: str
    gain: Gain | None


class Calibration(Artefact):
    """The artefact: fitted on validation, never changed afterwards.

    Attributes:
        schema_version: Of this form.
        package_version: That fitted it.
        split: Where the answers come from.
        runs: Head of each run's journal.
        items: Items behind it, sorted.
        until: Day by which all their truths were known; only items that may know of that day are calibrated.
        n_assumed: Items that do not say when their truth was known; it is taken to be right after the cutoff.
        intervals: Corrections that were kept.
        probabilities: Maps that were kept.
        refused: What was not kept, and why.
    """

    noun: ClassVar[str] = "calibration"
    verb: ClassVar[str] = "calibrate"

    schema_version: Literal[2] = 2
    package_version: str
    split: Literal["validation"] = FITTED_SPLIT
    runs: dict[str, str]
    items: tuple[str, ...]
    until: date
    n_assumed: int = 0
    intervals: tuple[IntervalEntry, ...]
    probabilities: tuple[ProbabilityEntry, ...]
    refused: tuple[Refused, ...]

    def changes(self, arms: Mapping[str, bool]) -> tuple[Change, ...]:
        """Return what every calibration did to later validation items, refused ones too, sorted by arm.

        Args:
            arms: Whose, and whether their answers are simulated; a calibration of the other kind is passed over.
        """
        told = [(one.subject, interval_name(one.cqr.alpha), True, one.gain) for one in self.intervals]
        told += [(one.subject, PROBABILITY, True, one.gain) for one in self.probabilities]
        told += [(one.subject, one.what, False, one.gain) for one in self.refused if one.gain is not None]
        return tuple(
            Change(
                arm=subject.arm,
                what=what,
                kept=kept,
                n_fitted=gain.n_fitted,
                n_judged=gain.n_judged,
                gain=gain.gain,
                low=gain.low,
                high=gain.high,
                before=gain.before,
                after=gain.after,
            )
            for subject, what, kept, gain in sorted(told, key=lambda row: (row[0].arm, row[1], row[0].committee))
            if gain.before is not None and gain.after is not None and arms.get(subject.arm) == subject.simulated
        )

    def maps(self, rows: pl.DataFrame, times: Times | None = None) -> dict[str, Recalibration]:
        """Return the maps of the arms in these rows, by arm.

        Args:
            rows: Predictions with ``arm``, ``aggregation``, ``committee``, ``run_id``.
            times: When items were asked.

        Raises:
            PlanError: As `refuse_in_sample`.
        """
        found: dict[str, Recalibration] = {}
        for entry in self.probabilities:
            mine = rows_of(entry.subject, rows)
            if mine.height:
                self.refuse_in_sample(mine, times or {})
                found[entry.subject.arm] = entry.recalibration
        return found

    def intervals_of(self, rows: pl.DataFrame, strata: Strata, times: Times | None = None) -> dict[str, pl.DataFrame]:
        """Return the calibrated quantiles of the arms in these rows, by arm: item and five quantiles in order.

        Args:
            rows: Answered predictions of all arms.
            strata: Groups of the items.
            times: When items were asked.

        Raises:
            PlanError: As `refuse_in_sample`.
        """
        found: dict[str, pl.DataFrame] = {}
        for entry in self.intervals:
            arm = entry.subject.arm
            mine = rows_of(entry.subject, rows).drop_nulls(list(QUANTILES))
            if mine.height:
                self.refuse_in_sample(mine, times or {})
                found[arm] = moved(found.get(arm, mine.select("item_id", *QUANTILES)), entry.cqr, strata)
        return {arm: _in_order(told) for arm, told in found.items()}

    def refuse_in_sample(self, rows: pl.DataFrame, times: Times) -> None:
        """Raise where rows were asked before all was known that the calibration was fitted on.

        Args:
            rows: Predictions.
            times: When items were asked; one that is not here may know of no day but those before its cutoff.

        Raises:
            PlanError: An item was among those fitted, or was asked before a truth was known that taught it.
        """
        inside = sorted(set(rows["item_id"]) & set(self.items))
        if inside or (rows["split"] == self.split).any():
            raise PlanError(
                f"in-sample use: the calibration was fitted on {inside[0] if inside else 'the same split'}",
                hint="Apply it to the test or holdout split; on validation itself it flatters.",
            )
        pairs = rows.select("item_id", "cutoff").unique().sort("item_id").iter_rows()
        early = [
            item for item, cutoff in pairs if cutoff is None or asked_on(times, item, cutoff).admitted < self.until
        ]
        if early:
            raise PlanError(
                f"item {early[0]} is no later than {self.until}, when the last truth became known that the calibration "
                f"was fitted on; such items: {len(early)}",
                hint="A calibration serves later items only.",
            )


def interval_name(alpha: float) -> str:
    """Return what the interval that misses this share is called.

    Example:
        >>> interval_name(0.1)
        '90 % interval'
    """
    return f"{100 * (1 - alpha):.0f} % interval"


def rows_of(subject: Subject, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are of the arm, rule and committee, simulated alike."""
    mine = rows.filter(
        (pl.col("arm") == subject.arm)
        & (pl.col("aggregation") == subject.aggregation)
        & (pl.col("committee") == subject.committee)
    )
    return mine if simulated(mine["run_id"].unique()) == subject.simulated else mine.clear()


def moved(rows: pl.DataFrame, cqr: Cqr, strata: Strata) -> pl.DataFrame:
    """Return the rows with the two ends of one interval moved by its margins, in logarithms."""
    low, high = ENDS[cqr.alpha]
    groups = [strata.get(item, {}).get(STRATUM, "") for item in rows["item_id"]]
    ends = cqr.apply(lower=np.log(rows[low].to_numpy()), upper=np.log(rows[high].to_numpy()), strata=groups)
    return rows.with_columns(pl.Series(low, np.exp(ends[0])), pl.Series(high, np.exp(ends[1])))


def _in_order(rows: pl.DataFrame) -> pl.DataFrame:
    ordered = np.sort(rows.select(QUANTILES).to_numpy(), axis=1)
    return rows.with_columns(pl.Series(name, ordered[:, at]) for at, name in enumerate(QUANTILES))
