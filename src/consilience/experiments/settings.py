"""What a project's ``consilience.yaml``, the environment and the flags say, in one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, Strict

from consilience.config import parse_yaml, read_text, validate
from consilience.experiments.spending import CAP_VARIABLES, amount_nano
from consilience.models.prices import Catalogue, ModelSpec, load_catalogue

FILE = "consilience.yaml"


class ProjectFile(BaseModel):
    """``consilience.yaml``: what a project's runs take where no flag says otherwise.

    Attributes:
        max_spend_usd: Spend cap of a run in dollars; 0 means zero. Quote it where exactness past 15 digits matters.
        tier: Price tier of the models.
        committee: How models are assigned to roles.
        concurrency: Items in flight.
        seed: Decides shuffling, assignment and simulated answers.
        models: Models added to the catalogue, or listed anew.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    max_spend_usd: int | float | str | None = None
    tier: str | None = None
    committee: str | None = None
    concurrency: int | None = Field(default=None, ge=1)
    seed: int | None = None
    models: dict[str, Annotated[ModelSpec, Strict(False)]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """What holds for a run.

    Attributes:
        max_spend_nano: The cap in nano-dollars; None for none.
        catalogue: Known models, the project's own among them.
    """

    max_spend_nano: int | None
    tier: str
    committee: str
    concurrency: int
    seed: int
    catalogue: Catalogue


@dataclass(frozen=True)
class Flags:
    """What was typed; None where nothing was."""

    max_spend_usd: str | None = None
    tier: str | None = None
    committee: str | None = None
    concurrency: int | None = None
    seed: int | None = None


def settle(root: Path, flags: Flags, environment: Mapping[str, str]) -> Settings:
    """Return what holds: flags before the environment (for the cap), that before the file, that before defaults.

    Raises:
        ConfigError: The file has an unknown key (the nearest is named) or a wrong value, or an amount is none.
    """
    file = _read(root / FILE)
    return Settings(
        max_spend_nano=_cap(flags, environment, file),
        tier=flags.tier or file.tier or "mid",
        committee=flags.committee or file.committee or "mixed_random",
        concurrency=flags.concurrency or file.concurrency or 4,
        seed=next(seed for seed in (flags.seed, file.seed, 0) if seed is not None),
        catalogue=load_catalogue(file.models),
    )


def _read(path: Path) -> ProjectFile:
    if not path.exists():
        return ProjectFile()
    value = parse_yaml(read_text(path), where=str(path))
    return validate({} if value is None else value, ProjectFile, where=str(path))


def _cap(flags: Flags, environment: Mapping[str, str], file: ProjectFile) -> int | None:
    said = [("--max-spend-usd", flags.max_spend_usd)]
    said += [(name, environment.get(name) or None) for name in CAP_VARIABLES]
    said += [(f"{FILE}: max_spend_usd", None if file.max_spend_usd is None else str(file.max_spend_usd))]
    return next((amount_nano(text, where=where) for where, text in said if text is not None), None)


def keys_and_urls(root: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment, with what the project's ``.env`` adds to it; nothing of it is stored or logged."""
    from dotenv import dotenv_values  # noqa: PLC0415 - only where a model is live

    added = {name: value for name, value in dotenv_values(root / ".env").items() if value is not None}
    return {**added, **environment}
