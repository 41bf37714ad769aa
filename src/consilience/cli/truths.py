"""What items turned out to be: from the project's tables of sales and from files of questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from consilience.cli.place import Place
from consilience.errors import DataError

if TYPE_CHECKING:
    import polars as pl

    from consilience.reports.scope import Source
    from consilience.valuation.schema import Manifest


def truths_of(place: Place, questions: Path | None, asked: set[str]) -> tuple[pl.DataFrame, list[str], list[Source]]:
    """Return ``item_id, truth, option, cluster`` of the items asked, what must be said of their sources, and these."""
    import polars as pl  # noqa: PLC0415 - heavy

    from consilience.core.canonical import sha256_hex  # noqa: PLC0415 - the same
    from consilience.experiments.questions import read_questions  # noqa: PLC0415 - the same
    from consilience.reports.scope import Source  # noqa: PLC0415 - the same
    from consilience.valuation.schema import read_analytic, read_manifest  # noqa: PLC0415 - the same

    known: list[pl.DataFrame] = []
    notes: list[str] = []
    sources: list[Source] = []
    for study in (place.project, place.town):
        if not study.analytic.is_file():
            continue
        sales = read_analytic(study.analytic).filter(pl.col("tx_id").is_in(asked))
        known.append(
            sales.select(item_id="tx_id", truth="price", option=None, cluster="parcel_id").cast({"option": pl.String})
        )
        made = read_manifest(study.analytic)
        later = made.later_snapshots()
        if sales.height:
            sources.append(_source_of(made, sales))
        if later and sales.height:
            notes.append(f"These columns are one snapshot later than the sales: {', '.join(later)}.")
    if questions is not None:
        items = read_questions(questions)
        sources.append(Source("questions", questions.name, sha256_hex(questions.read_bytes()), len(items)))
        rows = [
            {
                "item_id": item.question.id,
                "truth": None if isinstance(item.truth, str) else float(item.truth),
                "option": item.truth if isinstance(item.truth, str) else None,
                "cluster": item.cluster,
            }
            for item in items
            if item.truth is not None
        ]
        texts = dict.fromkeys(("item_id", "option", "cluster"), pl.String)
        known.append(
            pl.DataFrame(rows, schema=texts | {"truth": pl.Float64}).select("item_id", "truth", "option", "cluster")
        )
    if not known:
        raise DataError(
            f"there is no truth to compare with: no table in {place.project.analytic}",
            hint="Build the table the items were drawn from, or give the questions: --questions FILE.jsonl.",
        )
    return pl.concat(known).unique(), notes, sources


def _source_of(made: Manifest, sales: pl.DataFrame) -> Source:
    """Return where sales come from, and the places they lie in."""
    from consilience.reports.scope import Source  # noqa: PLC0415 - heavy

    words = {"region": made.region.region, "municipality": made.region.municipality}
    places = tuple((word, tuple(sales[column].drop_nulls().unique().sort())) for column, word in words.items())
    return Source(
        made.adapter,
        made.source_file,
        made.source_sha256,
        made.rows,
        made_up=made.adapter == "synthetic",
        places=places,
    )


def numbers_of(place: Place, questions: Path | None, asked: set[str]) -> dict[str, float]:
    """Return the truths that are numbers, by item; a question with options has none."""
    known = truths_of(place, questions, asked)[0].drop_nulls("truth")
    return dict(zip(known["item_id"].to_list(), known["truth"].to_list(), strict=True))
