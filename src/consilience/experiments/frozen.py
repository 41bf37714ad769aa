"""The freeze of a study on disk: taken once, read back whole, and held against what is there now."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from importlib.metadata import distributions
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Any, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from consilience.aggregation.answers import PRIMARY_RULES, rule_names
from consilience.config import parse_yaml, read_text
from consilience.core.canonical import tagged_hash
from consilience.core.role import Role
from consilience.errors import DataError, IntegrityError, PlanError, reason
from consilience.experiments.freeze import PROJECT_FILE, deviations, notes, package_hashes, project_digest
from consilience.experiments.hypotheses import FAMILY
from consilience.experiments.storage import write_json
from consilience.experiments.weights import FILE as WEIGHTS

if TYPE_CHECKING:
    import polars as pl

FREEZE: Final = "freeze.json"
SPLITS: Final = "data/processed/splits.parquet"
SUBSAMPLES: Final = "data/processed/llm_subsamples.parquet"
RULES: Final = "rules"
PRIMARY: Final = "primary rules"
HYPOTHESES: Final = "declared family"
SEEDED: Final = "drawn anew by the seed of each run"
"""Stands for each role of a panel that is not the same under every seed."""


class Hashed(BaseModel):
    """Data of a study.

    Attributes:
        sha256: Of its content; how it is stored does not matter.
        rows: Rows by split (of subsamples: by split and tier).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    rows: dict[str, int] = Field(default_factory=dict)


class Environment(BaseModel):
    """What a study was frozen with: another version is worth a note and is no deviation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    python: str
    packages: dict[str, str]


class Past(BaseModel):
    """A freeze that was replaced, and why."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: str
    frozen_at: AwareDatetime
    reason: str


class Contents(BaseModel):
    """What may not change.

    Attributes:
        files: Hash of every deciding file, by sort and by path in the package.
        data: Splits, subsamples and fitted weights by path; None for what is not there.
        analysis: Rules by kind of answer, which of them is primary, and the declared family of comparisons.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: dict[str, dict[str, str]]
    data: dict[str, Hashed | None]
    analysis: dict[str, Any]


class Freeze(Contents):
    """What a study is frozen as: its contents, and what a reader of it wants to know.

    Attributes:
        frozen_at: When.
        models: Ids of the known models.
        tiers: Model ids by price tier.
        treatments: The declared arms.
        panels: Ids of the roles of every panel that an arm names.
        environment: Versions of Python and of packages.
        history: Freezes that this one replaced, oldest first.
    """

    frozen_at: AwareDatetime
    models: list[str]
    tiers: dict[str, list[str]]
    treatments: dict[str, dict[str, Any]]
    panels: dict[str, list[str]]
    environment: Environment
    history: list[Past] = Field(default_factory=list)

    def primary_rules(self, kind: str) -> dict[int, str]:
        """Return the primary rule of a kind of answer, from how many declared seats on."""
        return {int(least): str(rule) for least, rule in self.analysis[PRIMARY][kind].items()}

    @property
    def head(self) -> str:
        """The hash of the whole freeze: noted elsewhere, it shows any later change of the file."""
        return tagged_hash("freeze", self.model_dump(mode="json"))


@dataclass(frozen=True)
class Standing:
    """How what is there now stands to a freeze.

    Attributes:
        head: The freeze's head hash.
        deviations: One sentence per thing that changed.
        notes: Other versions of Python and packages.
    """

    head: str
    deviations: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Study:
    """Where a study lies.

    Attributes:
        root: The project folder, with its data and its ``consilience.yaml``.
        results: The results folder, in which the freeze is kept.
        package: The package's own folder.
    """

    root: Path
    results: Path
    package: Traversable

    @classmethod
    def of(cls, root: Path, *, results: Path | None = None) -> Study:
        """Return the study of a project folder, asked by the installed package."""
        return cls(root, root / "results" if results is None else results, files("consilience"))

    @property
    def path(self) -> Path:
        """The freeze."""
        return self.results / FREEZE


def take(study: Study, *, roles_for: Callable[[str, int], tuple[Role, ...]], now: datetime) -> Freeze:
    """Return the freeze of what is there now, with no history.

    Args:
        study: Where it lies.
        roles_for: Roles of a panel by its name and a seed, as the study's application has them.
        now: Time of the freeze, with time zone.

    Raises:
        ConfigError: A configuration file cannot be read.
        DataError: Splits, subsamples or weights cannot be read.
    """
    models, treatments = _config(study, "models"), _config(study, "treatments")["treatments"]
    own = _project_settings(study).get("models") or {}
    named = sorted({declared["panel"] for declared in treatments.values()})
    return Freeze(
        frozen_at=now,
        **dict(contents(study)),
        models=sorted({*models["models"], *own}),
        tiers=models["tiers"],
        treatments=treatments,
        panels={panel: _members(panel, roles_for) for panel in named},
        environment=environment(),
    )


def _config(study: Study, name: str) -> Any:
    where = f"configs/{name}.yaml"
    return parse_yaml(study.package.joinpath(where).read_text(encoding="utf-8"), where=where)


def _members(panel: str, roles_for: Callable[[str, int], tuple[Role, ...]]) -> list[str]:
    first, other = ([role.id for role in roles_for(panel, seed)] for seed in (0, 1))
    return first if first == other else [SEEDED] * len(first)


def environment() -> Environment:
    """Return the versions of this interpreter and of all installed packages."""
    installed = {dist.name.lower(): dist.version for dist in distributions()}
    return Environment(python=python_version(), packages=dict(sorted(installed.items())))


def contents(study: Study) -> Contents:
    """Return what may not change, as it is now.

    Raises:
        ConfigError: A configuration file cannot be read.
        DataError: Splits, subsamples or weights cannot be read.
    """
    found = package_hashes(study.package, parse=lambda text: parse_yaml(text, where="a configuration of the package"))
    return Contents(
        files=found | {"project": {PROJECT_FILE: project_digest(_project_settings(study))}},
        data={
            SPLITS: _table(study.root / SPLITS, "split"),
            SUBSAMPLES: _table(study.root / SUBSAMPLES, "split", "tier"),
            f"results/{WEIGHTS}": _weights(study.results / WEIGHTS),
        },
        analysis={
            RULES: {kind: sorted(rule_names(kind)) for kind in PRIMARY_RULES},
            PRIMARY: {kind: {str(least): rule for least, rule in by.items()} for kind, by in PRIMARY_RULES.items()},
            HYPOTHESES: [asdict(contrast) for contrast in FAMILY],
        },
    )


def _project_settings(study: Study) -> Mapping[str, Any]:
    path = study.root / PROJECT_FILE
    found = parse_yaml(read_text(path), where=str(path)) if path.exists() else None
    return found if isinstance(found, dict) else {}


def _table(path: Path, *groups: str) -> Hashed | None:
    """Return a table's hash, whatever the order of its rows, and its rows by group."""
    if not path.exists():
        return None
    from consilience.experiments.parquet import read_parquet  # noqa: PLC0415 - heavy, only where there are sales

    frame = read_parquet(path)
    for column in groups:
        if column not in frame.columns:
            raise DataError(f'{path} lacks the column "{column}"', hint="Make it again with consilience data.")
    rows = frame.group_by(groups).len().sort(groups).rows()
    return Hashed(sha256=table_digest(frame), rows={"/".join(map(str, row[:-1])): row[-1] for row in rows})


