"""Fixtures that every suite shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference vectors and real data that lies beside a checkout."""
    folder = ROOT.parent / "shared"
    if folder.is_dir():
        return folder
    message = f"{folder} is absent: real data and vectors lie beside the checkout, not in it"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)
