"""Questions from a file: one JSON object per line, so that a researcher of protocols needs no application."""

from __future__ import annotations

import codecs
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from consilience.core.packet import Item
from consilience.errors import DataError, reason
from consilience.experiments.storage import json_line, write_whole

MAX_LINE_BYTES = 5_000_000


def read_questions(path: Path) -> list[Item]:
    """Return the items of a JSONL file: ``question``, ``packet``, and where known ``truth``, ``strata``, ``cluster``.

    A byte-order mark before the first line and empty lines are passed over. The packets of a run are such lines too.

    Raises:
        DataError: The file cannot be read, holds nothing, a line is no item, or two ids are equal or differ only in
            case; line, item and field are named.
    """
    items: list[Item] = []
    lines: dict[str, int] = {}
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
                if not text.strip():
                    continue
                item = _item(text, where=f"{path}, line {number}")
                before = lines.setdefault(item.question.id.casefold(), number)
                if before != number:
                    raise DataError(
                        f"{path}, line {number}: the id {item.question.id} stands on line {before} already",
                        hint="Give every question its own id; upper and lower case count as the same.",
                    )
                items.append(item)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}", hint="Check the path and its permissions.") from error
    if not items:
        raise DataError(f"{path} holds no question", hint="Write one JSON object per line.")
    return items


def write_items(items: Sequence[Item], path: Path) -> None:
    """Write items with their truths as `read_questions` reads them, in the order of their ids.

    Raises:
        DataError: The file cannot be written.
    """
    ordered = sorted(items, key=lambda item: item.question.id)
    lines = b"".join(json_line(item.model_dump(mode="json")) for item in ordered)
    write_whole(path, lambda target: target.write_bytes(lines))


def question_line(item: Item) -> dict[str, Any]:
    """Return an item as `read_questions` reads it, without what only an evaluation may know (truth, cluster)."""
    return item.model_dump(mode="json", include={"question", "packet", "strata"})


def _item(line: bytes, *, where: str) -> Item:
    if len(line) > MAX_LINE_BYTES:
        raise DataError(
            f"{where}: {len(line)} bytes", hint=f"A question with its evidence has at most {MAX_LINE_BYTES}."
        )
    try:
        return Item.model_validate_json(line)
    except ValidationError as error:
        whole = "" if error.errors()[0]["loc"] else "the line: "
        raise DataError(
            f"{where}{_named(line)}: {whole}{reason(error)}", hint="Mend the line; nothing was read in part."
        ) from error


def _named(line: bytes) -> str:
    """Return the item's id for a message, as far as the line tells it."""
    try:
        found = json.loads(line)["question"]["id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return f" (item {found})" if isinstance(found, str) else ""
