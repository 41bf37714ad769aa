"""Where a command works: the project folder, the runs in it, and the options that every verb shares."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.errors import ConfigError, DataError
from consilience.journal.files import segment_path, segments
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.valuation.pipeline import Project

MADE = ("manifest.json", "predictions.parquet", "transcripts", "traces")
"""What a run makes from its record."""
SIGNS = ("protocol.json", "lock", *MADE)
"""What tells a run folder from any other, beside its journal."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="A run id under results/runs, or the path of a run folder.")
]


@dataclass(frozen=True)
class Place:
    """Where a command works.

    Attributes:
        root: The project folder.
        arguments: What was typed after ``consilience``.
    """

    root: Path
    arguments: tuple[str, ...]

    @property
    def project(self) -> Project:
        """The study in the project folder."""
        from consilience.valuation.pipeline import Project  # noqa: PLC0415 - heavy

        return Project(self.root)

    @property
    def town(self) -> Project:
        """The synthetic town of this project, apart from its own data."""
        from consilience.valuation.pipeline import Project  # noqa: PLC0415 - heavy

        return Project(self.root / "data" / "synthetic")

    @property
    def command(self) -> str:
        """The command, to be typed again."""
        return shlex.join(["consilience", *self.arguments])

    def run_folder(self, run: str) -> Path:
        """Return the folder of a run.

        Raises:
            ConfigError: There is no such run; the nearest is named.
        """
        runs = self.root / "results" / "runs"
        if run == Path(run).name != ".." and (runs / run).is_dir():
            return runs / run
        if Path(run).is_dir():
            folder = Path(run).resolve()
            if folder.parent == runs.resolve() or any((folder / name).exists() for name in SIGNS) or segments(folder):
                return folder
            raise ConfigError(f"{folder} is no run folder", hint="Name a run; consilience runs lists them.")
        known = [folder.name for folder in runs.iterdir() if folder.is_dir()] if runs.is_dir() else []
        raise ConfigError(
            f'there is no run "{run}" in {runs}',
            hint=nearest(run, known) if known else "Make one with consilience run-arm, or name its project: --project.",
        )

    def recorded_run(self, run: str) -> Path:
        """Return the folder of a run that has begun.

        Raises:
            ConfigError: There is no such run.
            DataError: Nothing was recorded yet.
        """
        folder = self.run_folder(run)
        if not is_begun(folder):
            raise DataError(f"nothing was recorded yet in {folder}", hint="The run's own command starts it.")
        return folder


def is_begun(folder: Path) -> bool:
    """Return whether a run has a record, or had one, since it left something made from it."""
    if any((folder / name).exists() for name in MADE):
        return True
    for number in segments(folder):
        with segment_path(folder, number).open("rb") as lines:
            if lines.readline().endswith(b"\n"):
                return True
    return False


def place_of(context: typer.Context) -> Place:
    """Return where the command works."""
    place = context.obj
    if not isinstance(place, Place):
        raise TypeError("the command was started without its place")
    return place


def titled(folder: Path) -> str:
    """Return a run's id, said to be simulated where it is.

    Example:
        >>> titled(Path("results/runs/_E_single-test-0")), titled(Path("E_single-test-0"))
        ('_E_single-test-0 (simulated)', 'E_single-test-0')
    """
    from consilience.experiments.listing import is_simulated  # noqa: PLC0415 - not needed for --help

    return f"{folder.name} (simulated)" if is_simulated(folder) else folder.name
