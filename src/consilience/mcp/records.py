"""What is on record, read only: the runs of a project, and the traces in its results folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from consilience.errors import ConfigError, DataError, reason
from consilience.experiments.listing import listed_run
from consilience.mcp.arguments import GetTrace, ListRuns
from consilience.mcp.folders import inside
from consilience.registry import nearest

SHAPES: Final = (
    re.compile(r"runs/[^/]+/(?:transcripts|traces)/[^/]+\.json"),
    re.compile(r"decisions/[^/]+/decision\.json"),
)
"""What a trace is called; nothing else of the results folder is read out."""
PAGE_CHARS: Final = 50_000
LONGEST_FILE: Final = 200 * 1024**2


def runs_told(results: Path, said: ListRuns) -> dict[str, Any]:
    """Return a page of the project's runs, newest first."""
    folder = results / "runs"
    folders = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()] if folder.is_dir() else []
    newest = sorted(folders, key=lambda path: (-path.stat().st_mtime, path.name))
    page = newest[said.offset : said.offset + said.limit]
    after = said.offset + len(page)
    return {
        "status": "answered",
        "runs": [listed_run(path) for path in page],
        "total": len(newest),
        "next_offset": after if after < len(newest) else None,
    }


def trace_told(results: Path, said: GetTrace) -> dict[str, Any]:
    """Return the traces of a run, or a page of one of them.

    Raises:
        ConfigError: Neither or both are named, or there is no such run or trace.
        DataError: The file cannot be read.
    """
    if (said.run_id is None) == (said.trace is None):
        raise ConfigError("get_trace needs a run_id or a trace, one of them", hint="list_runs lists the runs.")
    return _listed(results, said.run_id) if said.run_id is not None else _page(results, said.trace or "", said.offset)


def _listed(results: Path, run_id: str) -> dict[str, Any]:
    runs = results / "runs"
    known = sorted(path.name for path in runs.iterdir() if path.is_dir()) if runs.is_dir() else []
    if run_id not in known:
        raise ConfigError(f'there is no run "{run_id}"', hint=nearest(run_id, known) if known else "Ask something.")
    folder = inside(results, f"runs/{run_id}", what="run_id")
    found = [path for part in ("transcripts", "traces") for path in sorted((folder / part).glob("*.json"))]
    decided = results / "decisions" / run_id / "decision.json"
    found += [decided] if decided.is_file() else []
    base = results.resolve()
    return {
        "status": "answered",
        **listed_run(folder),
        "traces": [path.resolve().relative_to(base).as_posix() for path in found if not path.is_symlink()],
    }


def _page(results: Path, trace: str, offset: int) -> dict[str, Any]:
    if not any(shape.fullmatch(trace) for shape in SHAPES):
        raise ConfigError(
            f'trace: "{trace}" is no trace',
            hint="Take it from a result, or from get_trace with run_id, such as runs/RUN/transcripts/QUESTION.json.",
        )
    path = inside(results, trace, what="trace")
    try:
        size = path.stat().st_size
        if size > LONGEST_FILE:
            raise DataError(f"{trace} has {size:,} bytes", hint=f"At most {LONGEST_FILE:,} are read.")
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{trace} cannot be read: {reason(error)}", hint="Check the run: consilience verify."
        ) from error
    after = min(len(text), offset + PAGE_CHARS)
    return {
        "status": "answered",
        "trace": trace,
        "offset": offset,
        "total_chars": len(text),
        "next_offset": after if after < len(text) else None,
        "text": text[offset:after],
    }
