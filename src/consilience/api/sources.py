"""Where research agents search, and how: from what a user chose to a search client and the rules of research."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from pydantic import ValidationError

from consilience.api.running import now
from consilience.errors import ConfigError, reason
from consilience.forecasting.pipeline import Research
from consilience.forecasting.search.base import SearchClient
from consilience.forecasting.search.clients import SEARCH_CLIENTS
from consilience.forecasting.search.policy import SourcePolicy
from consilience.forecasting.search.tavily import BASE_URL, KEY_VARIABLE
from consilience.registry import nearest

CLIENTS: Final = ("corpus", "tavily", "mcp", "none", "simulated")
"""Clients that a command can open; ``replay`` is what `consilience replay` uses."""


@dataclass(frozen=True)
class Sources:
    """Where agents search.

    Attributes:
        search: Name of the client; None for the corpus where one is given.
        corpus: Dated documents.
        mcp_server: Address or command.
    """

    search: str | None
    corpus: Path | None
    mcp_server: str | None


def client_of(sources: Sources, environ: Mapping[str, str], *, live: bool, seed: int) -> SearchClient:
    """Return the search client; nothing is searched.

    Raises:
        ConfigError: The client is unknown, what it needs is missing, or nothing says where to search.
        DataError: The corpus cannot be read.
    """
    name = sources.search or ("corpus" if sources.corpus is not None else None if live else "simulated")
    if name is None:
        raise ConfigError("nothing says where to search", hint="Give --corpus PATH, or --search tavily, mcp or none.")
    if name not in CLIENTS:
        raise ConfigError(f'--search: unknown "{name}"', hint=nearest(name, CLIENTS))
    make = SEARCH_CLIENTS[name].make
    match name:
        case "corpus":
            if sources.corpus is None:
                raise ConfigError("--search corpus needs documents", hint="Give --corpus PATH.")
            return make(sources.corpus, retrieved_at=now())
        case "tavily":
            return make(environ.get(KEY_VARIABLE, ""), base_url=environ.get("TAVILY_BASE_URL") or BASE_URL)
        case "mcp":
            if sources.mcp_server is None:
                raise ConfigError("--search mcp needs a server", hint="Give --mcp-server ADDRESS or COMMAND.")
            words = sources.mcp_server.split()
            return make(sources.mcp_server if sources.mcp_server.startswith("http") else words)
        case "simulated":
            return make(seed=seed, retrieved_at=now())
    return make()


def research_of(  # noqa: PLR0913 - what was typed
    *,
    steps: int,
    results: int,
    undated: str,
    injection: str,
    gates: str,
    show_market: bool,
    block: Sequence[str] | None,
    only: Sequence[str] | None,
    allow: Sequence[str] = (),
) -> Research:
    """Return how agents research, as typed.

    Raises:
        ConfigError: A word is none of those allowed, or a host is none.
    """
    for option, said, known in (
        ("--undated", undated, ("reject", "flag")),
        ("--on-injection", injection, ("drop", "keep")),
        ("--gates", gates, ("report", "enforce")),
    ):
        if said not in known:
            raise ConfigError(f'{option}: unknown "{said}"', hint=nearest(said, known))
    try:
        policy = SourcePolicy(blocked=tuple(block or ()), allowed=tuple(only or ()))
    except ValidationError as error:
        raise ConfigError(f"--block or --only: {reason(error)}", hint="Give hosts, such as example.org.") from error
    return Research(
        policy=policy,
        max_steps=steps,
        max_search_results=results,
        undated=cast("Literal['reject', 'flag']", undated),
        on_injection=cast("Literal['drop', 'keep']", injection),
        gates=cast("Literal['report', 'enforce']", gates),
        show_market=show_market,
        allow=frozenset(allow),
    )
