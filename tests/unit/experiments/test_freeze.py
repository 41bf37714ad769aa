from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import ruamel.yaml

from consilience.config import parse_yaml
from consilience.core.role import Role
from consilience.errors import DataError, IntegrityError, PlanError
from consilience.experiments import fingerprint
from consilience.experiments.artefact import CALIBRATION_FILE
from consilience.experiments.fingerprint import run_facts
from consilience.experiments.freeze import (
    ARMS,
    CONTRACTS,
    PACKETS,
    config_digest,
    deviations,
    package_hashes,
    project_digest,
    text_digest,
)
from consilience.experiments.frozen import (
    Freeze,
    Study,
    contents,
    keep,
    read_freeze,
    stand,
    take,
    truth_deviations,
)
from consilience.experiments.frozen_data import ANALYTIC, MANIFEST, SPLITS, SUBSAMPLES, hash_table
from consilience.experiments.hypotheses import EVERY_ARM, FAMILY, OWN_SINGLE
from consilience.experiments.prereg import SEEDED, prereg_page
from consilience.experiments.weights import FILE as WEIGHTS
from consilience.valuation.roster import role_prompt_hashes
from source_tree import imported, parsed

PACKAGE = Path(str(files("consilience")))
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
SKEPTIC = "prompts/valuation/roles/skeptic.md"

HASHES = """
import io, json, sys
from pathlib import Path
from ruamel.yaml import YAML
from consilience.experiments.freeze import package_hashes
print(json.dumps(package_hashes(Path(sys.argv[1]), parse=YAML(typ="safe", pure=True).load)))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of everything of the package that is hashed."""
    return shutil.copytree(PACKAGE, tmp_path / "consilience", ignore=shutil.ignore_patterns("__pycache__"))


def hashes(package: Path) -> dict[str, dict[str, str]]:
    return package_hashes(package, parse=lambda text: parse_yaml(text, where="test"))


def changed(package: Path) -> tuple[str, ...]:
    return deviations({"files": hashes(PACKAGE)}, {"files": hashes(package)})


def roles_for(panel: str, seed: int) -> tuple[Role, ...]:
    name = f"{panel}_{seed}" if panel.startswith("shuffled") else panel
    return (Role(id=name, view=("P",), text="Look."), Role(id="other", view=("P",), text="Look."))


@pytest.fixture
def study(tmp_path: Path) -> Study:
    (tmp_path / "study").mkdir()
    return Study.of(tmp_path / "study", rosters={"valuation": roles_for})


def taken(study: Study) -> Freeze:
    return keep(study, take(study, now=NOON))


def write_splits(study: Study, ids: list[str], splits: list[str]) -> None:
    path = study.root / SPLITS
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"tx_id": ids, "split": splits}).write_parquet(path)


def test_every_sort_of_file_is_hashed_and_named() -> None:
    found = hashes(PACKAGE)
    assert len(found["role_prompts"]) == 33
    assert set(found["role_prompts"].values()) == set(role_prompt_hashes().values())
    assert {"prompts/output_rules.md", "prompts/tasks/estimate.md", "prompts/general/preamble.md"} <= set(
        found["templates"]
    )
    texts = {str(path.relative_to(PACKAGE).as_posix()) for path in (PACKAGE / "prompts").rglob("*.md")}
    assert found["role_prompts"].keys() | found["templates"].keys() == texts
    assert tuple(found["contracts"]) == CONTRACTS
    assert tuple(found["packets"]) == PACKETS
    assert {"core/role.py", "protocols/debate.py", "runtime/turn.py", "models/pool.py", "evidence/views.py"} <= set(
        found["code"]
    )
    assert {name.partition("/")[0] for name in found["code"]} == {
        *("core", "protocols", "runtime", "aggregation", "models", "evidence")
    }
    assert tuple(found["arms"]) == ARMS
    assert {f"valuation/baselines/{path.name}" for path in (PACKAGE / "valuation" / "baselines").glob("*.py")} <= set(
        found["baselines"]
    )
    assert "configs/treatments.yaml" in found["configs"]


