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
from typing import Any, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from consilience.aggregation.answers import PRIMARY_RULES, rule_names
from consilience.config import parse_yaml, read_text
from consilience.core.canonical import tagged_hash
from consilience.core.role import Role
from consilience.errors import DataError, IntegrityError, PlanError, reason
from consilience.experiments.freeze import PROJECT_FILE, deviations, notes, package_hashes, project_digest
from consilience.experiments.frozen_data import ANALYTIC, Hashed, data_hashes, hash_table
from consilience.experiments.hypotheses import FAMILY
from consilience.experiments.panels import packaged_panels
from consilience.experiments.storage import write_json

FREEZE: Final = "freeze.json"
RULES: Final = "rules"
PRIMARY: Final = "primary rules"
HYPOTHESES: Final = "declared family"
CHOICES: Final = ("committee", "tier", "seed")
"""What every run chooses for itself, unless ``consilience.yaml`` says it for all."""
RolesFor = Callable[[str, int], tuple[Role, ...]]
"""The roles of a panel by its name and a seed, as an application has them."""


class Member(BaseModel):
    """One seat of a panel: who sits there, told what, seeing what."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    text_sha256: str
    view: tuple[str, ...]
    framing: str | None


class Cast(BaseModel):
    """Who sits on a panel.

    Attributes:
        labels: What members know each other by.
        seeded: It is drawn anew by the seed of each run; the members are those of seed 0.
        members: In seat order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    labels: str
    seeded: bool
    members: tuple[Member, ...]


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
        data: Sales, splits, subsamples and fitted weights by path; None for what is not there.
        panels: Who sits on every packaged panel, by application and name.
        analysis: Rules by kind of answer, which of them is primary, and the declared family of comparisons.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    files: dict[str, dict[str, str]]
    data: dict[str, Hashed | None]
    panels: dict[str, dict[str, Cast]]
    analysis: dict[str, Any]


class Freeze(Contents):
    """What a study is frozen as: its contents, and what a reader of it wants to know.

    Attributes:
        frozen_at: When.
        models: Ids of the known models.
        tiers: Model ids by price tier.
        treatments: The declared arms.
        choices: What ``consilience.yaml`` chooses for every run: committee, tier, seed.
        environment: Versions of Python and of packages.
        history: Freezes that this one replaced, oldest first.
    """

    frozen_at: AwareDatetime
    models: list[str]
    tiers: dict[str, list[str]]
    treatments: dict[str, dict[str, Any]]
    choices: dict[str, Any]
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
        rosters: Who may answer, by application.
    """

    root: Path
    results: Path
    package: Traversable
    rosters: Mapping[str, RolesFor]

    @classmethod
    def of(cls, root: Path, *, rosters: Mapping[str, RolesFor], results: Path | None = None) -> Study:
        """Return the study of a project folder, asked by the installed package."""
        return cls(root, root / "results" if results is None else results, files("consilience"), rosters)

    @property
    def path(self) -> Path:
        """The freeze."""
        return self.results / FREEZE


def take(study: Study, *, now: datetime) -> Freeze:
    """Return the freeze of what is there now, with no history.

    Args:
        study: Where it lies.
        now: Time of the freeze, with time zone.

    Raises:
        ConfigError: A configuration file cannot be read.
        DataError: Sales, splits, subsamples or weights cannot be read.
    """
    models, treatments = _config(study, "models"), _config(study, "treatments")["treatments"]
    project = _project_settings(study)
    own = project.get("models") or {}
    return Freeze(
        frozen_at=now,
        **dict(contents(study)),
        models=sorted({*models["models"], *own}),
        tiers=models["tiers"],
        treatments=treatments,
        choices={name: project[name] for name in CHOICES if project.get(name) is not None},
        environment=environment(),
    )


def _config(study: Study, name: str) -> Any:
    where = f"configs/{name}.yaml"
    return parse_yaml(study.package.joinpath(where).read_text(encoding="utf-8"), where=where)


def _cast(panel: str, labels: str, roles_for: RolesFor) -> Cast:
    first, other = (roles_for(panel, seed) for seed in (0, 1))
    members = tuple(
        Member(id=role.id, text_sha256=role.text_sha256, view=role.view, framing=role.framing) for role in first
    )
    return Cast(labels=labels, seeded=first != other, members=members)


def environment() -> Environment:
    """Return the versions of this interpreter and of all installed packages."""
    installed = {dist.name.lower(): dist.version for dist in distributions()}
    return Environment(python=python_version(), packages=dict(sorted(installed.items())))


def contents(study: Study) -> Contents:
    """Return what may not change, as it is now.

    Raises:
        ConfigError: A configuration file cannot be read.
        DataError: Sales, splits, subsamples or weights cannot be read.
    """
    found = package_hashes(study.package, parse=lambda text: parse_yaml(text, where="a configuration of the package"))
    return Contents(
        files=found | {"project": {PROJECT_FILE: project_digest(_project_settings(study))}},
        data=data_hashes(study.root, study.results),
        panels={
            application: {
                name: _cast(name, spec.labels, roles_for) for name, spec in packaged_panels(application).items()
            }
            for application, roles_for in study.rosters.items()
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
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IntegrityError(f"{path} is no freeze: {reason(error)}", hint="Restore it from a copy.") from error
    if freeze.head != head:
        raise IntegrityError(f"{path} is not what was written: its hash is another", hint="Restore it from a copy.")
    return freeze


def stand(study: Study, freeze: Freeze) -> Standing:
    """Return how what is there now stands to a freeze.

    Raises:
        ConfigError: A configuration file cannot be read.
        DataError: Sales, splits, subsamples or weights cannot be read.
    """
    held, now = (each.model_dump(mode="json") for each in (freeze, contents(study)))
    surroundings = environment().model_dump(mode="json")
    return Standing(freeze.head, deviations(held, now), notes(held["environment"], surroundings))


def truth_deviations(root: Path, freeze: Freeze) -> tuple[str, ...]:
    """Return what an evaluation must say of truths that are not the frozen ones; nothing where they are.

    Args:
        root: The project folder.
        freeze: The study's freeze.

    Raises:
        DataError: The sales cannot be read.
    """
    hashed = hash_table(root / ANALYTIC)
    held, now = ({"data": {ANALYTIC: each and each.model_dump()}} for each in (freeze.data[ANALYTIC], hashed))
    return tuple(f"Protocol deviation of the truths: {text}." for text in deviations(held, now))
