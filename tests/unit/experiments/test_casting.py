"""Who speaks for a model id, and what must be set before anybody can."""

from __future__ import annotations

from typing import Any

import pytest

from consilience.errors import ConfigError
from consilience.experiments.casting import cast
from consilience.models.anthropic import Anthropic
from consilience.models.base import Model
from consilience.models.compatible import Compatible
from consilience.models.openai import OpenAI
from consilience.models.prices import Catalogue, ModelSpec, load_catalogue
from consilience.models.simulated import Simulated
from consilience.valuation.analysts import read_property

KEY = "sk-canary-0123456789"
SERVER = ModelSpec(provider="compatible", base_url="http://127.0.0.1:8000/v1", key_variable="MY_SERVER_KEY")
OPEN = SERVER.model_copy(update={"key_variable": None})
CATALOGUE = load_catalogue({"served": SERVER, "open": OPEN, "lost": ModelSpec(provider="compatible")})


def speaker(name: str, **environ: str) -> Model:
    return cast([name], catalogue=CATALOGUE, environ=environ, reader=read_property, seed=7)[name]


def refused(name: str, **environ: str) -> str:
    with pytest.raises(ConfigError) as caught:
        speaker(name, **environ)
    return str(caught.value)


def test_a_simulated_analyst_needs_no_key() -> None:
    assert isinstance(speaker("simulated:gpt-6-luna"), Simulated)


def test_each_vendor_is_called_where_the_environment_says_with_its_own_key() -> None:
    ours: Any = speaker("claude-haiku-5-5", ANTHROPIC_API_KEY=f" {KEY}\n", ANTHROPIC_BASE_URL="http://127.0.0.1:1")
    assert isinstance(ours, Anthropic)
    assert (ours.api_key, ours.base_url, ours.min_cacheable_tokens) == (KEY, "http://127.0.0.1:1", 4_096)
    theirs: Any = speaker("gpt-6-luna", OPENAI_API_KEY=KEY, OPENAI_BASE_URL="http://127.0.0.1:1/v1")
    assert isinstance(theirs, OpenAI)
    assert (theirs.api_key, theirs.identity.host) == (KEY, "127.0.0.1:1")
    assert speaker("gpt-6-luna", OPENAI_API_KEY=KEY).identity.host == "api.openai.com"
    assert speaker("claude-haiku-5-5", ANTHROPIC_API_KEY=KEY).identity.host == "api.anthropic.com"


def test_a_server_has_its_own_key_or_none() -> None:
    served: Any = speaker("served", MY_SERVER_KEY=KEY, OPENAI_API_KEY="sk-another-0123456789")
    assert isinstance(served, Compatible)
    assert (served.api_key, served.key_variable) == (KEY, "MY_SERVER_KEY")
    opened: Any = speaker("open", OPENAI_API_KEY="sk-another-0123456789")
    assert opened.api_key == "none"
    assert "has no base_url" in refused("lost")


@pytest.mark.parametrize("value", ["", "  ", "\n"])
@pytest.mark.parametrize(
    ("name", "variable"),
    [("claude-haiku-5-5", "ANTHROPIC_API_KEY"), ("gpt-6-luna", "OPENAI_API_KEY"), ("served", "MY_SERVER_KEY")],
)
def test_a_missing_key_is_named_and_told_how_to_set(name: str, variable: str, value: str) -> None:
    for said in (refused(name), refused(name, **{variable: value})):
        assert f"model {name} needs a key and {variable} is not set. Set {variable} in the environment" in said


@pytest.mark.parametrize("value", [f"“{KEY}”", f"{KEY}\n{KEY}", f"{KEY} {KEY}", f"{KEY}\x00", f"{KEY}é"])
def test_what_cannot_be_a_key_is_refused_without_showing_it(value: str) -> None:
    said = refused("gpt-6-luna", OPENAI_API_KEY=value)
    assert "OPENAI_API_KEY, the key of model gpt-6-luna, holds characters that no key has" in said
    assert KEY not in said


def test_the_catalogue_is_asked_by_name() -> None:
    assert isinstance(CATALOGUE, Catalogue)
    assert 'unknown model "gpt-6-lunar". Did you mean "gpt-6-luna"' in refused("gpt-6-lunar")
