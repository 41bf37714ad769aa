"""Who answers together: seats, panels, committees, and whether the members differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from consilience.core.canonical import sha256_hex
from consilience.core.question import Strict
from consilience.core.role import Role
from consilience.core.showing import Seating

Labels = Literal["neutral", "role"]


class Seat(Strict):
    """A role with a model, known to the others by its label only.

    Attributes:
        label: What others, and itself, know it by.
        role: Who answers, and what it may see.
        model: Model id.
        part: What it does beside the members' rounds (``skeptic``, ``judge`` …); None for a member.
    """

    label: str
    role: Role
    model: str
    part: str | None = None


def seat_labels(roles: Sequence[Role], *, labels: Labels = "neutral") -> tuple[str, ...]:
    """Return the labels members know each other by, fixed per roster.

    Neutral labels keep a placebo blind and give no name authority.

    Example:
        >>> seat_labels([Role(id="skeptic", view=("all",), text="Doubt.")])
        ('analyst_01',)
    """
    if labels == "role":
        return tuple(role.id for role in roles)
    return tuple(f"analyst_{number:02d}" for number in range(1, len(roles) + 1))


def seeded_order(n: int, *parts: str | int) -> tuple[int, ...]:
    """Return a permutation of ``range(n)`` that depends only on ``parts``, on every platform and version.

    Example:
        >>> sorted(seeded_order(5, 7, "item", "analyst_01"))
        [0, 1, 2, 3, 4]
    """
    stem = "\x1f".join(str(part) for part in parts)
    keys = [sha256_hex(f"{stem}\x1f{index}".encode("utf-8", "surrogatepass")) for index in range(n)]
    return tuple(sorted(range(n), key=keys.__getitem__))


def mixed_models(models: Sequence[str], n: int, *, seed: int, item_id: str) -> tuple[str, ...]:
    """Return a balanced random assignment of ``models`` to ``n`` seats for one item.

    Every model gets ``n / len(models)`` seats (one more for some where that is no whole number).

    Example:
        >>> sorted(mixed_models(["a", "b"], 4, seed=1, item_id="x"))
        ['a', 'a', 'b', 'b']
    """
    balanced = [models[index % len(models)] for index in range(n)]
    return tuple(balanced[index] for index in seeded_order(n, "committee", seed, item_id))


def seats_of(
    roles: Sequence[Role], models: Sequence[str], *, labels: Labels = "neutral", parts: Mapping[str, str] | None = None
) -> tuple[Seat, ...]:
    """Return one seat per role.

    Args:
        roles: In seat order.
        models: One model id per role.
        labels: What members know each other by.
        parts: The role that has each part beside the members, such as ``{"skeptic": "skeptic"}``.

    Raises:
        ValueError: There are not as many models as roles.

    Example:
        >>> seats_of([Role(id="skeptic", view=("all",), text="Doubt.")], ["m"])[0].label
        'analyst_01'
    """
    names = seat_labels(roles, labels=labels)
    part_of = {role: part for part, role in (parts or {}).items()}
    return tuple(
        Seat(label=label, role=role, model=model, part=part_of.get(role.id))
        for label, role, model in zip(names, roles, models, strict=True)
    )


def seating_of(seats: Sequence[Seat]) -> Seating:
    """Return who is a member and who has which part.

    Example:
        >>> doubter = Role(id="skeptic", view=("all",), text="Doubt.")
        >>> seating_of(seats_of([doubter], ["m"], parts={"skeptic": "skeptic"})).parts
        {'skeptic': 'analyst_01'}
    """
    return Seating(
        members=tuple(seat.label for seat in seats if seat.part is None),
        parts={seat.part: seat.label for seat in seats if seat.part is not None},
    )


DiversityCode = Literal["copies", "axes", "few", "even"]


def diversity_problems(
    seats: Sequence[Seat], *, voters: bool = False, critical: bool = False
) -> tuple[tuple[DiversityCode, str], ...]:
    """Return what makes these seats less than a panel, each with its name; empty when nothing does.

    Members equal in role text, view, model and framing answer as one (``copies``); fewer than two differing axes leave
    little to disagree about (``axes``); voters are at least 3, or 5 when the decision is critical (``few``), and odd
    (``even``).

    Example:
        >>> role = Role(id="a", view=("all",), text="Judge.")
        >>> diversity_problems(seats_of([role, role], ["m", "m"]))[0]
        ('copies', 'analyst_02 is a copy of analyst_01 (same role text, view, model and framing)')
    """
    axes: Mapping[str, list[object]] = {
        "role text": [seat.role.text_sha256 for seat in seats],
        "view": [tuple(sorted(seat.role.view)) for seat in seats],
        "model": [seat.model for seat in seats],
        "framing": [seat.role.framing for seat in seats],
    }
    found: list[tuple[DiversityCode, str]] = []
    first: dict[tuple[object, ...], str] = {}
    for seat, *key in zip(seats, *axes.values(), strict=True):
        twin = first.setdefault(tuple(key), seat.label)
        if twin != seat.label:
            found.append(("copies", f"{seat.label} is a copy of {twin} (same role text, view, model and framing)"))
    differing = [name for name, values in axes.items() if len(set(values)) > 1]
    if len(seats) > 1 and len(differing) < 2:
        named = differing[0] if differing else "nothing"
        found.append(("axes", f"members differ in {named} only; at least two of {', '.join(axes)} should differ"))
    if voters:
        least = 5 if critical else 3
        if len(seats) < least:
            found.append(("few", f"{len(seats)} voters; at least {least} are needed"))
        if len(seats) % 2 == 0:
            found.append(("even", f"{len(seats)} voters can tie; an odd number cannot in a yes/no vote"))
    return tuple(found)


def diversity_warnings(seats: Sequence[Seat], *, voters: bool = False, critical: bool = False) -> tuple[str, ...]:
    """Return what makes these seats less than a panel, in sentences; empty when nothing does.

    Example:
        >>> role = Role(id="a", view=("all",), text="Judge.")
        >>> diversity_warnings(seats_of([role], ["m"]))
        ()
    """
    return tuple(text for _, text in diversity_problems(seats, voters=voters, critical=critical))
