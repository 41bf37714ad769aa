"""Bills to the nano-dollar, from what the vendors report."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.models import anthropic, compatible, openai
from consilience.models.batch import DISCOUNT
from consilience.models.prices import Price, bound_nano, cost_nano, load_catalogue
from consilience.models.request import Usage

ANTHROPIC_PRICE = Price.model_validate(
    {"input": "3", "cached_input": "0.30", "cache_write": "3.75", "cache_write_1h": "6", "output": "15"}
)
OPENAI_PRICE = Price.model_validate(
    {"input": "5", "cached_input": "0.50", "cache_write": "6.25", "cache_write_1h": "10", "output": "30"}
)


def messages(
    fresh: int, *, written: int = 0, hour: int = 0, read: int = 0, output: int = 0, thinking: int | None = 0
) -> dict[str, Any]:
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_5m_input_tokens": written - hour, "ephemeral_1h_input_tokens": hour},
        "cache_read_input_tokens": read,
        "output_tokens": output,
        "output_tokens_details": None if thinking is None else {"thinking_tokens": thinking},
        "service_tier": "standard",
    }


def responses(total: int, *, cached: int = 0, written: int = 0, output: int = 0, thought: int = 0) -> dict[str, Any]:
    return {
        "input_tokens": total,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": total + output,
    }


def chat(total: int, *, cached: int = 0, output: int = 0, thought: int = 0) -> dict[str, Any]:
    return {
        "prompt_tokens": total,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens": output,
        "completion_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": total + output,
    }


@pytest.mark.parametrize(
    ("usage", "nano"),
    [
        (messages(3, written=12_304, output=550), 54_399_000),  # the golden bill
        (messages(3, written=12_304, hour=12_304, output=550), 82_083_000),  # one hour costs twice the input rate
        (messages(3, written=12_304, hour=2_304, output=550), 59_583_000),
        (messages(3, read=12_304, output=550), 11_950_200),
        (messages(0, output=1, thinking=1), 15_000),
        (messages(0, output=1, thinking=None), 15_000),
        (messages(1), 3_000),
        (messages(0), 0),
    ],
)
def test_anthropics_input_excludes_what_was_cached(usage: dict[str, Any], nano: int) -> None:
    assert cost_nano(known(anthropic.usage_of(usage)), ANTHROPIC_PRICE) == nano


@pytest.mark.parametrize(
    ("usage", "nano"),
    [
        (responses(10_000, cached=4_000, written=5_000, output=200), 44_250_000),  # the golden bill
        (responses(10_000, output=200), 56_000_000),
        (responses(10_000, cached=10_000, output=200), 11_000_000),
        (responses(0, output=200, thought=150), 6_000_000),
        (responses(0), 0),
    ],
)
def test_openais_input_includes_what_was_cached(usage: dict[str, Any], nano: int) -> None:
    assert cost_nano(known(openai.usage_of(usage)), OPENAI_PRICE) == nano


@pytest.mark.parametrize(
    ("usage", "nano"),
    [
        (chat(10_000, cached=4_000, output=200), 38_000_000),
        ({"prompt_tokens": 10_000, "completion_tokens": 200}, 56_000_000),
        ({**chat(10_000, output=200), "prompt_tokens_details": None, "completion_tokens_details": None}, 56_000_000),
        ({**chat(10_000, output=200), "prompt_tokens_details": {"cached_tokens": None}}, 56_000_000),
    ],
)
def test_a_servers_input_includes_what_was_cached(usage: dict[str, Any], nano: int) -> None:
    assert cost_nano(known(compatible.usage_of(usage)), OPENAI_PRICE) == nano


def known(usage: Usage | None) -> Usage:
    assert usage is not None
    return usage


def test_cached_tokens_are_not_billed_twice() -> None:
    """Read by the other vendor's convention the same report would cost four times as much."""
    usage = known(openai.usage_of(responses(100_000, cached=95_000, output=1_000)))
    assert usage.total == 101_000
    assert cost_nano(usage, OPENAI_PRICE) == 102_500_000
    twice = Usage(100_000, 95_000, 0, 0, 1_000, 0)
    assert (cost_nano(twice, OPENAI_PRICE) or 0) > 5 * 102_500_000


