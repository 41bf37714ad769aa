"""Run every benchmark beside this file and write RESULTS.md anew.

A benchmark is a file ``bench_*.py`` with ``run() -> list[dict]``. A dict is a row: ``name``, ``value``, ``unit``, and
where they apply, ``goal``, ``peer`` (what it is compared with), ``ratio`` (ours to the peer's, in one run), ``note``.
A value is the median of at least 5 runs, or the note says what else it is. No rows mean that the data are absent.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "RESULTS.md"
REQUIRED = ("name", "value", "unit")
OPTIONAL = ("goal", "peer", "ratio", "note")
PACKAGES = ("consilience", "numpy", "scipy", "polars", "pydantic", "anyio", "jinja2", "typer", "rich")
BUDGET_S = 1_800.0

Row = Mapping[str, object]


def cpu_model() -> str:
    """Return the processor's name as the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def memory_gib() -> str:
    """Return the physical memory in GiB, or "unknown"."""
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError, AttributeError):
        return "unknown"


def checked(rows: Iterable[Row], *, source: str) -> list[Row]:
    """Return the rows as they are; a row with a key missing or unknown is refused by name."""
    kept = list(rows)
    for row in kept:
        missing = [key for key in REQUIRED if key not in row]
        unknown = [key for key in row if key not in REQUIRED + OPTIONAL]
        if missing or unknown:
            raise SystemExit(f"{source}: row {row.get('name', '?')!r} lacks {missing} and has unknown {unknown}")
    return kept


def shown(value: object) -> str:
    """Return a cell: three significant digits for fractions, thousands separated, nothing for what does not apply."""
    match value:
        case None:
            return ""
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
        case _:
            return str(value).replace("|", "\\|").replace("\n", " ")


def table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as a Markdown table with the columns that hold something."""
    columns = [key for key in (*REQUIRED, *OPTIONAL) if any(row.get(key) is not None for row in rows)]
    head = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return head + ["| " + " | ".join(shown(row.get(key)) for key in columns) + " |" for row in rows]


def section_of(name: str, title: str, rows: Sequence[Row], *, seconds: float, when: datetime) -> str:
    """Return a section of RESULTS.md: what was measured, how long it took, when."""
    absent = ["Not run: what it measures (data beside the checkout, or the embedded model) is not there."]
    told = f"`{name}.py`, {seconds:.0f} s, {when:%Y-%m-%d %H:%M} UTC"
    return "\n".join([f"## {title}", "", told, "", *(table(rows) if rows else absent)])


def written(text: str) -> dict[str, str]:
    """Return the sections of a RESULTS.md by the name of their benchmark."""
    parts = [f"## {part}".rstrip() for part in text.split("\n## ")[1:]]
    return {found[1]: part for part in parts if (found := re.search(r"^`(bench_\w+)\.py`", part, re.MULTILINE))}


def report(sections: Mapping[str, str]) -> str:
    """Return the whole of RESULTS.md."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`, or one section by `benchmarks/run.py --only NAME --write`; do not edit. Medians of",
        "at least 5 runs unless the note says otherwise; a ratio is ours to the peer's, both measured in one run on",
        "the same machine. Every section says when it was measured.",
        "",
        "| machine | |",
        "| --- | --- |",
        f"| processor | {cpu_model()}, {os.cpu_count()} cores |",
        f"| memory | {memory_gib()} |",
        f"| system | {platform.system()} {platform.release()}, {platform.machine()} |",
        f"| Python | {platform.python_implementation()} {platform.python_version()} |",
        f"| packages | {', '.join(f'{name} {version(name)}' for name in PACKAGES)} |",
    ]
    return "\n\n".join(["\n".join(lines), *(sections[name] for name in sorted(sections))]) + "\n"


def main() -> int:
    """Run what was asked for; a whole run rewrites RESULTS.md, one benchmark its own section where it is told to."""
    known = {path.stem.removeprefix("bench_"): path.stem for path in sorted(HERE.glob("bench_*.py"))}
    parser = argparse.ArgumentParser(description="Run the benchmarks and rewrite benchmarks/RESULTS.md.")
    parser.add_argument("--only", metavar="NAME", choices=known, help="run one and print")
    parser.add_argument("--write", action="store_true", help="with --only: rewrite its section, too")
    arguments = parser.parse_args()
    only = arguments.only

    sys.path.insert(0, str(HERE))
    started = time.perf_counter()
    made: dict[str, str] = {}
    for name in [known[only]] if only else known.values():
        print(f"{name} …", file=sys.stderr, flush=True)
        module = importlib.import_module(name)
        begun = time.perf_counter()
        rows = checked(module.run(), source=name)
        title = (module.__doc__ or name).strip().splitlines()[0].rstrip(".")
        made[name] = section_of(name, title, rows, seconds=time.perf_counter() - begun, when=datetime.now(UTC))
        print("\n".join([f"\n{title}\n", *table(rows)]), flush=True)

    took = time.perf_counter() - started
    if not only or arguments.write:
        kept = written(RESULTS.read_text(encoding="utf-8")) if only else {}
        RESULTS.write_text(report({**kept, **made}), encoding="utf-8")
        print(f"\nWrote {RESULTS.relative_to(HERE.parent)} after {took:.0f} s.", file=sys.stderr)
    if took > BUDGET_S:
        print(f"The benchmarks took {took:.0f} s; they may take {BUDGET_S:.0f} s.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
