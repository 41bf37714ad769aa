"""Protocols: the order of asking, nothing else. They see labels, turns and outcomes; never a model or a record."""

from __future__ import annotations

from consilience.protocols.base import Protocol
from consilience.protocols.debate import Debate
from consilience.protocols.independent import Independent
from consilience.registry import Registry

PROTOCOLS: Registry[type[Protocol]] = Registry("protocol", (Independent, Debate), group="consilience.protocols")

__all__ = ["PROTOCOLS", "Debate", "Independent", "Protocol"]
