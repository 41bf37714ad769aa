from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import ValidationError

from consilience.errors import ConfigError, IntegrityError
from consilience.models.base import Identity, call_key, plain_body
from consilience.models.prices import Catalogue, ModelSpec, Price, bound_nano, cost_nano, load_catalogue
from consilience.models.replay import Replay
from consilience.models.request import (
    Block,
    Completion,
    Contract,
    Message,
    Request,
    Usage,
    completion_from_json,
    completion_to_json,
)
from consilience.models.scripted import Scripted, completion, counted
from consilience.models.simulated import LAMBDA_RANGE, NOISE_SD, Draws, persona
from engine_cases import LIST_PRICE

REQUEST = Request(
    model="m",
    system=(Block("Judge.", cache=True),),
    messages=(Message("user", (Block("View.", cache=True), Block("TASK: x", cache=False))),),
    tools=(),
    contract=Contract("c", {}, "0", 2),
    max_output_tokens=100,
    effort="medium",
    sampling=None,
    replicate=0,
)
IDENTITY = Identity(provider="p", host="h", api_version="1", adapter_version="1", simulated=False)


def usage(**changes: int) -> Usage:
    return replace(Usage(0, 0, 0, 0, 0, 0), **changes)


@pytest.mark.parametrize(
    ("used", "nano"),
    [
        (usage(), 0),
        (usage(input=1_000_000), 2_000_000_000),
        (usage(cache_read=1_000_000), 200_000_000),
        (usage(cache_write_5m=1_000_000), 2_500_000_000),
        (usage(cache_write_1h=1_000_000), 4_000_000_000),
        (usage(output_visible=1_000_000), 10_000_000_000),
        (usage(output_reasoning=1_000_000), 10_000_000_000),
        (Usage(1, 1, 1, 1, 1, 1), 2_000 + 200 + 2_500 + 4_000 + 10_000 + 10_000),
    ],
)
def test_every_bucket_is_billed_once_at_its_own_rate(used: Usage, nano: int) -> None:
    assert cost_nano(used, LIST_PRICE) == nano
    assert used.total == sum(vars(used).values())


def test_no_usage_within_the_bound_costs_more_than_the_bound() -> None:
    bound = bound_nano(input_tokens=700, output_tokens=100, price=LIST_PRICE)
    for name in ("input", "cache_read", "cache_write_5m", "cache_write_1h"):
        assert (cost_nano(usage(output_visible=60, output_reasoning=40, **{name: 700}), LIST_PRICE) or 0) <= (
            bound or 0
        )


def test_unknown_is_none_and_free_is_zero() -> None:
    assert (cost_nano(usage(input=5), None), bound_nano(input_tokens=5, output_tokens=5, price=None)) == (None, None)
    assert (cost_nano(usage(input=5), "free"), bound_nano(input_tokens=5, output_tokens=5, price="free")) == (0, 0)


@pytest.mark.parametrize("written", [2.5, 2, "two", "-1", "NaN", "0.0000000001", "Infinity"])
def test_prices_are_exact_amounts(written: Any) -> None:
    with pytest.raises((ValidationError, TypeError)):
        Price.model_validate(dict.fromkeys(Price.model_fields, written))


def test_the_catalogue_knows_its_tiers_and_names_the_nearest() -> None:
    catalogue = load_catalogue()
    assert catalogue.tier("mid") == ("claude-sonnet-5-5", "gpt-6.1-sol")
    assert all(catalogue.spec(name).price == LIST_PRICE for name in catalogue.tier("mid"))
    assert catalogue.spec("simulated:gpt-6.1-sol") == catalogue.spec("gpt-6.1-sol")
    with pytest.raises(ConfigError, match=r'unknown model "gpt-6\.1-so".*Did you mean "gpt-6\.1-sol"'):
        catalogue.spec("gpt-6.1-so")
    with pytest.raises(ConfigError, match=r'unknown tier "middle".*Known: mid, small'):
        catalogue.tier("middle")


