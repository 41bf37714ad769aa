"""Hashes of what a run depends on besides its plan: code, environment, commit."""

from __future__ import annotations

import subprocess
from importlib.metadata import distributions, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from consilience.core.canonical import tagged_hash, text_hash
from consilience.experiments.manifest import RunFacts

ROOMS = ("core", "protocols", "runtime", "aggregation", "models", "evidence")
"""Rooms whose code decides what is asked, read and combined."""


def code_hashes() -> dict[str, str]:
    """Return a hash of the source of each room that decides answers; line ends do not matter.

    Example:
        >>> sorted(code_hashes())
        ['aggregation', 'core', 'evidence', 'models', 'protocols', 'runtime']
    """
    root = files("consilience")
    return {room: tagged_hash("code", _sources(root.joinpath(room))) for room in ROOMS}


def _sources(folder: Traversable) -> dict[str, str]:
    found: dict[str, str] = {}
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            found |= {f"{entry.name}/{name}": digest for name, digest in _sources(entry).items()}
        elif entry.name.endswith(".py"):
            found[entry.name] = text_hash(entry.read_text(encoding="utf-8"))
    return found


def environment_hash() -> str:
    """Return a hash of all installed distributions with their versions."""
    installed = sorted({f"{dist.name.lower()}=={dist.version}" for dist in distributions()})
    return tagged_hash("environment", installed)


def run_facts() -> RunFacts:
    """Return what surrounds a run: version, commit, environment."""
    return RunFacts(
        package_version=version("consilience"),
        git_commit=git_commit(Path(__file__).parent),
        environment_sha256=environment_hash(),
    )


def git_commit(folder: Path) -> str | None:
    """Return the commit checked out in ``folder`` with ``+changes`` when it is not clean; None outside a checkout."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        changed = _git(folder, "status", "--porcelain")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}+changes" if changed else commit


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()  # noqa: S603 - fixed arguments
