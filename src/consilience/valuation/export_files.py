"""Evidence exports in and out: a run's files are read; JSON for machines, CSV for sheets and a page are written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from consilience.core.canonical import sha256_hex
from consilience.errors import ConfigError, DataError, reason
from consilience.experiments.predictions import read_predictions
from consilience.experiments.storage import write_whole
from consilience.registry import nearest
from consilience.reports.tables import ABSENT, Column, Record, Table, percent
from consilience.valuation.exports import AvmExport, Subject
from consilience.valuation.packets import EVIDENCE_FIELDS

CARD = "card.json"
PROTOCOL = "protocol.json"
OF_CARD = ("arm", "as_of", "parameters", "features", "information_date", "period", "hashes")
OF_PLAN = ("application", "arm", "treatment", "protocol", "committee", "tier", "models", "split", "seed")


def read_subject(folder: Path, *, arm: str | None = None, aggregation: str | None = None) -> Subject:
    """Return a run as an export tells of it: of a baseline by its card, of agents by its protocol.

    Args:
        folder: Folder of the run, with ``predictions.parquet``.
        arm: Which arm, where the run holds several.
        aggregation: Which rule of aggregation, where the run holds several.

    Raises:
        ConfigError: The run has no such arm or rule, or several and none was chosen.
        DataError: A file is missing or cannot be read.
    """
    predictions = read_predictions(folder / "predictions.parquet")
    for column, wanted in (("arm", arm), ("aggregation", aggregation)):
        known = predictions[column].unique().sort().to_list()
        if wanted is None and len(known) > 1:
            raise ConfigError(
                f"run {folder.name} has several of {column}: {', '.join(known)}", hint=f"Choose one with --{column}."
            )
        if wanted is not None and wanted not in known:
            raise ConfigError(f'run {folder.name} has no {column} "{wanted}"', hint=nearest(wanted, known))
        predictions = predictions if wanted is None else predictions.filter(pl.col(column) == wanted)
    if (folder / CARD).is_file():
        card = _json(folder / CARD)
        features = tuple(card.get("features", ()))
        return Subject(folder.name, predictions, features, {name: card.get(name) for name in OF_CARD})
    plan = _json(folder / PROTOCOL).get("plan", {})
    shown = EVIDENCE_FIELDS.subject["P"] | EVIDENCE_FIELDS.amounts
    configuration = {name: plan.get(name) for name in OF_PLAN}
    configuration["protocol_sha256"] = sha256_hex((folder / PROTOCOL).read_bytes())
    return Subject(folder.name, predictions, tuple(sorted(shown)), configuration)


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {reason(error)}", hint="Make the run again.") from error
    if not isinstance(found, dict):
        raise DataError(f"{path} holds no object", hint="Make the run again.")
    return found


def write_export(export: AvmExport, folder: Path) -> dict[str, str]:
    """Write ``export.json``, ``export.md``, ``values.csv``, ``retest.csv`` and ``subgroups.csv``; return their SHA-256.

    Raises:
        DataError: The folder cannot be written.
    """
    texts = {
        "values.csv": _values(export.values, "Values.").to_csv(),
        "retest.csv": _retest(export).to_csv(),
        "subgroups.csv": _subgroups(export.subgroups).to_csv(),
        "export.md": markdown(export),
    }
    hashes = {name: sha256_hex(text.encode()) for name, text in texts.items()}
    document = {**export.summary, "subgroups": list(export.subgroups), "files": hashes}
    texts["export.json"] = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    for name, text in texts.items():
        write_whole(folder / name, partial(Path.write_bytes, data=text.encode()))
    return hashes | {"export.json": sha256_hex(texts["export.json"].encode())}


def markdown(export: AvmExport) -> str:
    """Return the export as a page for reviewers."""
    told, data = export.summary, export.summary["data"]
    accuracy, band, index = told["accuracy"], told["confidence"], told["index"]
    lines = [
        f"# Evidence about {told['arm']}",
        "",
        f"**{told['disclaimer']}**",
        "",
        *(["**The sales or the answers are made up: nothing here tells of a market.**", ""] if told["made_up"] else []),
        (
            f"Run `{told['run_id']}`; sales valued from {told['valuations']['first']} to {told['valuations']['last']}; "
            f"parameters know sales until {told['information_date'] or 'an unknown day'}."
        ),
        "",
        "## Accuracy",
        "",
        f"- hit rate: {percent(accuracy['hit_rate'])} of {accuracy['sales']:,} sales have a value",
        (
            f"- median absolute error {percent(accuracy['mdape'])}; within 10 %: {percent(accuracy['ppe10'])}; "
            f"median of value / price {_number(accuracy['median_ratio'])}"
        ),
        "",
        "## Confidence per value",
        "",
        _band_line(band),
        "",
        "## Against an index",
        "",
        _index_line(index),
        "",
        "## Accuracy by income of the area",
        "",
        _subgroups(export.subgroups).to_markdown(),
        "## Sample to be tested again",
        "",
        _retest(export).to_markdown(),
        "## Data and configuration",
        "",
        f"- source `{data['source_file']}` ({data['adapter']}), SHA-256 `{data['source_sha256']}`",
        f"- data manifest, SHA-256 `{told['data_sha256']}`",
        f"- configuration, SHA-256 `{told['configuration_sha256']}`",
        f"- one snapshot later than the sales: {', '.join(told['later_snapshots']) or 'none'}",
        (
            f"- features: {', '.join(told['features'])}; none stands for an attribute of persons by its name, and the "
            "income of an area is used for the table above whether or not the model reads it"
        ),
        "",
    ]
    return "\n".join(lines)


def _retest(export: AvmExport) -> Table:
    told = export.summary["retest"]
    return _values(
        export.retest, f"{told['drawn']} of {told['of']} valued sales, drawn at random (seed {told['seed']})."
    )


def _values(records: Sequence[Record], caption: str) -> Table:
    columns = (
        Column("sale", lambda r: str(r["item_id"]), numeric=False),
        Column("valued at", lambda r: str(r["sale_date"]), numeric=False),
        Column("value", lambda r: _money(r["value"])),
        Column(
            "68.3 % band", lambda r: ABSENT if r["fsd"] is None else f"{_money(r['low_683'])} – {_money(r['high_683'])}"
        ),
        Column("FSD", lambda r: percent(_float(r["fsd"]))),
        Column("price", lambda r: _money(r["price"])),
        Column("value / price", lambda r: _number(r["ratio"])),
    )
    return Table(caption, columns, tuple(records))


def _subgroups(records: Sequence[Record]) -> Table:
    columns = (
        Column("income of the area", lambda r: str(r["income_tercile"]), numeric=False),
        Column("sales", lambda r: f"{r['sales']:,}"),
        Column("hit rate", lambda r: percent(_float(r["hit_rate"]))),
        Column("median error", lambda r: percent(_float(r["mdape"]))),
        Column("within 10 %", lambda r: percent(_float(r["ppe10"]))),
        Column("value / price", lambda r: _number(r["median_ratio"])),
        Column("90 % coverage", lambda r: percent(_float(r["coverage_90"]))),
    )
    caption = "Terciles of the median income of the dissemination area over all sales of the table."
    if [record["income_tercile"] for record in records] == ["unknown"]:
        caption = "The data hold no income of areas: accuracy cannot be told apart by it."
    return Table(caption, columns, tuple(records))


def _band_line(band: Mapping[str, Any] | None) -> str:
    if band is None:
        return "The run gives no quantiles: there is no confidence per value."
    held = band["within"]
    return (
        f"The forecast standard deviation (FSD) is half the width of the 68.3 % band as a share of the value: median "
        f"{percent(band['fsd']['q50'])}. The band held {percent(held['value'])} of {held['n']:,} prices (95 % interval "
        f"{percent(held['low'])} to {percent(held['high'])})."
    )


def _index_line(index: Mapping[str, Any] | None) -> str:
    if index is None:
        return "No run of prior price times index was given to compare with."
    return (
        f"Prior price times index (run `{index['run_id']}`) values {percent(index['hit_rate'])} of {index['items']:,} "
        f"sales. On the {index['both']:,} that both value, the median absolute error is {percent(index['mdape'])} "
        f"against the index's {percent(index['index_mdape'])}."
    )


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _money(value: Any) -> str:
    return ABSENT if value is None else f"{float(value):,.0f}"


def _number(value: Any) -> str:
    return ABSENT if value is None else f"{float(value):.3f}"