def test_a_catalogue_takes_no_unknown_key() -> None:
    assert Catalogue(models={"m": ModelSpec(provider="local", price="free")}, tiers={}).spec("m").price == "free"
    with pytest.raises(ValidationError, match="prize"):
        ModelSpec.model_validate({"provider": "local", "prize": "free"})


DIFFERENT: list[Request] = [
    replace(REQUEST, model="n"),
    replace(REQUEST, system=(Block("Judge!", cache=True),)),
    replace(REQUEST, system=(Block("Judge.", cache=False),)),
    replace(REQUEST, messages=(Message("user", (Block("View.TASK: x", cache=False),)),)),
    replace(REQUEST, messages=(Message("assistant", REQUEST.messages[0].blocks),)),
    replace(REQUEST, contract=replace(REQUEST.contract, sha256="1")),
    replace(REQUEST, max_output_tokens=200),
    replace(REQUEST, effort="high"),
    replace(REQUEST, sampling={"temperature": 0.5}),
    replace(REQUEST, tools=({"name": "search"},)),
    replace(REQUEST, replicate=1),
]


def key(request: Request, identity: Identity = IDENTITY) -> str:
    return call_key(identity, plain_body(request), replicate=request.replicate)


def test_keys_are_equal_exactly_when_the_call_is() -> None:
    assert key(REQUEST) == key(replace(REQUEST))
    assert len({key(REQUEST), *map(key, DIFFERENT)}) == len(DIFFERENT) + 1
    for name in ("provider", "host", "api_version", "adapter_version"):
        changes: dict[str, Any] = {name: "other"}
        assert key(REQUEST, replace(IDENTITY, **changes)) != key(REQUEST)


def test_a_key_survives_any_text() -> None:
    odd = replace(REQUEST, system=(Block("\ud800\x00\u202e", cache=True),))
    assert key(odd) == key(replace(odd))
    assert odd.system[0].size == 3 + 1 + 3


def test_completions_survive_the_record() -> None:
    for used in (None, Usage(1, 2, 3, 4, 5, 6)):
        done = Completion("\ud800", "max_tokens", used, "id", 0.25, "m", {"a": [1]})
        assert completion_from_json(completion_to_json(done)) == done


def test_counted_usage_is_four_characters_a_token() -> None:
    assert counted(REQUEST, "12345") == Usage(-(-len("Judge.\nView.\nTASK: x") // 4), 0, 0, 0, 2, 0)
    assert completion(REQUEST, "1").model == "m"


def test_replay_repeats_what_was_recorded_and_knows_nothing_else() -> None:

    original = Scripted("m", [])
    done = completion(REQUEST, "{}")
    replay = Replay(original, {call_key(original.identity, original.wire_body(REQUEST), replicate=0): done})
    assert anyio.run(replay.complete, REQUEST) == done
    assert (replay.id, replay.identity, original.requests) == ("m", original.identity, [])
    with pytest.raises(IntegrityError, match="holds no call with key"):
        anyio.run(replay.complete, replace(REQUEST, replicate=1))


def test_a_persona_is_known_and_belongs_to_its_prompt() -> None:
    people = [persona(f"You are {number}.", seed=7) for number in range(400)]
    assert people[0] == persona("You are 0.", seed=7) != persona("You are 0.", seed=8)
    low, high = LAMBDA_RANGE
    assert all(low <= one.anchoring <= high and one.noise == NOISE_SD for one in people)
    mean = sum(one.bias for one in people) / len(people)
    assert abs(mean) < 0.01


def test_draws_are_uniform_and_normal() -> None:
    draws = Draws(1, "x")
    uniform = [draws.uniform(str(number)) for number in range(2_000)]
    normal = [draws.normal(str(number)) for number in range(2_000)]
    assert abs(sum(uniform) / 2_000 - 0.5) < 0.03
    assert abs(sum(normal) / 2_000) < 0.1
    assert abs(sum(value * value for value in normal) / 2_000 - 1) < 0.1
