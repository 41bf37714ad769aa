"""Fixed rules that make a final probability of a panel, a debate of two advocates and a supervisor."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from consilience.aggregation.odds import BOUNDS, scale_odds
from consilience.core.answers import Probability
from consilience.errors import DataError

Confidence = Literal["high", "medium", "low"]

CONFIDENCE: Final[dict[Confidence, float]] = {"high": 0.8, "medium": 0.6, "low": 0.5}
PANEL_SHARE: Final = 0.7
DEBATE_SHARE: Final = 0.6
STRICT_EXPONENT: Final = math.sqrt(3)


@dataclass(frozen=True)
class Supervisor:
    """What a supervisor answered.

    Attributes:
        p: Its probability of yes.
        confidence: How sure it says to be.
    """

    p: float
    confidence: Confidence


@dataclass(frozen=True)
class StagedProbability:
    """A final probability and what it came through.

    Attributes:
        value: The final probability.
        midpoint: Between the two advocates; None without a debate.
        after_debate: The panel's probability once the debate entered.
        confidence: High .8, medium .6, low .5 as the supervisor said; None without one.
        flags: ``no_debate``, ``no_supervisor``: stages that did not take place.
    """

    value: float
    midpoint: float | None
    after_debate: float
    confidence: float | None
    flags: tuple[str, ...] = ()


def blend(*, panel: float, advocates: tuple[float, float] | None, supervisor: Supervisor | None) -> StagedProbability:
    """Return 0.7 panel + 0.3 midpoint of the advocates, then the supervisor's part, inside [.01, .99].

    A supervisor of high confidence replaces, one of medium enters with 0.4, one of low is ignored. A stage that did not
    take place changes nothing.

    Raises:
        DataError: A number is no probability.

    Example:
        >>> made = blend(panel=0.1166, advocates=(0.45, 0.15), supervisor=Supervisor(0.18, "medium"))
        >>> round(made.after_debate, 5), round(made.value, 3), made.confidence
        (0.17162, 0.175, 0.6)
    """
    _check(panel, *(advocates or ()), *(() if supervisor is None else (supervisor.p,)))
    midpoint = None if advocates is None else sum(advocates) / 2
    after = panel if midpoint is None else PANEL_SHARE * panel + (1 - PANEL_SHARE) * midpoint
    value = after
    if supervisor is not None and supervisor.confidence == "high":
        value = supervisor.p
    elif supervisor is not None and supervisor.confidence == "medium":
        value = DEBATE_SHARE * after + (1 - DEBATE_SHARE) * supervisor.p
    low, high = BOUNDS
    missing = _missing(advocates, supervisor)
    return StagedProbability(min(max(value, low), high), midpoint, after, _confidence(supervisor), missing)


def strict(
    *,
    panel: float,
    advocates: tuple[float, float] | None,
    consensus: bool,
    supervisor: Supervisor | None,
) -> StagedProbability:
    """Return the panel's mean, replaced by the advocates' midpoint on consensus, its log-odds times the root of 3.

    A supervisor replaces it before that factor, if its confidence is high.

    Args:
        panel: Mean of the panel.
        advocates: Their last probabilities; None without a debate.
        consensus: Whether they came to agree.
        supervisor: None without one.

    Raises:
        DataError: A number is no probability.

    Example:
        >>> made = strict(panel=0.05, advocates=(0.08, 0.04), consensus=True, supervisor=None)
        >>> round(made.after_debate, 9), round(made.value, 4)
        (0.06, 0.0084)
    """
    _check(panel, *(advocates or ()), *(() if supervisor is None else (supervisor.p,)))
    midpoint = None if advocates is None else sum(advocates) / 2
    after = midpoint if midpoint is not None and consensus else panel
    chosen = supervisor.p if supervisor is not None and supervisor.confidence == "high" else after
    value = scale_odds(chosen, exponent=STRICT_EXPONENT)
    return StagedProbability(value, midpoint, after, _confidence(supervisor), _missing(advocates, supervisor))


def supervised(said: Probability | None) -> Supervisor | None:
    """Return a supervisor's answer with how sure it says to be: high from .8 up, medium from .6 up, else low.

    One that does not say is None, as if there were none: how much its answer should enter is not known.

    Example:
        >>> said = dict(rationale="", evidence_ids=(), reasoning_summary="", counterarguments=(), missing_data=())
        >>> supervised(Probability(p_yes=0.3, confidence=0.8, **said)), supervised(Probability(p_yes=0.3, **said))
        (Supervisor(p=0.3, confidence='high'), None)
    """
    if said is None or said.confidence is None:
        return None
    labels = (label for label, least in CONFIDENCE.items() if said.confidence >= least)
    return Supervisor(said.p_yes, next(labels, "low"))


def _missing(advocates: tuple[float, float] | None, supervisor: Supervisor | None) -> tuple[str, ...]:
    stages = (("no_debate", advocates), ("no_supervisor", supervisor))
    return tuple(flag for flag, stage in stages if stage is None)


def _confidence(supervisor: Supervisor | None) -> float | None:
    return None if supervisor is None else CONFIDENCE[supervisor.confidence]


def _check(*said: float) -> None:
    for p in said:
        if not 0 <= p <= 1:
            raise DataError(f"{p} is no probability", hint="Give numbers in [0, 1].")
