"""Every entry of every registry keeps the promises that are made of it, so that a newcomer is tested at once."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections import Counter
from dataclasses import FrozenInstanceError, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import pytest

import consilience
from consilience.aggregation.answers import default_rule
from consilience.config import load_packaged, parse_yaml
from consilience.core.panel import seating_of
from consilience.core.question import Kind
from consilience.core.role import Role
from consilience.core.showing import Seating
from consilience.decisions.panel import DECISIONS
from consilience.errors import ConfigError, PlanError
from consilience.experiments.arms import Treatment, Treatments, treatment
from consilience.experiments.feasible import check_members
from consilience.experiments.general import GENERAL, read_anything
from consilience.experiments.plan import Application, Choices, Plan, make_plan, shown_items
from consilience.forecasting.panel import FORECASTING
from consilience.models.prices import SIMULATED_PREFIX, load_catalogue
from consilience.models.simulated import Simulated
from consilience.protocols import PROTOCOLS
from consilience.registry import Registry
from consilience.valuation.pipeline import VALUATION
from engine_cases import carry_out, cast_for, make_item
from engine_cases import make_plan as plan_of

KINDS: tuple[Kind, ...] = get_args(Kind)
ARMS = load_packaged("configs/treatments.yaml", Treatments).treatments
ANALYST = f"{SIMULATED_PREFIX}m"
PRICED = tuple(
    Role(id=name, view=("P", "C"), text=f"Look {name} at the prices.")
    for name in ("long", "hard", "twice", "again", "last", "aloud")
)
"""Roles with prices in view, so that a simulated one has something to say on every kind of question."""
NEVER_EARLY = {"settled_change": 0.0, "consensus_gap": 0.0, "least_spread": 0.0, "passes": 0}

"""What makes a protocol stop early, set so that nothing does."""


def all_registries() -> dict[str, Registry[Any]]:
    """Return every registry of the package by what it holds."""
    names = [found.name for found in pkgutil.walk_packages(consilience.__path__, "consilience.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith(".__main__")]
    held = [value for module in modules for value in vars(module).values() if isinstance(value, Registry)]
    return {registry.what: registry for registry in held}


REGISTRIES = all_registries()
ENTRIES = [(what, name) for what, registry in REGISTRIES.items() for name in registry.names()]
PARAMETRIC = [(what, name) for what, name in ENTRIES if is_dataclass(REGISTRIES[what][name]) and what != "adapter"]
"""Entries with parameters; an adapter's stand in a mapping file, which has tests of its own."""
ASKING = [(what, name) for what, name in ENTRIES if what == "protocol" or what.endswith(" rule")]
SERVED = [(name, kind) for name in PROTOCOLS.names() for kind in PROTOCOLS[name].kinds]


def entry_of(what: str, name: str) -> Any:
    """Return an entry with its parameters as declared."""
    entry = REGISTRIES[what][name]
    return entry() if isinstance(entry, type) else entry


def parameters(entry: Any) -> dict[str, Any]:
    return {field.name: getattr(entry, field.name) for field in fields(entry) if field.init}


def written(entry: Any) -> str:
    """Return name and parameters of an entry as YAML, of which JSON is a part."""
    return json.dumps({entry.name: {name: _plain(value) for name, value in parameters(entry).items()}})


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {name: _plain(part) for name, part in parameters(value).items()}
    return str(value) if isinstance(value, Fraction) else value


def read_back(entry: Any, text: str) -> Any:
    """Return the entry that the YAML says, values of the types that the declared ones have."""
    ((name, said),) = parse_yaml(text, where="entry").items()
    assert name == entry.name
    return _typed(entry, said)


def _typed(entry: Any, said: dict[str, Any]) -> Any:
    declared = parameters(entry)

    def value(key: str, told: Any) -> Any:
        if is_dataclass(declared[key]):
            return _typed(declared[key], told)
        return type(declared[key])(told) if isinstance(declared[key], tuple | Fraction) else told

    return type(entry)(**{key: value(key, told) for key, told in said.items()})


def protocol_arm(name: str, said: dict[str, Any]) -> Treatment:
    return Treatment(protocol={name: said}, panel="default")


def test_the_registries_are_found() -> None:
    assert {"protocol", "point rule", "interval rule", "probability rule", "distribution rule"} < set(REGISTRIES)
    assert {"vote rule", "adapter"} < set(REGISTRIES)


@pytest.mark.parametrize(("what", "name"), ENTRIES)
def test_a_mistyped_name_is_answered_with_the_nearest(what: str, name: str) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        REGISTRIES[what][f"{name}x"]
    assert f'Did you mean "{name}"?' in str(caught.value.hint)


