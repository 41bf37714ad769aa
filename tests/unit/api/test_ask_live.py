"""`ask` with live models over real HTTP, against the vendors' double on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from consilience import Result, ask
from consilience.errors import ConfigError
from consilience.fakes.server import FakeServer, running_fake
from vendor_clients import CANARY


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeServer]:
    with running_fake() as server:
        yield server


def put(folder: Path, server: FakeServer, **changes: Any) -> Result:
    environ = {
        "ANTHROPIC_API_KEY": CANARY,
        "ANTHROPIC_BASE_URL": server.base_url,
        "OPENAI_API_KEY": CANARY,
        "OPENAI_BASE_URL": server.openai_base_url,
    }
    values: dict[str, Any] = {"live": True, "results": str(folder), "environ": environ, "context": ["Offers: 410,000."]}
    return ask("What now?", **(values | changes))


@pytest.mark.parametrize(
    ("kind", "options"),
    [("estimate", ()), ("probability", ()), ("distribution", ("a", "b")), ("choice", ("tea 🍵", "</data-x>", "c"))],
)
def test_every_kind_is_answered_and_every_call_is_on_record(
    tmp_path: Path, fake: FakeServer, kind: str, options: tuple[str, ...]
) -> None:
    fake.reset()
    result = put(tmp_path, fake, kind=kind, options=options, max_spend_usd="2")
    assert not result.simulated
    assert result.run_id.startswith(f"ask-{kind}-")
    assert [member.status for member in result.members] == ["answered"] * 5
    assert len(fake.calls()) == result.calls == 5
    assert {member.model for member in result.members} == {"claude-sonnet-5-5", "gpt-6.1-sol"}
    assert result.cost_usd is not None
    assert result.cost_usd > 0
    assert "Simulated" not in result._repr_html_()
    assert put(tmp_path, fake, kind=kind, options=options).calls == 0
    assert len(fake.calls()) == 5
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path


def test_one_missing_key_is_said_before_anything_leaves(tmp_path: Path, fake: FakeServer) -> None:
    fake.reset()
    environ = {"ANTHROPIC_API_KEY": CANARY, "ANTHROPIC_BASE_URL": fake.base_url}
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        put(tmp_path, fake, kind="probability", environ=environ)
    assert fake.hits == ()
    assert list(tmp_path.iterdir()) == []
