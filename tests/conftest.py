"""Fixtures that every suite shares."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from campaign_table import pytest_addoption, pytest_configure

__all__ = ["pytest_addoption", "pytest_configure"]

ROOT = Path(__file__).resolve().parents[1]

# A machine under load makes a property slow, not false: no deadlines.
_patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", _patient, max_examples=40, derandomize=bool(os.environ.get("CI")))
settings.register_profile("thorough", _patient, max_examples=150, derandomize=bool(os.environ.get("CI")))
settings.register_profile("campaign", _patient, max_examples=5_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

_LOOPBACK = {None, "", "localhost", "127.0.0.1", "::1", b"localhost", b"127.0.0.1"}


def _loopback_only(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse every connection and name look-up beyond this machine."""
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if host not in _LOOPBACK:
        pytest.fail(f"a test reached for {host}: tests speak to this machine only")


sys.addaudithook(_loopback_only)


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
