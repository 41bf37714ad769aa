"""List prices and limits of models, and money in integer nano-dollars (1 USD = 10**9)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from consilience.config import load_packaged
from consilience.errors import ConfigError
from consilience.models.request import Usage
from consilience.models.throttle import Rates
from consilience.registry import nearest

NANO = 1_000_000_000
PER = 1_000_000
SIMULATED_PREFIX = "simulated:"
ORACLE_PREFIX = "simulated:oracle:"
"""Simulated analysts with a private signal about the truth, on synthetic items only."""
LOCAL = "local"
LOCAL_PREFIX = "local:"
"""``local`` is the small model that is installed with the extra, ``local:/path/to/model.gguf`` any other."""


def listed_name(model_id: str) -> str:
    """Return the id under which a model is listed; a simulated double is listed as its original.

    Example:
        >>> listed_name("simulated:oracle:gpt-6-luna"), listed_name("gpt-6-luna")
        ('gpt-6-luna', 'gpt-6-luna')
    """
    return model_id.removeprefix(ORACLE_PREFIX).removeprefix(SIMULATED_PREFIX)


def is_local(model_id: str) -> bool:
    """Return whether a model id names an embedded model.

    Example:
        >>> is_local("local:/models/mine.gguf"), is_local("gpt-6-luna")
        (True, False)
    """
    return model_id == LOCAL or model_id.startswith(LOCAL_PREFIX)


def _nano_per_million(value: Any) -> Any:
    """Read a USD amount written as a string, exactly."""
    if not isinstance(value, str):
        raise TypeError('write prices as strings, such as "2.50", so that they are exact')
    try:
        nano = Decimal(value) * NANO
    except InvalidOperation as error:
        raise ValueError(f"{value!r} is no amount") from error
    if not nano.is_finite() or nano < 0 or nano != nano.to_integral_value():
        raise ValueError(f"{value!r} is no non-negative amount in nano-dollars")
    return int(nano)


def _usd_per_million(nano: int) -> str:
    """Write a rate as it is read, so that a recorded price row can be read again."""
    return f"{Decimal(nano) / NANO:f}"


Rate = Annotated[int, BeforeValidator(_nano_per_million), PlainSerializer(_usd_per_million)]


class Price(BaseModel):
    """Nano-dollars per million tokens of each bucket."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: Rate
    cached_input: Rate
    cache_write: Rate
    cache_write_1h: Rate
    output: Rate


class ModelSpec(BaseModel):
    """What is known of one model; unknown is null.

    Attributes:
        provider: The adapter that speaks to it.
        price: List price; ``free`` for own servers.
        read_on: The day the price was read.
        context_tokens: Longest input and output together.
        max_output_tokens: Longest output.
        training_cutoff: The last day its training saw.
        min_cacheable_tokens: Shortest prefix that is cached.
        base_url: Where a ``compatible`` server is, with ``/v1``.
        key_variable: Environment variable with the server's key; none where it takes no key.
        concurrency: Calls in flight.
        requests_per_minute: Calls per minute.
        tokens_per_minute: Tokens per minute.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    provider: Literal["anthropic", "openai", "compatible", "local"]
    price: Price | Literal["free"] | None = None
    read_on: date | None = None
    context_tokens: int | None = Field(default=None, gt=0)
    max_output_tokens: int | None = Field(default=None, gt=0)
    training_cutoff: date | None = None
    min_cacheable_tokens: int | None = Field(default=None, gt=0)
    base_url: str | None = None
    key_variable: str | None = None
    concurrency: int | None = Field(default=None, gt=0)
    requests_per_minute: int | None = Field(default=None, gt=0)
    tokens_per_minute: int | None = Field(default=None, gt=0)

    @property
    def rates(self) -> Rates:
        """The model's own limits."""
        return Rates(self.concurrency, self.requests_per_minute, self.tokens_per_minute)


class Catalogue(BaseModel):
    """All known models and the cost-matched pairs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: dict[str, ModelSpec]
    tiers: dict[str, tuple[str, ...]]

    def spec(self, model_id: str) -> ModelSpec:
        """Return a model's entry; the simulated double of a model has the entry of its original.

        Raises:
            ConfigError: The model is not listed.

        Example:
            >>> load_catalogue().spec("simulated:gpt-6-luna").provider
            'openai'
        """
        plain = listed_name(model_id)
        if is_local(plain):
            plain = LOCAL
        if plain not in self.models:
            raise ConfigError(f'unknown model "{plain}"', hint=nearest(plain, self.models))
        return self.models[plain]

    def tier(self, name: str) -> tuple[str, ...]:
        """Return the cost-matched pair of a tier.

        Raises:
            ConfigError: No such tier.
        """
        if name not in self.tiers:
            raise ConfigError(f'unknown tier "{name}"', hint=nearest(name, self.tiers))
        return self.tiers[name]


def load_catalogue(added: Mapping[str, ModelSpec] | None = None) -> Catalogue:
    """Return the catalogue that ships with the package, with models that a project added or changed."""
    shipped = load_packaged("configs/models.yaml", Catalogue)
    return shipped.model_copy(update={"models": {**shipped.models, **(added or {})}})


def cost_nano(usage: Usage, price: Price | Literal["free"] | None) -> int | None:
    """Return what a call costs in nano-dollars at list price (rounded half up), or None where no price is known.

    Example:
        >>> price = Price(input="3", cached_input="0.3", cache_write="3.75", cache_write_1h="6", output="15")
        >>> cost_nano(Usage(3, 0, 12_304, 0, 550, 0), price) / 1e9
        0.054399
    """
    if price is None:
        return None
    if price == "free":
        return 0
    total = (
        usage.input * price.input
        + usage.cache_read * price.cached_input
        + usage.cache_write_5m * price.cache_write
        + usage.cache_write_1h * price.cache_write_1h
        + (usage.output_visible + usage.output_reasoning) * price.output
    )
    return (total + PER // 2) // PER


def bound_nano(*, input_tokens: int, output_tokens: int, price: Price | Literal["free"] | None) -> int | None:
    """Return the most a call can cost: all input at the dearest input rate, the whole output limit (rounded up).

    Example:
        >>> price = Price(input="2", cached_input="0.2", cache_write="2.5", cache_write_1h="4", output="10")
        >>> bound_nano(input_tokens=1000, output_tokens=100, price=price)
        5000000
    """
    if price is None:
        return None
    if price == "free":
        return 0
    dearest = max(price.input, price.cached_input, price.cache_write, price.cache_write_1h)
    return -(-(input_tokens * dearest + output_tokens * price.output) // PER)
