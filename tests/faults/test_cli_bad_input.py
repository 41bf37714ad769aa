"""Bad input and bad disks through the real command line: one clear message, the right exit code, nothing lost."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from cli_cases import Done, write_questions
from consilience.journal.lock import RunLock

CONSILIENCE = (sys.executable, "-m", "consilience")
NAMESPACE = ("unshare", "--mount", "--map-root-user")


def consilience(*arguments: object, cwd: Path) -> Done:
    return run([*CONSILIENCE, *map(str, arguments)], cwd)


def run(command: list[str], cwd: Path) -> Done:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
    return Done(done.returncode, done.stdout, done.stderr)


def assert_refused(done: Done, *, code: int, named: str) -> None:
    """One message that names the thing, no traceback, nothing on stdout."""
    assert done.code == code, done.err
    assert done.out == ""
    assert done.err.count("error: ") == 1
    assert named in done.err
    assert "Traceback" not in done.err


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the table of a small town, and its source beside it as ``town.parquet``."""
    root = tmp_path_factory.mktemp("town")
    made = consilience("data", "synth", "--sales", 300, "--seed", 1, "--output", "town.parquet", cwd=root)
    assert made.code == 0, made.err
    built = consilience("data", "build", "--adapter", "synthetic", "--input", "town.parquet", cwd=root)
    assert built.code == 0, built.err
    return root


@pytest.fixture
def study(town: Path, tmp_path: Path) -> Path:
    return shutil.copytree(town, tmp_path / "study")


Spoil = Callable[[pl.DataFrame], pl.DataFrame]
SPOILED: dict[str, tuple[Spoil, str]] = {
    "missing column": (lambda sales: sales.drop("floor_area_m2"), '"floor_area_m2"'),
    "negative price": (lambda sales: sales.with_columns(price=-pl.col("price")), 'column "price"'),
    "duplicate id": (lambda sales: pl.concat([sales, sales.head(1)]), "stands in row 1 too"),
}


@pytest.mark.parametrize("what", SPOILED)
def test_a_table_that_breaks_the_schema_leaves_the_old_one(what: str, study: Path) -> None:
    spoil, named = SPOILED[what]
    before = bytes_of(study / "data")
    spoil(pl.read_parquet(study / "town.parquet")).write_parquet(study / "spoiled.parquet")
    done = consilience("data", "build", "--adapter", "synthetic", "--input", "spoiled.parquet", cwd=study)
    assert_refused(done, code=1, named=named)
    assert bytes_of(study / "data") == before


