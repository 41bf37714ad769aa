from __future__ import annotations

from pathlib import Path

import pytest

from cli_cases import Cli
from consilience.valuation.roster import DEFAULT12, role_prompt_hashes

OWN = "---\nid: broker\nview: [P, C]\n---\nPredict \x1b[31mthe\x1b[0m closing price.\n"


def test_every_role_is_listed_with_its_view_and_hashes(cli: Cli) -> None:
    found = cli("roles", "--json").document
    assert found["application"] == "valuation"
    assert found["panel"] is None
    assert {role["id"]: role["file_sha256"] for role in found["roles"]} == role_prompt_hashes()
    assert found["roles"][1]["view"] == ["P", "C"]
    assert {"default", "placebo", "no_skeptic", "shuffled12"} <= set(found["panels"])
    told = cli("roles").out
    assert "geospatial_risk" in told
    assert "P G M" in told
    assert found["roles"][0]["text_sha256"][:12] in told


def test_a_panel_is_listed_in_seat_order(cli: Cli) -> None:
    found = cli("roles", "--panel", "default", "--json").document
    assert [role["id"] for role in found["roles"]] == list(DEFAULT12)
    assert found["panel"]["labels"] == "neutral"
    assert (
        "general panel default: 5 roles, neutral labels."
        in cli("roles", "--application", "general", "--panel", "default").out
    )


def test_a_shuffled_panel_follows_its_seed_and_has_no_files(cli: Cli) -> None:
    one, same, other = (
        cli("roles", "--panel", "shuffled12", "--seed", seed, "--json").document["roles"] for seed in (1, 1, 2)
    )
    assert one == same != other
    assert {role["file_sha256"] for role in one} == {None}


def test_a_panel_of_ones_own(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broker.md").write_text(OWN)
    (tmp_path / "own.yaml").write_text('roles: [hedonic, broker.md]\nlabels: role\nnote: "\\e[2JMine."\n')
    done = cli("roles", "--panel", tmp_path / "own.yaml")
    assert done.code == 0
    assert "valuation panel own.yaml: 2 roles, role ids for labels." in done.out
    assert "\x1b" not in done.out
    document = cli("roles", "--panel", tmp_path / "own.yaml", "--json").document
    assert [role["file_sha256"] is None for role in document["roles"]] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--panel", "skeptics"), 'unknown panel "skeptics". Did you mean "no_skeptic"'),
        (("--panel", "nowhere.yaml"), "cannot read nowhere.yaml"),
        (("--application", "genral"), 'unknown application "genral"'),
        (("--application", "general", "--panel", "all20"), 'unknown panel "all20"'),
    ],
)
def test_what_is_unknown_is_named(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    done = cli("roles", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said.split(". ", maxsplit=1)[0] in done.err
    assert said.rpartition(". ")[2] in done.err
