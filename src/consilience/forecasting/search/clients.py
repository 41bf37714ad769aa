"""The search clients by name. A client that speaks to a host loads its library only when it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from consilience.forecasting.search.base import SearchClient
from consilience.forecasting.search.corpus import Corpus
from consilience.forecasting.search.mcp import McpSearch
from consilience.forecasting.search.none import NoSearch
from consilience.forecasting.search.replay import Replay
from consilience.forecasting.search.simulated import SimulatedSearch
from consilience.forecasting.search.tavily import TavilySearch
from consilience.registry import Registry


class ClientEntry:
    """A search client that can be chosen by name, and what it is made of.

    Attributes:
        name: What it is chosen by, and what its clients say as theirs.
        make: Makes one; its arguments are the client's own.
        needs: What a user must give for it, in words for a help text; empty where nothing is needed.
        point_in_time: Whether it answers as of a cutoff by itself. Another sees today's world: whatever lies past the
            cutoff is filtered after it was fetched, and what became easier to find since then cannot be filtered.
    """

    def __init__(self, name: str, make: Callable[..., SearchClient], *, needs: str, point_in_time: bool) -> None:
        self.name = name
        self.make = make
        self.needs = needs
        self.point_in_time = point_in_time

    def __repr__(self) -> str:
        return f"ClientEntry({self.name!r})"


SEARCH_CLIENTS: Final[Registry[ClientEntry]] = Registry(
    "search client",
    (
        ClientEntry("corpus", Corpus.open, needs="a file or folder of dated documents", point_in_time=True),
        ClientEntry("tavily", TavilySearch, needs="a key for Tavily", point_in_time=False),
        ClientEntry("mcp", McpSearch, needs="an MCP server with a search tool", point_in_time=False),
        ClientEntry("none", NoSearch, needs="", point_in_time=True),
        ClientEntry("simulated", SimulatedSearch, needs="a seed", point_in_time=True),
        ClientEntry("replay", Replay, needs="the record of a run", point_in_time=True),
    ),
    group="consilience.search_clients",
)
