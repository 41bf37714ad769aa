"""What must not change once a study is frozen: every prompt, setting and line of code that decides an answer.

Only the standard library is needed, so that a freeze can be checked by any interpreter; who calls it brings the reader
of YAML.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date
from importlib.resources.abc import Traversable
from typing import Any, Final

from consilience.core.canonical import sha256_hex, tagged_hash

ROOMS: Final = ("core", "protocols", "runtime", "aggregation", "models", "evidence")
"""Rooms whose code decides what is asked, read and combined."""
ROLE_PROMPTS: Final = "prompts/valuation/roles/"
CONTRACTS: Final = ("core/answers.py", "core/contracts.py", "core/schema.py")
"""The contract module: what a reply has to be."""
ARMS: Final = (
    "config.py",
    *(
        f"experiments/{name}.py"
        for name in ("arms", "casting", "exposed", "feasible", "fitting", "general", "matching")
    ),
    *(f"experiments/{name}.py" for name in ("panels", "plan", "questions", "repeats", "rows", "runner", "totals")),
    "experiments/weights.py",
    "valuation/roster.py",
)
"""What is called an arm: who sits on its panel, what of the evidence it shows, how its rows are made."""
PACKETS: Final = tuple(
    f"valuation/{name}.py"
    for name in (
        *("adjustments", "analysts", "comparables", "features", "features_comparables", "geo", "market", "packets"),
        *("pipeline", "sampling", "schema", "splits", "synthetic"),
    )
)
"""The packet builder with all it reads of sales, and the simulated analysts that read packets."""
BASELINES: Final = ("valuation/baseline_runs.py", "valuation/rolling.py")
"""Arms without a language model, beside what lies in their folder."""
PROJECT_FILE: Final = "consilience.yaml"
HARMLESS: Final = frozenset({"max_spend_usd", "concurrency"})
"""Keys of the project file that change neither what is asked nor what comes of it."""

FileHashes = dict[str, dict[str, str]]
Parse = Callable[[str], Any]


def text_digest(data: bytes) -> str:
    r"""Return the SHA-256 of a text file's bytes, with CRLF read as LF.

    Example:
        >>> text_digest(b"a\r\nb") == text_digest(b"a\nb") == sha256_hex(b"a\nb")
        True
    """
    return sha256_hex(data.replace(b"\r\n", b"\n"))


def config_digest(value: Any) -> str:
    """Return a hash of what a configuration file says; comments, formatting and the order of keys are not in it.

    Example:
        >>> config_digest({"a": 1, "b": [date(2026, 1, 2)]}) == config_digest({"b": [date(2026, 1, 2)], "a": 1})
        True
        >>> config_digest({"a": "1"}) == config_digest({"a": 1})
        False
    """
    return tagged_hash("config", _plain(value))


def _plain(value: Any) -> Any:
    """Return parsed YAML as JSON values; keys and days are marked by their kind, so that no two values become one."""
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else f"!{key!r}": _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, date):
        return {"!date": value.isoformat()}
    return value


def package_hashes(package: Traversable, *, parse: Parse) -> FileHashes:
    """Return the hash of every file that decides answers, by sort of file and by its path in the package.

    The sorts are ``role_prompts`` (the 33 valuation roles), ``templates`` (every other text shown to a model),
    ``configs``, ``contracts``, ``code`` (the rest of the deciding rooms), ``arms``, ``packets`` and ``baselines``. Line
    ends do not matter, and of configuration files only what they say does.

    Args:
        package: The package's folder.
        parse: Reads a YAML text.

    Example:
        >>> from importlib.resources import files
        >>> found = package_hashes(files("consilience"), parse=str)
        >>> len(found["role_prompts"]), "core/contracts.py" in found["contracts"], "core/role.py" in found["code"]
        (33, True, True)
    """
    prompts = text_digests(package, "prompts", suffix=".md")
    code = {name: digest for room in ROOMS for name, digest in text_digests(package, room, suffix=".py").items()}
    return {
        "role_prompts": {name: digest for name, digest in prompts.items() if name.startswith(ROLE_PROMPTS)},
        "templates": {name: digest for name, digest in prompts.items() if not name.startswith(ROLE_PROMPTS)},
        "configs": {
            name: config_digest(parse(data.decode("utf-8"))) for name, data in _files(package, "configs", ".yaml")
        },
        "contracts": {name: code[name] for name in CONTRACTS if name in code},
        "code": {name: digest for name, digest in code.items() if name not in CONTRACTS},
        "arms": _chosen(package, ARMS),
        "packets": _chosen(package, PACKETS),
        "baselines": text_digests(package, "valuation/baselines", suffix=".py") | _chosen(package, BASELINES),
    }


def _chosen(package: Traversable, names: Iterable[str]) -> dict[str, str]:
    """Return the hash of every named file that is there."""
    found = ((name, package.joinpath(name)) for name in names)
    return {name: text_digest(file.read_bytes()) for name, file in found if file.is_file()}


def text_digests(package: Traversable, folder: str, *, suffix: str) -> dict[str, str]:
    """Return the hash of every text file below a folder of the package, by its path in the package.

    Args:
        package: The package's folder.
        folder: Below it, such as ``core``.
        suffix: How the files' names end.
    """
    return {name: text_digest(data) for name, data in _files(package, folder, suffix)}


def _files(package: Traversable, folder: str, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of every file below a folder, sorted by path."""
    for entry in sorted(package.joinpath(folder).iterdir(), key=lambda entry: entry.name):
        name = f"{folder}/{entry.name}"
        if entry.is_dir():
            yield from _files(package, name, suffix)
        elif entry.name.endswith(suffix):
            yield name, entry.read_bytes()


