"""Which sales a study leaves out: a named, declared set of rules, applied once and counted rule by rule."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import polars as pl
from pydantic import Field, field_validator, model_validator

from consilience.config import load_yaml
from consilience.core.question import Strict
from consilience.errors import ConfigError
from consilience.registry import Registry, nearest
from consilience.valuation.flags import FLAGS

NAME_PATTERN = r"^[a-z][a-z0-9_]{0,63}$"


class ExclusionRule(Strict):
    """A named reason to leave sales out.

    Attributes:
        name: What its count is told under.
        flags: A sale with any of these flags is dropped.

    Raises:
        ValueError: A flag is unknown (the nearest is named) or none is given.

    Example:
        >>> ExclusionRule(name="flip", flags=("flip",)).flags
        ('flip',)
    """

    name: str = Field(pattern=NAME_PATTERN)
    flags: tuple[str, ...] = Field(min_length=1, strict=False)

    @field_validator("flags")
    @classmethod
    def _known(cls, flags: tuple[str, ...]) -> tuple[str, ...]:
        for flag in flags:
            if flag not in FLAGS:
                raise ValueError(f'unknown flag "{flag}". {nearest(flag, FLAGS)}')
        return flags


class ExclusionSet(Strict):
    """A named set of rules, in the order in which sales are counted under them.

    Attributes:
        name: What the manifest records.
        rules: The rules; none drops nothing.

    Raises:
        ValueError: Two rules share a name.

    Example:
        >>> KEEP_ALL.rules, [rule.name for rule in MARKET.rules][:2]
        ((), ['non_arms_length', 'duplicate'])
    """

    name: str = Field(pattern=NAME_PATTERN)
    rules: tuple[ExclusionRule, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [rule.name for rule in self.rules]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f'the rule "{name}" stands twice in the set "{self.name}"')
        return self


def _rule(name: str, *flags: str) -> ExclusionRule:
    return ExclusionRule(name=name, flags=flags)


KEEP_ALL = ExclusionSet(name="keep_all")
"""The default: oddities are flagged, and every sale stays."""

MARKET = ExclusionSet(
    name="market",
    rules=(
        _rule("non_arms_length", "declared_non_market", "nominal_price", "same_price_resale"),
        _rule("duplicate", "duplicate"),
        _rule("same_day_resale", "same_day_resale"),
        _rule("flip", "flip"),
        _rule("after_sale", "built_after_sale", "renovated_after_sale"),
        _rule("incomplete", "incomplete_when_assessed"),
        _rule("impossible", "impossible_value"),
        _rule("coordinates", "coordinates_out_of_range", "coordinates_swapped"),
    ),
)
"""Open-market sales of homes as they stood: what a ratio study would keep."""

EXCLUSION_SETS: Registry[ExclusionSet] = Registry("exclusion set", (KEEP_ALL, MARKET))
"""The built-in sets by name."""


def exclusion_set(named: str) -> ExclusionSet:
    """Return a built-in set by its name, or the set that a YAML file (``.yaml``, ``.yml``) declares.

    Raises:
        ConfigError: No set has the name (the nearest is named), or the file does not fit or takes a built-in's name.

    Example:
        >>> exclusion_set("market") is MARKET
        True
    """
    if Path(named).suffix.lower() not in {".yaml", ".yml"}:
        return EXCLUSION_SETS[named]
    declared = load_yaml(Path(named), ExclusionSet)
    if declared.name in EXCLUSION_SETS.names():
        raise ConfigError(
            f'{named}: "{declared.name}" is a set that comes with the package', hint="Give yours another name."
        )
    return declared


@dataclass(frozen=True)
class Excluded:
    """What a declared rule set left.

    Attributes:
        kept: The sales that stay, in their order.
        counts: Sales dropped per rule, in the declared order; a sale counts under the first rule that drops it, so the
            counts add up to the sales dropped.
    """

    kept: pl.DataFrame
    counts: dict[str, int]


def exclude(frame: pl.DataFrame, declared: ExclusionSet) -> Excluded:
    """Return the sales that no rule of the set drops, with a count per rule.

    Example:
        >>> sales = pl.DataFrame({"flags": [["flip"], []]}, schema={"flags": pl.List(pl.String)})
        >>> chosen = ExclusionSet(name="two", rules=(MARKET.rules[1], MARKET.rules[3]))
        >>> exclude(sales, chosen).counts
        {'duplicate': 0, 'flip': 1}
    """
    counts: dict[str, int] = {}
    for rule in declared.rules:
        hit = pl.any_horizontal(pl.col("flags").list.contains(flag) for flag in rule.flags)
        before = frame.height
        frame = frame.filter(~hit)
        counts[rule.name] = before - frame.height
    return Excluded(kept=frame, counts=counts)
