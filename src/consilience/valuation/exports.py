"""Evidence about an automated valuation model: what reviewers of quality controls ask for, from one run.

Made with the US quality-control rule (89 FR 64538) and the European standards for statistical valuation in mind. It is
no legal advice and no statement of compliance, and every export says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from consilience.core.canonical import canonical_json, sha256_hex
from consilience.errors import DataError, PlanError
from consilience.experiments.predictions import QUANTILES, SIMULATED_PREFIX
from consilience.reports.tables import Record
from consilience.scoring.summaries import share, summarise_points
from consilience.valuation.schema import Manifest

DISCLAIMER: Final = (
    "This export is evidence for a review of quality controls over automated valuation (US rule 89 FR 64538; European "
    "standards for statistical valuation). It is not legal advice, no statement of compliance and no appraisal."
)
PROTECTED: Final = (
    "race",
    "ethnic",
    "ethnicity",
    "colour",
    "color",
    "religion",
    "sex",
    "gender",
    "orientation",
    "origin",
    "nationality",
    "citizenship",
    "language",
    "disability",
    "marital",
    "familial",
    "children",
    "owner",
    "buyer",
    "seller",
    "applicant",
    "borrower",
)
"""Words in a feature's name that stand for an attribute of persons; no feature may carry one."""

GROUPS: Final = ("lowest", "middle", "highest", "unknown")
NOMINAL: Final = 0.683
"""Share of prices that a band of one forecast standard deviation is made to hold."""

RETEST: Final = 50
_LEVELS_Z: Final = (-1.6448536269514722, -0.6744897501960817, 0.0, 0.6744897501960817, 1.6448536269514722)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Subject:
    """The run an export is about.

    Attributes:
        run_id: Its id.
        predictions: One row per item, in the common frame.
        features: Names of what the model reads.
        configuration: What decides its values, as JSON: parameters, data and code hashes, or a run's protocol.
    """

    run_id: str
    predictions: pl.DataFrame
    features: tuple[str, ...]
    configuration: Mapping[str, Any]


@dataclass(frozen=True)
class AvmExport:
    """The evidence of one run.

    Attributes:
        summary: Everything that is no table, as JSON.
        values: One record per subject: value, 68.3 % band, forecast standard deviation, price.
        retest: The random sample to be tested again by hand.
        subgroups: One record per tercile of the area's income.
    """

    summary: dict[str, Any]
    values: tuple[Record, ...]
    retest: tuple[Record, ...]
    subgroups: tuple[Record, ...]


def refuse_protected(features: Sequence[str]) -> None:
    """Pass in silence if no feature's name carries a word of `PROTECTED`.

    Raises:
        PlanError: One does.

    Example:
        >>> refuse_protected(["ln_floor_area", "da_median_income"])
        >>> refuse_protected(["owner_age"])
        Traceback (most recent call last):
            ...
        consilience.errors.PlanError: feature "owner_age" stands for an attribute of persons ("owner"). Take it out...
    """
    for name in features:
        for word in name.casefold().replace("-", "_").replace(" ", "_").split("_"):
            if word in PROTECTED:
                raise PlanError(
                    f'feature "{name}" stands for an attribute of persons ("{word}")',
                    hint="Take it out of the model: no protected attribute is ever a feature.",
                )


def confidence(predictions: pl.DataFrame) -> pl.DataFrame:
    """Return the predictions with ``low_683``, ``high_683`` and ``fsd``, null without quantiles.

    The 68.3 % band reaches from the 15.87 to the 84.13 % quantile, found between the five on the scale of ln price and
    normal scores; ``fsd`` is half its width as a share of the value.

    Example:
        >>> row = {"point": 100.0, "q05": 80.0, "q25": 95.0, "q50": 100.0, "q75": 105.0, "q95": 125.0}
        >>> confidence(pl.DataFrame([row])).select(pl.col("low_683", "high_683", "fsd").round(3)).row(0)
        (89.678, 111.324, 0.108)
    """
    logs = np.log(predictions.select(pl.col(QUANTILES).cast(pl.Float64)).to_numpy())
    share_up = (1 + _LEVELS_Z[1]) / (_LEVELS_Z[1] - _LEVELS_Z[0])
    low = np.exp(logs[:, 1] - share_up * (logs[:, 1] - logs[:, 0]))
    high = np.exp(logs[:, 3] + share_up * (logs[:, 4] - logs[:, 3]))
    banded = predictions.with_columns(low_683=pl.Series(low).fill_nan(None), high_683=pl.Series(high).fill_nan(None))
    return banded.with_columns(fsd=(pl.col("high_683") - pl.col("low_683")) / (2 * pl.col("point")))


