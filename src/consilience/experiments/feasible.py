"""Whether a plan can work at all, found out before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from consilience.core.packet import Item
from consilience.core.role import Role
from consilience.core.showing import Seating
from consilience.errors import ConfigError, PlanError
from consilience.protocols import Protocol
from consilience.registry import nearest


def check_items(items: Sequence[Item], protocol: Protocol) -> None:
    """Raise where the items are none, cannot be told apart, or are of a kind the protocol does not serve.

    Raises:
        PlanError: With the first problem.
    """
    if not items:
        raise PlanError("there is nothing to ask: no items", hint="Check --split, --n and the subsample.")
    ids = [item.question.id for item in items]
    if len(set(ids)) != len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise PlanError(f"two items are called {twice}", hint="Give every question its own id.")
    alike = {name.casefold(): name for name in ids}
    for name in ids:
        other = alike[name.casefold()]
        if other != name:
            raise PlanError(
                f"the items {name} and {other} differ only in case, so their files would be one on some systems",
                hint="Give every question its own id.",
            )
    for kind in sorted({item.question.kind for item in items}):
        if kind not in protocol.kinds:
            raise PlanError(
                f"protocol {protocol.name} does not serve {kind} questions",
                hint="Choose another protocol, or an arm that has one.",
            )


def check_parts(parts: Mapping[str, str], roles: Sequence[Role], protocol: Protocol) -> None:
    """Raise where a part that the protocol needs has nobody to play it, or somebody has a part that it does not know.

    Raises:
        ConfigError: The protocol knows no such part.
        PlanError: The panel lacks the role of a part, or a part is given to nobody.

    Example:
        >>> from consilience.protocols import Independent
        >>> check_parts({}, [], Independent())
    """
    for part, role in parts.items():
        if part not in protocol.parts:
            known = nearest(part, protocol.parts) if protocol.parts else f"Protocol {protocol.name} has no parts."
            raise ConfigError(f'unknown part "{part}" of protocol {protocol.name}', hint=known)
        if role not in {seated.id for seated in roles}:
            raise PlanError(
                f'protocol {protocol.name} gives the part "{part}" to the role {role}, whom the panel does not seat',
                hint=f"Use a panel with this role; seated: {', '.join(seated.id for seated in roles)}.",
            )
    missing = [part for part in protocol.parts if part not in parts]
    if missing:
        raise PlanError(
            f'protocol {protocol.name} needs somebody for the part "{missing[0]}"',
            hint="Name its role under `parts` of the treatment.",
        )


def check_members(seating: Seating, protocol: Protocol) -> None:
    """Raise where there are too few members to deliberate, or more than the protocol asks.

    Raises:
        PlanError: With the numbers.

    Example:
        >>> from consilience.protocols import Independent
        >>> check_members(Seating(("analyst_01",)), Independent())
    """
    n = len(seating.members)
    if n < protocol.least_members:
        raise PlanError(
            f"protocol {protocol.name} needs {protocol.least_members} members beside those with a part, and has {n}",
            hint="Use a panel of several roles.",
        )
    if protocol.most_members is not None and n > protocol.most_members:
        raise PlanError(
            f"protocol {protocol.name} asks {protocol.most_members} beside those with a part, and the panel has {n}",
            hint="Use a panel with no more roles, such as generalist for a single agent.",
        )


def check_views(roles: Sequence[Role], items: Sequence[Item], protocol: Protocol) -> None:
    """Raise where a protocol shows members the rest of the packet and there is no rest.

    Raises:
        PlanError: Every member already sees everything.
    """
    if protocol.name != "evidence_only":
        return
    filled = {section.code for item in items for section in item.packet.sections.values() if section.items}
    if all(role.sees(code) for role in roles for code in filled):
        raise PlanError(
            "every member already sees all the evidence, so that showing it the whole packet shows nothing new",
            hint="Use a panel whose roles have views of their own.",
        )


def narrow_roles(roles: Sequence[Role], items: Sequence[Item]) -> frozenset[str]:
    """Return the roles that no item shows more than one section with anything in it."""
    filled = {section.code for item in items for section in item.packet.sections.values() if section.items}
    if len(filled) < 2:
        return frozenset()
    return frozenset(role.id for role in roles if sum(role.sees(code) for code in filled) < 2)
