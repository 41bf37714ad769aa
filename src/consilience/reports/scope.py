"""What was asked of whom about what, as the runs' own files say: without it no number on a page can be judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from consilience.errors import IntegrityError, reason
from consilience.reports.tables import plain

M = TypeVar("M", bound=BaseModel)
Fact = tuple[str, str]

UNFITTED: Final = "none"
"""How the manifest's ``weights_source`` begins where no weights were fitted."""
_NAMED: Final = 8


@dataclass(frozen=True)
class Source:
    """Where items come from.

    Attributes:
        name: Adapter or kind of file.
        file: File name of the source.
        sha256: Of the source's bytes.
        rows: Sales or questions it holds.
        made_up: It describes no real market.
        places: The items' places: what one is called (such as ``zip code``) and their names.
    """

    name: str
    file: str
    sha256: str
    rows: int
    made_up: bool = False
    places: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Asked:
    """What one run asked.

    Attributes:
        run_id: The run.
        arm: Its arm, as tables name it.
        protocol: Order of asking, with its parameters.
        roles: Ids of the members' roles.
        models: Model ids, then what is to be said of them.
        committee: How models are given to roles.
        tier: Price tier.
        split: Split of the items; None for a set of questions.
        seed: Seed of the run.
        weights_source: Where the weights of fitted rules come from.
        turns: Turns by outcome.
        questions: The questions' texts by item.
        units: Units or currencies of the answers, sorted.
        first: Earliest day asked about; None where no item has one.
        last: Latest day asked about.
    """

    run_id: str
    arm: str
    protocol: str
    roles: tuple[str, ...]
    models: tuple[str, ...]
    committee: str
    tier: str
    split: str | None
    seed: int
    weights_source: str
    turns: Mapping[str, int]
    questions: Mapping[str, str]
    units: tuple[str, ...]
    first: date | None
    last: date | None


@dataclass(frozen=True)
class Scope:
    """What a report is about.

    Attributes:
        runs: One per run; empty where the runs' files are not at hand.
        sources: Where the items come from.
    """

    runs: tuple[Asked, ...] = ()
    sources: tuple[Source, ...] = ()

    def lone_arms(self) -> frozenset[str]:
        """Return the arms that ask one member, so that all rules give the same."""
        panels = {run.arm for run in self.runs if len(run.roles) != 1}
        return frozenset(run.arm for run in self.runs) - panels

    def weights(self) -> str:
        """Return what must be said of rules with fitted weights; empty where it is unknown."""
        found = _distinct(run.weights_source for run in self.runs)
        if not found:
            return ""
        if all(source.startswith(UNFITTED) for source in found):
            return (
                "No weights were fitted: inverse_variance, stacking and stacking_nnls weigh all members equally here "
                "and so show what mean shows."
            )
        return f"Weights of inverse_variance, stacking, stacking_nnls and robust_bayes: {'; '.join(found)}."

    def unanswered(self, arm: str) -> str:
        """Return an arm's turns without an answer by kind, of how many; ``unknown`` where no manifest tells."""
        own = [run.turns for run in self.runs if run.arm == arm]
        if not own:
            return "unknown"
        total = sum(sum(turns.values()) for turns in own)
        kinds = sorted({kind for turns in own for kind in turns if kind != "answered"})
        counts = {kind: sum(turns.get(kind, 0) for turns in own) for kind in kinds}
        said = ", ".join(f"{number:,} {kind}" for kind, number in counts.items() if number)
        return f"{said or '0'} of {total:,}"


class _Role(BaseModel):
    id: str


class _Configuration(BaseModel):
    protocol: dict[str, dict[str, Any]] = Field(min_length=1, max_length=1)
    roles: list[_Role]


class _Matched(BaseModel):
    source: str
    samples: tuple[int, int]


class _Manifest(BaseModel):
    model_config = ConfigDict(strict=True)

    run_id: str
    arm: str
    models: list[str]
    said_of_models: list[str]
    committee: str
    tier: str
    split: str | None
    seed: int
    weights_source: str
    turns: dict[str, int]
    match: _Matched | None
    configuration: _Configuration


class _Question(BaseModel):
    id: str
    text: str
    unit: str | None


