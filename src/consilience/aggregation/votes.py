"""The rules for votes: ballots become a winner, a tie or no decision, counted exactly.

A ballot is valid for a rule or it is none; nothing is ever repaired into a vote, and a tie is never broken here.
"""

from __future__ import annotations

from typing import Final

from consilience.aggregation.heads import Approval, Majority, Plurality, Supermajority, Unanimity
from consilience.aggregation.ranked import Borda, Copeland, Minimax, RankedPairs, Schulze
from consilience.aggregation.runoff import InstantRunoff
from consilience.aggregation.tallies import VoteRule
from consilience.aggregation.weighing import ConfidenceWeighted, WeightedVote
from consilience.registry import Registry

VOTE_RULES: Final[Registry[VoteRule]] = Registry(
    "vote rule",
    (
        *(Plurality(), Majority(), Supermajority(), Unanimity()),
        *(WeightedVote(), ConfidenceWeighted()),
        *(Borda(), Approval(), Copeland(), Minimax(), RankedPairs(), Schulze(), InstantRunoff()),
    ),
    group="consilience.vote_rules",
)

DEFAULT_VOTE_RULE: Final = "plurality"
"""The primary comparison, fixed beforehand."""
