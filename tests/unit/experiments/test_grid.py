"""Grid files: what they may say, which arms they make, and messages that name file and place."""

from __future__ import annotations

from pathlib import Path

import pytest

from consilience.config import load_yaml
from consilience.errors import ConfigError, PlanError
from consilience.experiments.grid import Cell, GridSpec, cells


def read(tmp_path: Path, text: str) -> list[Cell]:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    return cells(load_yaml(path, GridSpec), where=str(path))


def test_one_factor_is_changed_at_a_time_and_another_arm_has_its_own_rounds(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "base: {arm: G_debate, rounds: 4, seed: 7}\n"
        "vary:\n  rounds: [1, [1, 2]]\n  arm: [F_independent, {arm: delphi, panel: placebo}]\n  seed: [8]\n",
    )
    assert [(cell.label, cell.seed) for cell in found] == [
        ("G_debate_r4", 7),
        ("G_debate_r1", 7),
        ("G_debate_r1_r2", 7),
        ("F_independent", 7),
        ("delphi.placebo_r2", 7),
        ("G_debate_r4", 8),
    ]


def test_a_single_value_needs_no_list(tmp_path: Path) -> None:
    found = read(tmp_path, "base: {arm: G_debate}\nvary: {rounds: 3, arm: {arm: E_single, seed: 2}, tier: small}\n")
    assert [(cell.label, cell.seed, cell.tier) for cell in found] == [
        ("G_debate_r2", None, None),
        ("G_debate_r3", None, None),
        ("E_single", 2, None),
        ("G_debate_r2", None, "small"),
    ]


def test_a_panel_of_the_arms_own_is_no_part_of_its_label() -> None:
    assert Cell(arm="G_debate", panel="default").label == "G_debate_r2"
    assert Cell(arm="G_debate", panel="studies/my panel.yaml").label == "G_debate.my_panel_r2"


@pytest.mark.parametrize("match", ["G_debate", "G_debate_r2", "usd:0.05", "a-run-that-may-be"])
def test_a_match_names_an_arm_before_it_or_what_is_no_arm_of_the_grid(tmp_path: Path, match: str) -> None:
    text = f"base: {{arm: G_debate}}\nvary: {{arm: [{{arm: J_single_matched, match: '{match}'}}]}}\n"
    assert read(tmp_path, text)[1].match == match


@pytest.mark.parametrize(("amount", "kept"), [("5", 5), ("0.05", 0.05), ("'0.05'", "0.05"), ("0", 0)])
def test_a_cap_may_be_a_plain_number(tmp_path: Path, amount: str, kept: object) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(f"base: {{arm: E_single}}\nmax_spend_usd: {amount}\n")
    assert load_yaml(path, GridSpec).max_spend_usd == kept


BASE = "base: {arm: G_debate}\n"


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("", ConfigError, "is empty where keys with values belong. Known keys: base, vary"),
        ("- arm\n", ConfigError, "is a list where keys with values belong"),
        ("arm\n", ConfigError, "is a single value where keys with values belong"),
        ("base: []\n", ConfigError, "base is a list where keys with values belong"),
        ("base:\n", ConfigError, "base is empty where keys with values belong"),
        (BASE + "vary: [rounds]\n", ConfigError, r"vary: give factors with their values, such as {rounds: \[1, 4\]}"),
        (BASE + "vary: {rounds: }\n", ConfigError, "vary: give rounds a list of values"),
        (BASE + "vary: {rounds: true}\n", ConfigError, "vary: rounds: rounds.0: Input should be a valid integer"),
        ("base: {arm: G_debate, rounds: true}\n", ConfigError, "base.rounds.0: Input should be a valid integer"),
        (BASE + "repeats: true\n", ConfigError, "repeats: Input should be a valid integer"),
        (BASE + "max_spend_usd: true\n", ConfigError, "max_spend_usd"),
        (BASE + "vary: {round: [1]}\n", ConfigError, 'vary: unknown factor "round". Did you mean "rounds"'),
        (BASE + "vary: {arm: [G_debat]}\n", ConfigError, 'unknown arm "G_debat". Did you mean "G_debate"'),
        ("base: {arm: G_debat}\n", ConfigError, 'unknown arm "G_debat". Did you mean "G_debate"'),
        (BASE + "vary: {arm: [{arm: E_single, sed: 1}]}\n", ConfigError, 'vary: arm: unknown key "sed"'),
        (BASE + "vary: {arm: [G_debate]}\n", ConfigError, r"two arms of the grid are the same \(arm G_debate\)"),
        (BASE + "vary: {rounds: [[2, 1]]}\n", PlanError, "the nested rounds 2, 1 do not increase"),
        ("base: {arm: E_single, rounds: 2}\n", PlanError, "protocol independent has no rounds. Leave the number of"),
        (
            "base: {arm: J_single_matched, match: G_debate_r2}\nvary: {arm: [G_debate]}\n",
            ConfigError,
            "the arm G_debate_r2 to be matched stands later in the grid. Put it before",
        ),
    ],
)
def test_what_does_not_fit_is_named_with_its_file(
    tmp_path: Path, text: str, error: type[ConfigError | PlanError], said: str
) -> None:
    with pytest.raises(error, match=rf"study\.yaml.*{said}"):
        read(tmp_path, text)
