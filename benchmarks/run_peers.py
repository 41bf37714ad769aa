"""Run everything against its peers in one run, each peer in an environment of its own, and write PEERS.md anew.

A peer that cannot be installed, or whose script fails, stands in its table with the error.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "peers")]

import analysis  # noqa: E402 - benchmarks are no package
import hotspots  # noqa: E402 - the same
import orchestration  # noqa: E402 - the same
import startup  # noqa: E402 - the same
from environments import UNSET, Peer, PeerError, made, ours  # noqa: E402 - the same
from load import SEATS  # noqa: E402 - the same
from run import cpu_model, memory_gib, shown  # noqa: E402 - the same

RESULTS = HERE / "PEERS.md"
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


def page(parts: Sequence[tuple[Section, Sequence[Row], float]], peers: Peers, loads: tuple[str, str]) -> str:
    """Return the whole of PEERS.md."""
    lines = [
        "# Benchmarks against peers",
        "",
        "Written by `make bench-peers`; do not edit. Each peer runs in an environment of its own, made of the pins in",
        "`benchmarks/peers/requirements`; none is a dependency. Ratios are of one run on one machine.",
        "",
        "| machine | |",
        "| --- | --- |",
        f"| date | {datetime.now(UTC):%Y-%m-%d %H:%M} UTC |",
        f"| processor | {cpu_model()}, {os.cpu_count()} cores |",
        f"| memory | {memory_gib()} |",
        f"| system | {platform.system()} {platform.release()}, {platform.machine()} |",
        f"| Python | {platform.python_implementation()} {platform.python_version()}, everywhere |",
        f"| load averages | before {loads[0]}; after {loads[1]} (above {os.cpu_count()} it is busy with other work) |",
        f"| not handed on to the measured | {', '.join(UNSET)} |",
    ]
    for section, rows, seconds in parts:
        lines += ["", f"## {section.title}", "", section.said, "", f"Took {seconds:.0f} s.", ""]
        lines += table(rows) if rows else ["Not run: the data beside the checkout are not there."]
    for section in list(SECTIONS.values())[len(parts) :]:
        lines += ["", f"## {section.title}", "", "Not measured: the run ended before."]
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
    """Run what was asked for; PEERS.md is rewritten by whole runs only."""
    parser = argparse.ArgumentParser(description="Run the benchmarks against peers and rewrite benchmarks/PEERS.md.")
    parser.add_argument(
        "--only", metavar="NAME", choices=SECTIONS, help=f"run one and only print: {', '.join(SECTIONS)}"
    )
    only = parser.parse_args().only
    print(f"consilience {version('consilience')}, load {load()}", file=sys.stderr)
    peers: Peers = {"consilience": ours(), **{name: _had(name) for name in PEERS}}
    before = load()
    parts: list[tuple[Section, Sequence[Row], float]] = []
    for name in [only] if only else SECTIONS:
        section = SECTIONS[name]
        print(f"{name} …", file=sys.stderr, flush=True)
        begun = time.perf_counter()
        rows = list(section.run(peers))
        parts.append((section, rows, time.perf_counter() - begun))
        print("\n".join([f"\n{section.title}\n", *table(rows)]), flush=True)
        if not only:  # after each, so that a run that is ended loses only what it had not measured
            RESULTS.write_text(page(parts, peers, (before, load())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
