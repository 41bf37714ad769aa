"""Orchestration: CPU per turn and memory of 12 members over many items, the same prompts and replies for everybody."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from environments import Peer, PeerError
from load import SEATS

ITEMS = 40
REPEATS = 5
LONG_ITEMS = 8_334


@dataclass(frozen=True)
class Contender:
    """One way of asking a panel.

    Attributes:
        peer: The environment it needs.
        script: What is run in it.
        variant: What is named on the script's command line.
        lacks: What ours does at every turn and this does not.
    """

    peer: str
    script: str
    variant: str
    lacks: str

    @property
    def name(self) -> str:
        """As the table shows it."""
        return self.variant if self.peer == "consilience" else f"{self.peer}, {self.variant}"


_NOTHING_KEPT = "no journal, cap, ledger, views, leak guard, verification"
CONTENDERS = (
    Contender("consilience", "peer_floor.py", "gather", "everything: `asyncio.gather` and `model_validate_json`"),
    Contender("consilience", "peer_consilience.py", "panel", ""),
    Contender("autogen", "peer_autogen.py", "client only", f"no agent, no conversation; {_NOTHING_KEPT}"),
    Contender("autogen", "peer_autogen.py", "assistants", f"no team: loose agents gathered by hand; {_NOTHING_KEPT}"),
    Contender("autogen", "peer_autogen.py", "team", f"`GraphFlow`; {_NOTHING_KEPT}"),
    Contender("langgraph", "peer_langgraph.py", "nodes", f"no chat model: a function per node; {_NOTHING_KEPT}"),
    Contender("langgraph", "peer_langgraph.py", "chat model and parser", f"langchain-core's own; {_NOTHING_KEPT}"),
    Contender(
        "langgraph",
        "peer_langgraph.py",
        "nodes, checkpoints in SQLite",
        "no chat model; state kept per step, no call kept; no cap, ledger, views, leak guard, verification, hash chain",
    ),
    Contender("pydantic_ai", "peer_pydantic_ai.py", "agents, output by tool", f"its default; {_NOTHING_KEPT}"),
    Contender("pydantic_ai", "peer_pydantic_ai.py", "agents, prompted output", _NOTHING_KEPT),
    Contender("inspect", "peer_inspect.py", "model only", f"no evaluation; {_NOTHING_KEPT}"),
    Contender(
        "inspect",
        "peer_inspect.py",
        "evaluation",
        "its log holds every call, written as samples end; no cap in money by default, views, leak guard, hash chain",
    ),
)


def run(peers: dict[str, Peer | PeerError]) -> Iterable[dict[str, Any]]:
    """Return a row per contender; each round asks all of them in turn, so that the machine's moods strike all alike."""
    found: dict[str, list[dict[str, Any]]] = {one.name: [] for one in CONTENDERS}
    failed: dict[str, PeerError] = {}
    for _ in range(REPEATS):
        for one in CONTENDERS:
            peer = peers[one.peer]
            if one.name in failed or isinstance(peer, PeerError):
                continue
            try:
                found[one.name].append(peer.run(one.script, one.variant, str(ITEMS)))
            except PeerError as error:
                failed[one.name] = error
    middle = {
        name: {key: statistics.median(run[key] for run in runs) for key in ("cpu_us", "ratio", "peak_mib", "wall_us")}
        for name, runs in found.items()
        if runs
    }
    ours = middle["panel"]
    for one in CONTENDERS:
        at = middle.get(one.name)
        if at is None:
            peer = peers[one.peer]
            yield {"way": one.name, "not run": str(failed.get(one.name, peer))}
            continue
        yield {
            "way": f"consilience, {one.name}" if one.peer == "consilience" and one.name != "gather" else one.name,
            "CPU-µs per turn": round(at["cpu_us"], 1),
            "× floor": round(at["ratio"], 1),
            "× ours": round(at["cpu_us"] / ours["cpu_us"], 2),
            "turns/s": round(1e6 / at["wall_us"]),
            "peak MiB": round(at["peak_mib"], 1),
            "lacks": one.lacks,
        }


def memory(peers: dict[str, Peer | PeerError]) -> Iterable[dict[str, Any]]:
    """Return what a run of 100,000 turns holds; once, since memory does not vary."""
    peer = peers["consilience"]
    if isinstance(peer, PeerError):
        raise peer
    long = peer.run("peer_consilience.py", "long run", str(LONG_ITEMS))
    turns = LONG_ITEMS * SEATS
    yield {
        "what": f"peak resident memory, {turns:,} turns, 4 items in flight",
        "ours": f"{long['peak_mib'] * 2**20 / 1e6:.1f} MB",
        "goal": "80 MB",
        "note": f"{long['imported_mib'] * 2**20 / 1e6:.1f} MB of it with the package imported; "
        f"{long['cpu_us']:.0f} CPU-µs per turn",
    }
