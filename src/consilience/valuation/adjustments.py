"""Comparables' prices brought to a subject's cutoff and attributes, for packets that declare to show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

import polars as pl
from pydantic import JsonValue

from consilience.errors import DataError, LeakError
from consilience.valuation.baselines.adjusted import AdjustedComps
from consilience.valuation.features import FeatureMatrix

FITTED_ON: Final = ("train", "validation")


@dataclass(frozen=True)
class AdjustedPrices:
    """Adjusted prices of the comparables of some subjects.

    Attributes:
        prices: Subject → comparable → ``indexed_price, adjusted_price``, whole units of the currency.
        information_date: The last day of the sales that taught the prices of differences.
    """

    prices: Mapping[str, Mapping[str, Mapping[str, JsonValue]]]
    information_date: date

    @property
    def note(self) -> str:
        """What a packet says of them."""
        return (
            "indexed_price is a comparable's price brought to the cutoff by an index of the sales known by then; "
            "adjusted_price is that, brought to the subject's attributes by what differences were worth in sales up to "
            f"{self.information_date}."
        )

    def of(self, tx_id: str) -> Mapping[str, Mapping[str, JsonValue]]:
        """Return the prices of one subject's comparables.

        Raises:
            DataError: The subject has none.
        """
        if tx_id not in self.prices:
            raise DataError(f'sale "{tx_id}" has no adjusted prices', hint="Adjust every subject that is asked about.")
        return self.prices[tx_id]


def adjust_comparables(matrix: FeatureMatrix, subjects: Sequence[str]) -> AdjustedPrices:
    """Return the adjusted prices of the comparables of some subjects, by differences priced on train alone.

    The index is as of each subject's cutoff; what an attribute is worth is frozen at the end of train.

    Args:
        matrix: All sales of the table.
        subjects: Ids of the sales to adjust for, valued after the end of train.

    Raises:
        DataError: Train or validation is too small, or a subject is not in the table.
        LeakError: A subject is valued before the end of train: its own price may stand behind the adjustments.

    Example:
        >>> AdjustedPrices({"t1": {"t0": {"indexed_price": 101}}}, date(2020, 1, 1)).of("t1")["t0"]
        {'indexed_price': 101}
    """
    train, valid = (matrix.part(name) for name in FITTED_ON)
    chosen = matrix.where(pl.col("tx_id").is_in(list(subjects))).blind()
    missing = set(subjects) - set(chosen.frame["tx_id"])
    if missing:
        raise DataError(f'no sale "{min(missing)}" in the analytic table', hint="Take a tx_id of that table.")
    fitted = AdjustedComps().fit(train, valid)
    last = train.frame["available_date"].max()
    if not isinstance(last, date):
        raise DataError("train holds no sale", hint="Choose boundaries that leave a longer train period.")
    early = chosen.frame.filter(pl.col("cutoff") < last)
    if early.height:
        raise LeakError(
            f'sale "{early["tx_id"][0]}" is valued at {early["sale_date"][0]}, before the sales up to {last} that '
            "teach the adjustments",
            hint="Adjust comparables for sales after train only.",
        )
    found = fitted.adjust(chosen)
    ids = chosen.sales["tx_id"]
    prices: dict[str, dict[str, dict[str, JsonValue]]] = {}
    for row, (tx_id, positions) in enumerate(zip(chosen.frame["tx_id"], chosen.comparables.rows, strict=True)):
        prices[tx_id] = {
            ids[position]: {
                "indexed_price": round(float(found.indexed[row, k])),
                "adjusted_price": round(float(found.adjusted[row, k])),
            }
            for k, position in enumerate(positions[positions >= 0].tolist())
        }
    return AdjustedPrices(prices, last)
