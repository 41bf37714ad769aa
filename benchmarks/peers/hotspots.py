"""What profiling found on the way: the same work by the code before and by that of now, in turn, in fresh processes."""

from __future__ import annotations

import io
import os
import resource
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from environments import BUILD, ROOT, environment

BEFORE = "f897590a2d568f3d6cc86ede34777f948435200f"
REPEATS = 9
_DRAWS = """
import hashlib
import numpy as np
from consilience.inference.bootstrap import analysis_rng, cluster_weights
from consilience.scoring.ratio import ratio_draws
rng = np.random.default_rng(158)
price = np.exp(rng.normal(12.9, 0.5, 1140))
estimate = price * np.exp(rng.normal(0.0, 0.15, 1140))
own = np.arange(1140)
weights = cluster_weights(clusters=own, n_resamples=10_000, rng=analysis_rng(seed=1, analysis="bench"))
made = ratio_draws(estimate=estimate, price=price, clusters=own, weights=weights)
for column in (made.median, made.cod, made.prd, made.prb):
    print(hashlib.sha256(column.tobytes()).hexdigest())
"""
SPOTS = (
    ("consilience --help", ("-m", "consilience", "--help"), "pydantic and the parser of mails are not loaded for it"),
    (
        "10,000 resamples of COD, PRD and PRB, process and imports included",
        ("-c", _DRAWS),
        "in pieces that fit the cache, one conversion, no second pass over sales that surely move",
    ),
)


def _code_before() -> Path | str:
    """Return the sources as they were, or why there are none."""
    done = subprocess.run(
        ["git", "archive", "--format=tar", BEFORE, "src"],  # noqa: S607 - the user's own git
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    if done.returncode:
        return f"no sources of {BEFORE[:7]}: {done.stderr.decode(errors='replace').strip()[:200]}"
    folder = BUILD / f"before-{BEFORE[:7]}"
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


def _once(sources: Path, arguments: tuple[str, ...]) -> tuple[float, bytes]:
    """Return CPU seconds and what was printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        check=True,
        env=environment() | {"PYTHONPATH": str(sources), "COLUMNS": "100"},
        cwd=os.sep,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def run(_: object) -> Iterable[dict[str, Any]]:
    """Return CPU seconds before and now, and whether the same bytes came out."""
    old = _code_before()
    if isinstance(old, str):
        yield {"what": "before and after", "not run": old}
        return
    for name, arguments, why in SPOTS:
        times: dict[Path, list[float]] = {old: [], ROOT / "src": []}
        printed: set[bytes] = set()
        for number in range(REPEATS + 1):
            for sources, taken in times.items():
                took, said = _once(sources, arguments)
                printed.add(said)
                if number:
                    taken.append(took)
        before, now = (statistics.median(taken) for taken in times.values())
        yield {
            "what": name,
            "CPU-s before": before,
            "CPU-s now": now,
            "now / before": now / before,
            "output": "the same bytes" if len(printed) == 1 else "differs",
            "how": why,
        }
