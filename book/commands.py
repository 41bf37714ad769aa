"""The page of commands: every verb with every option, as the command line itself knows them."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from book.wording import cell, page, table
from consilience.cli.app import app

WORDS: dict[object, str] = {str: "text", int: "whole number", float: "number", bool: "switch", Path: "path"}


def verbs(command: Any, *before: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command below one that does something, with the words it is called by."""
    below: dict[str, Any] = getattr(command, "commands", {})
    for name, each in below.items():
        if not each.hidden:
            yield from verbs(each, *before, name)
    if not below:
        yield before, command


def commands_page() -> str:
    """Return the page."""
    root = get_command(app)
    groups = {name: each.help for name, each in getattr(root, "commands", {}).items() if hasattr(each, "commands")}
    parts = [
        "All of them take `--help`. Results go to standard output, progress and notes to standard error.",
        "## Before the verb, or behind it",
        _options(root),
    ]
    told: set[str] = set()
    for words, command in verbs(root):
        if words[0] in groups and words[0] not in told:
            told.add(words[0])
            parts += [f"## {words[0]}", str(groups[words[0]])]
        parts += [f"{'#' * (1 + len(words))} {' '.join(words)}", *_command(words, command)]
    return page("Commands", *parts)


def _command(words: tuple[str, ...], command: Any) -> Iterator[str]:
    places = [param for param in command.params if not _is_option(param)]
    typed = "".join(f" {_place(param)}" for param in places)
    yield f"```text\nconsilience {' '.join(words)}{typed} [options]\n```"
    yield command.help or ""
    yield table(("argument", "says"), ((f"`{_place(param)}`", cell(param.help or "")) for param in places))
    yield _options(command)
    if command.epilog:
        shown, _, example = command.epilog.partition(": ")
        yield f"{shown}: `{example}`"


def _is_option(param: Any) -> bool:
    return str(param.opts[0]).startswith("-")


def _place(param: Any) -> str:
    name = param.metavar or param.name.upper()
    return name if param.required else f"[{name}]"


def _options(command: Any) -> str:
    found = [param for param in command.params if _is_option(param) and not param.hidden]
    return table(("option", "takes", "default", "says"), map(_option, found))


def _option(param: Any) -> tuple[str, str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*param.opts, *param.secondary_opts))
    return names, _takes(param), _default(param), cell(param.help or "")


def _takes(param: Any) -> str:
    hint = param.type_descriptor.annotation
    inner = [each for each in typing.get_args(hint) if each is not types.NoneType]
    word = WORDS.get(inner[0] if inner else hint, "text")
    least, most = param.min, param.max
    bounds = " to ".join(str(bound) for bound in (least, most) if bound is not None)
    if bounds and most is None:
        bounds = f"{bounds} or more"
    return f"{word}{f', {bounds}' if bounds else ''}{', may be repeated' if param.multiple else ''}"


def _default(param: Any) -> str:
    if param.required:
        return "required"
    value = None if callable(param.default) else param.default
    return "" if value in {None, False, ""} or value == () else f"`{value}`"