def table_digest(frame: pl.DataFrame) -> str:
    """Return a hash of what a table of texts and numbers holds, whatever the order of its rows.

    Example:
        >>> import polars as pl
        >>> one, other = pl.DataFrame({"a": ["x", "y"]}), pl.DataFrame({"a": ["y", "x"]})
        >>> table_digest(one) == table_digest(other)
        True
    """
    ordered = frame.select(sorted(frame.columns)).sort(sorted(frame.columns))
    return tagged_hash("table", ordered.to_dict(as_series=False))


def _weights(path: Path) -> Hashed | None:
    if not path.exists():
        return None
    try:
        return Hashed(sha256=tagged_hash("weights", json.loads(path.read_bytes())))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {reason(error)}", hint="Fit the weights again.") from error


def keep(study: Study, freeze: Freeze, *, again: str | None = None) -> Freeze:
    """Write a freeze, and return it with the history it was written with.

    Args:
        study: Where it is kept.
        freeze: From `take`.
        again: Why a freeze that is there is replaced; the reason is kept.

    Raises:
        PlanError: There is a freeze, and no reason to replace it.
        IntegrityError: The freeze that is there was changed.
    """
    before = read_freeze(study.results)
    if before is not None:
        if not (again or "").strip():
            raise PlanError(
                f"this study was frozen at {before.frozen_at:%Y-%m-%d %H:%M} UTC ({study.path})",
                hint='consilience freeze --check compares with it; --again "reason" replaces it and keeps the reason.',
            )
        past = Past(sha256=before.head, frozen_at=before.frozen_at, reason=(again or "").strip())
        freeze = freeze.model_copy(update={"history": [*before.history, past]})
    write_json(study.path, {**freeze.model_dump(mode="json"), "sha256": freeze.head})
    return freeze


def read_freeze(results: Path) -> Freeze | None:
    """Return the freeze kept in a results folder; None where there is none.

    Raises:
        DataError: It cannot be read.
        IntegrityError: It is not what was written.
    """
    path = results / FREEZE
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}", hint="Check its permissions.") from error
    try:
        content = json.loads(data)
        head = content.pop("sha256")
        freeze = Freeze.model_validate(content)
    except ValidationError as error:
        raise IntegrityError(f"{path}: {reason(error)}", hint="It is no freeze; restore it from a copy.") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise IntegrityError(f"{path} is no freeze: {reason(error)}", hint="Restore it from a copy.") from error
    if freeze.head != head:
        raise IntegrityError(f"{path} is not what was written: its hash is another", hint="Restore it from a copy.")
    return freeze


def stand(study: Study, freeze: Freeze) -> Standing:
    """Return how what is there now stands to a freeze.

    Raises:
        ConfigError: A configuration file cannot be read.
        DataError: Splits, subsamples or weights cannot be read.
    """
    held, now = (each.model_dump(mode="json") for each in (freeze, contents(study)))
    surroundings = environment().model_dump(mode="json")
    return Standing(freeze.head, deviations(held, now), notes(held["environment"], surroundings))
