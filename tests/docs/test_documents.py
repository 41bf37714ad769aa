"""The documents do what they say: their commands exist, the how-tos run, their files are those of `examples`."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperCommand
from typer.main import get_command

from book_cases import FENCE
from cli_cases import verbs_of
from consilience.cli import main
from consilience.cli.app import app
from consilience.config import load_packaged
from consilience.core.packet import Item
from consilience.core.question import Question
from consilience.errors import ConfigError, explained
from consilience.experiments.arms import Treatments
from consilience.mcp.arguments import AskPanel, read_arguments
from consilience.mcp.documents import error_document
from source_tree import rooms

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
OFFLINE = ("howto-own-sales.md", "howto-questions.md", "howto-panels.md", "howto-arms.md", "howto-baselines.md")

LONG = tuple(name for name in OFFLINE if name != "howto-questions.md")
"""Of these; they build tables, run many arms, or fit several models."""


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(document: Path) -> Iterator[list[str]]:
    for block in blocks(document, "console"):
        for line in block.splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words:
                yield words


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in OFFLINE]
)
def test_the_commands_of_a_how_to_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for words in commands(ROOT / "docs" / name):
        if words[0] == "mkdir":
            Path(words[1]).mkdir()
        else:
            assert words[0] == "consilience"
            assert main(words[1:]) == 0, capsys.readouterr().err
    (page,) = tmp_path.rglob("results/report.html")
    assert "What was asked" in page.read_text(encoding="utf-8")


def test_the_commands_of_the_how_to_of_scores_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    how_to = ROOT / "docs" / "howto-score.md"
    for words in commands(how_to):
        assert main(words[1:]) == 0, capsys.readouterr().err
    assert (tmp_path / "curves.csv").is_file()
    for shown, name in zip(blocks(how_to, "text"), ("forecasts.csv", "outcomes.csv"), strict=True):
        assert (ROOT / "examples" / name).read_text(encoding="utf-8").startswith(shown)


@pytest.mark.slow
def test_the_commands_of_the_how_to_of_forecasts_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for words in commands(ROOT / "docs" / "howto-forecast.md"):
        traces = sorted(map(str, tmp_path.rglob("traces/*.json")))
        typed = [traces[0] if word == "TRACE" else word for word in words[1:]]
        assert main(typed) == 0, capsys.readouterr().err
        out = capsys.readouterr().out
        assert "simulated" in out or "trace" in typed


def test_the_commands_of_the_how_to_of_decisions_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for words in commands(ROOT / "docs" / "howto-decide.md"):
        made = sorted(tmp_path.glob("results/decisions/*/decision.json"))
        told = json.loads(made[0].read_bytes()) if made else {}
        names = {"DECISION": told.get("run_id"), "OPTION": next(iter(told.get("options", {}).values()), None)}
        assert main([names.get(word) or word for word in words[1:]]) in {0, 3}, capsys.readouterr().err
        out = capsys.readouterr().out
        assert "simulated" in out or "resolve" in words
    (line,) = (tmp_path / "results" / "decisions" / "decisions.jsonl").read_bytes().splitlines()
    assert json.loads(line)["note"] == "seen in the weekly report"


def test_what_the_how_to_of_assistants_shows_is_what_they_get(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config, refusal = (json.loads(block) for block in blocks(ROOT / "docs" / "howto-assistants.md", "json"))
    (server,) = config["mcpServers"].values()
    words = [str(tmp_path) if word.startswith("/") else word for word in server["args"]]
    assert main([*words, "--skill"]) == 0
    assert "When a panel is not justified" in capsys.readouterr().out
    with pytest.raises(ConfigError) as caught:
        read_arguments("ask_panel", {"question": "?"}, AskPanel)
    assert error_document(explained(caught.value)) == refusal


def test_every_command_in_a_document_exists_with_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for project in ("study", "results/demo"):
        (tmp_path / project).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    told = [
        (document.name, words) for document in DOCUMENTS for words in commands(document) if words[0] == "consilience"
    ]
    assert len(told) >= 10
    # What differs in values alone is typed once.
    monkeypatch.setattr(TyperCommand, "format_help", lambda *_: None)  # what is typed is read first; its page is long
    alike = {tuple(word for word in words if word[:2] == "--" or word.isalpha()): (name, words) for name, words in told}
    wrong = [(name, words) for name, words in alike.values() if main([*words[1:], "--help"]) != 0]
    assert wrong == [], capsys.readouterr().err


def test_every_verb_is_shown_in_a_document() -> None:
    verbs = {" ".join(verb) for verb in verbs_of(get_command(app))}
    shown = {" ".join(words[1:]) for document in DOCUMENTS for words in commands(document)}
    typed = {re.sub(r"^--project \S+ ", "", words) for words in shown}
    assert {"demo", "data build", "run-arm"} <= verbs
    assert {verb for verb in verbs if not any(f"{words} ".startswith(f"{verb} ") for words in typed)} == set()


def test_every_arm_is_explained() -> None:
    text = (ROOT / "docs" / "howto-arms.md").read_text(encoding="utf-8")
    declared = load_packaged("configs/treatments.yaml", Treatments).treatments
    assert {arm for arm in declared if f"`{arm}`" not in text} == set()


def test_every_link_in_a_document_leads_to_a_file() -> None:
    links = [
        (document, target)
        for document in DOCUMENTS
        for target in re.findall(r"\]\(([^)#]+)[)#]", FENCE.sub("", document.read_text(encoding="utf-8")))
        if "://" not in target
    ]
    assert links
    assert [(str(document), target) for document, target in links if not (document.parent / target).exists()] == []


def test_what_a_how_to_shows_is_what_the_examples_hold() -> None:
    sales, questions, panels, *_ = (ROOT / "docs" / name for name in OFFLINE)
    assert (ROOT / "examples" / "own_sales.yaml").read_text(encoding="utf-8") in blocks(sales, "yaml")
    shown = [line for block in blocks(sales, "text") for line in block.splitlines()]
    assert shown == (ROOT / "examples" / "own_sales.csv").read_text(encoding="utf-8").splitlines()[: len(shown)]
    assert blocks(panels, "markdown") == [(ROOT / "examples" / "own_role.md").read_text(encoding="utf-8")]
    assert blocks(panels, "yaml") == [(ROOT / "examples" / "own_panel.yaml").read_text(encoding="utf-8")]
    whole, *others = (json.loads(block) for block in blocks(questions, "json"))
    first = (ROOT / "examples" / "questions.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert whole == json.loads(first)
    assert Item.model_validate_json(first).truth is not None
    assert [Question.model_validate_json(json.dumps(other)).kind for other in others] == ["probability", "choice"]


def test_the_readme_names_every_room() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    told = {room for cell in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE) for room in re.findall(r"`(\w+)`", cell)}
    assert rooms() - told == set()


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = set(re.findall(r"\]\((\d{4}[^)]+)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert listed == {path.name for path in folder.glob("[0-9]*.md")}