def test_reformatting_line_ends_comments_and_key_order_change_nothing(package: Path) -> None:
    budgets = package / "configs" / "budgets.yaml"
    said = parse_yaml(budgets.read_text(), where="budgets")
    # JSON is YAML: other quotes, other order, no comments, one line
    budgets.write_text(json.dumps(dict(reversed(said.items()))) + "\n")
    for path in (*package.rglob("*.md"), *package.rglob("*.py"), *package.glob("configs/m*.yaml")):
        path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    treatments = package / "configs" / "treatments.yaml"
    treatments.write_text("# another comment\n" + treatments.read_text().replace("    protocol: {", "    protocol: { "))
    assert changed(package) == ()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (SKEPTIC, "the", "a"),
        ("prompts/tasks/estimate.md", "the", "a"),
        ("prompts/output_rules.md", "the", "a"),
        ("configs/treatments.yaml", "rounds: 2", "rounds: 3"),
        ("core/contracts.py", "from", "from  "),
        ("runtime/turn.py", "import", "import "),
        ("valuation/packets.py", "import", "import "),
        ("valuation/roster.py", '    "hedonic",', '    "zoning",'),
        ("valuation/adjustments.py", "import", "import "),
        ("valuation/baselines/adjusted.py", "import", "import "),
        ("configs/panels.yaml", "without: [skeptic]", "without: [hedonic]"),
        ("experiments/exposed.py", "FACTORS = (0.8, 1.25)", "FACTORS = (0.5, 2)"),
        ("experiments/panels.py", "import", "import "),
        ("experiments/rows.py", "import", "import "),
        ("config.py", "import", "import "),
    ],
)
def test_one_changed_word_is_named_by_its_file(package: Path, name: str, old: str, new: str) -> None:
    text = (package / name).read_text()
    assert old in text
    (package / name).write_text(text.replace(old, new, 1))
    assert changed(package) == (f"{name} changed",)


def reordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reordered(each) for key, each in reversed(value.items())}
    return [reordered(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("flow", [True, False])
def test_every_configuration_may_be_written_in_another_form(package: Path, *, flow: bool) -> None:
    paths = sorted((package / "configs").glob("*.yaml"))
    before = [path.read_text() for path in paths]
    writer = ruamel.yaml.YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.width, writer.indent = flow, 40, 6
    vars(writer)["sort_base_mapping_type_on_output"] = False
    for path in paths:
        said = parse_yaml(path.read_text(), where=path.name)
        with path.open("w") as file:
            writer.dump(reordered(said), file)
    assert all(path.read_text() != text for path, text in zip(paths, before, strict=True))
    assert changed(package) == ()


def test_all_that_packets_are_made_of_is_hashed() -> None:
    """Whatever the packet builder imports of the valuation is frozen with it, and whatever a plan does of the arms."""
    found = {name for named in hashes(PACKAGE).values() for name in named}
    sources = {f"{source.name.replace('.', '/')}.py": source for source in parsed(PACKAGE)}
    left, seen = ["valuation/packets.py", "valuation/adjustments.py"], set[str]()
    while left:
        name = left.pop()
        if name not in seen and name in sources and name.startswith("valuation/"):
            seen.add(name)
            brought = {each for node in ast.walk(sources[name].tree) for each in imported(node)}
            left += [f"{each.removeprefix('consilience.').replace('.', '/')}.py" for each in brought]
    assert len(seen) > 10
    assert seen <= found


def test_files_that_are_gone_or_new_are_named(package: Path) -> None:
    (package / SKEPTIC).rename(package / "prompts" / "valuation" / "roles" / "sceptic.md")
    (package / "protocols" / "__pycache__").mkdir()
    (package / "protocols" / "__pycache__" / "debate.pyc").write_bytes(b"no source")
    assert changed(package) == ("prompts/valuation/roles/sceptic.md was not there", f"{SKEPTIC} is gone")


def test_a_prompts_hash_is_that_of_its_bytes() -> None:
    assert text_digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert text_digest(b"a\rb") != text_digest(b"a\nb")


def test_config_values_of_different_kinds_differ() -> None:
    values: list[Any] = [1, 1.5, "1", True, None, [1], {"1": 1}, {1: 1}, "2026-01-02", NOON.date()]
    assert len({config_digest(value) for value in values}) == len(values)


def test_what_limits_money_and_haste_is_not_frozen() -> None:
    assert project_digest({"max_spend_usd": 3, "concurrency": 9, "tier": "mid"}) == project_digest({"tier": "mid"})
    assert project_digest({"tier": "small"}) != project_digest({"tier": "mid"})


def other_interpreters() -> list[str]:
    versions = [f"python3.{minor}" for minor in (11, 12, 13) if minor != sys.version_info.minor]
    found = [shutil.which(name) for name in versions]
    found += [str(p) for name in versions for p in (Path.home() / ".pyenv" / "versions").glob(f"*/bin/{name}")]
    return [path for path in found if path is not None and runs(path)]


def runs(interpreter: str) -> bool:
    return subprocess.run([interpreter, "-c", ""], capture_output=True, check=False, timeout=30).returncode == 0


def test_every_interpreter_gives_the_same_hashes(tmp_path: Path) -> None:
    others = other_interpreters()
    if not others:
        pytest.skip("no other Python 3.11, 3.12 or 3.13 on this machine")
    # A bare interpreter gets the package's source and the one reader of YAML, nothing else.
    shutil.copytree(
        Path(ruamel.yaml.__file__).parent,
        tmp_path / "bare" / "ruamel" / "yaml",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    path = f"{PACKAGE.parent}:{tmp_path / 'bare'}"
    for interpreter in others:
        done = subprocess.run(
            [interpreter, "-B", "-c", HASHES, str(PACKAGE)],
            env={"PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == hashes(PACKAGE)


def test_a_freeze_is_read_back_whole_and_stands(study: Study) -> None:
    write_splits(study, ["a", "b", "c"], ["test", "train", "test"])
    freeze = taken(study)
    assert read_freeze(study.results) == freeze
    assert stand(study, freeze).deviations == ()
    assert stand(study, freeze).notes == ()
    assert freeze.data[SUBSAMPLES] is None
    splits = freeze.data[SPLITS]
    assert splits is not None
    assert splits.rows == {"test": 2, "train": 1}
    assert [member.id for member in freeze.panels["valuation"]["default"].members] == ["default", "other"]
    assert [name for name, cast in freeze.panels["valuation"].items() if cast.seeded] == ["shuffled12"]
    assert {"G_debate", "E_single"} <= freeze.treatments.keys()
    assert "gpt-6-luna" in freeze.models


def test_data_is_hashed_by_content(study: Study) -> None:
    write_splits(study, ["a", "b"], ["test", "train"])
    freeze = taken(study)
    write_splits(study, ["b", "a"], ["train", "test"])
    assert stand(study, freeze).deviations == ()
    write_splits(study, ["b", "a"], ["test", "train"])
    (study.results / WEIGHTS).write_text('{"a": 1}')
    (study.root / "consilience.yaml").write_text("tier: small\nconcurrency: 9\n")
    assert stand(study, freeze).deviations == (
        "consilience.yaml changed",
        f"{SPLITS} changed",
        f"results/{WEIGHTS} was not there",
    )
    (study.results / CALIBRATION_FILE).write_text('{"b": 1, "sha256": "x"}')
    assert f"results/{CALIBRATION_FILE} was not there" in stand(study, freeze).deviations
    pinned = take(study, now=NOON)
    (study.results / CALIBRATION_FILE).write_text('{"sha256": "y",  "b": 1}')
    assert stand(study, pinned).deviations == ()
    (study.results / CALIBRATION_FILE).write_text('{"b": 2}')
    assert stand(study, pinned).deviations == (f"results/{CALIBRATION_FILE} changed",)
    (study.root / SPLITS).unlink()
    assert f"{SPLITS} is gone" in stand(study, freeze).deviations


def write_sales(study: Study, prices: list[float]) -> None:
    path = study.root / ANALYTIC
    path.parent.mkdir(parents=True, exist_ok=True)
    days = [date(2026, 1, 1 + at) for at in range(len(prices))]
    told = {"tx_id": [str(at) for at in range(len(prices))], "sale_date": days, "price": prices, "flags": [["new"]] * 2}
    pl.DataFrame(told).sample(fraction=1, shuffle=True).write_parquet(path)


def test_a_changed_truth_is_named(study: Study) -> None:
    write_sales(study, [100.0, 200.0])
    (study.root / MANIFEST).write_text('{"rows": 2, "currency": "EUR"}')
    freeze = taken(study)
    write_sales(study, [100.0, 200.0])
    (study.root / MANIFEST).write_text('{\n "currency": "EUR", "rows": 2}')
    assert stand(study, freeze).deviations == truth_deviations(study.root, freeze) == ()
    write_sales(study, [100.0, 201.0])
    (study.root / MANIFEST).write_text('{"currency": "USD", "rows": 2}')
    assert stand(study, freeze).deviations == (f"{MANIFEST} changed", f"{ANALYTIC} changed")
    assert run_facts(study).deviations == (f"{MANIFEST} changed", f"{ANALYTIC} changed")
    (said,) = truth_deviations(study.root, freeze)
    assert said == f"Protocol deviation of the truths: {ANALYTIC} changed."
    (study.root / ANALYTIC).unlink()
    assert "is gone" in truth_deviations(study.root, freeze)[0]


def test_a_tables_form_and_order_are_not_in_its_hash_and_its_types_are(tmp_path: Path) -> None:
    def digest(frame: pl.DataFrame) -> str:
        frame.write_parquet(tmp_path / "t.parquet")
        hashed = hash_table(tmp_path / "t.parquet")
        assert hashed is not None
        assert hashed.rows == {"all": frame.height}
        return hashed.sha256

    frame = pl.DataFrame({"a": [1, 2, None], "b": ["x", "y", ""]})
    assert digest(frame) == digest(frame.reverse().select("b", "a"))
    others = [frame.cast({"a": pl.Float64}), frame.fill_null(0), frame.with_columns(b=pl.lit(None))]
    assert len({digest(each) for each in (frame, *others)}) == 4
    with pytest.raises(DataError, match="cannot be hashed"):
        digest(pl.DataFrame({"a": [float("nan")]}))


def test_who_sits_on_a_panel_is_compared(study: Study) -> None:
    freeze = taken(study)

    def seen(panel: str, seed: int) -> tuple[Role, ...]:
        first, other = roles_for(panel, seed)
        changes = {
            "default": (other, first),
            "placebo": (first, other.model_copy(update={"view": ("P", "C")})),
            "generalist": (first, other.model_copy(update={"text": "Look away."})),
            "all20": (first, other.model_copy(update={"id": "third"})),
            "with_skeptic": (first,),
            "shuffled12": (first, other.model_copy(update={"text": "Look away."})),
        }
        return changes.get(panel, (first, other))

    bent = replace(study, rosters={"valuation": seen})
    assert stand(bent, freeze).deviations == (
        "panel valuation/all20: other is gone",
        "panel valuation/all20: third was not there",
        "panel valuation/default: the order of its seats changed",
        "panel valuation/generalist: other changed",
        "panel valuation/placebo: other changed",
        "panel valuation/with_skeptic: other is gone",
    )
    panels = freeze.model_dump(mode="json")["panels"]
    cast = panels["valuation"]["default"]
    fewer = {"valuation": {"default": {**cast, "labels": "role"}, "own": cast}}
    assert deviations({"panels": fewer}, {"panels": {"valuation": {"default": cast}}}) == (
        "panel valuation/default: labels changed",
        "panel valuation/own is gone",
    )
    # where the role's own file is named, that says it
    said = {"files": {"role_prompts": {"prompts/valuation/roles/other.md": "0"}}, "panels": panels}
    now = contents(bent).model_dump(mode="json") | {
        "files": {"role_prompts": {"prompts/valuation/roles/other.md": "1"}}
    }
    lines = deviations(said, {name: now[name] for name in said})
    assert "prompts/valuation/roles/other.md changed" in lines
    assert not [line for line in lines if line.endswith(": other changed")]


def test_unreadable_data_is_said(study: Study) -> None:
    write_splits(study, ["a"], ["test"])
    (study.results).mkdir()
    (study.results / WEIGHTS).write_text("{")
    with pytest.raises(DataError, match=r"aggregation_weights\.json cannot be read"):
        take(study, now=NOON)
    (study.results / WEIGHTS).unlink()
    pl.DataFrame({"tx_id": ["a"]}).write_parquet(study.root / SPLITS)
    with pytest.raises(DataError, match='lacks the column "split"'):
        take(study, now=NOON)


def test_a_freeze_is_replaced_for_a_reason_that_is_kept(study: Study) -> None:
    first = taken(study)
    before = study.path.read_bytes()
    with pytest.raises(PlanError, match="frozen at 2026-11-01 12:00 UTC"):
        taken(study)
    with pytest.raises(PlanError, match="frozen at"):
        keep(study, first, again="  ")
    assert study.path.read_bytes() == before
    second = keep(study, take(study, now=NOON.replace(hour=13)), again="a wrong boundary")
    third = keep(study, take(study, now=NOON.replace(hour=14)), again="a typo")
    assert [past.reason for past in third.history] == ["a wrong boundary", "a typo"]
    assert [past.sha256 for past in third.history] == [first.head, second.head]
    assert "a wrong boundary" in prereg_page(third)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text.replace("G_debate", "G_depate", 1), "not what was written"),
        (lambda text: text[:-9], "is no freeze"),
        (lambda _: "[]", "is no freeze"),
        (lambda _: '{"sha256": "0"}', "Field required"),
    ],
)
def test_a_changed_freeze_is_no_freeze(study: Study, damage: Any, said: str) -> None:
    taken(study)
    study.path.write_text(damage(study.path.read_text()))
    with pytest.raises(IntegrityError, match=said):
        read_freeze(study.results)


def test_where_nothing_can_be_kept_nothing_was_frozen(study: Study) -> None:
    assert read_freeze(study.results) is None
    study.path.mkdir(parents=True)
    with pytest.raises(DataError, match="cannot be read"):
        read_freeze(study.results)
    study.path.rmdir()
    study.results.rmdir()
    study.results.write_text("in the way")
    assert read_freeze(study.results) is None


def test_versions_are_notes_and_no_deviations(study: Study) -> None:
    freeze = taken(study)
    older = freeze.environment.model_copy(update={"python": "3.11.0", "packages": {"gone": "1"}})
    standing = stand(study, freeze.model_copy(update={"environment": older}))
    assert standing.deviations == ()
    assert standing.notes[0].endswith("frozen with 3.11.0")
    assert "gone is not installed, frozen with 1" in standing.notes


def test_a_run_is_under_the_freeze_it_began_under(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    run = study.results / "runs" / "r"
    run.mkdir(parents=True)
    assert run_facts(study, run_id="r").frozen_sha256 is None
    freeze = taken(study)
    assert run_facts().frozen_sha256 is None
    facts = run_facts(study, run_id="r")
    assert (facts.frozen_sha256, facts.deviations) == (freeze.head, ())
    (study.root / "consilience.yaml").write_text("seed: 3\n")
    assert run_facts(study, run_id="r").deviations == ("consilience.yaml changed",)
    # what was noted stays noted although the file is mended
    told = {"freeze_sha256": freeze.head, "protocol_deviations": ["core/role.py changed"]}
    (run / "manifest.json").write_text(json.dumps(told))
    (study.root / "consilience.yaml").unlink()
    assert run_facts(study, run_id="r").deviations == ("core/role.py changed",)
    # a run from before the freeze does not come under it by being finished later
    (run / "manifest.json").write_text(json.dumps({"freeze_sha256": None, "protocol_deviations": []}))
    assert run_facts(study, run_id="r").frozen_sha256 is None
    monkeypatch.setattr(fingerprint, "read_freeze", lambda _: freeze.model_copy(update={"history": []}))
    (run / "manifest.json").write_text("{")
    assert run_facts(study, run_id="r").frozen_sha256 == freeze.head


def test_the_page_is_made_of_the_freeze(study: Study) -> None:
    write_splits(study, ["a", "b", "c"], ["test", "holdout", "test"])
    freeze = taken(study)
    page = prereg_page(freeze)
    assert freeze.head in page
    for contrast in FAMILY:
        assert f"| {contrast.arm} | {contrast.against} | {contrast.asks} |" in page
    for arm, declared in freeze.treatments.items():
        assert f"| {arm} | {next(iter(declared['protocol']))}" in page
    assert "| estimate | median |" in page
    assert f"| {SPLITS} | test | 2 | " in page
    assert f"| {SUBSAMPLES} |  | not there |  |" in page
    assert "| valuation/default | neutral | default, other |" in page
    assert f"| valuation/shuffled12 | neutral | {SEEDED} |" in page
    assert "| default | 2 (valuation) |" in page
    assert prereg_page(freeze) == page


def test_the_family_is_the_declared_one() -> None:
    pairs = {(contrast.arm.partition("_")[0], contrast.against.partition("_")[0]) for contrast in FAMILY}
    assert {("G", "J"), ("F", "J"), ("G", "I"), ("H", "G"), ("F", "E"), ("G", "G")} <= pairs
    assert {contrast.against for contrast in FAMILY if contrast.arm == EVERY_ARM} == {"D_avm", OWN_SINGLE}
