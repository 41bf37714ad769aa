from __future__ import annotations

import math

from consilience.experiments.casting import cast
from consilience.models.prices import ORACLE_PREFIX, SIMULATED_PREFIX, load_catalogue
from consilience.models.simulated import SIGNAL_SD, Mind, Simulated


def nothing(_: Mind) -> dict[str, object]:
    return {}


def test_an_oracle_is_told_the_truth_with_a_known_error_that_depends_on_seed_and_item_only() -> None:
    oracle, again, other = (Simulated("m", nothing, seed, {}) for seed in (1, 1, 2))
    for number in range(400):
        for model in (oracle, again, other):
            model.reveal(f"tag-{number}", f"item-{number}", 100_000.0)
    assert oracle.signals == again.signals != other.signals
    errors = [math.log(signal / 100_000) for signal in (oracle.signals or {}).values()]
    assert abs(sum(errors) / 400) < 4 * SIGNAL_SD / 20
    assert 0.8 < math.sqrt(sum(error**2 for error in errors) / 400) / SIGNAL_SD < 1.2


def test_plain_analysts_are_told_nothing_and_are_somebody_else() -> None:
    names = [f"{SIMULATED_PREFIX}gpt-6-luna", f"{ORACLE_PREFIX}gpt-6-luna"]
    models = cast(names, catalogue=load_catalogue(), environ={}, reader=nothing, seed=0)
    plain, oracle = models[names[0]], models[names[1]]
    assert isinstance(plain, Simulated)
    assert isinstance(oracle, Simulated)
    plain.reveal("tag", "item", 5.0)
    assert (plain.signals, oracle.signals) == (None, {})
    assert (plain.identity.provider, oracle.identity.provider) == ("simulated", "simulated_oracle")
