"""Where servers may listen, what they are asked by, and when a token is demanded."""

from __future__ import annotations

import pytest

from consilience.api.binding import Binding, token_of
from consilience.errors import ConfigError

VARIABLE = "CONSILIENCE_VIEW_TOKEN"
TOKEN = "a-token-of-many-characters"  # noqa: S105 - opens nothing


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "some.example", "127.0.0.1.example"])  # noqa: S104
def test_beyond_loopback_a_token_is_demanded(host: str) -> None:
    binding = Binding(host, 8770)
    assert not binding.is_loopback
    with pytest.raises(ConfigError, match="no token is set"):
        token_of(binding, {}, VARIABLE)
    assert token_of(binding, {VARIABLE: TOKEN}, VARIABLE) == TOKEN


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_on_loopback_none_is_needed_and_an_empty_one_is_none(host: str) -> None:
    assert Binding(host, 0).is_loopback
    assert token_of(Binding(host, 0), {}, VARIABLE) is None
    assert token_of(Binding(host, 0), {VARIABLE: ""}, VARIABLE) is None


@pytest.mark.parametrize("token", ["short", "ünï" * 9, "line\nline-line-line-line", "x" * 15, "\x1b" + "x" * 20])
def test_a_token_that_is_none_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(ConfigError, match="not fit") as caught:
        token_of(Binding("127.0.0.1", 0), {VARIABLE: token}, VARIABLE)
    assert token not in str(caught.value)


@pytest.mark.parametrize(
    ("binding", "port", "known", "unknown"),
    [
        (Binding("127.0.0.1", 0), 80, "localhost", "example.org"),
        (Binding("127.0.0.1", 0), 8770, "[::1]:8770", "localhost"),
        (Binding("::", 0), 8766, "[::]:8766", "::"),
        (Binding("192.0.2.7", 0, ("Study.Example.org",)), 8766, "study.example.org", "192.0.2.7"),
        (Binding("192.0.2.7", 0, ("study.example.org",)), 8766, "study.example.org:8766", "example.org"),
    ],
)
def test_it_answers_to_its_names(binding: Binding, port: int, known: str, unknown: str) -> None:
    assert known in binding.hosts(port)
    assert unknown not in binding.hosts(port)