def make_export(
    subject: Subject,
    sales: pl.DataFrame,
    manifest: Manifest,
    *,
    seed: int,
    retest: int = RETEST,
    index: Subject | None = None,
) -> AvmExport:
    """Return the evidence of one run over sales whose prices are known.

    Args:
        subject: The run.
        sales: The analytic table: prices, and the areas' incomes where the data hold them.
        manifest: The table's manifest.
        seed: Decides which sales are to be tested again.
        retest: How many of the valued subjects it holds (all of them if they are fewer).
        index: A run of prior price times index over the same items, to be compared with.

    Raises:
        PlanError: A feature stands for an attribute of persons.
        DataError: The run has several predictions per item or none at all, an item is no sale of the table, or the
            index has no item in common.
    """
    refuse_protected(subject.features)
    frame = _with_truth(subject, sales)
    valued = frame.filter(pl.col("point").is_not_null())
    if not valued.height:
        raise DataError(f"run {subject.run_id} values no sale", hint="Export a run with answers.")
    rows = np.sort(np.random.default_rng(seed).permutation(valued.height)[: min(retest, valued.height)])
    drawn = valued[rows]
    subgroups = [{"income_tercile": name} | _accuracy(part) for name, part in _by_income(frame, sales)]
    simulated = subject.run_id.startswith(SIMULATED_PREFIX)
    data = manifest.model_dump(mode="json")
    configuration = dict(subject.configuration)
    summary = {
        "disclaimer": DISCLAIMER,
        "run_id": subject.run_id,
        "arm": frame["arm"][0],
        "made_up": simulated,
        "valuations": {"first": str(frame["sale_date"].min()), "last": str(frame["sale_date"].max())},
        "information_date": _text(frame["information_date"].max()),
        "accuracy": _accuracy(frame),
        "confidence": _confidence(valued),
        "index": None if index is None else _against(frame, index, sales),
        "retest": {"seed": seed, "drawn": drawn.height, "of": valued.height, "accuracy": _accuracy(drawn)},
        "income": {
            "known": int(frame["da_median_income"].is_not_null().sum()),
            "sales": frame.height,
            "of": "the dissemination area, terciles over the table's sales",
        },
        "features": list(subject.features),
        "protected_features": [],
        "configuration": configuration,
        "configuration_sha256": sha256_hex(canonical_json(configuration)),
        "data": data,
        "data_sha256": sha256_hex(canonical_json(data)),
        "later_snapshots": list(manifest.later_snapshots()),
    }
    return AvmExport(
        summary=summary,
        values=_records(frame),
        retest=_records(drawn),
        subgroups=tuple(subgroups),
    )


def _with_truth(subject: Subject, sales: pl.DataFrame) -> pl.DataFrame:
    predictions = subject.predictions
    twice = predictions.filter(pl.col("item_id").is_duplicated())
    if twice.height or not predictions.height:
        what = f'has several predictions of "{twice["item_id"][0]}"' if twice.height else "has no predictions"
        raise DataError(f"run {subject.run_id} {what}", hint="Choose one arm and aggregation of one run.")
    known = sales.select("tx_id", "sale_date", "currency", "da_median_income", paid="price")
    frame = confidence(predictions).join(known, left_on="item_id", right_on="tx_id", how="left", maintain_order="left")
    foreign = frame.filter(pl.col("paid").is_null())
    if foreign.height:
        raise DataError(
            f'item "{foreign["item_id"][0]}" of run {subject.run_id} is no sale of the table',
            hint="Export a run over this project's sales.",
        )
    return frame


