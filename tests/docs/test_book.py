"""The book: every block runs and shows what is printed, and the reference holds everything that there is.

What there is, is counted here by other means than the pages are made by, so that a page that forgets something fails.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path, PurePosixPath
from typing import Any, get_args

import pytest
from typer.main import get_command

from book.assemble import ROOT, assemble, documents, place_in_book, relinked
from book_cases import FENCE, blocks_of, commands_in, missing, play, play_block
from cli_cases import verbs_of
from consilience import errors
from consilience.cli import main
from consilience.cli.app import app
from consilience.config import load_packaged
from consilience.core.question import Kind
from consilience.experiments.arms import Treatments
from consilience.experiments.panels import PanelsFile
from consilience.forecasting.research.state import GateName
from consilience.journal.events import Event
from consilience.models.prices import load_catalogue
from consilience.registry import Registry
from source_tree import package

TRACE = {"TRACE": "results/runs/*/traces/*.json"}
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
SHORT = "team"
"""Tutorials that take few seconds; the others run many arms."""

OTHERS = ("README.md", "CONTRIBUTING.md")
WITH_PYTHON = [
    path
    for path in [*sorted(ROOT.glob("docs/**/*.md")), *(ROOT / name for name in OTHERS)]
    if path not in TUTORIALS and any(block.language == "python" for block in blocks_of(path))
]


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples and nothing else, in which the documents' commands are typed."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book")
    assemble(folder)
    return folder / "pages"


def page(book: Path, name: str) -> str:
    return (book / "reference" / f"{name}.md").read_text(encoding="utf-8")


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.+)$", text, re.MULTILINE)


def part(text: str, heading: str) -> str:
    """Return what stands under a heading, up to the next."""
    (found,) = re.findall(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.parametrize(
    "tutorial",
    [pytest.param(path, id=path.stem, marks=[] if path.stem in SHORT else pytest.mark.slow) for path in TUTORIALS],
)
@pytest.mark.usefixtures("newcomer")
def test_a_tutorial_prints_what_it_shows(tutorial: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = [block.shown for block in blocks_of(tutorial) if block.language in {"console", "python"}]
    assert play(tutorial, capsys, TRACE) == len(shown) >= 5
    assert sum(map(bool, shown)) >= 5


@pytest.mark.parametrize("document", WITH_PYTHON, ids=lambda path: path.stem)
@pytest.mark.usefixtures("newcomer")
def test_the_python_of_a_document_runs_and_prints_what_it_shows(
    document: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert play(document, capsys, languages=("python",)) >= 1


def test_five_commands_of_the_readme_reach_a_value_a_probability_and_a_decision(
    newcomer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, *_ = blocks_of(ROOT / "README.md")
    commands = [words for words, _ in commands_in(first)]
    assert len(commands) == 5
    assert commands[:2] == [["make", "env"], [".", ".venv/bin/activate"]]
    assert re.search(r"^env:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert missing(first.shown, play_block(first, capsys, {}, {})) == []
    assert [word for word in ("median", "probability of yes: ", "decided: ") if word not in first.shown] == []
    assert len(list(newcomer.glob("results/runs/*/manifest.json"))) == 3


@pytest.mark.slow
def test_the_table_and_the_picture_of_the_readme_are_those_of_its_commands(
    newcomer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = ROOT / "README.md"
    assert main(["demo"]) == 0
    printed = capsys.readouterr().out
    (table,) = [block.text for block in blocks_of(readme) if block.text.startswith("Arm ")]
    assert missing(table, printed) == []
    (report,) = [
        block for block in blocks_of(readme) if block.text.startswith("consilience --project results/demo report")
    ]
    play_block(report, capsys, {}, {})
    (alt, picture) = re.findall(r"!\[(.*?)\]\((\S+)\)", readme.read_text(encoding="utf-8"))[0]
    made = newcomer / "results/demo/results/report/figures" / Path(picture).name
    assert (ROOT / picture).read_bytes() == made.read_bytes()
    assert "Simulated" in alt


def test_something_shown_and_not_printed_is_found() -> None:
    assert missing("a  1\nb …\n", "a 1\nb 2\nc 3\n") == []
    assert missing("a 2\n", "a 1\n") == ["a 2"]
    assert missing("b\na\n", "a\nb\n") == ["a"]


def test_the_reference_has_every_command_with_every_option(book: Path) -> None:
    text = page(book, "commands")
    root: Any = get_command(app)
    for verb in verbs_of(root):
        command = root
        for word in verb:
            command = command.commands[word]
        told = part(text, " ".join(verb))
        options = [name for param in command.params for name in (*param.opts, *param.secondary_opts) if name[0] == "-"]
        assert [name for name in options if f"`{name}`" not in told] == [], verb
        assert [param.name for param in command.params if not (param.help or "").strip()] == [], verb
        assert command.help in told


def test_the_reference_has_every_entry_of_every_registry(book: Path) -> None:
    pages = "\n".join(page(book, name) for name in ("rules", "protocols", "sources"))
    names = {source.name for source in package() if "Registry(" in source.text and source.name != "registry"}
    modules = [importlib.import_module(f"consilience.{name}") for name in sorted(names)]
    registries = {id(held): held for module in modules for held in vars(module).values() if isinstance(held, Registry)}
    assert len(registries) >= 10
    for registry in registries.values():
        assert set(registry.names()) - set(headings(pages)) == set(), registry.what


@pytest.mark.parametrize("name", ["rules", "protocols", "sources"])
def test_every_parameter_says_what_it_is(book: Path, name: str) -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", page(book, name), re.MULTILINE)
    assert len(rows) >= 10
    assert [name for name, says in rows if not says.strip()] == []


def test_the_reference_has_every_metric(book: Path) -> None:
    text = page(book, "metrics")
    public = [
        node.name
        for source in package()
        if source.inside("scoring", "inference")
        for node in source.tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    assert len(public) >= 50
    assert [name for name in public if not re.search(rf"^\| `{name}` \| .{{10,}} \|$", text, re.MULTILINE)] == []


def test_the_reference_has_every_event_with_every_field(book: Path) -> None:
    text = page(book, "events")
    for event in get_args(Event):
        told = part(text, event.type)
        assert [each.name for each in fields(event) if f"`{each.name}`" not in told] == []
        assert inspect.cleandoc(event.__doc__).splitlines()[0] in told


def test_the_reference_has_every_error_with_its_exit_code(book: Path) -> None:
    text = page(book, "errors")
    found = [
        each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, errors.ConsilienceError)
    ]
    assert len(found) >= 15
    for error in found:
        assert part(text, error.__name__).strip().startswith(f"Exit code {error.exit_code}. ")
        assert re.search(rf"^\| {error.exit_code} \| \w", text, re.MULTILINE)


def test_the_reference_has_what_is_declared_in_files(book: Path) -> None:
    arms = load_packaged("configs/treatments.yaml", Treatments).treatments
    assert set(arms) - set(headings(page(book, "arms"))) == set()
    assert [name for name in load_catalogue().models if f"| `{name}` |" not in page(book, "budgets")] == []
    assert set(get_args(GateName)) - set(headings(page(book, "gates"))) == set()
    panels = page(book, "panels")
    roles = sorted((ROOT / "src" / "consilience" / "prompts").glob("*/roles/*.md"))
    assert len(roles) >= 50
    for path in roles:
        assert f"| `{path.stem}` |" in part(panels, path.parent.parent.name)
    declared = load_packaged("configs/panels.yaml", PanelsFile).panels
    assert len(declared) >= 4
    for application, named in declared.items():
        assert [name for name in named if f"| `{name}` |" not in part(panels, application)] == []
    assert [kind for kind in get_args(Kind) if f"- {kind}: `" not in page(book, "rules")] == []


def test_the_pages_of_modules_name_modules_that_are_there(book: Path) -> None:
    named = {
        name
        for path in (book / "reference" / "python").glob("*.md")
        for name in re.findall(r"^::: (\S+)$", path.read_text(), re.MULTILINE)
    }
    there = {f"consilience.{source.name}" for source in package()}
    assert named - there == set()
    rooms = ("scoring", "aggregation", "inference", "protocols", "core")
    assert {f"consilience.{s.name}" for s in package() if s.inside(*rooms) and "." in s.name} - named == set()


def test_every_link_of_the_book_leads_to_a_page(book: Path) -> None:
    dead = [
        (str(path.relative_to(book)), target)
        for path in book.rglob("*.md")
        for target in re.findall(r"\]\(([^)#\s]+)[)#]", FENCE.sub("", path.read_text(encoding="utf-8")))
        if "://" not in target and not (path.parent / target).is_file()
    ]
    assert dead == []


def test_a_link_that_leaves_the_book_is_refused() -> None:
    with pytest.raises(ValueError, match="which is no page of the book"):
        relinked("See [it](../examples/grid.yaml).", PurePosixPath("docs/index.md"))


def test_every_page_is_in_the_table_of_contents(book: Path) -> None:
    contents = (ROOT / "book" / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r": (\S+\.md)$", contents, re.MULTILINE))
    pages = {path.relative_to(book).as_posix() for path in book.rglob("*.md")}
    assert {place_in_book(document) for document in documents() if document.suffix == ".md"} <= pages
    assert {name for name in pages - listed if not name.startswith("decisions/0")} == set()
    assert listed - pages == set()


def test_nothing_is_loaded_from_elsewhere_by_the_book_as_it_is_set_up() -> None:
    contents = (ROOT / "book" / "mkdocs.yml").read_text(encoding="utf-8")
    assert "highlightjs: false" in contents
    assert re.findall(r"https?://", contents) == []


@pytest.mark.slow
@pytest.mark.skipif(
    not (ROOT / ".venv-docs" / ".ready").exists() and not os.environ.get("CI"),
    reason="the docs tool is not installed: make docs",
)
def test_the_book_builds_and_loads_nothing_from_elsewhere() -> None:
    done = subprocess.run(["make", "docs"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    site = ROOT / "build" / "book" / "site"
    built = list(site.rglob("*.html"))
    assert len(built) >= 50
    loaded = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
    assert [(path.name, loaded.findall(path.read_text())) for path in built if loaded.search(path.read_text())] == []
    fetched = re.compile(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//")
    assert [path.name for path in site.rglob("*.css") if fetched.search(path.read_text())] == []
