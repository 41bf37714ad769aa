"""What a run depends on besides its plan: code, environment, commit, and how it stands to the study's freeze."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from importlib.metadata import distributions, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from consilience.core.canonical import tagged_hash
from consilience.experiments.freeze import ROOMS, text_digests
from consilience.experiments.frozen import Study, read_freeze, stand
from consilience.experiments.manifest import RunFacts
from consilience.experiments.overrides import overrides
from consilience.experiments.plan import Plan


def code_hashes() -> dict[str, str]:
    """Return a hash of the source of each room that decides answers; line ends do not matter.

    Example:
        >>> sorted(code_hashes())
        ['aggregation', 'core', 'evidence', 'models', 'protocols', 'runtime']
    """
    root = files("consilience")
    return {room: tagged_hash("code", text_digests(root, room, suffix=".py")) for room in ROOMS}


def environment_hash() -> str:
    """Return a hash of all installed distributions with their versions."""
    installed = sorted({f"{dist.name.lower()}=={dist.version}" for dist in distributions()})
    return tagged_hash("environment", installed)


def run_facts(study: Study | None = None, *, run_id: str | None = None, plan: Plan | None = None) -> RunFacts:
    """Return what surrounds a run: version, commit, environment, and how it stands to the freeze.

    What an earlier process of the run noted stays noted: a run that began before the freeze is not under it, and a
    deviation is not undone by mending the file.

    Args:
        study: The run's study, whose freeze counts; None for a run of no study.
        run_id: The run, where one of this id may have begun before.
        plan: What it asks, held against what the freeze declares of its arm; None for what is no arm.

    Raises:
        IntegrityError: The freeze is not what was written.
        ConfigError: A configuration file that was frozen cannot be read.
        DataError: Sales, splits, subsamples or weights that were frozen cannot be read.
    """
    facts = RunFacts(
        package_version=version("consilience"),
        git_commit=git_commit(Path(__file__).parent),
        environment_sha256=environment_hash(),
    )
    freeze = None if study is None else read_freeze(study.results)
    if study is None or freeze is None:
        return facts
    before = {} if run_id is None else _noted(study.results / "runs" / run_id)
    head = before.get("freeze_sha256", freeze.head)
    found = set(map(str, before.get("protocol_deviations") or ()))
    if head is not None:
        found.update(stand(study, freeze).deviations, () if plan is None else overrides(plan, freeze))
    return replace(facts, deviations=tuple(sorted(found)), frozen_sha256=head)


def _noted(run: Path) -> dict[str, Any]:
    """Return what an earlier process of a run wrote; nothing where there is none, or it is damaged and made anew."""
    try:
        found = json.loads((run / "manifest.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


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