def test_unreadable_parquet_leaves_the_old_table(study: Path) -> None:
    before = bytes_of(study / "data")
    whole = (study / "town.parquet").read_bytes()
    (study / "torn.parquet").write_bytes(whole[: len(whole) // 2])
    done = consilience("data", "build", "--adapter", "synthetic", "--input", "torn.parquet", cwd=study)
    assert_refused(done, code=1, named="torn.parquet is no readable Parquet")
    assert bytes_of(study / "data") == before


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    done = consilience("data", "build", "--adapter", "king_county", "--input", "nowhere.csv", cwd=tmp_path)
    assert_refused(done, code=1, named="nowhere.csv")
    assert bytes_of(tmp_path) == {}


def test_an_unknown_arm_names_the_nearest_before_anything_is_made(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 1)
    done = consilience("run-arm", "--arm", "G_debat", "--questions", "q.jsonl", cwd=tmp_path)
    assert_refused(done, code=2, named='Did you mean "G_debate"')
    assert set(bytes_of(tmp_path)) == {"q.jsonl"}


def test_an_unknown_key_names_the_nearest_before_anything_is_made(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 1)
    (tmp_path / "consilience.yaml").write_text("max_spend_us: 5\n")
    done = consilience("run-arm", "--arm", "E_single", "--questions", "q.jsonl", cwd=tmp_path)
    assert_refused(done, code=2, named='unknown key "max_spend_us"')
    assert 'Did you mean "max_spend_usd"' in done.err
    assert set(bytes_of(tmp_path)) == {"q.jsonl", "consilience.yaml"}


def test_a_bad_line_of_questions_is_named(tmp_path: Path) -> None:
    path = write_questions(tmp_path / "q.jsonl", 2)
    path.write_text(path.read_text() + '{"question": 1}\n')
    done = consilience("run-arm", "--arm", "E_single", "--questions", "q.jsonl", cwd=tmp_path)
    assert_refused(done, code=1, named="q.jsonl, line 3")
    assert set(bytes_of(tmp_path)) == {"q.jsonl"}


def test_a_file_in_the_way_of_the_results_stays(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 1)
    (tmp_path / "results").write_text("mine\n")
    done = consilience("run-arm", "--arm", "E_single", "--questions", "q.jsonl", cwd=tmp_path)
    assert_refused(done, code=1, named="results")
    assert (tmp_path / "results").read_text() == "mine\n"


@pytest.fixture(scope="module")
def mounts() -> None:
    """Skip where a private mount namespace is not to be had."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here, so no private file system can be mounted")
    probe = subprocess.run(
        [*NAMESPACE, "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    if probe.returncode:
        pytest.skip(f"no private file system can be mounted here: {probe.stderr.decode().strip()}")


def in_namespace(script: str, cwd: Path) -> Done:
    """Run a shell script that may mount; ``$C`` is the command line."""
    return run([*NAMESPACE, "sh", "-euc", f"C='{' '.join(CONSILIENCE)}'\n{script}"], cwd)


@pytest.mark.usefixtures("mounts")
def test_a_read_only_results_folder_is_named_and_left_alone(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 1)
    assert consilience("run-arm", "--arm", "E_single", "--questions", "q.jsonl", cwd=tmp_path).code == 0
    before = bytes_of(tmp_path / "results")
    script = """
        mount --bind results results
        mount -o remount,bind,ro results
        exec $C run-arm --arm E_single --questions q.jsonl --seed 1
    """
    done = in_namespace(script, tmp_path)
    assert_refused(done, code=1, named="Read-only file system")
    assert "results/runs/_E_single" in done.err
    assert bytes_of(tmp_path / "results") == before


@pytest.mark.usefixtures("mounts")
def test_a_full_disk_stops_the_run_which_then_goes_on_where_it_was(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 6)
    command = "run-arm --arm F_independent --questions q.jsonl --run-id _full --json"
    whole = tmp_path / "whole"
    whole.mkdir()
    reference = consilience(*command.replace("q.jsonl", "../q.jsonl").split(), cwd=whole).document
    (tmp_path / "results").mkdir()
    script = f"""
        mount -t tmpfs -o size=160k tmpfs results
        if $C {command} >first.out 2>first.err; then echo "the disk was large enough"; exit 9; fi
        $C verify _full --json >verified.json || true
        mount -o remount,size=64m results
        $C {command} >second.json 2>second.err
        $C verify _full >verified.txt
        cp -r results kept
    """
    done = in_namespace(script, tmp_path)
    assert done.code == 0, done.out + done.err + (tmp_path / "second.err").read_text()
    said = (tmp_path / "first.err").read_text()
    assert "No space left on device" in said
    assert said.count("error: ") == 1
    assert "Traceback" not in said
    resumed = Done(0, (tmp_path / "second.json").read_text(), "").document
    assert 0 < resumed["calls"] < reference["calls"], "what was answered before the disk was full was not asked again"
    same = ("item_id", "status", "point", "q05", "q25", "q50", "q75", "q95", "cost_usd", "tokens")
    assert [[row[name] for name in same] for row in resumed["predictions"]] == [
        [row[name] for name in same] for row in reference["predictions"]
    ]


def test_two_processes_on_one_run_name_the_holder_and_change_nothing(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 2)
    command = ("run-arm", "--arm", "E_single", "--questions", "q.jsonl", "--run-id", "_one")
    assert consilience(*command, cwd=tmp_path).code == 0
    folder = tmp_path / "results" / "runs" / "_one"
    with RunLock(folder):
        before = bytes_of(folder)
        second = consilience(*command, "--retry-failed", cwd=tmp_path)
        assert_refused(second, code=1, named=f"pid {os.getpid()}")
        assert bytes_of(folder) == before
    again = consilience(*command, cwd=tmp_path)
    assert again.code == 0
    assert "0 calls;" in again.out


def test_a_locale_without_the_letters_of_a_path_stops_nothing(tmp_path: Path) -> None:
    root = tmp_path / "m\u00f6v\u00e9d study"
    root.mkdir()
    write_questions(root / "fr\u00e5gor.jsonl", 1)
    locale = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}

    def bare(*arguments: object) -> Done:
        command = [*CONSILIENCE, *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, env=locale, capture_output=True, check=False, timeout=120)
        return Done(done.returncode, done.stdout.decode("ascii"), done.stderr.decode("ascii"))

    asked = bare("run-arm", "--arm", "E_single", "--questions", root / "fr\u00e5gor.jsonl", "--project", root)
    assert asked.code == 0, asked.err
    (folder,) = (root / "results" / "runs").iterdir()
    replayed = bare("replay", folder)
    assert replayed.code == 0, replayed.err
    assert "byte for byte the recorded ones" in replayed.out
    listed = bare("runs", "--project", root)
    assert " -\n" in listed.out, "an unknown cap is a dash that ASCII has"
    gone = bare("verify", root / "n\u00e9ant")
    assert gone.code == 2
    assert r"n\xe9ant" in gone.err


def test_a_mistyped_key_of_a_mapping_is_named_before_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("id,date,price\n1,2020-01-01,5\n")
    (tmp_path / "map.yaml").write_text("colums:\n  parcel_id: id\n")
    command = ("data", "build", "--adapter", "csv", "--input", "sales.csv", "--mapping", "map.yaml")
    done = consilience(*command, cwd=tmp_path)
    assert_refused(done, code=2, named='unknown key "colums"')
    assert 'Did you mean "columns"' in done.err


def test_a_settings_file_that_is_no_yaml_is_told_in_our_words(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 1)
    (tmp_path / "consilience.yaml").write_text("seed: 1\nseed: 2\n")
    done = consilience("run-arm", "--arm", "E_single", "--questions", "q.jsonl", cwd=tmp_path)
    assert_refused(done, code=2, named="line 2")
    assert "suppress" not in done.err
    assert "http" not in done.err


def test_a_cap_below_what_is_spent_is_said(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 3)
    command = ("run-arm", "--arm", "F_independent", "--questions", "q.jsonl", "--concurrency", "1", "--max-spend-usd")
    stopped = consilience(*command, "0.06", cwd=tmp_path)
    assert stopped.code == 4
    assert "the next item may need up to $0.0" in stopped.err
    lower = consilience(*command, "0.0001", cwd=tmp_path)
    assert lower.code == 4
    assert "the spend cap of $0.0001 lies below the $0.0" in lower.err


@pytest.mark.slow
def test_a_protocol_of_another_version_is_no_internal_error(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 1)
    assert consilience("run-arm", "--arm", "E_single", "--questions", "q.jsonl", cwd=tmp_path).code == 0
    (folder,) = (tmp_path / "results" / "runs").iterdir()
    for content in ('{"plan": {"arm": 1}}', "{}", "["):
        (folder / "protocol.json").write_text(content)
        done = consilience("replay", folder.name, cwd=tmp_path)
        assert_refused(done, code=6, named="protocol.json")
        assert "internal error" not in done.err
        assert "validation error" not in done.err


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.slow
def test_a_narrow_terminal_shows_every_digit(width: int, tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 1)
    assert consilience("run-arm", "--arm", "F_independent", "--questions", "q.jsonl", cwd=tmp_path).code == 0
    (folder,) = (tmp_path / "results" / "runs").iterdir()
    command = [*CONSILIENCE, "ledger", folder.name, "--by", "role"]
    plain = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout
    cells = {cell for line in plain.splitlines() for cell in re.split(r"  +", line.strip())}
    terminal, side = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(width), "NO_COLOR": "1", "TERM": "xterm"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=side, stderr=subprocess.DEVNULL) as shown:
        os.close(side)
        said = b""
        while part := _read(terminal):
            said += part
    os.close(terminal)
    assert shown.returncode == 0
    text = said.decode()
    numbers = {cell for cell in cells if re.fullmatch(r"\$?[\d.,]+", cell)}
    assert len(numbers) > 10
    assert [cell for cell in numbers if cell not in text] == []
    assert "\u2026" not in text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other side was closed
        return b""
