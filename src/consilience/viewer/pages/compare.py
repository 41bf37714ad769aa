"""Runs beside each other on the items they share."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

from markupsafe import Markup

from consilience.errors import ConsilienceError
from consilience.experiments.looks import COUNTED
from consilience.reports.pictures.canvas import Picture, rendered
from consilience.viewer.pages.runs import Row, row_of
from consilience.viewer.shown import page
from consilience.viewer.study import Compared, Study

SHOWN: Final = ("main", "yes_no", "choices", "contrasts", "exploration", "rounds")
"""Tables of a report that compare arms; all others are in the report."""
DRAWN: Final = ("forest", "skill-cost")
_LISTED: Final = 200
_DRAWING = threading.Lock()
"""matplotlib draws one picture at a time."""


def compare_page(study: Study, chosen: Sequence[str]) -> str:
    """Return the page that compares runs, or asks which."""
    rows = [row_of(study, folder) for run_id in study.run_ids()[:_LISTED] if (folder := study.run(run_id)) is not None]
    ready = [row for row in rows if row.told.state == "finished" and row.told.split is not None]
    names = [row.run_id for row in ready if row.run_id in chosen]
    found, problem = (None, None) if len(names) < 2 else compared(study, names, ready)
    pictures = () if found is None else found.exhibits.pictures
    can_draw = find_spec("matplotlib") is not None
    tables = [] if found is None else [one for one in found.exhibits.tables if one.name in SHOWN]
    return page(
        "compare.html.jinja",
        title="Compare",
        here="compare",
        ready=ready,
        chosen=names,
        problem=problem,
        tables=[(one.title, Markup(one.table.to_html(breaking=True))) for one in tables],  # noqa: S704 - escaped there
        pictures=[one for one in pictures if one.name in DRAWN] if can_draw else [],
        undrawn=bool(pictures) and not can_draw,
        notes=() if found is None else found.notes,
    )


def compared(study: Study, names: Sequence[str], rows: Sequence[Row]) -> tuple[Compared | None, str | None]:
    """Return a comparison, or why there is none."""
    splits = {row.told.split for row in rows if row.run_id in names}
    if splits & set(COUNTED):
        return None, "Runs over a test split are compared by consilience evaluate, which records the look."
    try:
        return study.compare(names), None
    except ConsilienceError as error:
        return None, f"{error.message} {error.hint}"


def compared_picture(study: Study, chosen: Sequence[str], name: str) -> bytes | None:
    """Return a picture of a comparison as SVG; None where there is none."""
    rows = [row_of(study, folder) for run_id in chosen if (folder := study.run(run_id)) is not None]
    names = [row.run_id for row in rows]
    found, _ = (None, None) if len(names) < 2 else compared(study, names, rows)
    pictures: Sequence[Picture] = () if found is None else found.exhibits.pictures
    picture = next((one for one in pictures if one.name == name and name in DRAWN), None)
    if picture is None or find_spec("matplotlib") is None:
        return None
    with _DRAWING:
        return rendered(picture)["svg"]
