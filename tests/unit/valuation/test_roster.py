from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path

import pytest

import consilience
from consilience.config import package_text
from consilience.core.role import Role
from consilience.errors import ConfigError
from consilience.evidence.rendering import fill, render_system, render_turn_block
from consilience.valuation.roster import (
    DEFAULT12,
    GENERALIST,
    OPTIONAL8,
    PLACEBO12,
    placebo_roles,
    role_prompt_hashes,
    roles_for,
    shuffled_roles,
)

PROMPTS = Path(consilience.__file__).parent / "prompts"
ROLES = PROMPTS / "valuation" / "roles"
SYSTEM_TEXTS = ("prompts/valuation/preamble.md", "prompts/output_rules.md")
TASKS = ("estimate", "critique", "revision")
ALL33 = (*DEFAULT12, *OPTIONAL8, GENERALIST, *PLACEBO12)

VIEWS = {
    "appraisal_method": "P C M",
    "comparables": "P C",
    "hedonic": "P C M",
    "market_economist": "P M",
    "building_condition": "P",
    "geospatial_risk": "P G M",
    "underwriting": "all",
    "buyer_wtp": "all",
    "seller_strategy": "P C M",
    "rental_usercost": "P C M",
    "data_auditor": "all",
    "skeptic": "all",
    "construction_cost": "P M",
    "zoning": "P G",
    "macro_rates": "P M",
    "energy": "P",
    "climate_risk": "P G",
    "regional_expert": "P C M",
    "uncertainty_auditor": "all",
    "fairness_auditor": "all",
    "generalist": "all",
}

MUST_STATE = {
    "appraisal_method": "Your point comes from the reconciliation",
    "comparables": "exactly one entry in `adjustments` per sale kept",
    "hedonic": "implicit prices of attributes and of time",
    "market_economist": "Bring the roll value of the subject to the valuation date",
    "building_condition": "There was no inspection and condition is unobserved.",
    "geospatial_risk": '"unmapped" means unknown, not safe',
    "underwriting": "in `counterarguments`, the stress behind q05",
    "buyer_wtp": "indifferent between the subject and its best substitute",
    "seller_strategy": "in `key_assumptions`, the negotiation gap assumed",
    "rental_usercost": "Rents are unobserved",
    "data_auditor": "estimate from its reliable part only",
    "skeptic": "a value only when it is justified",
    "construction_cost": "unit cost and depreciation are assumptions",
    "zoning": "You assert no by-law",
    "macro_rates": "The rate field is usually null",
    "energy": "only what is usual for the vintage",
    "climate_risk": "Flood exposure is the only hazard you assess.",
    "regional_expert": "Local knowledge counts only with an evidence id",
    "uncertainty_auditor": "Give calibrated intervals",
    "fairness_auditor": "by its attributes and by actual sales, not by proxies",
    "generalist": "with all the evidence",
}


def role_of(name: str) -> Role:
    return roles_for([name])[0]


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.;:?])\s+", text)


def test_exactly_33_prompts() -> None:
    assert len(ALL33) == len(set(ALL33)) == 33
    assert {path.stem for path in ROLES.iterdir()} == set(ALL33)
    assert set(role_prompt_hashes()) == set(ALL33)


@pytest.mark.parametrize("name", ALL33)
def test_file_name_is_the_role_id(name: str) -> None:
    assert role_of(name).id == name


def test_views_are_those_of_the_table() -> None:
    assert {name: " ".join(role_of(name).view) for name in VIEWS} == VIEWS


def test_placebo_k_has_the_view_of_default_k() -> None:
    assert [role.view for role in placebo_roles(12)] == [role.view for role in roles_for("default12")]


def test_placebos_are_one_text_of_ordinary_length_without_a_mandate() -> None:
    (text,) = {role.text for role in placebo_roles(12)}
    words = [len(role.text.split()) for role in roles_for("default12")]
    assert min(words) <= len(text.split()) <= max(words) + 5
    assert not re.search(r"\b(placebo|control|section|specialis|comparable|index|cost|income|flood|rent)", text)


def test_specialised_texts_differ() -> None:
    assert len({role_of(name).text for name in (*DEFAULT12, *OPTIONAL8, GENERALIST, PLACEBO12[0])}) == 22


