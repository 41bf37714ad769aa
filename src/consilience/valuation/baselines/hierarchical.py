"""``B_hierarchical``: places that borrow from each other, and what the parcel itself last fetched.

The hedonic part is the mixed model of `PooledHedonic`. A prior sale gives a second estimate, brought to the day by a
repeat-sales index; the two are weighted by their precision (`PriorWeight`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from consilience.errors import DataError
from consilience.valuation.baselines.base import Baseline, FittedBaseline, Floats, Prediction, information_date
from consilience.valuation.baselines.places import PLACES, PooledHedonic, fit_pooled
from consilience.valuation.baselines.repeat_sales import LEAST_PAIRS
from consilience.valuation.baselines.resales import LEAST_RESALES, Resales, combine, estimates, fit_resales
from consilience.valuation.baselines.strata import ResidualIntervals, fit_intervals

if TYPE_CHECKING:
    from consilience.valuation.features import FeatureMatrix


@dataclass(frozen=True)
class FittedHierarchical(FittedBaseline):
    """`Hierarchical` with its parameters fixed."""

    parameters: Hierarchical
    hedonic: PooledHedonic
    resales: Resales
    intervals: ResidualIntervals
    informed: date

    @property
    def information_date(self) -> date:
        """The last sale of train and validation."""
        return self.informed

    def predict(self, subjects: FeatureMatrix) -> Prediction:
        """Return prices with the interval of the stratum: class, with or without a prior sale, and price tercile."""
        estimate, strata = _estimate(subjects, self.hedonic, self.resales)
        point = np.exp(estimate)
        return Prediction(point=point, quantiles=self.intervals.around(point, strata), notes=self._notes())

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self.hedonic.outlying:
            notes.append(f"{self.hedonic.outlying} sales of train lie too far from all others and teach it nothing.")
        if self.resales.index is None:
            notes.append("Train holds no repeat sale held for a year: there is no repeat-sales index.")
        else:
            notes += [f"Repeat-sales index: {note} ({count})." for note, count in self.resales.index.notes.items()]
        notes += [
            f"Fewer than {LEAST_RESALES} {kind} resales in train: such a prior sale is not used."
            for kind, weight in self.resales.weights.items()
            if weight is None
        ]
        if not self.hedonic.model.converged:
            notes.append(f"The variances still moved after {self.hedonic.model.rounds} rounds.")
        return tuple(notes)

    def record(self) -> dict[str, Any]:
        """Return parameters, coefficients, effects by place, variances, index, weights of prior sales and intervals."""
        hedonic, model = self.hedonic, self.hedonic.model
        index = self.resales.index
        return {
            "parameters": asdict(self.parameters),
            "features": [*hedonic.terms.means, "property_class", *PLACES, "sale_date", "prior_sale_date"],
            "means": hedonic.terms.means,
            "coefficients": dict(zip(hedonic.terms.kept, model.fixed.tolist(), strict=True)),
            "classes": list(hedonic.terms.classes),
            "base_level": hedonic.base,
            "outlying": hedonic.outlying,
            "trends_from": hedonic.origin,
            "trends_until": hedonic.last,
            "places": {level: list(codes) for level, codes in hedonic.places.items()},
            "effects": {name: effects.tolist() for name, effects in model.effects.items()},
            "variances": model.variances | {"residual": model.residual},
            "rounds": model.rounds,
            "converged": model.converged,
            "index": None if index is None else index.record(),
            "prior_sale": {k: None if w is None else asdict(w) for k, w in self.resales.weights.items()},
            "intervals": self.intervals.record(),
            "notes": list(self._notes()),
        }


@dataclass(frozen=True)
class Hierarchical(Baseline):
    """Partial pooling by place, combined with a repeat-sales update for parcels with a prior sale.

    An unknown attribute stands at the mean of train and has an effect of its own for being unknown; an unknown or new
    place has the effect of the next wider one. The general price level is evidence, as of each subject's cutoff
    (`LevelPath`); trends of places stand still after the last day of train.

    Attributes:
        slopes: Let places differ in their trend.
        least_pairs: Repeat sales from which a month of the index has a level of its own.
    """

    name: ClassVar[str] = "B_hierarchical"

    slopes: bool = True
    least_pairs: int = LEAST_PAIRS

    def fit(self, train: FeatureMatrix, valid: FeatureMatrix) -> FittedHierarchical:
        """Return the model fitted on ``train``, with intervals from its misses on ``valid``.

        Raises:
            DataError: Too few sales in one of them.
        """
        log_price, informed = train.truth(), information_date(train, valid)
        for name, part in (("train", train), ("validation", valid)):
            if not len(part):
                raise DataError(f"{name} holds no sale", hint="Choose boundaries that leave a longer period for it.")
        hedonic = fit_pooled(train.frame, log_price, slopes=self.slopes)
        resales = fit_resales(train, log_price, hedonic, self.least_pairs)
        estimate, strata = _estimate(valid, hedonic, resales)
        intervals = fit_intervals(np.exp(estimate), valid.truth(), strata)
        return FittedHierarchical(self, hedonic, resales, intervals, informed)


def _estimate(subjects: FeatureMatrix, hedonic: PooledHedonic, resales: Resales) -> tuple[Floats, list[str]]:
    """Return ln price and stratum of each subject."""
    both = estimates(subjects, hedonic, resales.index)
    estimate, counted = combine(subjects.frame, both, resales.weights)
    names = subjects.frame["property_class"].to_list()
    return estimate, [f"{name}, resold" if again else name for name, again in zip(names, counted, strict=True)]
