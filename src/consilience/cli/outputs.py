"""Where a command may write what it was asked for: never over what it reads, and never over a record of a project."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from consilience.cli.place import SIGNS
from consilience.errors import ConfigError
from consilience.journal.files import segments

RECORDS: Final = frozenset(
    {
        *(
            "freeze.json",
            "looks.jsonl",
            "looks_last.json",
            "decisions.jsonl",
            "decisions_last.json",
            "truths.json",
            "calibration.json",
            "aggregation_weights.json",
        ),
        *("consilience.yaml", "protocol.json", "manifest.json", "predictions.parquet", "card.json"),
        *("analytic.parquet", "splits.parquet", "llm_subsamples.parquet"),
    }
)
"""Names that a project gives to its records; whatever folder they lie in, nothing else is written under them."""
_ELSEWHERE: Final = "Choose another path."


def check_output(
    path: Path, *, option: str, root: Path, inputs: Iterable[Path | None] = (), data: bool = False
) -> None:
    """Raise where a file must not be written.

    Args:
        path: The file.
        option: What named it, such as ``--output``.
        root: The project folder.
        inputs: What the command reads; None for what was not given.
        data: It is data, which may lie in the project's data folder as a new file.

    Raises:
        ConfigError: The path is a folder, an input, a record of a project, or lies where records do.
    """
    if path.is_dir() or path.name in {"", ".", ".."}:
        raise ConfigError(f"{option}: {path} is a folder", hint="Name a file in it.")
    for one in inputs:
        if one is not None and _same(path, one):
            raise ConfigError(f"{option}: {path} is read by this very command", hint=_ELSEWHERE)
    if path.resolve().name in RECORDS:
        raise ConfigError(f"{option}: {path} is the name of a record, which is not written over", hint=_ELSEWHERE)
    _outside_records(path, option=option, root=root, data=data)


def check_folder(path: Path, *, option: str, root: Path) -> None:
    """Raise where the files of a folder must not be written.

    Raises:
        ConfigError: The path is no folder, or holds or lies in records of a project.
    """
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{option}: {path} is a file, and a folder is to be written there", hint=_ELSEWHERE)
    _outside_records(path / "file", option=option, root=root, data=False)
    whole = path.resolve()
    held = [name for name in ("results", "data") if (root / name).resolve().is_relative_to(whole)]
    if held or any((whole / name).exists() for name in RECORDS):
        raise ConfigError(f"{option}: {path} holds records of a project", hint=_ELSEWHERE)


def _outside_records(path: Path, *, option: str, root: Path, data: bool) -> None:
    whole, base = path.resolve(), root.resolve()
    kept = [base / "results" / "runs", base / "results" / "baselines"]
    kept += [base / "data"] if not data else [base / "data" / "processed"]
    inside = next((folder for folder in kept if whole.is_relative_to(folder)), None)
    if inside is not None:
        raise ConfigError(f"{option}: {path} lies in {inside}, where records are kept", hint=_ELSEWHERE)
    for folder in whole.parents:
        if folder.is_dir() and (segments(folder) or all((folder / name).exists() for name in SIGNS[:2])):
            raise ConfigError(f"{option}: {path} lies in the run folder {folder}", hint=_ELSEWHERE)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return one.resolve() == other.resolve()
