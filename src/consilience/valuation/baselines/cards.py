"""Model cards: what a fitted baseline rests on, as JSON for machines and as Markdown for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any, cast

import polars as pl

from consilience.valuation.baselines.base import Baseline, FittedBaseline
from consilience.valuation.schema import Manifest

CAVEAT = "An estimate by a statistical model; no appraisal and no advice."


def model_card(
    baseline: Baseline, fitted: FittedBaseline, *, manifest: Manifest, periods: pl.DataFrame, hashes: Mapping[str, str]
) -> dict[str, Any]:
    """Return the card of a fitted baseline, as JSON.

    Args:
        baseline: What was fitted; its docstring says what it is.
        fitted: The result.
        manifest: Of the analytic table.
        periods: ``split, sales, first, last`` of the splits used.
        hashes: SHA-256 by name: of the table, the splits, the model and its files.
    """
    kind = type(baseline)
    return {
        "arm": baseline.name,
        "what": " ".join((kind.__doc__ or "").split("\n\n")[0].split()),
        "data": {
            "adapter": manifest.adapter,
            "source_file": manifest.source_file,
            "sales": manifest.rows,
            "currency": manifest.currency,
            "later_snapshots": list(manifest.later_snapshots()),
            "exclusions": dict(manifest.exclusions),
        },
        "period": {
            split: {"sales": sales, "first": first.isoformat(), "last": last.isoformat()}
            for split, sales, first, last in periods.select("split", "sales", "first", "last").iter_rows()
        },
        "parameters": parameters(baseline),
        "features": list(fitted.record().get("features", [])),
        "information_date": fitted.information_date.isoformat(),
        "hashes": dict(hashes),
        "caveat": CAVEAT,
    }


def periods_of(frame: pl.DataFrame, *splits: str) -> pl.DataFrame:
    """Return ``split, sales, first, last`` of the splits that hold sales, in the order given.

    Example:
        >>> frame = pl.DataFrame({"split": ["train"], "sale_date": [date(2015, 3, 1)]})
        >>> periods_of(frame, "train", "test").rows()
        [('train', 1, datetime.date(2015, 3, 1), datetime.date(2015, 3, 1))]
    """
    found = frame.group_by("split").agg(sales=pl.len(), first=pl.col("sale_date").min(), last=pl.col("sale_date").max())
    order = pl.DataFrame({"split": list(splits)}, schema={"split": pl.String})
    return order.join(found, on="split", how="inner", maintain_order="left")


def card_markdown(card: Mapping[str, Any]) -> str:
    """Return a card as Markdown.

    Example:
        >>> print(card_markdown({"arm": "D_index", "what": "A test.", "hashes": {}, "data": {"sales": 3}}))
        # D_index
        <BLANKLINE>
        A test.
        <BLANKLINE>
        ## Data
        <BLANKLINE>
        - sales: 3
        <BLANKLINE>
    """
    lines = [f"# {card['arm']}", "", str(card["what"]), ""]
    single = {key: value for key, value in card.items() if key not in {"arm", "what"} and not _nested(value)}
    for key, value in single.items():
        lines += [f"- {_title(key).lower()}: {_shown(value)}"]
    if single:
        lines.append("")
    for key, value in card.items():
        if not _nested(value) or not value:
            continue
        lines += [f"## {_title(key)}", ""]
        pairs = value.items() if isinstance(value, Mapping) else ((None, entry) for entry in value)
        lines += [f"- {_shown(entry)}" if name is None else f"- {name}: {_shown(entry)}" for name, entry in pairs]
        lines.append("")
    return "\n".join(lines)


def parameters(baseline: Baseline) -> dict[str, Any]:
    """Return the parameters of a baseline as JSON: its fields.

    Example:
        >>> from consilience.valuation.baselines.imported import ImportedPredictions
        >>> parameters(ImportedPredictions(Path("elsewhere/avm.csv"), date(2015, 2, 14)))
        {'source': 'avm.csv', 'information': '2015-02-14'}
    """
    return {field.name: _plain(getattr(baseline, field.name)) for field in fields(cast("Any", baseline))}


def _nested(value: object) -> bool:
    return isinstance(value, Mapping | list)


def _title(key: str) -> str:
    return key.replace("_", " ").capitalize()


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(entry)}" for name, entry in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "none"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "none" if value is None else str(value)


def _plain(value: object) -> Any:
    """Return a parameter as JSON; a file by its name, since its folder is no fact about the model."""
    if isinstance(value, Baseline):
        return {value.name: parameters(value)}
    if isinstance(value, Path):
        return value.name
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return value
