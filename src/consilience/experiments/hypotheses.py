"""The comparisons a study declares before it looks, and what each of them asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EVERY_ARM: Final = "every arm"
OWN_SINGLE: Final = "its cost-matched single agent"


@dataclass(frozen=True)
class Contrast:
    """One comparison of the declared family.

    Attributes:
        arm: Name of an arm, or `EVERY_ARM`.
        against: Name of the arm it is compared with, or `OWN_SINGLE`.
        asks: The question it answers.
    """

    arm: str
    against: str
    asks: str


FAMILY: Final = (
    Contrast("G_debate", "J_single_matched", "Is a debate worth more than one agent with as many tokens?"),
    Contrast("F_independent", "J_single_matched", "Are twelve roles worth more than one agent with as many tokens?"),
    Contrast("G_debate", "I_placebo", "Do the roles' mandates matter?"),
    Contrast("G_debate", "G_fullview", "Does it matter that each role sees only its part of the evidence?"),
    Contrast("H_skeptic", "G_debate", "Does a blinded skeptic help?"),
    Contrast("F_independent", "E_single", "Are several roles better than one?"),
    Contrast(EVERY_ARM, "D_avm", "Is any of it better than a model without any language model?"),
    Contrast(EVERY_ARM, OWN_SINGLE, "Is it worth its price?"),
)
"""Adjusted together, by Holm; whatever else is compared is exploration."""
