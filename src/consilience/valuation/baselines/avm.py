"""``D_avm``: a stack of the other baselines with conformal intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, ClassVar, Final

import numpy as np

from consilience.errors import ConfigError, DataError
from consilience.inference.conformal import BoolArray, Cqr, fit_cqr, trailing_window
from consilience.valuation.baselines.adjusted import AdjustedComps
from consilience.valuation.baselines.base import (
    LEVELS,
    Baseline,
    FittedBaseline,
    Floats,
    Prediction,
    information_date,
)
from consilience.valuation.baselines.boosting import Boosting, LeveledColumns, leveled_columns
from consilience.valuation.baselines.hedonic import Hedonic, property_classes
from consilience.valuation.baselines.hierarchical import Hierarchical
from consilience.valuation.baselines.stack import Stack, fit_stack, joined, points_of
from consilience.valuation.baselines.trees import Trees, grown
from consilience.valuation.features import FeatureMatrix

PAIRS: Final = ((0, 4), (1, 3))
"""Columns of the central 90 % and 50 % intervals."""


@dataclass(frozen=True)
class Avm(Baseline):
    """A stack of A, A2, B and C, with quantiles by boosting that are corrected by asymmetric CQR.

    Validation is cut in three by days, oldest first, and no window serves twice: C is tuned on the first, the weights
    of the stack are learnt on the second, and the conformal margins on the third, the trailing one. For that the parts
    are fitted on train and the first window; then they are fitted again on all of train and validation, with what
    tuning chose. Quantiles are grown on ln price less the as-of level, sorted, and moved so that their median is the
    stack's point; what the last window missed at each tail then moves that tail.

    Attributes:
        boosting: How C is tuned.
        stack_share: Share of validation's days for the weights.
        conformal_share: Share of validation's days for the margins.
        quantile_leaves: Leaves of the trees of the quantiles.
        quantile_rounds: Trees per quantile.
    """

    name: ClassVar[str] = "D_avm"

    boosting: Boosting = field(default_factory=Boosting)
    stack_share: float = 0.25
    conformal_share: float = 0.5
    quantile_leaves: int = 15
    quantile_rounds: int = 200

    def __post_init__(self) -> None:
        shares = (self.stack_share, self.conformal_share)
        if min(shares) <= 0 or sum(shares) >= 1 or self.quantile_leaves < 2 or self.quantile_rounds < 1:
            raise ConfigError(
                f"an AVM with shares {shares}, {self.quantile_leaves} leaves and {self.quantile_rounds} rounds",
                hint="Give shares above 0 that sum to less than 1, at least 2 leaves and 1 round.",
            )

    def kept(self, fitted: FittedBaseline) -> Avm:
        """Return the same baseline with what tuning chose in ``fitted``, for a later refit."""
        return self if not isinstance(fitted, FittedAvm) else replace(self, boosting=fitted.boosting)

    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> FittedAvm:
        """Return the stack fitted on train and validation.

        Raises:
            DataError: Train, or a window of validation, is too small.
            PlanError: LightGBM is missing.
        """
        tuning, stacking, conformal = self._windows(valid)
        before, notes = self._parts(train, tuning, self.boosting)
        stack = fit_stack(points_of(before, stacking), stacking.truth())
        quantiles = self._quantiles(joined([train, tuning]))
        margins = _margins(quantiles.around(conformal, stack.combine(points_of(before, conformal)))[0], conformal)
        boosting = self.boosting.kept(before[Boosting.name])
        parts, later = self._parts(joined([train, tuning, stacking]), conformal, boosting)
        windows = {
            name: {"from": str(days.min()), "until": str(days.max()), "sales": len(days)}
            for name, days in (
                (name, part.frame["sale_date"])
                for name, part in (("tuning", tuning), ("stacking", stacking), ("conformal", conformal))
            )
        }
        return FittedAvm(
            parts=parts,
            boosting=boosting,
            stack=stack,
            quantiles=self._quantiles(joined([train, valid])),
            margins=margins,
            windows=windows,
            notes=tuple(dict.fromkeys((*notes, *later, *stack.notes))),
            information=information_date(train, valid),
        )

    def _windows(self, valid: FeatureMatrix) -> tuple[FeatureMatrix, FeatureMatrix, FeatureMatrix]:
        """Return validation cut by days into tuning, stacking and conformal windows, oldest first."""
        day = valid.frame["sale_date"].to_numpy()
        if not day.size:
            raise DataError("validation holds no sale", hint="Choose boundaries that leave a longer validation period.")
        span = int((day.max() - day.min()).astype(np.int64)) + 1
        last = trailing_window(day, length=max(1, round(self.conformal_share * span)))
        tail = trailing_window(day, length=max(1, round((self.conformal_share + self.stack_share) * span)))
        tuning, stacking, conformal = (valid.take(np.flatnonzero(rows)) for rows in (~tail, tail & ~last, last))
        return tuning, stacking, conformal

    def _parts(
        self, train: FeatureMatrix, valid: FeatureMatrix, boosting: Boosting
    ) -> tuple[dict[str, FittedBaseline], list[str]]:
        """Return the parts fitted on both, and what to tell of those that could not be."""
        both, parts, notes = joined([train, valid]), dict[str, FittedBaseline](), []
        for part in (Hedonic(), AdjustedComps(), Hierarchical()):
            try:
                # The stack has intervals of its own: those of the parts are never read.
                parts[part.name] = part.fit(both, both)
            except DataError as error:
                notes.append(f"{part.name} is no part of the stack: {error.message}.")
        parts[boosting.name] = boosting.fit_points(train, valid)
        return parts, notes

    def _quantiles(self, train: FeatureMatrix) -> QuantileTrees:
        columns = leveled_columns(train)
        values, level = columns.of(train)
        target = train.truth() - level
        models = [
            Trees(self.quantile_leaves, self.quantile_rounds, self.boosting.learning_rate, tau).grow(values, target)
            for tau in LEVELS
        ]
        return QuantileTrees(columns, tuple(models))


@dataclass(frozen=True)
class QuantileTrees:
    """Five boosted quantiles of ln price.

    Attributes:
        columns: What the trees see.
        models: Their texts, at `LEVELS`.
    """

    columns: LeveledColumns
    models: tuple[str, ...]

    def around(self, subjects: FeatureMatrix, centre: Floats) -> tuple[Floats, BoolArray]:
        """Return sorted log quantiles (n, 5) moved to have ``centre`` as their median, and which rows had crossed."""
        values, level = self.columns.of(subjects)
        raw = np.column_stack([grown(text, values) + level for text in self.models])
        crossed: BoolArray = np.asarray((np.diff(raw, axis=1) < 0).any(axis=1))
        ranked = np.sort(raw, axis=1)
        return ranked + (centre - ranked[:, 2])[:, None], crossed


def _margins(quantiles: Floats, subjects: FeatureMatrix) -> tuple[Cqr, ...]:
    """Return the corrections of both intervals, by property class, over the rows that are answered."""
    there = np.flatnonzero(~np.isnan(quantiles[:, 2]))
    strata = np.array(property_classes(subjects), dtype=object)[there].tolist()
    return tuple(
        fit_cqr(
            lower=quantiles[there, low],
            upper=quantiles[there, high],
            outcome=subjects.truth()[there],
            alpha=round(1 - LEVELS[high] + LEVELS[low], 9),
            strata=strata,
        )
        for low, high in PAIRS
    )


@dataclass(frozen=True)
class FittedAvm(FittedBaseline):
    """A fitted `Avm`.

    Attributes:
        parts: Fitted parts by arm.
        boosting: C with what tuning chose.
        stack: Their weights.
        quantiles: Boosted quantiles.
        margins: Conformal corrections of the 90 % and the 50 % interval.
        windows: First and last day and number of sales of each window of validation.
        notes: What a reader has to know.
        information: Latest sale of train and validation.
    """

    parts: Mapping[str, FittedBaseline]
    boosting: Boosting
    stack: Stack
    quantiles: QuantileTrees
    margins: tuple[Cqr, ...]
    windows: Mapping[str, Mapping[str, Any]]
    notes: tuple[str, ...]
    information: date

    @property
    def information_date(self) -> date:
        """The latest sale of train and validation."""
        return self.information

    def predict(self, subjects: FeatureMatrix) -> Prediction:
        """Return a price and five quantiles for every subject that some part with a weight answers."""
        centre = self.stack.combine(points_of(self.parts, subjects))
        quantiles, crossed = self.quantiles.around(subjects, centre)
        there = np.flatnonzero(~np.isnan(centre))
        strata = np.array(property_classes(subjects), dtype=object)[there].tolist()
        for margin, (low, high) in zip(self.margins, PAIRS, strict=True):
            quantiles[there, low], quantiles[there, high] = margin.apply(
                lower=quantiles[there, low], upper=quantiles[there, high], strata=strata
            )
        return Prediction(
            point=np.exp(centre),
            quantiles=np.exp(np.sort(quantiles, axis=1)),
            crossing_rate=float(crossed.mean()) if crossed.size else 0.0,
            notes=self.notes,
        )

    def record(self) -> dict[str, Any]:
        """Return weights, windows, margins and the parts' records as JSON; the trees are files."""
        return {
            "stack": self.stack.record(),
            "windows": {name: dict(window) for name, window in self.windows.items()},
            "margins": [margin.record() for margin in self.margins],
            "quantiles": {**self.quantiles.columns.record(), "levels": list(LEVELS)},
            "parts": {name: part.record() for name, part in self.parts.items()},
            "notes": list(self.notes),
        }

    def files(self) -> Mapping[str, str]:
        """Return the trees of parts and quantiles as text."""
        texts = {name: text for part in self.parts.values() for name, text in part.files().items()}
        return texts | {
            f"D_avm_q{round(100 * tau):02d}.txt": text for tau, text in zip(LEVELS, self.quantiles.models, strict=True)
        }