@pytest.mark.parametrize(("what", "name"), PARAMETRIC)
def test_parameters_survive_yaml_and_cannot_be_changed_afterwards(what: str, name: str) -> None:
    entry = entry_of(what, name)
    assert read_back(entry, written(entry)) == entry
    for parameter, value in parameters(entry).items():
        with pytest.raises(FrozenInstanceError):
            setattr(entry, parameter, value)


@pytest.mark.parametrize("name", PROTOCOLS.names())
def test_a_treatment_says_a_protocol_by_its_parameters(name: str) -> None:
    declared = entry_of("protocol", name)
    said = parse_yaml(written(declared), where="treatment")[name]
    assert protocol_arm(name, said).make_protocol() == declared
    for parameter in said:
        with pytest.raises(ConfigError, match=f"{parameter}x") as caught:
            protocol_arm(name, {f"{parameter}x": 1}).make_protocol()
        assert f'Did you mean "{parameter}"?' in str(caught.value.hint)


@pytest.mark.parametrize(("what", "name"), ASKING)
def test_what_asks_or_counts_shows_an_example_and_declares_its_kinds(what: str, name: str) -> None:
    cls = type(entry_of(what, name))
    assert ">>> " in (cls.__dict__["__doc__"] or "")
    assert cls.kinds
    assert set(cls.kinds) <= set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_protocols_and_rules(kind: Kind) -> None:
    serving = {what for what, name in ASKING if kind in type(entry_of(what, name)).kinds}
    assert "protocol" in serving
    assert len(serving) > 1


@pytest.mark.parametrize(("name", "kind"), SERVED)
def test_a_protocol_takes_the_turns_it_plans_for_every_kind_it_serves(tmp_path: Path, name: str, kind: Kind) -> None:
    declared = PROTOCOLS[name]
    known = parameters(entry_of("protocol", name))
    unstopped = known | {key: value for key, value in NEVER_EARLY.items() if key in known}
    fewest = declared.least_members + len(declared.parts)
    roles, parts = cast_for(name, PRICED[:fewest])
    item = make_item(kind=kind)
    plan = plan_of([item], protocol={name: unstopped}, roles=roles, models=[ANALYST], parts=parts)
    report = carry_out(tmp_path / "run", plan, [item], Simulated(ANALYST, read_anything, seed=7))
    (transcript,) = (tmp_path / "run" / "transcripts").iterdir()
    turns = json.loads(transcript.read_bytes())["turns"]
    taken = Counter((turn["seat"], turn["kind"], turn["round"], turn["sample"]) for turn in turns)
    seating = seating_of(plan.seats(item.question.id))
    planned = plan.make_protocol().plan(seating)
    assert taken == Counter((one.seat, one.turn.kind, one.turn.round, one.turn.sample) for one in planned)
    assert {turn["outcome"]["status"] for turn in turns} == {"answered"}
    rows = {row["aggregation"]: row for row in report.predictions.to_dicts()}
    primary = next(row for rule, row in rows.items() if rule == default_rule(kind, row["n_seats"]))
    assert (primary["status"], primary["n_answered"]) == ("answered", primary["n_seats"])


@pytest.mark.parametrize("name", PROTOCOLS.names())
def test_a_protocol_refuses_fewer_members_than_it_needs(name: str) -> None:
    declared = PROTOCOLS[name]
    least = Seating(tuple(f"analyst_{number:02d}" for number in range(declared.least_members)))
    check_members(least, entry_of("protocol", name))
    assert declared.least_members >= 0
    if least.members:
        with pytest.raises(PlanError, match=name):
            check_members(Seating(least.members[1:]), entry_of("protocol", name))


def planned_by(application: Application, arm: str, kind: Kind) -> Plan:
    items = shown_items(application, [make_item(kind=kind)], arm=arm, seed=7)
    choices = Choices(arm=arm, rounds=(), committee="mixed_random", tier="mid", split=None, seed=7)
    return make_plan(application, items, choices, catalogue=load_catalogue())


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.slow
def test_every_arm_can_be_planned_by_some_application(arm: str) -> None:
    kind = treatment(arm).make_protocol().kinds[0]
    plans: list[Plan] = []
    refused: list[str] = []
    for application in (VALUATION, GENERAL, FORECASTING, DECISIONS):
        try:
            plans.append(planned_by(application, arm, kind))
        except (ConfigError, PlanError) as error:
            refused.append(f"{application.name}: {error.message}")
    assert plans, refused
    for plan in plans:
        assert plan.treatment == treatment(arm).model_copy(update={"panel": plan.treatment.panel})
        assert plan.make_protocol() == treatment(arm).make_protocol()
        assert plan.tasks.keys() == {
            one.turn.kind for one in plan.make_protocol().plan(seating_of(plan.seats("item-01")))
        }
