"""Who may import whom: the contracts in pyproject.toml hold, and they bite."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from source_tree import PACKAGE, ROOT


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_import_goes_in_the_declared_direction() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("attic/__init__.py", '"""A room nobody placed."""', "attic"),
        ("core/turn.py", "import consilience.runtime.turn", "consilience.core.turn -> consilience.runtime.turn"),
        ("protocols/base.py", "import consilience.journal.events", "consilience.protocols.base -> consilience.journal"),
        ("scoring/point.py", "import socket", "consilience.scoring.point -> socket"),
    ],
    ids=["unplaced room", "core imports runtime", "protocol imports journal", "metric opens a socket"],
)
@pytest.mark.slow
def test_a_wrong_import_is_refused(tmp_path: Path, file: str, line: str, said: str) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    copy = tmp_path / "src" / "consilience"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    target = copy / file
    target.parent.mkdir(exist_ok=True)
    before = target.read_text(encoding="utf-8") if target.exists() else ""
    target.write_text(f"{before}\n{line}\n", encoding="utf-8")

    done = lint_imports(tmp_path)

    assert done.returncode != 0
    assert said in done.stdout + done.stderr
