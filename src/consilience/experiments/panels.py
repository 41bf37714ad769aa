"""Panels: who answers together, by name from ``configs/panels.yaml`` or from a file of the user's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from consilience.config import load_packaged, load_packaged_role, load_role, load_yaml, package_text
from consilience.core.canonical import sha256_hex
from consilience.core.panel import Labels
from consilience.core.role import Role
from consilience.errors import ConfigError
from consilience.registry import nearest

PANELS_FILE = "configs/panels.yaml"
PANEL_FILES = (".yaml", ".yml")
ROLE_FILES = (".md", ".yaml", ".yml")
UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


class PanelSpec(BaseModel):
    """What a panel file says: a roster of the application, less some of its roles, and further roles after them.

    Attributes:
        roster: Name of a roster of the application, such as ``default12``.
        without: Roles of the roster that are left out.
        roles: Ids of packaged roles and role files (``.md``, ``.yaml``, ``.yml``), in seat order.
        labels: What members know each other by: ``neutral`` seat labels, or the ``role`` ids.
        note: What the panel is for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    roster: str | None = None
    without: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    labels: Labels = "neutral"
    note: str = ""


class PanelsFile(BaseModel):
    """All panels that ship with the package, by application and name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    panels: dict[str, dict[str, PanelSpec]]


@dataclass(frozen=True)
class Panel:
    """Who answers together.

    Attributes:
        name: Its name, or that of its file without the folder.
        roles: In seat order, no two of one id.
        labels: What members know each other by.
        note: What the panel is for.

    Raises:
        ConfigError: Nobody is in it, or two roles share an id.

    Example:
        >>> roles = [Role(id=name, view=("all",), text="Judge.") for name in ("bull", "bear")]
        >>> Panel("two", tuple(roles)).labels
        'neutral'
    """

    name: str
    roles: tuple[Role, ...]
    labels: Labels = "neutral"
    note: str = ""

    def __post_init__(self) -> None:
        if not self.roles:
            raise ConfigError(f"panel {self.name} has no roles", hint="List ids or files of roles under `roles`.")
        seen: set[str] = set()
        for role in self.roles:
            if role.id in seen:
                raise ConfigError(
                    f'panel {self.name} has two roles called "{role.id}"', hint="Leave one out, or rename it."
                )
            seen.add(role.id)


@dataclass(frozen=True)
class Shelf:
    """The roles that ship with an application, and the rosters it makes of them.

    Attributes:
        application: Such as ``valuation``; also the folder of its prompts.
        known: Ids of its roles, one Markdown file each.
        rosters: By name; a roster may depend on a seed.
    """

    application: str
    known: tuple[str, ...]
    rosters: Mapping[str, Callable[[int], tuple[Role, ...]]] = field(default_factory=dict)

    def role(self, role_id: str) -> Role:
        """Return a packaged role.

        Raises:
            ConfigError: No such role; the nearest one is named.
        """
        if role_id not in self.known:
            raise ConfigError(f'unknown {self.application} role "{role_id}"', hint=nearest(role_id, self.known))
        return _packaged(_file_of(self.application, role_id))

    def members(self, entries: Sequence[str | Path], *, folder: Path = Path()) -> tuple[Role, ...]:
        """Return packaged roles by id and the user's own by file.

        Args:
            entries: Ids and paths, in seat order.
            folder: Where relative paths begin.

        Raises:
            ConfigError: A role is unknown, a file is no role, or a file's id is that of a packaged role which says
                something else.
        """
        return tuple(
            self._own(folder / entry) if str(entry).endswith(ROLE_FILES) else self.role(str(entry)) for entry in entries
        )

    def _own(self, path: Path) -> Role:
        role = load_role(path)
        if role.id in self.known and role != self.role(role.id):
            raise ConfigError(
                f'{path} calls itself "{role.id}", which is a role of the package with another text or view',
                hint="Give the role an id of its own: results are told apart by it.",
            )
        return role

    def roster(self, name: str, *, seed: int) -> tuple[Role, ...]:
        """Return a roster.

        Raises:
            ConfigError: No such roster; the nearest one is named.
        """
        if name not in self.rosters:
            hint = nearest(name, self.rosters) if self.rosters else f"{self.application} has none: list its roles."
            raise ConfigError(f'unknown {self.application} roster "{name}"', hint=hint)
        return self.rosters[name](seed)

    def roles_for(self, panel: str, seed: int) -> tuple[Role, ...]:
        """Return the roles of a panel, by name or file; what an experiment asks of an application."""
        return panel_roles(panel, shelf=self, seed=seed).roles

    def prompt_hashes(self) -> dict[str, str]:
        r"""Return the SHA-256 of each role file, view included, by role id; line ends count as ``\n``."""
        return {name: sha256_hex(package_text(_file_of(self.application, name)).encode()) for name in self.known}


def _file_of(application: str, role_id: str) -> str:
    return f"prompts/{application}/roles/{role_id}.md"


@cache
def _packaged(relative: str) -> Role:
    return load_packaged_role(relative)


def packaged_panels(application: str) -> dict[str, PanelSpec]:
    """Return the panels of an application that ship with the package, by name.

    Raises:
        ConfigError: No such application.

    Example:
        >>> sorted(packaged_panels("general"))
        ['advocates', 'default', 'forecast5', 'generalist', 'placebo', 'with_skeptic']
    """
    panels = load_packaged(PANELS_FILE, PanelsFile).panels
    if application not in panels:
        raise ConfigError(f'unknown application "{application}"', hint=nearest(application, panels))
    return panels[application]


def panel_spec(panel: str | Path, *, application: str) -> PanelSpec:
    """Return what a panel's declaration says, before its roles are read.

    Args:
        panel: A name of ``configs/panels.yaml``, or a YAML file of the user's (``.yaml``, ``.yml``).
        application: Whose panels the names are.

    Raises:
        ConfigError: No such panel (the nearest one is named), or the file does not fit.

    Example:
        >>> panel_spec("generalist", application="valuation").labels
        'neutral'
    """
    if is_panel_file(panel):
        return load_yaml(Path(panel), PanelSpec)
    known = packaged_panels(application)
    if str(panel) not in known:
        raise ConfigError(f'unknown panel "{panel}"', hint=f"{nearest(str(panel), known)} Or give a YAML file.")
    return known[str(panel)]


def is_panel_file(panel: str | Path) -> bool:
    """Return whether a panel is given by a file rather than by name.

    Example:
        >>> is_panel_file("own_panel.yaml"), is_panel_file("default")
        (True, False)
    """
    return str(panel).endswith(PANEL_FILES)


def panel_labels(panel: str | Path | Panel, *, application: str) -> Labels:
    """Return what the members of a panel know each other by.

    Raises:
        ConfigError: No such panel, or one of the user's own has the name of a packaged one.
    """
    if not isinstance(panel, Panel):
        return panel_spec(panel, application=application).labels
    if panel.name in packaged_panels(application) or is_panel_file(panel.name):
        raise ConfigError(
            f'a panel of your own is called "{panel.name}", like one of the package or a file',
            hint="Give it a name of its own: results are told apart by it.",
        )
    return panel.labels


def panel_name(panel: str | Path | Panel) -> str:
    """Return what records call a panel: a file goes by its name alone, wherever it lies.

    Example:
        >>> panel_name("studies/own_panel.yaml"), panel_name("default")
        ('own_panel.yaml', 'default')
    """
    if isinstance(panel, Panel):
        return panel.name
    return Path(panel).name if is_panel_file(panel) else str(panel)


def panel_tag(panel: str | Path | Panel) -> str:
    """Return what tells an arm with this panel from the arm with its own, fit for names of runs and files.

    Example:
        >>> panel_tag("studies/my panel.yaml"), panel_tag("placebo")
        ('my_panel', 'placebo')
    """
    name = panel_name(panel)
    return UNFIT.sub("_", Path(name).stem if is_panel_file(name) else name)


def panel_roles(panel: str | Path, *, shelf: Shelf, seed: int) -> Panel:
    """Return a panel with its roles.

    Args:
        panel: A name of ``configs/panels.yaml``, or a YAML file of the user's; its paths begin in its own folder.
        shelf: The application's roles.
        seed: Read by shuffled rosters only.

    Raises:
        ConfigError: Panel, roster or role is unknown, a file does not fit, nobody is left, or two roles share an id.

    Example:
        >>> from consilience.experiments.general import SHELF
        >>> len(panel_roles("default", shelf=SHELF, seed=0).roles)
        5
    """
    spec = panel_spec(panel, application=shelf.application)
    where = f"panel {panel}"
    listed = () if spec.roster is None else shelf.roster(spec.roster, seed=seed)
    ids = [role.id for role in listed]
    for left_out in spec.without:
        if left_out not in ids:
            hint = nearest(left_out, ids) if ids else "Name a roster, or leave `without` out."
            raise ConfigError(f'{where} is without "{left_out}", whom its roster does not hold', hint=hint)
    kept = tuple(role for role in listed if role.id not in spec.without)
    roles = (*kept, *shelf.members(spec.roles, folder=Path(panel).parent))
    return Panel(name=panel_name(panel), roles=roles, labels=spec.labels, note=spec.note)