def project_digest(settings: Mapping[str, Any] | None) -> str:
    """Return a hash of what ``consilience.yaml`` says, without what only limits money and haste; None is no file.

    Example:
        >>> project_digest({"concurrency": 8}) == project_digest(None)
        True
    """
    return config_digest({key: value for key, value in (settings or {}).items() if key not in HARMLESS})


def deviations(frozen: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Return one sentence per thing that is not as it was frozen, sorted; nothing where all is.

    Args:
        frozen: What was frozen, as JSON values: ``files`` by sort and name, ``data`` by name, ``panels`` by application
            and name, ``analysis`` by name.
        now: The same of this moment.

    Example:
        >>> frozen = {"files": {"code": {"core/role.py": "0", "core/gone.py": "0"}}, "data": {"splits": None}}
        >>> now = {"files": {"code": {"core/role.py": "1", "core/new.py": "0"}}, "data": {"splits": "0"}}
        >>> for line in deviations(frozen, now):
        ...     print(line)
        core/gone.py is gone
        core/new.py was not there
        core/role.py changed
        splits was not there
    """
    found = {*_differences(_flat(frozen), _flat(now))}
    return tuple(sorted(found.union(_other_seats(frozen, now, found))))


def _flat(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is compared, by the name a reader knows it by."""
    files = {name: digest for named in content.get("files", {}).values() for name, digest in named.items()}
    analysis = {f"analysis: {name}": value for name, value in content.get("analysis", {}).items()}
    return files | dict(content.get("data", {})) | analysis


def _differences(frozen: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in frozen.keys() | now.keys():
        before, after = frozen.get(name), now.get(name)
        if before == after:
            continue
        if before is None:
            yield f"{name} was not there"
        elif after is None:
            yield f"{name} is gone"
        else:
            yield f"{name} changed"


def _other_seats(frozen: Mapping[str, Any], now: Mapping[str, Any], said: Collection[str]) -> Iterator[str]:
    """Yield what differs in who sits on the panels; a role whose file was named is not named again."""
    before, after = (
        {(app, name): one for app, of in c.get("panels", {}).items() for name, one in of.items()} for c in (frozen, now)
    )
    for app, name in before.keys() | after.keys():
        panel, was, is_now = f"panel {app}/{name}", before.get((app, name)), after.get((app, name))
        if was is None or is_now is None:
            yield f"{panel} {'was not there' if was is None else 'is gone'}"
            continue
        seats, sits = ({member["id"]: member for member in one["members"]} for one in (was, is_now))
        for line in _differences(seats, sits):
            role, _, what = line.partition(" ")
            # shuffled roles are made of others' files
            if what != "changed" or not (was["seeded"] or f"prompts/{app}/roles/{role}.md changed" in said):
                yield f"{panel}: {line}"
        if seats.keys() == sits.keys() and [*seats] != [*sits]:
            yield f"{panel}: the order of its seats changed"
        for term in ("labels", "seeded"):
            if was[term] != is_now[term]:
                yield f"{panel}: {term} changed"


def notes(frozen: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what else differs and is no deviation: versions of Python and of packages.

    Args:
        frozen: ``python`` and ``packages`` at the freeze.
        now: The same of this moment.

    Example:
        >>> notes({"python": "3.11.2", "packages": {"a": "1"}}, {"python": "3.12.1", "packages": {"a": "2", "b": "1"}})
        ('Python 3.12.1, frozen with 3.11.2', 'a 2, frozen with 1', 'b 1, frozen without')
    """
    found = [] if frozen["python"] == now["python"] else [f"Python {now['python']}, frozen with {frozen['python']}"]
    before, after = frozen["packages"], now["packages"]
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            was = f"with {before[name]}" if name in before else "without"
            found.append(f"{name} {after.get(name, 'is not installed')}, frozen {was}")
    return tuple(found)
