"""Where questions come from, one file per source; a feed returns all its questions or raises.

Those read from a file are in `FEEDS`. Metaculus is asked over the network, by its client.
"""

from __future__ import annotations

from consilience.forecasting.feeds.base import Feed, Skipped
from consilience.forecasting.feeds.files import Files
from consilience.forecasting.feeds.forecastbench import QuestionSets, ResolvedTargets
from consilience.forecasting.feeds.markets import Manifold, Polymarket
from consilience.registry import Registry

__all__ = ["FEEDS", "Feed", "Skipped"]

FEEDS: Registry[Feed] = Registry(
    "feed of questions",
    (Files(), QuestionSets(), ResolvedTargets(), Polymarket(), Manifold()),
    group="consilience.feeds",
)
"""Feeds by name; `Feed.read` takes a file."""
