"""What the pages may read: the results of one project, by name and nothing outside them."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from jinja2 import TemplateError

from consilience.errors import IntegrityError, reason
from consilience.viewer.index import JournalIndex
from consilience.viewer.shown import clip

if TYPE_CHECKING:
    from consilience.reports.exhibits import Exhibits

KEPT: Final = 6
"""Indexes of so many runs are held at once."""


@dataclass(frozen=True)
class Compared:
    """What a comparison of runs shows.

    Attributes:
        exhibits: Tables and pictures.
        notes: Sentences about the data and the runs.
    """

    exhibits: Exhibits
    notes: tuple[str, ...]


@dataclass
class Study:
    """One project as the pages see it.

    Attributes:
        root: The project folder.
        truths: Returns what items turned out to be, by id: a number, or the id of an option; unknown ones are absent.
        compare: Returns the comparison of runs, by id.
    """

    root: Path
    truths: Callable[[set[str]], Mapping[str, float | str]]
    compare: Callable[[Sequence[str]], Compared]
    _indexes: OrderedDict[Path, JournalIndex] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    @property
    def runs_folder(self) -> Path:
        """Where runs lie."""
        return self.root / "results" / "runs"

    def run_ids(self) -> list[str]:
        """Return the runs, the newest first."""
        folder = self.runs_folder
        found = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
        return [path.name for path in sorted(found, key=lambda path: (-path.stat().st_mtime, path.name))]

    def run(self, run_id: str) -> Path | None:
        """Return the folder of a run; None where there is none in this project."""
        return self._inside(self.runs_folder, run_id)

    def decision_ids(self) -> list[str]:
        """Return the decisions, the newest first."""
        folder = self.root / "results" / "decisions"
        newest = sorted(folder.glob("*/decision.json"), key=lambda path: (-path.stat().st_mtime, path.parent.name))
        return [path.parent.name for path in newest]

    def decision(self, run_id: str) -> Path | None:
        """Return the file of a decision; None where there is none."""
        folder = self._inside(self.root / "results" / "decisions", run_id)
        return None if folder is None else self.file(folder, "decision.json")

    def file(self, folder: Path, *names: str) -> Path | None:
        """Return a file below a run folder by the names of its way; None where it is not there, or leads elsewhere."""
        at: Path | None = folder
        for name in names:
            at = None if at is None else self._inside(at, name)
        return at if at is not None and at.is_file() else None

    def _inside(self, folder: Path, name: str) -> Path | None:
        """Return what stands under a name in a folder, as the folder itself lists it: no way leads out by a name."""
        try:
            found = next((path for path in folder.iterdir() if path.name == name), None)
        except OSError:
            return None
        home = (self.root / "results").resolve()
        return found if found is not None and found.resolve().is_relative_to(home) else None

    def index(self, folder: Path, *, item: str | None = None) -> JournalIndex:
        """Return the index of a run's journal, up to date.

        Args:
            folder: The run folder.
            item: The only item that is needed; where the whole run is not indexed yet, it is not for this one.

        Raises:
            IntegrityError: A line of the journal is no record.
        """
        with self._lock:
            found = self._indexes.pop(folder, None)
            if found is None and item is not None:
                found = JournalIndex(folder, only=item)
            else:
                found = found or JournalIndex(folder)
                self._indexes[folder] = found
            while len(self._indexes) > KEPT:
                self._indexes.popitem(last=False)
        found.refresh()
        return found


MALFORMED: Final = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, OSError),
    TemplateError,
)
"""What comes of reading a file that is JSON, or Parquet, of another shape than was written."""


def malformed(what: str, error: Exception) -> IntegrityError:
    """Return the error to raise for a file that is not of the shape that was written."""
    return IntegrityError(
        f"{what} is not what was written ({type(error).__name__}: {clip(str(error), 200)})",
        hint="consilience verify names the file.",
    )


def read_json(path: Path) -> Any:
    """Return what a file of JSON holds.

    Raises:
        IntegrityError: It cannot be read or is no JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise IntegrityError(
            f"{path.name} cannot be read: {reason(error)}", hint="consilience verify tells more."
        ) from error
