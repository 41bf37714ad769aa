"""The valuation roles: 12 by default, 8 optional, the generalist, and 12 placebos, one Markdown file each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from consilience.core.panel import seeded_order
from consilience.core.role import Role
from consilience.errors import ConfigError
from consilience.experiments.panels import Shelf

DEFAULT12: tuple[str, ...] = (
    "appraisal_method",
    "comparables",
    "hedonic",
    "market_economist",
    "building_condition",
    "geospatial_risk",
    "underwriting",
    "buyer_wtp",
    "seller_strategy",
    "rental_usercost",
    "data_auditor",
    "skeptic",
)
"""The default panel in seat order."""

OPTIONAL8: tuple[str, ...] = (
    "construction_cost",
    "zoning",
    "macro_rates",
    "energy",
    "climate_risk",
    "regional_expert",
    "uncertainty_auditor",
    "fairness_auditor",
)
"""Roles that a panel may add."""

GENERALIST = "generalist"
"""The single agent."""

PLACEBO12: tuple[str, ...] = tuple(f"placebo_{number}" for number in range(1, len(DEFAULT12) + 1))
"""One text without a mandate, twelve times; placebo k has the view of default role k."""


def _roster(*ids: str) -> Callable[[int], tuple[Role, ...]]:
    """Return a roster that no seed changes."""
    return lambda _seed: SHELF.members(ids)


def roles_for(roster: str | Sequence[str | Path], *, seed: int = 0) -> tuple[Role, ...]:
    """Return the roles of a named roster, or of a list of role ids and role files, in seat order.

    Args:
        roster: ``"default12"``, ``"all20"`` (default and optional), ``"placebo12"``, ``"shuffled12"``, or a list whose
            entries are ids of packaged roles or paths of the user's own role files (``.md``, ``.yaml``, ``.yml``).
        seed: Read by ``"shuffled12"`` only.

    Raises:
        ConfigError: The roster or a role is unknown, or a role file cannot be read.

    Example:
        >>> [role.id for role in roles_for(["comparables", "skeptic"])]
        ['comparables', 'skeptic']
        >>> len(roles_for("all20"))
        20
    """
    return SHELF.roster(roster, seed=seed) if isinstance(roster, str) else SHELF.members(roster)


def placebo_roles(n: int) -> tuple[Role, ...]:
    """Return the first ``n`` placebos, which have the views of the first ``n`` default roles.

    Raises:
        ConfigError: ``n`` is not between 1 and 12.

    Example:
        >>> [role.view for role in placebo_roles(2)]
        [('P', 'C', 'M'), ('P', 'C')]
    """
    if not 1 <= n <= len(PLACEBO12):
        raise ConfigError(f"{n} placebo roles were asked for", hint=f"Ask for 1 to {len(PLACEBO12)}.")
    return SHELF.members(PLACEBO12[:n])


def shuffled_roles(seed: int) -> tuple[Role, ...]:
    """Return the default prompts permuted over the default views, a control for the fit of prompt and view.

    Seat k keeps the view of default role k and gets the prompt of another one (or, by chance, its own). An id names
    both: ``skeptic_at_comparables`` is the prompt of the skeptic with the view of ``comparables``.

    Args:
        seed: Any integer; equal seeds give equal permutations on every platform.

    Example:
        >>> [role.view for role in shuffled_roles(7)] == [role.view for role in roles_for("default12")]
        True
    """
    seats = roles_for("default12")
    prompts = [seats[index] for index in seeded_order(len(seats), "shuffled12", seed)]
    return tuple(
        Role(id=f"{prompt.id}_at_{seat.id}", view=seat.view, text=prompt.text, framing=prompt.framing)
        for prompt, seat in zip(prompts, seats, strict=True)
    )


def role_prompt_hashes() -> dict[str, str]:
    r"""Return the SHA-256 of each of the 33 role files, view included, by role id.

    Line ends count as ``\n``, so a checkout with other line ends hashes alike; elsewhere it is what ``sha256sum`` says.

    Example:
        >>> len(role_prompt_hashes())
        33
    """
    return SHELF.prompt_hashes()


SHELF = Shelf(
    application="valuation",
    known=(*DEFAULT12, *OPTIONAL8, GENERALIST, *PLACEBO12),
    rosters={
        "default12": _roster(*DEFAULT12),
        "all20": _roster(*DEFAULT12, *OPTIONAL8),
        "placebo12": _roster(*PLACEBO12),
        "shuffled12": shuffled_roles,
    },
)
"""What ships with this application, and the rosters that panels may name."""
