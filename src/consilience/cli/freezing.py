"""``consilience freeze``: what a study will do is fixed before it looks, and held against what is there later."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.cli.console import counted, note, show
from consilience.cli.outputs import check_output
from consilience.cli.place import Json, place_of
from consilience.errors import ConfigError, PlanError

if TYPE_CHECKING:
    from consilience.experiments.frozen import Freeze, Study

EXAMPLE = "Example: consilience freeze --prereg preregistration.md"
DEVIATES = 6
"""Exit code where something is not as it was frozen."""


def freeze(
    context: typer.Context,
    results: Annotated[
        Path | None, typer.Option(file_okay=False, help="Folder that keeps the freeze; by default results.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Name every file that is not as it was frozen (exit code 6); write nothing.")
    ] = False,
    prereg: Annotated[
        Path | None, typer.Option(dir_okay=False, help="Write the pre-registration page of the freeze, in Markdown.")
    ] = None,
    again: Annotated[str | None, typer.Option(help="Why a freeze that is there is replaced; kept in it.")] = None,
    as_json: Json = False,
) -> None:
    """Fix prompts, settings, code, splits and comparisons by their hashes, once, before test is looked at.

    With --prereg, a freeze that is there is not replaced: its page is written.
    """
    from consilience.api.running import study_of  # noqa: PLC0415 - heavy
    from consilience.experiments.frozen import read_freeze  # noqa: PLC0415 - the same

    if check and (again is not None or prereg is not None):
        raise ConfigError("--check writes nothing", hint="Leave --again and --prereg out.")
    place = place_of(context)
    if prereg is not None:
        check_output(prereg, option="--prereg", root=place.root)
    study = study_of(place.root, results=results)
    if check:
        _check(study, as_json=as_json)
        return
    held = read_freeze(study.results) if prereg is not None and again is None else None
    taken = held or _taken(study, again=again)
    if prereg is not None:
        _write_page(taken, prereg)
    for name, hashed in taken.data.items():
        if hashed is None:
            note(f"{name} is not there: what is made later will be a deviation")
    said = f"{'already frozen' if held else 'frozen'} as {taken.head} in {study.path}"
    parts = [said, f"{counted(sum(map(len, taken.files.values())), 'file')}, {counted(len(taken.treatments), 'arm')}"]
    parts += [] if prereg is None else [f"the pre-registration page is {prereg}"]
    document = {**taken.model_dump(mode="json"), "sha256": taken.head, "file": str(study.path)}
    show(document, *parts, as_json=as_json)


def _taken(study: Study, *, again: str | None) -> Freeze:
    from consilience.api.running import now  # noqa: PLC0415 - heavy
    from consilience.experiments.frozen import keep, take  # noqa: PLC0415 - the same

    return keep(study, take(study, now=now()), again=again)


def _write_page(freeze: Freeze, path: Path) -> None:
    from consilience.experiments.prereg import prereg_page  # noqa: PLC0415 - heavy
    from consilience.experiments.storage import write_whole  # noqa: PLC0415 - the same

    page = prereg_page(freeze)
    write_whole(path, lambda target: target.write_text(page, encoding="utf-8"))


def _check(study: Study, *, as_json: bool) -> None:
    """Print every deviation, and end with its exit code where there is one; say nothing on stdout where there is none.

    Raises:
        PlanError: The study was not frozen.
    """
    from consilience.experiments.frozen import read_freeze, stand  # noqa: PLC0415 - heavy

    held = read_freeze(study.results)
    if held is None:
        raise PlanError(f"there is no freeze {study.path}", hint="Make one with consilience freeze.")
    standing = stand(study, held)
    for text in standing.notes:
        note(f"note: {text}")
    document: dict[str, Any] = {
        "freeze_sha256": standing.head,
        "deviations": list(standing.deviations),
        "notes": list(standing.notes),
    }
    if standing.deviations or as_json:
        show(document, *standing.deviations, as_json=as_json)
    if standing.deviations:
        raise typer.Exit(DEVIATES)
