"""Attributes as regressors: known values, declared stand-ins for unknown ones, and places as cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from consilience.valuation.baselines.base import Floats
from consilience.valuation.comparables import Ints

HEDONIC: Final = ("ln_floor_area", "ln_land_area", "age", "age_squared", "storeys", "n_dwellings", "quality")
"""Attributes that the hedonic regression prices; ``age_squared`` is in hundreds of square years."""

SMALL_CELL: Final = 10
"""A municipality and class with fewer sales in train shares one effect with the other small ones of its class."""

UNKNOWN: Final = "(unknown)"
OTHERS: Final = "(others)"


def attributes(sales: pl.DataFrame, names: tuple[str, ...] = HEDONIC) -> Floats:
    """Return attributes of sales of an analytic table, shape ``(n, names)``, NaN where unknown.

    Example:
        >>> sale = pl.DataFrame({"floor_area_m2": [100.0], "sale_date": ["2015-03-01"], "year_built": [1995]})
        >>> sale = sale.with_columns(pl.col("sale_date").str.to_date())
        >>> attributes(sale, ("age", "age_squared")).tolist()
        [[20.0, 4.0]]
    """
    age = (pl.col("sale_date").dt.year() - pl.col("year_built")).cast(pl.Float64)
    made = {
        "ln_floor_area": pl.col("floor_area_m2").log(),
        "ln_land_area": pl.col("land_area_m2").log(),
        "age": age,
        "age_squared": age**2 / 100,
    }
    frame = sales.select(made.get(name, pl.col(name)).cast(pl.Float64).alias(name) for name in names)
    return frame.fill_null(float("nan")).to_numpy()


def features(frame: pl.DataFrame, names: tuple[str, ...] = HEDONIC) -> Floats:
    """Return the same attributes of the rows of a feature matrix, NaN where unknown."""
    made = {"age_squared": pl.col("age") ** 2 / 100}
    chosen = frame.select(made.get(name, pl.col(name)).alias(name) for name in names)
    return chosen.fill_null(float("nan")).to_numpy(writable=True)


@dataclass(frozen=True)
class Filling:
    """What stands for unknown attributes: the median of train, and an indicator where train lacked some.

    The median is that of the class: one for all classes would lie off centre in each of them, and what is off centre
    within a cell biases the prices of the attributes.

    Attributes:
        order: Attributes as they are given to `fill`.
        names: Those known for some sale of train.
        medians: Median of each of ``names``, over all classes, in train.
        of_class: The same per class, where train knows it.
        flagged: Those that some sale of train lacks; each has an indicator ``<name>_unknown``.

    Example:
        >>> values = np.array([[1.0, np.nan], [np.nan, np.nan], [3.0, np.nan]])
        >>> filling = fit_filling(values, ("storeys", "quality"), ["house", "house", "condo"])
        >>> filling.columns, filling.absent, filling.fill(np.array([[np.nan, 7.0]]), ["house"]).tolist()
        (('storeys', 'storeys_unknown'), ('quality',), [[1.0, 1.0]])
    """

    order: tuple[str, ...]
    names: tuple[str, ...]
    medians: tuple[float, ...]
    of_class: dict[str, tuple[float | None, ...]]
    flagged: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the filled columns: attributes, then indicators."""
        return (*self.names, *(f"{name}_unknown" for name in self.flagged))

    @property
    def absent(self) -> tuple[str, ...]:
        """Attributes that no sale of train has; they price nothing."""
        return tuple(name for name in self.order if name not in self.names)

    def fill(self, values: Floats, classes: Sequence[str | None]) -> Floats:
        """Return attributes with unknown ones filled, then the indicators.

        Args:
            values: Shape ``(n, order)``, NaN where unknown.
            classes: Property class of each row.
        """
        known = values[:, [self.order.index(name) for name in self.names]]
        centre = np.tile(np.array(self.medians), (len(values), 1))
        kinds = np.asarray(classes, dtype=object)
        for name, row in self.of_class.items():
            own = [self.medians[k] if value is None else value for k, value in enumerate(row)]
            centre[kinds == name] = own
        flags = np.isnan(values[:, [self.order.index(name) for name in self.flagged]]).astype(np.float64)
        return np.column_stack([np.where(np.isnan(known), centre, known), flags])

    def record(self) -> dict[str, Any]:
        """Return the stand-ins as JSON."""
        return {
            "medians": dict(zip(self.names, self.medians, strict=True)),
            "medians_by_class": {
                name: dict(zip(self.names, row, strict=True)) for name, row in sorted(self.of_class.items())
            },
            "indicators": list(self.flagged),
            "absent": list(self.absent),
        }


def fit_filling(values: Floats, names: tuple[str, ...], classes: Sequence[str | None]) -> Filling:
    """Return what stands for unknown attributes, from the sales of train (shape ``(n, names)``)."""
    unknown = np.isnan(values)
    there = [k for k in range(len(names)) if not unknown[:, k].all()]
    kinds = np.asarray(classes, dtype=object)

    def median(k: int, rows: npt.NDArray[np.bool_]) -> float | None:
        known = values[rows & ~unknown[:, k], k]
        return float(np.median(known)) if known.size else None

    return Filling(
        order=names,
        names=tuple(names[k] for k in there),
        medians=tuple(float(np.nanmedian(values[:, k])) for k in there),
        of_class={
            name: tuple(median(k, kinds == name) for k in there)
            for name in sorted({kind for kind in classes if kind is not None})
        },
        flagged=tuple(names[k] for k in there if unknown[:, k].any()),
    )


@dataclass(frozen=True)
class Cells:
    """Municipality × class cells, and where a sale of a place unknown to train belongs.

    Attributes:
        labels: Cell labels, sorted; ``municipality / class``.
    """

    labels: tuple[str, ...]

    def codes(self, frame: pl.DataFrame) -> Ints:
        """Return the cell of each row; a small or new place is its class's `OTHERS`, -1 where there is none."""
        code_of = pl.DataFrame({"cell": list(self.labels)}, schema={"cell": pl.String}).with_row_index("code")
        table = frame.select(cell=_label(pl.col("municipality")), rest=_label(pl.lit(OTHERS)))
        for name in ("cell", "rest"):
            table = table.join(
                code_of.rename({"cell": name, "code": f"{name}_code"}), on=name, how="left", maintain_order="left"
            )
        chosen = pl.coalesce("cell_code", "rest_code").cast(pl.Int64).fill_null(-1)
        return table.select(chosen).to_series().to_numpy()


def fit_cells(frame: pl.DataFrame) -> Cells:
    """Return the cells of the sales of train: places with `SMALL_CELL` sales of a class, else the class's others."""
    label = frame.select(cell=_label(pl.col("municipality")), rest=_label(pl.lit(OTHERS)))
    counted = label.with_columns(size=pl.len().over("cell"))
    chosen = counted.select(pl.when(pl.col("size") >= SMALL_CELL).then("cell").otherwise("rest"))
    return Cells(tuple(chosen.to_series().unique().sort()))


def _label(place: pl.Expr) -> pl.Expr:
    return pl.format("{} / {}", place.fill_null(UNKNOWN), pl.col("property_class").fill_null(UNKNOWN))
