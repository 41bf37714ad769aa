"""Who is seated: the check every rule makes first, so that the order in which seats answered changes nothing."""

from __future__ import annotations

from consilience.errors import DataError, QuorumError


def seat_order(*, rule: str, seats: tuple[str, ...], answers: int) -> list[int]:
    """Return the positions of the seats in order of their ids.

    Args:
        rule: Name of the rule, for messages.
        seats: Distinct ids of the seats that answered.
        answers: How many answers there are.

    Raises:
        QuorumError: No seat answered.
        DataError: There is not one answer per seat, or two seats share an id.

    Example:
        >>> seat_order(rule="median", seats=("b", "a"), answers=2)
        [1, 0]
    """
    if answers != len(seats) or len(set(seats)) != len(seats):
        raise DataError(
            f"{rule}: {answers} answers for seats {', '.join(seats)}", hint="Give one answer per seat, ids distinct."
        )
    if not seats:
        raise QuorumError(f"{rule} of no answers", hint="Ask more members or lower what may fail.")
    return sorted(range(len(seats)), key=seats.__getitem__)
