"""Run everything against its peers in one run, each peer in an environment of its own, and write PEERS.md anew.

A peer that cannot be installed, or whose script fails, stands in its table with the error.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]

import analysis  # noqa: E402 - benchmarks are no package
import hotspots  # noqa: E402 - the same
import orchestration  # noqa: E402 - the same
import startup  # noqa: E402 - the same
from environments import BUILD, UNSET, Peer, PeerError, made, ours  # noqa: E402 - the same
from load import SEATS  # noqa: E402 - the same
from run import cpu_model, memory_gib, shown  # noqa: E402 - the same

RESULTS = HERE / "PEERS.md"
KEPT = BUILD / "measured"
"""The rows measured last, a file per table: one can be measured again without the others."""
PEERS = tuple(sorted(path.stem for path in (HERE / "peers" / "requirements").glob("*.txt")))
Peers = dict[str, Peer | PeerError]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Section:
    """A table of the page.

    Attributes:
        title: Its heading.
        said: What is measured and how to read it.
        run: Makes the rows.
    """

    title: str
    said: str
    run: Callable[[Peers], Iterable[Row]]


SECTIONS = {
    "orchestration": Section(
        "Orchestration: CPU and memory per turn",
        f"{SEATS} members × {orchestration.ITEMS} items, all items at once, prompts of 870 and replies of 330 "
        "characters, a model in the process that answers at once, each reply validated by pydantic through the "
        f"framework's own way to structured output. Medians of {orchestration.REPEATS} rounds, every way once per "
        "round. The floor (`asyncio.gather` over `model_validate_json`) is measured in the same process just before "
        "and after, so that the ratio to it survives a busy machine.",
        orchestration.run,
    ),
    "memory": Section(
        "A long run's memory", "One run: a journal on disk, every turn fsynced before it is used.", orchestration.memory
    ),
    "comparables": Section(
        "Comparables: King County, 21,613 sales",
        "One thread, building index or tree included. The first four rows follow one rule (spec 4.4) and are compared "
        "row by row; the last two know only the sales before one date.",
        analysis.comparables,
    ),
    "bootstrap": Section(
        "Bootstrap: MdAPE of 12 arms, 10,000 resamples of 1,140 items",
        "One thread; medians of 5 for ours.",
        analysis.bootstrap,
    ),
    "ratios": Section(
        "Ratio statistics: 1,140 made-up sales, regressive by construction",
        "OpenAVMKit 0.7.0 returns the regression's intercept as PRB and weighs the value proxy of VEI otherwise than "
        "the draft, which is why its values differ there; its bootstrap knows neither of the two.",
        analysis.ratios,
    ),
    "startup": Section(
        "Start-up",
        f"Fresh processes in turn, bytecode kept; medians of {startup.RUNS} ({startup.SLOW_RUNS} where slow). Wall "
        "time is that of the machine as loaded as it was; CPU seconds say more.",
        startup.run,
    ),
    "hotspots": Section(
        "Before and after",
        f"What profiling found on the way to this page: the sources of {hotspots.BEFORE[:7]} against those of now, "
        f"in turn; medians of {hotspots.REPEATS}.",
        hotspots.run,
    ),
}


def table(rows: Sequence[Row]) -> list[str]:
    """Return rows as a Markdown table with every column that some row has."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    head = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    return head + ["| " + " | ".join(shown(row.get(key)) for key in columns) + " |" for row in rows]


def load() -> str:
    """Return the load averages of the machine."""
    return ", ".join(f"{one:.1f}" for one in os.getloadavg())


def measured(name: str, peers: Peers) -> None:
    """Measure one table and keep its rows with date and load, for the page."""
    section, before = SECTIONS[name], load()
    begun = time.perf_counter()
    rows = list(section.run(peers))
    kept = {
        "rows": rows,
        "when": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {time.perf_counter() - begun:.0f} s",
        "load": f"{before} before, {load()} after",
    }
    print("\n".join([f"\n{section.title}\n", *table(rows)]), flush=True)
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / f"{name}.json").write_text(json.dumps(kept), encoding="utf-8")


def page(peers: Peers) -> str:
    """Return the whole of PEERS.md, of what was measured last of each table."""
    lines = [
        "# Benchmarks against peers",
        "",
        "Written by `make bench-peers`; do not edit. Each peer runs in an environment of its own, made of the pins in",
        "`benchmarks/peers/requirements`; none is a dependency. A table is one run, and so are its ratios.",
        f"Where the load is above {os.cpu_count()}, other work went on: trust CPU seconds and ratios, not wall time.",
        "",
        "| machine | |",
        "| --- | --- |",
        f"| processor | {cpu_model()}, {os.cpu_count()} cores |",
        f"| memory | {memory_gib()} |",
        f"| system | {platform.system()} {platform.release()}, {platform.machine()} |",
        f"| Python | {platform.python_implementation()} {platform.python_version()}, everywhere |",
        f"| not handed on to the measured | {', '.join(UNSET)} |",
    ]
    for name, section in SECTIONS.items():
        lines += ["", f"## {section.title}", "", section.said, ""]
        file = KEPT / f"{name}.json"
        if not file.exists():
            lines.append("Not measured yet.")
            continue
        kept = json.loads(file.read_text(encoding="utf-8"))
        lines += [f"Measured {kept['when']}; load averages {kept['load']}.", ""]
        lines += table(kept["rows"]) if kept["rows"] else ["Not run: the data beside the checkout are not there."]
    lines += ["", "## Versions", "", "| peer | packages | of them |", "| --- | --- | --- |"]
    for name, peer in peers.items():
        if isinstance(peer, PeerError):
            lines.append(f"| {name} | not installed: {shown(str(peer))} | |")
        else:
            lines.append(f"| {name} | {len(peer.installed)} | {_notable(name, peer)} |")
    return "\n".join(lines) + "\n"


def _notable(name: str, peer: Peer) -> str:
    """Return the pinned packages of a peer with their versions, and what its figures lean on."""
    pins = HERE / "peers" / "requirements" / f"{name}.txt"
    asked = [line.partition("==")[0] for line in pins.read_text("utf-8").split()] if pins.exists() else [name]
    every = dict.fromkeys([*asked, "pydantic", "numpy", "scipy", "pandas", "polars", "langchain-core", "anyio"])
    return ", ".join(f"{one} {peer.installed[one]}" for one in every if one in peer.installed)


def _had(name: str) -> Peer | PeerError:
    try:
        return made(name)
    except PeerError as error:
        print(error, file=sys.stderr)
        return error


def main() -> int:
    """Measure what was asked for, and write PEERS.md after each table."""
    parser = argparse.ArgumentParser(description="Run the benchmarks against peers and rewrite benchmarks/PEERS.md.")
    parser.add_argument("tables", metavar="NAME", nargs="*", help=f"of {', '.join(SECTIONS)}; all when none is named")
    asked = parser.parse_args().tables or list(SECTIONS)
    unknown = [name for name in asked if name not in SECTIONS]
    if unknown:
        parser.error(f"no table {', '.join(unknown)}: there are {', '.join(SECTIONS)}")
    peers: Peers = {"consilience": ours(), **{name: _had(name) for name in PEERS}}
    for name in asked:
        print(f"{name}, load {load()} …", file=sys.stderr, flush=True)
        measured(name, peers)
        RESULTS.write_text(page(peers), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