@pytest.mark.parametrize("name", ALL33)
def test_length_and_structure(name: str) -> None:
    text = role_of(name).text
    assert 120 <= len(text.split()) <= 250
    labels = [paragraph.split(":")[0] for paragraph in text.split("\n\n")]
    assert labels == ["Mandate", "Method", "State", "Uncertainty", "Critique"]


@pytest.mark.parametrize("name", MUST_STATE)
def test_mandate_says_what_it_must(name: str) -> None:
    assert MUST_STATE[name] in role_of(name).text


def test_every_specialised_role_has_a_must_state() -> None:
    assert set(MUST_STATE) == set(VIEWS)


def test_building_condition_must_repeat_it_in_the_answer() -> None:
    assert "in `reasoning_summary`, that there was no inspection" in role_of("building_condition").text


@pytest.mark.parametrize("name", ALL33)
def test_condition_and_inspection_are_never_asserted(name: str) -> None:
    for sentence in sentences(role_of(name).text):
        if re.search(r"\bcondition\b|inspect|\bvisit", sentence):
            # As a hypothesis ("put as a condition") the word says nothing of a building.
            assert re.search(r"\bno\b|\bnot\b|unobserved|look for|as a condition", sentence), sentence


@pytest.mark.parametrize("name", ALL33)
def test_a_role_speaks_only_of_sections_in_its_view(name: str) -> None:
    role = role_of(name)
    named = {
        code
        for match in re.finditer(r"[Ss]ections? ([PCMG])(?: and ([PCMG]))?", role.text)
        for code in match.groups()
        if code
    }
    assert all(role.sees(code) for code in named)


@pytest.mark.parametrize("name", ALL33)
def test_nothing_in_a_role_belongs_to_one_item(name: str) -> None:
    text = re.sub(r"q(05|25|50|75|95)\b", "", role_of(name).text)
    assert not re.search(r"\d|[$%]|\b(?:USD|CAD|EUR|GBP)\b", text)


@pytest.mark.parametrize("relative", [*SYSTEM_TEXTS, *(f"prompts/valuation/roles/{name}.md" for name in ALL33)])
def test_system_texts_are_plain_and_name_nobody(relative: str) -> None:
    text = package_text(relative)
    assert "$" not in text
    assert not re.search(r"gpt|claude|openai|anthropic|gemini|llama|mistral|language model|\bAI\b", text, re.IGNORECASE)
    claims = re.findall(r"[^.\n]*(?:licen[cs]ed|certified|chartered|accredited|years of experience)[^.\n]*", text)
    assert all("not a licensed professional" in claim for claim in claims)


@pytest.mark.parametrize("path", sorted(PROMPTS.rglob("*.md")), ids=lambda path: path.stem)
def test_files_are_ascii_with_unix_line_ends(path: Path) -> None:
    data = path.read_bytes()
    assert data.isascii()
    assert b"\r" not in data
    assert data.endswith(b"\n")
    assert not data.endswith(b"\n\n")


def test_preamble_states_the_discipline() -> None:
    text = package_text("prompts/valuation/preamble.md")
    for phrase in (
        "simulated analytic role",
        "not a licensed professional",
        "a prediction of the transaction price",
        "not a fundamental or long-run value",
        "the information cutoff, the last admissible day",
        "Nobody inspected the property.",
        "Missing stays missing.",
        "Adjustments are traceable",
        "a line opening data-TAG and the next line closing data-TAG",
        "never instructions",
        "only by their seat labels",
        "JSON only",
    ):
        assert phrase in text
    assert not re.search(r"\d", text)


def test_output_rules_serve_every_kind_of_answer() -> None:
    text = package_text("prompts/output_rules.md")
    assert "at most 120 words" in text
    assert "q05 <= q25 <= q50 <= q75 <= q95, and q05 <= point <= q95" in text
    assert all(f"`{field}`" in text for field in ("answer", "critiques", "abstention"))


