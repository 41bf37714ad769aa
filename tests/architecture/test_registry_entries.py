"""What can be added is registered, documented and named once: nothing lies in a room unknown to its registry."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import typing
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import consilience
from consilience.registry import Registry


def all_modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(consilience.__path__, "consilience.")
    return [importlib.import_module(info.name) for info in found if not info.name.endswith(".__main__")]


MODULES = all_modules()


def bound_registries() -> Iterator[tuple[str, Registry[Any], ModuleType]]:
    """Yield each registry once, with the module that declares it by annotation."""
    for module in MODULES:
        for name, value in list(vars(module).items()):
            if isinstance(value, Registry) and name in inspect.get_annotations(module):
                yield f"{module.__name__}.{name}", value, module


REGISTRIES = {label: (registry, module) for label, registry, module in bound_registries()}


def base_of(label: str) -> type:
    """Return what a registry holds, read from its annotation: ``Registry[Base]`` or ``Registry[type[Base]]``."""
    _, module = REGISTRIES[label]
    name = label.rpartition(".")[2]
    alone = type("Alone", (), {"__annotations__": {name: inspect.get_annotations(module)[name]}})
    hint = typing.get_type_hints(alone, globalns=vars(module))[name]
    while typing.get_args(hint):
        hint = typing.get_args(hint)[0]
    assert isinstance(hint, type)
    return hint


def members(protocol: type) -> set[str]:
    return {name for name in {*vars(protocol), *inspect.get_annotations(protocol)} if name[0] != "_"}


def kind_of(entry: object) -> type:
    return entry if isinstance(entry, type) else type(entry)


def fits(candidate: type, base: type) -> bool:
    if getattr(base, "_is_protocol", False):
        named = {*dir(candidate), *getattr(candidate, "__dataclass_fields__", {})}
        return candidate is not base and members(base) <= named
    return candidate is not base and issubclass(candidate, base)


def classes_of_room(module: ModuleType) -> Iterator[type]:
    """Yield the concrete public classes defined in the room that declares the registry."""
    room = ".".join(module.__name__.split(".")[:2])
    for other in MODULES:
        if other.__name__ == room or other.__name__.startswith(f"{room}."):
            for value in vars(other).values():
                if isinstance(value, type) and value.__module__ == other.__name__ and value.__name__[0] != "_":
                    yield value


def test_every_registry_says_what_it_holds() -> None:
    held = {id(value) for module in MODULES for value in vars(module).values() if isinstance(value, Registry)}
    declared = {id(registry) for registry, _ in REGISTRIES.values()}
    assert held == declared, "annotate each registry where it is made: NAME: Registry[Base] = Registry(...)"
    assert declared


@pytest.mark.parametrize("label", REGISTRIES)
def test_no_entry_is_left_unregistered(label: str) -> None:
    registry, module = REGISTRIES[label]
    base = base_of(label)
    registered = {kind_of(entry) for entry in registry}
    concrete = {
        found
        for found in classes_of_room(module)
        if fits(found, base) and not inspect.isabstract(found) and not getattr(found, "_is_protocol", False)
    }
    assert {found.__qualname__ for found in concrete - registered} == set()


@pytest.mark.parametrize("label", REGISTRIES)
def test_every_entry_is_documented_and_named_in_lower_case(label: str) -> None:
    registry, _ = REGISTRIES[label]
    names = registry.names()
    assert names
    assert len(set(names)) == len(names)
    for entry in registry:
        owner = entry if inspect.isfunction(entry) else kind_of(entry)
        text = owner.__dict__.get("__doc__") or owner.__doc__ or ""
        # A baseline is named as its arm in every table, and arms begin with their letter in the study.
        assert re.fullmatch(r"(?:[A-Z][0-9]?_)?[a-z][a-z0-9_.-]*", entry.name), entry.name
        assert len(text.split()) >= 5, f"{entry.name} does not say what it is"
        # A dataclass without a docstring gets its signature as one.
        assert not text.startswith(f"{owner.__name__}("), f"{entry.name} does not say what it is"