def test_batches_cost_half() -> None:
    assert DISCOUNT == 2
    assert [
        (cost_nano(known(usage), price) or 0) // DISCOUNT
        for usage, price in (
            (anthropic.usage_of(messages(3, written=12_304, output=550)), ANTHROPIC_PRICE),
            (openai.usage_of(responses(10_000, cached=4_000, written=5_000, output=200)), OPENAI_PRICE),
        )
    ] == [27_199_500, 22_125_000]


@pytest.mark.parametrize(
    "name", ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"]
)
@pytest.mark.parametrize("value", [None, "7", 7.0, True, -1])
def test_part_of_a_bill_of_anthropics_is_no_bill(name: str, value: Any) -> None:
    assert anthropic.usage_of({**messages(3, written=10, read=10, output=5), name: value}) is None


@pytest.mark.parametrize(
    "path", ["input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens"]
)
@pytest.mark.parametrize("value", [None, "7", 7.0, True, -1])
def test_part_of_a_bill_of_openais_is_no_bill(path: str, value: Any) -> None:
    usage = responses(30, cached=10, written=10, output=5)
    for part in (usage, usage["input_tokens_details"], usage["output_tokens_details"]):
        if path in part:
            part[path] = value
    assert openai.usage_of(usage) is None


@pytest.mark.parametrize("usage", [None, [], "text", 7, {}, {"input_tokens": 1}, {"prompt_tokens": 1}])
def test_no_usage_is_unknown_and_not_nothing(usage: Any) -> None:
    assert [read(usage) for read in (anthropic.usage_of, openai.usage_of, compatible.usage_of)] == [None] * 3


@pytest.mark.parametrize(
    "usage",
    [
        anthropic.usage_of(messages(3, written=10, hour=11, output=5)),
        anthropic.usage_of(messages(3, output=5, thinking=6)),
        openai.usage_of(responses(10, cached=6, written=5)),
        openai.usage_of(responses(10, output=5, thought=6)),
        compatible.usage_of(chat(10, cached=11)),
        compatible.usage_of(chat(10, output=5, thought=6)),
    ],
)
def test_parts_that_exceed_their_whole_are_no_bill(usage: Usage | None) -> None:
    assert usage is None


TOKENS = st.integers(0, 200_000)


@given(fresh=TOKENS, short=TOKENS, hour=TOKENS, read=TOKENS, visible=TOKENS, thought=TOKENS)
def test_the_buckets_are_disjoint_and_complete(
    fresh: int, short: int, hour: int, read: int, visible: int, thought: int
) -> None:
    ours = anthropic.usage_of(
        messages(fresh, written=short + hour, hour=hour, read=read, output=visible + thought, thinking=thought)
    )
    assert ours == Usage(fresh, read, short, hour, visible, thought)
    theirs = openai.usage_of(
        responses(fresh + read + short, cached=read, written=short, output=visible + thought, thought=thought)
    )
    assert theirs == Usage(fresh, read, short, 0, visible, thought)
    server = compatible.usage_of(chat(fresh + read, cached=read, output=visible + thought, thought=thought))
    assert server == Usage(fresh, read, 0, 0, visible, thought)
    for usage in (ours, theirs, server):
        bound = bound_nano(
            input_tokens=fresh + read + short + hour, output_tokens=visible + thought, price=ANTHROPIC_PRICE
        )
        assert (cost_nano(known(usage), ANTHROPIC_PRICE) or 0) <= (bound or 0)


@pytest.mark.parametrize("name", [name for tier in load_catalogue().tiers.values() for name in tier])
def test_listed_prices_keep_the_vendors_ratios(name: str) -> None:
    price = load_catalogue().spec(name).price
    assert isinstance(price, Price)
    assert (price.cached_input * 10, price.cache_write * 4, price.cache_write_1h) == (
        price.input,
        price.input * 5,
        price.input * 2,
    )
