"""Panels by name and by file, roles of the user's, and what is said of those that do not fit."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from consilience.config import load_packaged, package_text, parse_yaml, validate
from consilience.core.canonical import sha256_hex
from consilience.core.panel import seat_labels
from consilience.core.role import Role
from consilience.decisions import panel as decisions
from consilience.errors import ConfigError
from consilience.experiments import general
from consilience.experiments.arms import Treatments
from consilience.experiments.panels import (
    PANELS_FILE,
    PanelsFile,
    PanelSpec,
    Shelf,
    packaged_panels,
    panel_name,
    panel_roles,
    panel_spec,
    panel_tag,
)
from consilience.forecasting import panel as forecasting
from consilience.valuation import roster

SHELVES = {shelf.application: shelf for shelf in (roster.SHELF, general.SHELF, forecasting.SHELF, decisions.SHELF)}
PACKAGED = [(application, name) for application in SHELVES for name in packaged_panels(application)]
SKEPTIC = "skeptic"
MODERATOR = "moderator"  # has a part and no vote
NOT_OF = {
    "valuation": {"advocates", "staged"},  # who argue yes and no
    "forecasting": {"shuffled12", "no_skeptic"},
    "decisions": {"shuffled12", "no_skeptic", "with_skeptic", "advocates", "staged"},
    "general": {"shuffled12", "no_skeptic", "staged"},  # all views are one, and nobody there is a skeptic
}
OWN = "---\nid: broker\nview: [P, C]\n---\nPredict the closing price.\n"


def ids(application: str, panel: str | Path, *, seed: int = 0) -> list[str]:
    return [role.id for role in panel_roles(panel, shelf=SHELVES[application], seed=seed).roles]


def panel_file(folder: Path, text: str) -> Path:
    path = folder / "own.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_applications_with_panels_are_those_with_shelves() -> None:
    assert set(load_packaged(PANELS_FILE, PanelsFile).panels) == set(SHELVES)


@pytest.mark.parametrize(("application", "name"), PACKAGED)
def test_every_packaged_panel_loads(application: str, name: str) -> None:
    panel = panel_roles(name, shelf=SHELVES[application], seed=3)
    assert panel.roles
    assert panel.note
    assert panel.labels == "neutral"
    assert SHELVES[application].roles_for(name, 3) == panel.roles


def test_packaged_panels_read_no_file_of_the_user() -> None:
    entries = [entry for application, name in PACKAGED for entry in packaged_panels(application)[name].roles]
    assert [entry for entry in entries if "." in entry] == []


@pytest.mark.parametrize("application", SHELVES)
def test_every_arms_panel_exists(application: str) -> None:
    named = {one.panel for one in load_packaged("configs/treatments.yaml", Treatments).treatments.values()}
    assert named - NOT_OF[application] <= set(packaged_panels(application))


@pytest.mark.parametrize("application", SHELVES)
def test_a_placebo_panel_has_the_views_of_the_default_one_seat_by_seat_and_one_text(application: str) -> None:
    shelf = SHELVES[application]
    both = (shelf.roles_for("default", 0), shelf.roles_for("placebo", 0))
    default, placebo = (tuple(role for role in roles if role.id != MODERATOR) for roles in both)
    assert [role.view for role in placebo] == [role.view for role in default]
    assert len({role.text for role in placebo}) == 1
    assert {role.text for role in placebo}.isdisjoint(role.text for role in default)
    assert seat_labels(placebo) == seat_labels(default)


@pytest.mark.parametrize("application", [name for name in SHELVES if name != "decisions"])
def test_the_skeptics_seat_is_all_that_two_panels_differ_in(application: str) -> None:
    with_skeptic = ids(application, "with_skeptic")
    without = ids(application, "no_skeptic" if application == "valuation" else "default")
    assert [name for name in with_skeptic if name != SKEPTIC] == without
    assert SKEPTIC in with_skeptic
    assert ids(application, "generalist") == ["generalist"]


def test_the_panels_of_valuation_are_its_rosters() -> None:
    assert ids("valuation", "default") == ids("valuation", "with_skeptic") == list(roster.DEFAULT12)
    assert ids("valuation", "all20") == [*roster.DEFAULT12, *roster.OPTIONAL8]
    assert ids("valuation", "placebo") == list(roster.PLACEBO12)
    assert roster.SHELF.roles_for("shuffled12", 7) == roster.shuffled_roles(7)
    assert roster.SHELF.roles_for("shuffled12", 7) != roster.SHELF.roles_for("shuffled12", 8)


@pytest.mark.parametrize("shelf", SHELVES.values(), ids=SHELVES)
def test_a_shelf_holds_every_role_file_of_its_folder(shelf: Shelf) -> None:
    folder = Path(general.__file__).parents[1] / "prompts" / shelf.application / "roles"
    assert {path.stem for path in folder.iterdir()} == set(shelf.known)
    assert [shelf.role(name).id for name in shelf.known] == list(shelf.known)
    hashes = shelf.prompt_hashes()
    assert list(hashes) == list(shelf.known)
    text = package_text(f"prompts/{shelf.application}/roles/generalist.md")
    assert hashes["generalist"] == sha256_hex(text.encode())


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=12)


@settings(max_examples=25)
@given(
    spec=st.builds(
        PanelSpec,
        roster=st.none() | WORDS,
        without=st.lists(WORDS, max_size=3).map(tuple),
        roles=st.lists(WORDS, max_size=3).map(tuple),
        labels=st.sampled_from(("neutral", "role")),
        note=WORDS,
    )
)
def test_a_panel_survives_yaml(spec: PanelSpec) -> None:
    written = io.StringIO()
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False  # the writer leaves "?0" bare between brackets, where it reads as a key
    yaml.dump(spec.model_dump(mode="json"), written)
    assert validate(parse_yaml(written.getvalue(), where="panel"), PanelSpec, where="panel") == spec


def test_a_users_panel_mixes_roles_of_the_package_and_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "broker.md").write_text(OWN)
    (tmp_path / "notary.yml").write_text("id: notary\nview: [P]\ntext: Read the deed.\n")
    path = panel_file(tmp_path, "roles: [comparables, ./roles/broker.md, notary.yml]\nlabels: role\nnote: Mine.\n")
    panel = panel_roles(path, shelf=roster.SHELF, seed=0)
    assert [role.id for role in panel.roles] == ["comparables", "broker", "notary"]
    assert (panel.name, panel.labels, panel.note) == ("own.yaml", "role", "Mine.")
    assert seat_labels(panel.roles, labels=panel.labels) == ("comparables", "broker", "notary")
    assert roster.SHELF.roles_for(str(path), 0) == panel.roles
    assert panel_spec(path, application="valuation").labels == "role"
    assert panel_name(path) == panel_name("own.yaml") == "own.yaml"
    assert panel_tag(path) == "own"
    assert panel_tag("../Моя панель (2).yml") == "_2_"


def test_a_users_panel_may_begin_with_a_roster(tmp_path: Path) -> None:
    (tmp_path / "broker.md").write_text(OWN)
    path = panel_file(tmp_path, "roster: default12\nwithout: [skeptic, hedonic]\nroles: [energy, broker.md]\n")
    kept = [name for name in roster.DEFAULT12 if name not in {"skeptic", "hedonic"}]
    assert ids("valuation", path) == [*kept, "energy", "broker"]


def test_an_unchanged_copy_of_a_packaged_role_is_that_role(tmp_path: Path) -> None:
    text = package_text("prompts/valuation/roles/hedonic.md")
    (tmp_path / "copy.md").write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    path = panel_file(tmp_path, "roles: [./copy.md]\n")
    assert panel_roles(path, shelf=roster.SHELF, seed=0).roles == (roster.SHELF.role("hedonic"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("roles: [sceptic]\n", 'unknown valuation role "sceptic". Did you mean "skeptic"'),
        ("roster: default_12\n", 'unknown valuation roster "default_12". Did you mean "default12"'),
        ("roels: [skeptic]\n", 'unknown key "roels". Did you mean "roles"'),
        ("roles: [skeptic]\nlabel: role\n", 'unknown key "label". Did you mean "labels"'),
        ("roles: skeptic\n", "roles: Input should be a valid tuple"),
        ("roles: [skeptic]\nlabels: names\n", "labels: Input should be 'neutral' or 'role'"),
        ("roles: []\n", "has no roles"),
        ("- skeptic\n", "is a list where keys with values belong"),
        ("", "is empty where keys with values belong"),
        ("roles: [skeptic\n", "not valid YAML"),
        ("roles: [a]\nroles: [b]\n", "not valid YAML"),
        ("roles: [skeptic, hedonic, skeptic]\n", 'two roles called "skeptic"'),
        ("roster: default12\nroles: [hedonic]\n", 'two roles called "hedonic"'),
        ("roster: default12\nwithout: [sceptic]\n", 'without "sceptic".*Did you mean "skeptic"'),
        ("without: [skeptic]\nroles: [hedonic]\n", "Name a roster"),
        ("roles: [./nobody.md]\n", "cannot read .*nobody.md: No such file"),
    ],
)
def test_a_panel_that_does_not_fit_says_where(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        panel_roles(panel_file(tmp_path, text), shelf=roster.SHELF, seed=0)


def test_unknown_panels_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r'unknown panel "placbo". Did you mean "placebo".*Or give a YAML file'):
        general.SHELF.roles_for("placbo", 0)
    with pytest.raises(ConfigError, match=r"cannot read .*nowhere.yaml"):
        general.SHELF.roles_for("nowhere.yaml", 0)
    with pytest.raises(ConfigError, match=r'unknown application "valuations"\. Did you mean "valuation"'):
        packaged_panels("valuations")
    with pytest.raises(ConfigError, match="general has none"):
        general.SHELF.roster("default12", seed=0)


@pytest.mark.parametrize("name", ["own.md", "own.yaml"])
@pytest.mark.parametrize(
    "text", ["Doute « tout » — 疑え, подумай 🏠.", "e\u0301 \u200b\u202eback", "$price ${x} {y} </data-0>"]
)
def test_a_role_in_any_script_keeps_every_character(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    head = "id: own\nview: [all]\n"
    whole = f"---\n{head}---\n{text}\n" if name.endswith("md") else f"{head}text: '{text}'\n"
    path.write_text(whole, encoding="utf-8")
    assert general.SHELF.members([path]) == (Role(id="own", view=("all",), text=text),)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("r.md", b"Doubt it.\n", "no front matter"),
        ("r.md", b"---\nid: own\nview: [P]\n---\n \n", "text: String should have at least 1 character"),
        ("r.md", b"---\nview: [P]\n---\nDoubt.\n", "id: Field required"),
        ("r.md", b"---\nid: own\n---\nDoubt.\n", "view: Field required"),
        ("r.md", b"---\nid: own\nview: P\n---\nDoubt.\n", "view: Input should be a valid tuple"),
        ("r.md", b"---\nid: own\nview: []\n---\nDoubt.\n", "view: Tuple should have at least 1 item"),
        ("r.md", b"---\nid: own\nview: [1]\n---\nDoubt.\n", r"view\.0: Input should be a valid string"),
        ("r.md", b"---\nid: own\nveiw: [P]\n---\nDoubt.\n", 'unknown key "veiw". Did you mean "view"'),
        ("r.md", b"---\nid: My role\nview: [P]\n---\nDoubt.\n", "id: String should match pattern"),
        ("r.md", b"---\n- own\n---\nDoubt.\n", "a role is a mapping"),
        ("r.md", b"---\nid: [own\n---\nDoubt.\n", "not valid YAML"),
        ("r.md", "---\nid: own\nview: [P]\n---\nDéjà.\n".encode("latin-1"), "is not UTF-8"),
        ("r.md", OWN.encode("utf-16"), "is not UTF-8"),
        ("r.md", OWN.encode() + b"x" * 1_000_000, "at most 1000000"),
        ("r.yaml", b"id: own\nview: [P]\n", "text: Field required"),
        ("r.yaml", b"Doubt it.\n", "a role is a mapping"),
        ("r.yaml", b'id: own\nview: [P]\ntext: "\\ud800"\n', "text: Input should be a valid string"),
        ("r.yaml", b"id: own\nview: [P]\ntext: !!python/name:os.system x\n", "not valid YAML"),
        ("r.md", b"---\nid: hedonic\nview: [P]\n---\nDoubt.\n", 'calls itself "hedonic"'),
    ],
)
def test_a_role_file_that_is_none_says_why(tmp_path: Path, name: str, data: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ConfigError, match=said) as caught:
        panel_roles(panel_file(tmp_path, f"roles: [{name}]\n"), shelf=roster.SHELF, seed=0)
    assert str(tmp_path / name) in str(caught.value)


def test_a_packaged_role_with_another_view_is_another_role(tmp_path: Path) -> None:
    text = package_text("prompts/valuation/roles/hedonic.md").replace("[P, C, M]", "[all]")
    (tmp_path / "r.md").write_text(text)
    with pytest.raises(ConfigError, match="another text or view"):
        roster.roles_for([tmp_path / "r.md"])
