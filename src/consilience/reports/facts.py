"""What every reader of a report must be told before relying on a panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Fact:
    """One finding.

    Attributes:
        text: What was found.
        source: Where; empty for a rule of this package.
    """

    text: str
    source: str = ""


DEFINITIONS: Final = (
    ("MdAPE", "median absolute percentage error: half of the answers are off by less than this share of the truth"),
    ("PPE10", "share of the answers that are within 10 % of the truth; PPE20 the same for 20 %"),
    (
        "Coverage",
        "share of the truths inside the stated interval: near 90 % for honest 90 % intervals, less for too narrow ones",
    ),
    ("Cost", "list price of every token, also of turns that came to nothing"),
)
"""What the columns of a report mean."""

NOTICE: Final = (
    "Nothing on this page is a professional opinion of value, nor legal or investment advice. The roles are simulated "
    "analytic roles, not licensed professionals."
)

FACTS: Final = (
    Fact(
        "For the same money, a debate often loses to independent answers with a vote. On PubMedQA one few-shot "
        "chain-of-thought prompt reached 0.79 for $2.60, while the debates reached 0.57 to 0.77 for $7 to $21. On "
        "MedQA a debate of three agents over two rounds led: 0.61 for $28, against 0.54 for self-consistency at $22.",
        "Smit et al. 2024, arXiv 2311.17371, authors' notebook, GPT-3.5",
    ),
    Fact(
        "Voting brings most of the gain of a debate; debating by itself does not raise the expected share of correct "
        "answers.",
        "Choi et al. 2025, arXiv 2508.17536",
    ),
    Fact("With equal tokens, self-consistency is frequently ahead.", "Wang et al. 2024, arXiv 2406.06461"),
    Fact(
        "Copies of one model are no panel. On 202 resolved questions a review round among different models cut log "
        "loss by about 4 % (p = 0.017); among copies of one model it changed nothing.",
        "Schneider & Schramm 2025, arXiv 2512.22625",
    ),
    Fact("More rounds do not mean more accuracy.", "Kaesberg et al. 2025, arXiv 2502.19130"),
    Fact("A discussion can make facts disappear.", "Wan et al. 2026, arXiv 2606.03032"),
    Fact("Members that agree may all be wrong: an agreement share is not a confidence."),
    Fact(
        "Hosted models do not give the same reply twice. Arms with agents can be traced and replayed from their "
        "journal, not reproduced bit by bit at the vendor; the variation between runs has to be measured."
    ),
    Fact(
        "Web search filtered by date still leaks. One audit found about 71 % of questions touched and 41 % revealed; "
        "the Brier score moved from 0.242 (clean) to 0.108 (leaky)."
    ),
)
