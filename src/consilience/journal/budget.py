"""The spend cap: reserve the worst case before each attempt, settle after, so that the cap holds at every moment.

All amounts are integers in nano-USD (10⁻⁹ USD). Used from one event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

from consilience.errors import BudgetError

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Envelope:
    """What one admitted item may need in all, held against the cap until the item ends.

    Attributes:
        bound_nano: The item's worst case.
        used_nano: Spent and reserved by the item's attempts so far; may exceed the bound.
        open: The item has not ended.
    """

    bound_nano: int
    used_nano: int = 0
    open: bool = True

    @property
    def remainder_nano(self) -> int:
        """What is still held for the item."""
        return max(0, self.bound_nano - self.used_nano) if self.open else 0


@dataclass(eq=False, slots=True)
class Reservation:
    """The worst case of one attempt in flight."""

    nano: int
    envelope: Envelope | None = None
    open: bool = True


@dataclass(eq=False, slots=True)
class _Waiter(Generic[T]):
    attempt: Callable[[], T | None]
    hopeless: Callable[[], BudgetError | None]
    result: T | None = None
    error: BudgetError | None = None
    ready: anyio.Event = field(default_factory=anyio.Event)

    def served(self) -> bool:
        """Try once; return whether the wait is over, well or badly."""
        self.result = self.attempt()
        if self.result is None:
            self.error = self.hopeless()
            if self.error is None:
                return False
        self.ready.set()
        return True


def usd(nano: int) -> str:
    """Return an amount in dollars with at least two decimals.

    Example:
        >>> usd(50_000_000), usd(1_234_567)
        ('$0.05', '$0.001234567')
    """
    whole, part = divmod(abs(nano), 10**9)
    return f"{'-' if nano < 0 else ''}${whole:,}.{f'{part:09d}'.rstrip('0').ljust(2, '0')}"


class Budget:
    """Bookkeeping of one run's spend cap.

    At every moment ``spent_nano + reserved_nano <= cap_nano + overrun_nano``, and ``overrun_nano`` is 0 unless a vendor
    charged more than the bound that was reserved, which is recorded as it is.

    Args:
        cap_nano: The cap; 0 means zero, None means no cap.
        spent_nano: What a resumed run has spent before (lost attempts at their reservation).

    Raises:
        ValueError: An amount is negative, or a reservation is settled twice.

    Example:
        >>> budget = Budget(50_000_000)
        >>> first = budget.reserve(40_000_000)
        >>> budget.reserve(20_000_000) is None
        True
        >>> budget.settle(first, 10_000_000)
        >>> budget.spent_nano, budget.reserved_nano, budget.reserve(20_000_000) is None
        (10000000, 0, False)
    """

    def __init__(self, cap_nano: int | None, *, spent_nano: int = 0) -> None:
        self.cap_nano = None if cap_nano is None else _amount(cap_nano)
        self.spent_nano = _amount(spent_nano)
        self.reserved_nano = 0
        self.overrun_nano = 0
        self.in_flight = 0
        self._held = 0
        self._attempts: list[_Waiter[Reservation]] = []
        self._admissions: list[_Waiter[Envelope]] = []

    @property
    def held_nano(self) -> int:
        """What admitted items may still need beyond what is spent and reserved; counts for admission only."""
        return self._held

    def reserve(self, nano: int, envelope: Envelope | None = None) -> Reservation | None:
        """Return a reservation, or None when it does not fit now.

        An item's attempt draws on its envelope first and beyond it on what no other item holds; only when nothing is in
        flight, so that waiting could not help, may it draw on what others hold. The cap is never passed.
        """
        _amount(nano)
        if self.cap_nano is not None:
            free = self.cap_nano - self.spent_nano - self.reserved_nano
            others = self._held - (envelope.remainder_nano if envelope is not None else 0)
            if nano > free or (nano > free - others and self.in_flight and nano > _own(envelope)):
                return None
        self._use(envelope, nano)
        self.reserved_nano += nano
        self.in_flight += 1
        return Reservation(nano, envelope)

    def settle(self, reservation: Reservation, nano: int) -> None:
        """Replace a reservation by what was charged, then serve those who wait.

        A charge above the reservation is recorded truthfully and the difference added to ``overrun_nano``.
        """
        if not reservation.open:
            raise ValueError("this reservation is settled already")
        self.spent_nano += _amount(nano)
        reservation.open = False
        self._use(reservation.envelope, nano - reservation.nano)
        self.reserved_nano -= reservation.nano
        self.overrun_nano += max(0, nano - reservation.nano)
        self.in_flight -= 1
        self._wake()

    def adopt(self, nano: int) -> Reservation:
        """Return the reservation of an attempt that an earlier process left open and that still runs at the vendor.

        It was counted as spent when the record was folded; from now on it is reserved, to be settled like any other.
        """
        self.spent_nano -= _amount(nano)
        self.reserved_nano += nano
        self.in_flight += 1
        return Reservation(nano)

    def release(self, reservation: Reservation) -> None:
        """Give a reservation back; its request never left."""
        self.settle(reservation, 0)

    async def acquire(self, nano: int, envelope: Envelope | None = None) -> Reservation:
        """Return a reservation, waiting for settlements while it does not fit.

        Raises:
            BudgetError: It does not fit and nothing is in flight that could free anything.
        """

        def hopeless() -> BudgetError | None:
            return None if self.in_flight else self._refusal("the next call needs up to", nano)

        return await _served(self._attempts, lambda: self.reserve(nano, envelope), hopeless, self.release)

    async def admit(self, bound_nano: int) -> Envelope:
        """Return an item's envelope, waiting for other items to end while its bound does not fit.

        Raises:
            BudgetError: It does not fit, nothing is in flight and no item holds anything.
        """

        def hopeless() -> BudgetError | None:
            return None if self.in_flight or self._held else self._refusal("the next item may need up to", bound_nano)

        return await _served(self._admissions, lambda: self._admit(bound_nano), hopeless, self.end)

    def end(self, envelope: Envelope) -> None:
        """Free what an item that ended did not use."""
        self._held -= envelope.remainder_nano
        envelope.open = False
        self._wake()

    def _admit(self, bound_nano: int) -> Envelope | None:
        _amount(bound_nano)
        promised = self.spent_nano + self.reserved_nano + self._held + bound_nano
        if self.cap_nano is not None and promised > self.cap_nano:
            return None
        self._held += bound_nano
        return Envelope(bound_nano)

    def _use(self, envelope: Envelope | None, nano: int) -> None:
        if envelope is not None:
            self._held -= envelope.remainder_nano
            envelope.used_nano += nano
            self._held += envelope.remainder_nano

    def _refusal(self, what: str, needed: int) -> BudgetError:
        cap = self.cap_nano or 0
        if self.spent_nano > cap:
            return BudgetError(
                f"the spend cap of {usd(cap)} lies below the {usd(self.spent_nano)} this run has spent already",
                hint=f"Set the cap above {usd(self.spent_nano + needed)}; what was answered is kept.",
                needed_nano=needed,
            )
        return BudgetError(
            f"spend cap reached: {usd(self.spent_nano)} of {usd(cap)} spent, {what} {usd(needed)}",
            hint="Raise the cap and run the same command again; what was answered is kept. "
            f"Leave room above {usd(self.spent_nano + needed)}: the cap bears the worst case of every call.",
            needed_nano=needed,
        )

    def _wake(self) -> None:
        """Try those who wait, first come first; attempts of running items before new items."""
        if self._attempts:
            self._attempts[:] = [waiter for waiter in self._attempts if not waiter.served()]
        if self._admissions:
            self._admissions[:] = [waiter for waiter in self._admissions if not waiter.served()]


async def _served(
    queue: list[_Waiter[T]],
    attempt: Callable[[], T | None],
    hopeless: Callable[[], BudgetError | None],
    give_back: Callable[[T], None],
) -> T:
    """Return what ``attempt`` gives, now or once a wake-up finds that it fits; raise when waiting is hopeless."""
    result = attempt()
    if result is not None:
        return result
    waiter = _Waiter(attempt, hopeless)
    if not waiter.served():
        queue.append(waiter)
        woken = False
        try:
            await waiter.ready.wait()
            woken = True
        finally:
            if not woken:  # cancelled, perhaps after it was served
                if waiter in queue:
                    queue.remove(waiter)
                if waiter.result is not None:
                    give_back(waiter.result)
    if waiter.result is None:
        raise waiter.error or AssertionError("a served waiter has a result or an error")
    return waiter.result


def _own(envelope: Envelope | None) -> int:
    return envelope.remainder_nano if envelope is not None else 0


def _amount(nano: int) -> int:
    if nano < 0:
        raise ValueError(f"an amount of money cannot be negative: {nano}")
    return nano