def _accuracy(frame: pl.DataFrame) -> dict[str, Any]:
    """Return hit rate, accuracy and coverage of some sales; None where nothing can be said."""
    valued = frame.filter(pl.col("point").is_not_null())
    told: dict[str, Any] = {
        "sales": frame.height,
        "valued": valued.height,
        "hit_rate": valued.height / frame.height if frame.height else None,
        **dict.fromkeys(("mdape", "ppe10", "ppe20", "median_ratio", "coverage_90", "coverage_low", "coverage_high")),
    }
    if valued.height:
        point, paid = valued["point"].to_numpy(), valued["paid"].to_numpy()
        summary = summarise_points(estimate=point, truth=paid)
        told |= {"mdape": summary.mdape, "ppe10": summary.ppe10, "ppe20": summary.ppe20}
        told["median_ratio"] = float(np.median(point / paid))
    banded = valued.filter(pl.col("q05").is_not_null())
    if banded.height:
        held = share(hits=banded.select(pl.col("paid").is_between("q05", "q95")).to_series().to_numpy())
        told |= {"coverage_90": held.value, "coverage_low": held.low, "coverage_high": held.high}
    return told


def _confidence(valued: pl.DataFrame) -> dict[str, Any] | None:
    banded = valued.filter(pl.col("fsd").is_not_null())
    if not banded.height:
        return None
    held = share(hits=banded.select(pl.col("paid").is_between("low_683", "high_683")).to_series().to_numpy())
    fsd = banded["fsd"]
    return {
        "sales": banded.height,
        "nominal": NOMINAL,
        "within": asdict(held),
        "fsd": {
            name: float(fsd.quantile(at, "linear") or 0.0) for name, at in (("q25", 0.25), ("q50", 0.5), ("q75", 0.75))
        },
    }


def _against(frame: pl.DataFrame, index: Subject, sales: pl.DataFrame) -> dict[str, Any]:
    other = _with_truth(index, sales).select("item_id", index_value="point")
    both = frame.join(other, on="item_id", how="inner", maintain_order="left")
    if not both.height:
        raise DataError(
            f"run {index.run_id} has no item in common with the run exported", hint="Predict the same items with it."
        )
    told: dict[str, Any] = {
        "run_id": index.run_id,
        "items": both.height,
        "hit_rate": 1 - both["index_value"].null_count() / both.height,
        "both": 0,
        "mdape": None,
        "index_mdape": None,
    }
    paired = both.filter(pl.col("point").is_not_null() & pl.col("index_value").is_not_null())
    if paired.height:
        paid = paired["paid"].to_numpy()
        told["both"] = paired.height
        for name, column in (("mdape", "point"), ("index_mdape", "index_value")):
            told[name] = summarise_points(estimate=paired[column].to_numpy(), truth=paid).mdape
    return told


def _by_income(frame: pl.DataFrame, sales: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return the sales by tercile of their area's income, the unknown ones apart."""
    income = sales["da_median_income"].drop_nulls()
    if not len(income):
        return [(GROUPS[-1], frame)]
    low, high = (income.quantile(at, "linear") for at in (1 / 3, 2 / 3))
    own = pl.col("da_median_income")
    group = pl.when(own.is_null()).then(3).when(own <= low).then(0).when(own <= high).then(1).otherwise(2)
    marked = frame.with_columns(group=group)
    return [
        (name, part) for number, name in enumerate(GROUPS) if (part := marked.filter(pl.col("group") == number)).height
    ]


def _records(frame: pl.DataFrame) -> tuple[Record, ...]:
    chosen = frame.select(
        "item_id",
        pl.col("sale_date").cast(pl.String),
        "status",
        "currency",
        "low_683",
        "high_683",
        "fsd",
        value="point",
        price="paid",
        ratio=pl.col("point") / pl.col("paid"),
    )
    return tuple(chosen.iter_rows(named=True))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
