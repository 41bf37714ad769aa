"""How a module of the package is written: size, name, and what it never does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from source_tree import Source, dotted, imported, package, under

MOST_LINES = 400
BANNED_NAMES = frozenset({"utils", "helpers", "common", "misc", "manager"})

NETWORK = frozenset(
    {
        *(
            "socket",
            "socketserver",
            "ssl",
            "http.client",
            "http.server",
            "urllib.request",
            "xmlrpc",
            "ftplib",
            "smtplib",
        ),
        *("httpx", "httpx2", "httpcore", "requests", "aiohttp", "websockets", "urllib3", "h11"),
        *("anthropic", "openai", "mcp", "uvicorn", "starlette", "ray"),
        *("anyio.connect_tcp", "anyio.connect_unix", "anyio.create_tcp_listener", "anyio.create_udp_socket"),
    }
)
MAY_OPEN_SOCKETS = (
    "models",
    "forecasting.search",
    "forecasting.feeds",
    "viewer",
    "mcp",
    "fakes",
    "experiments.engines.ray",
)

HEAVY = frozenset({"anthropic", "openai", "sklearn", "lightgbm", "matplotlib", "scipy", "ray", "xllamacpp"})
PURE = ("core", "protocols", "aggregation", "scoring", "inference")
OUTSIDE_WORLD = frozenset(
    {"os", "io", "pathlib", "shutil", "tempfile", "time", "random", "secrets", "uuid", "subprocess", "threading"}
)
CLOCKS = frozenset({"datetime.now", "datetime.utcnow", "datetime.today", "date.today"})
NEVER_IMPORTED = frozenset({"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"})
NEVER_CALLED = frozenset({"eval", "exec", "compile", "__import__", "time.sleep"})

NO_APPLICATION = ("core", "protocols", "runtime", "journal")
APPLICATION_WORDS = frozenset(
    {"sale", "sales", "parcel", "parcels", "house", "houses", "property", "properties", "buyer", "appraisal"}
    | {"resolution", "tournament", "metaculus"}
)
SCHEMA_WORDS = frozenset({"properties", "additionalProperties"})
"""JSON Schema's own; they are not about estates."""

BROAD = frozenset({"Exception", "BaseException"})
MAY_CATCH_EVERYTHING = {
    "cli.app": "where every error ends",
    "forecasting.search.executor": "search clients may be other packages': whatever one raises fails one call",
}
"""One handler each, with the reason."""


def calls(source: Source) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            yield node, dotted(node.func)


def broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(dotted(kind) in BROAD for kind in caught)


def tidies_and_raises(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def words_of(node: ast.AST) -> Iterator[str]:
    """Yield what the code itself says: names and attributes it defines or uses, and keys."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            yield name
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.Constant(value=str(text)) if text.isidentifier():
            yield text


def split_words(name: str) -> set[str]:
    return {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


@pytest.mark.parametrize("source", package(), ids=lambda source: source.name or "consilience")
def test_module_is_short_and_named_for_what_it_does(source: Source) -> None:
    assert len(source.text.splitlines()) <= MOST_LINES, "a concept is missing: find it, do not just cut the file"
    assert not BANNED_NAMES & set(source.name.split(".")), "name what the module is about"


def test_only_named_rooms_open_sockets() -> None:
    found = [
        f"{source.at(node)} {name}"
        for source in package()
        if not source.inside(*MAY_OPEN_SOCKETS)
        for node in ast.walk(source.tree)
        for name in imported(node)
        if under(name, NETWORK)
    ]
    found += [
        f"{source.at(call)} {name}"
        for source in package()
        if not source.inside(*MAY_OPEN_SOCKETS)
        for call, name in calls(source)
        if name in NETWORK
    ]
    assert found == []


def test_heavy_packages_are_imported_in_the_function_that_needs_them() -> None:
    found = []
    for source in package():
        local = {
            node
            for scope in ast.walk(source.tree)
            if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(scope)
        }
        found += [
            f"{source.at(node)} {name}"
            for node in ast.walk(source.tree)
            if node not in local
            for name in imported(node)
            if under(name, HEAVY)
        ]
    assert found == []


def test_pure_rooms_know_no_clock_no_disk_no_environment_and_no_luck() -> None:
    found = []
    for source in package():
        if not source.inside(*PURE):
            continue
        found += [
            f"{source.at(node)} imports {name}"
            for node in ast.walk(source.tree)
            for name in imported(node)
            if under(name, OUTSIDE_WORLD)
        ]
        for call, name in calls(source):
            unseeded = name.endswith("default_rng") and not call.args and not call.keywords
            if unseeded or name == "open" or name in CLOCKS or name.removeprefix("datetime.") in CLOCKS:
                found.append(f"{source.at(call)} calls {name}")
    assert found == []


def test_nothing_is_unpickled_or_evaluated_and_nothing_sleeps_a_thread() -> None:
    found = [
        f"{source.at(node)} imports {name}"
        for source in package()
        for node in ast.walk(source.tree)
        for name in imported(node)
        if under(name, NEVER_IMPORTED) or name == "time.sleep"
    ]
    found += [
        f"{source.at(call)} calls {name}"
        for source in package()
        for call, name in calls(source)
        if name in NEVER_CALLED
    ]
    assert found == []


def test_every_error_is_caught_in_the_named_places_only() -> None:
    """A handler that tidies up and raises the same error again hides nothing and is not meant."""
    places = [
        source.name
        for source in package()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ExceptHandler) and broad(node) and not tidies_and_raises(node)
    ]
    places += [
        source.name
        for source in package()
        for call, name in calls(source)
        if name.rpartition(".")[2] == "suppress" and any(dotted(argument) in BROAD for argument in call.args)
    ]
    assert sorted(places) == sorted(MAY_CATCH_EVERYTHING), "these catch everything"


def test_the_engine_knows_no_application() -> None:
    found = []
    for source in package():
        if not source.inside(*NO_APPLICATION):
            continue
        decorators = {
            node
            for scope in ast.walk(source.tree)
            if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef)
            for decorator in scope.decorator_list
            for node in ast.walk(decorator)
        }
        for node in ast.walk(source.tree):
            if node in decorators:
                continue
            found += [
                f"{source.at(node)} {word}"
                for word in words_of(node)
                if word not in SCHEMA_WORDS and split_words(word) & APPLICATION_WORDS
            ]
    assert found == []
