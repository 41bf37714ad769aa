"""Protocols: the order of asking, nothing else. They see labels, turns and outcomes; never a model or a record."""

from __future__ import annotations

from consilience.protocols.adversarial import Adversarial
from consilience.protocols.base import Protocol
from consilience.protocols.controls import Displaced, EvidenceOnly, PeersOnly, Reask
from consilience.protocols.debate import Debate
from consilience.protocols.delphi import Delphi
from consilience.protocols.escalation import Escalation
from consilience.protocols.independent import Independent
from consilience.protocols.single import Single
from consilience.protocols.skeptic import BlindedSkeptic
from consilience.protocols.staged import STAGED_RULES, Staged
from consilience.registry import Registry

PROTOCOLS: Registry[type[Protocol]] = Registry(
    "protocol",
    (
        Independent,
        Debate,
        BlindedSkeptic,
        Single,
        Delphi,
        Adversarial,
        Staged,
        Escalation,
        Reask,
        PeersOnly,
        EvidenceOnly,
        Displaced,
    ),
    group="consilience.protocols",
)

__all__ = ["PROTOCOLS", "STAGED_RULES", "Debate", "Independent", "Protocol", "Single"]
