"""One registry pattern for everything that can be added: models, protocols, rules, metrics, adapters.

A registry is built from an explicit tuple in the room that owns it, plus third-party entry points of its group.
An entry is any object with a ``name``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar, cast

from consilience.errors import ConfigError


class Named(Protocol):
    """Anything that can stand in a registry."""

    @property
    def name(self) -> str:
        """The name it is chosen by."""
        ...


def nearest(word: str, known: Iterable[str]) -> str:
    """Return a sentence that helps with a mistyped name.

    Example:
        >>> nearest("medain", ["mean", "median"])
        'Did you mean "median"? Known: mean, median.'
    """
    names = sorted(known)
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=0.6)
    guess = f'Did you mean "{folded[close[0]]}"? ' if close else ""
    return f"{guess}Known: {', '.join(names)}."


T = TypeVar("T", bound=Named)


class Registry(Generic[T]):
    """Named entries of one sort, in their declared order.

    Args:
        what: The word used in messages, such as ``"aggregation rule"``.
        entries: The built-in entries.
        group: Entry-point group under which other distributions offer theirs; loaded at first look-up of an
            unknown name or on ``third_party``.

    Raises:
        ConfigError: Two entries share a name.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class Rule:
        ...     name: str
        >>> rules = Registry("rule", (Rule("mean"), Rule("median")))
        >>> rules["median"].name
        'median'
    """

    def __init__(self, what: str, entries: Iterable[T], *, group: str | None = None) -> None:
        self.what = what
        self._group = group
        self._entries: dict[str, T] = {}
        self._origins: dict[str, str] = {}
        self._loaded = group is None
        for entry in entries:
            self._add(entry)

    def _add(self, entry: T) -> None:
        if entry.name in self._entries:
            raise ConfigError(f'two {self.what} entries are named "{entry.name}"', hint="Rename one of them.")
        self._entries[entry.name] = entry

    def _load(self) -> None:
        if self._loaded:
            return
        from importlib.metadata import entry_points  # noqa: PLC0415 - it loads the parser of mails

        self._loaded = True
        for point in entry_points(group=self._group or ""):
            entry = cast("T", point.load())
            self._add(entry)
            dist = point.dist
            self._origins[entry.name] = f"{dist.name} {dist.version}" if dist is not None else point.value

    def __getitem__(self, name: str) -> T:
        """Return the entry; an unknown name raises `ConfigError` and names the nearest one."""
        if name not in self._entries:
            self._load()
        try:
            return self._entries[name]
        except KeyError:
            raise ConfigError(f'unknown {self.what} "{name}"', hint=nearest(name, self._entries)) from None

    def __iter__(self) -> Iterator[T]:
        self._load()
        return iter(self._entries.values())

    def __contains__(self, name: str) -> bool:
        self._load()
        return name in self._entries

    def names(self) -> list[str]:
        """Return all names in declared order."""
        return [entry.name for entry in self]

    def third_party(self) -> dict[str, str]:
        """Return ``{name: "distribution version"}`` of the entries that other packages brought."""
        self._load()
        return dict(self._origins)