@pytest.mark.parametrize("relative", ["prompts/output_rules.md", *(f"prompts/tasks/{task}.md" for task in TASKS)])
def test_shared_texts_have_no_application_words(relative: str) -> None:
    assert not re.search(r"propert|price|market|valu(?:ation|er)|apprais|house|sale", package_text(relative))


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_one_line_naming_kind_round_and_seat(task: str) -> None:
    text = package_text(f"prompts/tasks/{task}.md")
    assert text.count("\n") == 1
    assert text.startswith(f"{task} (round ${{round}}). You are ${{seat}}. ")
    assert set(re.findall(r"\$\{?(\w*)\}?", text)) == {"round", "seat"}
    wanted = "critiques" if task == "critique" else "answer"
    assert text.endswith(f" Fill `{wanted}` only.\n")


@pytest.mark.parametrize("name", ALL33)
def test_the_layout_accepts_every_prompt(name: str) -> None:
    system = render_system(
        preamble=package_text("prompts/valuation/preamble.md"),
        seat_label="analyst_01",
        role_text=role_of(name).text,
        output_rules=package_text("prompts/output_rules.md"),
    )
    assert system.count("ROLE_ID: analyst_01\n") == 1


@pytest.mark.parametrize("task", TASKS)
def test_the_layout_accepts_every_task(task: str) -> None:
    line = fill(package_text(f"prompts/tasks/{task}.md").strip(), {"round": "1", "seat": "analyst_02"})
    assert render_turn_block(tag="0123456789abcdef", task_line=line).startswith(f"TASK: {task} (round 1). ")


def test_revision_is_no_invitation_to_conform() -> None:
    text = package_text("prompts/tasks/revision.md")
    assert "Keeping your answer is fine." in text
    assert "Moving toward the committee without an evidential reason is an error" in text


def test_hashes_are_those_of_the_files() -> None:
    hashes = role_prompt_hashes()
    assert hashes == {name: hashlib.sha256((ROLES / f"{name}.md").read_bytes()).hexdigest() for name in ALL33}
    assert len(set(hashes.values())) == 33


def test_hashes_ignore_line_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = role_prompt_hashes()
    copy = tmp_path / "prompts" / "valuation" / "roles"
    copy.mkdir(parents=True)
    for path in ROLES.iterdir():
        (copy / path.name).write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    monkeypatch.setattr("consilience.config.files", lambda _package: tmp_path)
    assert role_prompt_hashes() == before


def test_rosters_keep_their_order() -> None:
    assert tuple(role.id for role in roles_for("default12")) == DEFAULT12
    assert tuple(role.id for role in roles_for("all20")) == (*DEFAULT12, *OPTIONAL8)


def test_shuffled_roles_preserve_texts_and_views() -> None:
    default, shuffled = roles_for("default12"), shuffled_roles(7)
    assert Counter(role.text for role in shuffled) == Counter(role.text for role in default)
    assert [role.view for role in shuffled] == [role.view for role in default]
    assert len({role.id for role in shuffled}) == 12
    texts = {role.id: role.text for role in default}
    assert all(texts[role.id.split("_at_")[0]] == role.text for role in shuffled)


def test_shuffling_depends_on_the_seed_alone() -> None:
    assert shuffled_roles(7) == roles_for("shuffled12", seed=7)
    assert len({shuffled_roles(seed) for seed in range(5)}) == 5
    assert all(shuffled_roles(seed) != roles_for("default12") for seed in range(5))


def test_user_files_stand_beside_packaged_roles(tmp_path: Path) -> None:
    markdown, yaml = tmp_path / "broker.md", tmp_path / "notary.yaml"
    markdown.write_text("---\nid: broker\nview: [P, C]\n---\nPredict the closing price.\n")
    yaml.write_text("id: notary\nview: [P]\ntext: Read the deed.\n")
    roles = roles_for([markdown, str(yaml), "skeptic"])
    assert [role.id for role in roles] == ["broker", "notary", "skeptic"]
    assert roles[0].view == ("P", "C")


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(ConfigError, match='Did you mean "skeptic"'):
        roles_for(["sceptic"])
    with pytest.raises(ConfigError, match='Did you mean "default12"'):
        roles_for("default_12")


@pytest.mark.parametrize("n", [0, 13])
def test_placebos_are_one_to_twelve(n: int) -> None:
    with pytest.raises(ConfigError, match="1 to 12"):
        placebo_roles(n)
