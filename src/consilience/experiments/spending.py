"""Spend caps as people write them, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from consilience.errors import ConfigError

CAP_VARIABLES: Final = ("CONSILIENCE_MAX_SPEND_USD", "AV_MAX_SPEND_USD")
MOST_USD: Final = 10**12


def amount_nano(text: str, *, where: str) -> int:
    """Return a dollar amount in nano-dollars, exactly.

    Raises:
        ConfigError: It is no amount from 0 to 10**12, or finer than a nano-dollar.

    Example:
        >>> amount_nano("0.05", where="example"), amount_nano("0", where="example")
        (50000000, 0)
    """
    try:
        amount = Decimal(text)
        if amount.is_finite() and 0 <= amount <= MOST_USD:
            exact = amount.normalize()
            exponent = exact.as_tuple().exponent
            if exact == amount and isinstance(exponent, int) and exponent >= -9:
                return int(exact.scaleb(9))
    except InvalidOperation:
        pass
    raise ConfigError(
        f'{where}: "{text}" is no amount in dollars', hint="Write dollars such as 5 or 0.05, at most nine decimals."
    )


def cap_of_environment(environ: Mapping[str, str]) -> int | None:
    """Return the spend cap that the environment sets, in nano-dollars; None where it sets none.

    Raises:
        ConfigError: What it sets is no amount.

    Example:
        >>> cap_of_environment({"AV_MAX_SPEND_USD": "2"}), cap_of_environment({})
        (2000000000, None)
    """
    said = [(name, environ.get(name)) for name in CAP_VARIABLES]
    return next((amount_nano(text, where=name) for name, text in said if text), None)
