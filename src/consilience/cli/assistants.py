"""``consilience mcp``: the tools for assistants, over stdio or HTTP, and what tells an assistant how to use them."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from consilience.cli.console import note
from consilience.cli.place import place_of
from consilience.errors import ConfigError

EXAMPLE = "Example: consilience mcp --http --port 8766"


def mcp(
    context: typer.Context,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP instead of stdio.")] = False,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="With --http: the port (default 8766); 0 takes a free one.")
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(help="With --http: where to listen (default 127.0.0.1). Others need CONSILIENCE_MCP_TOKEN."),
    ] = None,
    known_as: Annotated[
        list[str] | None,
        typer.Option("--known-as", help="With --http: a further name by which others reach it; repeat it."),
    ] = None,
    skill: Annotated[bool, typer.Option("--skill", help="Print SKILL.md for an assistant, and serve nothing.")] = False,
) -> None:
    """Serve ask_panel, decide, forecast, get_trace and list_runs to assistants (Model Context Protocol).

    Without --http it speaks on stdin and stdout with the assistant that started it. Every paid call needs a spend cap,
    and panels are simulated unless the assistant asks for live ones and the keys are there.
    """
    from consilience.api.binding import Binding  # noqa: PLC0415 - heavy
    from consilience.mcp.errands import Project  # noqa: PLC0415 - the same
    from consilience.mcp.http import HOST, PORT, serve_http  # noqa: PLC0415 - the same
    from consilience.mcp.server import serve_stdio  # noqa: PLC0415 - the same
    from consilience.mcp.server import skill as skill_text  # noqa: PLC0415 - the same

    if skill:
        sys.stdout.write(skill_text())
        return
    if not http and (port is not None or host is not None or known_as):
        raise ConfigError("--port, --host and --known-as belong to --http", hint="Add --http, or leave them out.")
    project = Project(place_of(context).root, os.environ)
    if not http:
        serve_stdio(project)
        return
    binding = Binding(host or HOST, PORT if port is None else port, tuple(known_as or ()))
    try:
        serve_http(project, binding, listening=lambda address: note(f"listening: {address}"))
    except KeyboardInterrupt:
        note("ended")
