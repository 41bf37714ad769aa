"""``consilience roles``: the roles of an application, or of one panel, with what they see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli.console import Grid, counted, show
from consilience.cli.place import Json
from consilience.errors import ConfigError
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.experiments.panels import Shelf

EXAMPLE = "Example: consilience roles --application general --panel default"
SHORT_HASH = 12


def roles(
    application: Annotated[str, typer.Option(help="valuation, or general for any question.")] = "valuation",
    panel: Annotated[
        str | None, typer.Option(help="A panel by name, or a YAML file of your own; otherwise every role is listed.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of panels that are shuffled.")] = 0,
    as_json: Json = False,
) -> None:
    """List roles with their view and the hash of their text, and the panels that ship with the package."""
    from consilience.experiments.panels import packaged_panels, panel_roles  # noqa: PLC0415 - reads YAML

    shelf = _shelf(application)
    found = None if panel is None else panel_roles(panel, shelf=shelf, seed=seed)
    listed = shelf.members(shelf.known) if found is None else found.roles
    hashes = shelf.prompt_hashes()
    packaged = {role.id: role for role in shelf.members(shelf.known)}
    panels = packaged_panels(application)
    document = {
        "application": application,
        "panel": None if found is None else {"name": found.name, "labels": found.labels, "note": found.note},
        "roles": [
            {
                "id": role.id,
                "view": list(role.view),
                "framing": role.framing,
                "text_sha256": role.text_sha256,
                "file_sha256": hashes[role.id] if packaged.get(role.id) == role else None,
            }
            for role in listed
        ],
        "panels": {name: spec.note for name, spec in panels.items()},
    }
    rows = tuple((role.id, " ".join(role.view), role.framing or "–", role.text_sha256[:SHORT_HASH]) for role in listed)
    parts: list[str | Grid] = [Grid(("role", "view", "framing", "text"), rows, words=4)]
    if found is None:
        parts += ["", Grid(("panel", "note"), tuple((name, spec.note) for name, spec in panels.items()), words=2)]
    else:
        labels = "neutral labels" if found.labels == "neutral" else "role ids for labels"
        parts.append(
            f"{application} panel {found.name}: {counted(len(listed), 'role')}, {labels}. {found.note}".strip()
        )
    show(document, *parts, as_json=as_json)


def _shelf(application: str) -> Shelf:
    from consilience.experiments.general import SHELF as GENERAL  # noqa: PLC0415 - heavy
    from consilience.valuation.roster import SHELF as VALUATION  # noqa: PLC0415 - the same

    shelves = {shelf.application: shelf for shelf in (VALUATION, GENERAL)}
    if application not in shelves:
        raise ConfigError(f'unknown application "{application}"', hint=nearest(application, shelves))
    return shelves[application]
