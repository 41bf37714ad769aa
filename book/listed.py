"""Pages of what the code declares: errors, events of the journal, metrics."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from types import ModuleType
from typing import Any

from book.wording import body, cell, first_sentence, named_in, page, table, text_of
from consilience import errors, inference, scoring
from consilience.journal import events

EXITS = {
    0: "done",
    1: "an error",
    2: "wrong usage: a flag, a file, or parts that cannot work together",
    3: "a person must settle it",
    4: "the spend cap ended it",
    5: "no quorum: too few members answered",
    6: "the record is not what was written",
}


def errors_page() -> str:
    """Return the page of errors and exit codes."""
    found = list(_below(errors.ConsilienceError))
    return page(
        "Errors and exit codes",
        "Every error says what happened and where, and what to do about it. `--debug` shows the traceback.",
        table(("exit code", "means"), ((str(number), says) for number, says in EXITS.items())),
        *(
            part
            for depth, error in found
            for part in (
                f"{'#' * min(2 + depth, 5)} {error.__name__}",
                f"Exit code {error.exit_code}. {body(text_of(error))}",
                _arguments(error),
            )
        ),
    )


def _below(error: type[errors.ConsilienceError], depth: int = 0) -> Iterator[tuple[int, type[errors.ConsilienceError]]]:
    yield depth, error
    for each in error.__subclasses__():
        if each.__module__ == errors.__name__:
            yield from _below(each, depth + 1)


def _arguments(error: type) -> str:
    told = named_in(text_of(error), "Args")
    return table(("it says", "which is"), ((f"`{name}`", cell(says)) for name, says in told.items()))


def events_page() -> str:
    """Return the page of the journal's events."""
    where = named_in(text_of(events.Record), "Attributes")
    parts = [
        body(inspect.cleandoc(events.__doc__ or "")),
        f"Where a record belongs: `{'`, `'.join(events.Where._fields)}`. {first_sentence(text_of(events.Where))}",
        table(("of a record", "says"), ((f"`{name}`", cell(says)) for name, says in where.items())),
    ]
    for name, event in events.EVENT_TYPES.items():
        told = named_in(text_of(event), "Attributes")
        rows = [(f"`{each.name}`", cell(_hint(each.type)), cell(told.get(each.name, ""))) for each in fields(event)]
        parts += [f"## {name}", body(text_of(event)), table(("field", "type", "says"), rows)]
    return page("Events of the journal", *parts)


def _hint(hint: object) -> str:
    return str(hint if isinstance(hint, str) else getattr(hint, "__name__", hint)).replace("|", "or")


def metrics_page() -> str:
    """Return the page of metrics: every public function and result of scoring, and of inference."""
    return page(
        "Metrics",
        "A metric takes arrays by keyword and returns one number per case; summaries over cases are apart, and "
        "intervals around them are of inference. Equations, ranges, degenerate cases and examples stand with each in "
        "[the reference of scoring](python/scoring.md) and [of inference](python/inference.md).",
        *_room("Scoring", scoring),
        *_room("Inference", inference),
    )


def _room(title: str, room: ModuleType) -> Iterator[str]:
    yield f"## {title}"
    for name in modules_of(room):
        module = import_module(name)
        short = name.removeprefix(f"{room.__name__}.")
        yield f"### {room.__name__.rpartition('.')[2]}.{short}"
        yield first_sentence(inspect.cleandoc(module.__doc__ or ""))
        rows = [(f"`{each.__name__}`", cell(first_sentence(text_of(each)))) for each in _public(module)]
        yield table(("name", "is"), rows)


def modules_of(room: ModuleType) -> list[str]:
    """Return the names of the modules of a package, those below its folders too."""
    return sorted(found.name for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."))


def _public(module: ModuleType) -> Iterator[Any]:
    for name, thing in vars(module).items():
        own = getattr(thing, "__module__", None) == module.__name__
        if own and not name.startswith("_") and (inspect.isfunction(thing) or inspect.isclass(thing)):
            yield thing
