"""An environment per peer under ``build/peers``, made of its pins; a peer that cannot be had is said with its error."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "peers"
TIMEOUT_S = 1_800
# What would make a start slower, or numpy's kernels others than its own choice, is not handed on.
UNSET = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "VIRTUAL_ENV")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


class PeerError(Exception):
    """A peer that did not install, or whose script failed: the last line it said."""


@dataclass(frozen=True)
class Peer:
    """An environment.

    Attributes:
        name: As its file of pins is named; ``consilience`` is the project's own environment.
        python: Its interpreter.
        installed: Every package in it with its version.
    """

    name: str
    python: Path
    installed: Mapping[str, str]

    def run(self, script: str, *arguments: str) -> dict[str, Any]:
        """Run a script of this folder in the environment and return the JSON object it printed last.

        Raises:
            PeerError: It failed or took too long.
        """
        said = _run([str(self.python), str(HERE / script), *arguments], f"{self.name}: {script}")
        found: dict[str, Any] = json.loads(said.strip().splitlines()[-1])
        return found


def ours() -> Peer:
    """Return the project's own environment."""
    return _peer("consilience", Path(sys.executable))


def made(name: str) -> Peer:
    """Return a peer's environment, making it where its pins or the interpreter changed.

    Raises:
        PeerError: It cannot be installed here.
    """
    pins = HERE / "requirements" / f"{name}.txt"
    folder = BUILD / name
    python = folder / "bin" / "python"
    stamp = folder / ".made"
    wanted = hashlib.sha256(pins.read_bytes() + sys.version.encode()).hexdigest()
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        print(f"making {folder.relative_to(ROOT)} …", file=sys.stderr, flush=True)
        uv = shutil.which("uv")
        if uv:
            _run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)], name)
            _run([uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(pins)], name)
        else:
            _run([sys.executable, "-m", "venv", "--clear", str(folder)], name)
            _run([str(python), "-m", "pip", "install", "--quiet", "-r", str(pins)], name)
        stamp.write_text(wanted, encoding="utf-8")
    return _peer(name, python)


def _peer(name: str, python: Path) -> Peer:
    listing = (
        "import json, importlib.metadata as m;"
        "all = {d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()};"
        "print(json.dumps(sorted(all.items())))"
    )
    return Peer(name, python, dict(json.loads(_run([str(python), "-c", listing], name))))


def environment() -> dict[str, str]:
    """Return the environment that every measured process gets: one thread for numpy, bytecode kept."""
    return {key: value for key, value in os.environ.items() if key not in UNSET} | ONE_THREAD


def _run(command: Sequence[str], what: str) -> str:
    """Return what a command printed; it works in a folder of its own, since some write logs where they stand."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                check=False,
                env=environment(),
                cwd=scratch,
                timeout=TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise PeerError(f"{what} took more than {TIMEOUT_S} s") from error
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
        raise PeerError(f"{what} ended with {done.returncode}: {said[-1].strip()[:300] if said else 'no word'}")
    return done.stdout