class _Packet(BaseModel):
    valuation_date: date | None


class _Item(BaseModel):
    question: _Question
    packet: _Packet


def read_asked(folder: Path) -> Asked:
    """Return what a run asked, from its ``manifest.json`` and ``packets``.

    Raises:
        IntegrityError: One of them is missing or not what a run writes.
    """
    told = _read(folder / "manifest.json", _Manifest)
    ((protocol, parameters),) = told.configuration.protocol.items()
    if told.match is not None:  # the money decided, item by item, not the number that the protocol declares
        fewest, most = told.match.samples
        taken = f"{fewest} to {most} an item, as many as {told.match.source} pays for"
        parameters = parameters | {"samples": taken}
    items = [_read(path, _Item) for path in sorted((folder / "packets").glob("*.json"))]
    days = [item.packet.valuation_date for item in items if item.packet.valuation_date is not None]
    return Asked(
        run_id=told.run_id,
        arm=told.arm,
        protocol=protocol_text(protocol, parameters),
        roles=tuple(role.id for role in told.configuration.roles),
        models=(*told.models, *(f"({said})" for said in told.said_of_models)),
        committee=told.committee,
        tier=told.tier,
        split=told.split,
        seed=told.seed,
        weights_source=told.weights_source,
        turns=told.turns,
        questions={item.question.id: item.question.text for item in items},
        units=tuple(sorted({item.question.unit for item in items if item.question.unit is not None})),
        first=min(days, default=None),
        last=max(days, default=None),
    )


def _read(path: Path, model: type[M]) -> M:
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise IntegrityError(
            f"{path} cannot be read: {error.strerror}", hint="Restore it from a copy of the run."
        ) from error
    except ValidationError as error:
        raise IntegrityError(
            f"{path}: {reason(error)}", hint="It is not what a run writes; restore it from a copy."
        ) from error


def protocol_text(name: str, parameters: Mapping[str, Any]) -> str:
    """Return the order of asking in words; what is off or empty is left out.

    Example:
        >>> protocol_text("debate", {"rounds": 2, "flags": True, "nested": []}), protocol_text("independent", {})
        ('debate (rounds 2, flags)', 'independent')
    """
    told = {key.replace("_", " "): value for key, value in parameters.items()}
    given = {key: value for key, value in told.items() if value is not None and value is not False and value != []}
    said = ", ".join(key if value is True else f"{key} {value}" for key, value in given.items())
    return f"{name} ({said})" if said else name


def scope_facts(scope: Scope, *, primary: str) -> list[Fact]:
    """Return what was asked as pairs of a term and what is said of it; what is unknown is left out.

    Args:
        scope: What the report is about.
        primary: The primary aggregation rule.
    """
    runs = scope.runs
    questions = {item: text for run in runs for item, text in run.questions.items()}
    days = sorted(day for run in runs for day in (run.first, run.last) if day is not None)
    names = {
        what: _distinct(name for s in scope.sources for w, names in s.places if w == what for name in names)
        for what in _distinct(what for source in scope.sources for what, _ in source.places)
    }
    facts = [
        ("Question", _question(questions)),
        ("Data", "; ".join(_source(source) for source in scope.sources)),
        ("Market", "; ".join(f"{what}: {_some(found)}" for what, found in names.items() if found)),
        ("Asked about", _days(days)),
        ("Answers in", ", ".join(_distinct(unit for run in runs for unit in run.units))),
        ("One answer of several", f"by the rule {primary}. {scope.weights()}" if runs else ""),
    ]
    return [(term, plain(text)) for term, text in facts if text]


def _question(questions: Mapping[str, str]) -> str:
    if not questions:
        return ""
    first = f"“{next(iter(questions.values()))}”"
    return first if len(questions) == 1 else f"{len(questions):,} questions such as {first}"


def _days(days: Sequence[date]) -> str:
    return "" if not days else f"{days[0]}" if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def _source(source: Source) -> str:
    word = "made up, " if source.made_up else ""
    return f"{source.file} ({source.name}, {word}{source.rows:,} rows, SHA-256 {source.sha256[:12]}…)"


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(sorted(names)[:_NAMED])
    return f"{shown} and {len(names) - _NAMED} more" if len(names) > _NAMED else shown


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
