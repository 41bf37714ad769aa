"""What a team brings: the question, its options, and the rules of the vote, all fixed before anybody is asked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from consilience.config import load_yaml
from consilience.core.packet import Item
from consilience.core.visible import visible
from consilience.decisions.necessity import Stakes
from consilience.errors import ConfigError, PlanError
from consilience.experiments.asked import Asked, item_of
from consilience.protocols.escalation import Escalation
from consilience.registry import nearest

ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
PLACE: Final = re.compile(r"o([1-9][0-9]*)")


class CaseOption(BaseModel):
    """One thing that can be decided for.

    Attributes:
        id: What ballots, rules and records call it, of letters, digits and ``_.-``; its place, such as ``o1``, where
            none is given.
        label: What people call it.
        description: More of it.
        own: The role whose proposal it is, and which may not vote for it; None for nobody's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str | None = None
    label: str
    description: str = ""
    own: str | None = None

    @field_validator("id")
    @classmethod
    def _an_id(cls, value: str | None) -> str | None:
        if value is not None and not ID.fullmatch(value):
            raise ValueError(f'"{value}" is no id of an option: 1 to 64 of letters, digits and _ . -')
        return value


class Case(BaseModel):
    """One decision, as a YAML file or flags say it.

    Attributes:
        question: What is to be decided.
        options: At least two.
        context: Documents: texts, or with ``files`` paths beside the YAML file.
        files: Documents by path.
        stakes: What is at stake, for the question whether a panel is justified at all.
        critical: Needs five voters or more.
        panel: Who votes: a panel by name, or a YAML file.
        method: How votes are counted.
        threshold: What a supermajority demands, such as ``2/3`` or 0.75.
        truncated: Whether Borda takes rankings that are cut short.
        quick: Members of the quick vote; 0 leaves it out.
        quick_share: What a quick vote demands.
        full_share: What a full vote and a final vote demand.
        passes: Most passes of the debate.
        reveal: In the debate, votes with reasons, or reasons alone.
        quorum: Valid ballots needed; 0 for more than half of the members.
        ties: The tie rule, in order.
        safety_order: Option ids or labels, safest first.
        weights: By role, declared; ``earned`` from resolved decisions; None for equal ones.

    Raises:
        ValueError: A field does not fit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = Field(min_length=1)
    options: tuple[CaseOption, ...] = Field(min_length=2)
    context: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    stakes: Stakes = Stakes()
    critical: bool = False
    panel: str = "default"
    method: str = "majority"
    threshold: str = ""
    truncated: Literal["refuse", "average"] = "refuse"
    quick: int = 2
    quick_share: float = 0.85
    full_share: float = 0.66
    passes: int = 1
    reveal: Literal["positions", "arguments"] = "positions"
    quorum: int = 0
    ties: tuple[str, ...] = ("safety_order", "human")
    safety_order: tuple[str, ...] = ()
    weights: dict[str, float] | Literal["earned"] | None = None

    @field_validator("options", mode="before")
    @classmethod
    def _labels_too(cls, value: Any) -> Any:
        """A bare text is an option's label."""
        if isinstance(value, list | tuple):
            return tuple({"label": one} if isinstance(one, str) else one for one in value)
        return value

    @model_validator(mode="after")
    def _own_ids(self) -> Case:
        ids = self.ids
        if len(set(ids.values())) != len(ids):
            raise ValueError("two options share an id")
        for place, name in ids.items():
            taken = PLACE.fullmatch(name)
            if taken and int(taken[1]) != place:
                raise ValueError(f'option {place} has the id "{name}", which names option {taken[1]}')
            alike = [other for other, option in enumerate(self.options, 1) if visible(option.label) == name]
            if any(other != place for other in alike):
                raise ValueError(f'"{name}" is the id of option {place} and the label of option {alike[0]}')
        return self

    @field_validator("threshold", mode="before")
    @classmethod
    def _share(cls, value: Any) -> Any:
        """A number is the share that it writes."""
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value

    @property
    def ids(self) -> dict[int, str]:
        """What the rules call each option, by its place."""
        return {place: option.id or f"o{place}" for place, option in enumerate(self.options, start=1)}

    def option_id(self, said: str) -> str:
        """Return the id of an option named by id or label.

        Raises:
            ConfigError: There is no such option; the nearest one is named.

        Example:
            >>> case = Case(question="Which?", options=("tea", {"id": "c", "label": "coffee"}))
            >>> case.option_id("tea"), case.option_id("c"), case.option_id("coffee")
            ('o1', 'c', 'c')
        """
        named = {option.label: name for option, name in zip(self.options, self.ids.values(), strict=True)}
        named |= {name: name for name in self.ids.values()}
        if said not in named:
            raise ConfigError(f'there is no option "{said}"', hint=nearest(said, named))
        return named[said]

    def item(self, *, today: date) -> Item:
        """Return the question with its documents, as the engine asks it.

        Raises:
            ConfigError: Question, options or documents do not fit.
        """
        asked = Asked(
            text=self.question,
            kind="choice",
            options=[option.label for option in self.options],
            descriptions=[option.description for option in self.options] if self._described else (),
            context=(*self.context, *self.files),
            ids=tuple(self.ids.values()) if any(option.id for option in self.options) else (),
        )
        return item_of(asked, today=today)

    def _owners(self) -> dict[str, str]:
        """Return the option that each role proposed.

        Raises:
            ConfigError: One proposed several, which cannot all be taken out of its ballot.
        """
        owners: dict[str, str] = {}
        for option, name in zip(self.options, self.ids.values(), strict=True):
            if option.own is not None and owners.setdefault(option.own, name) != name:
                raise ConfigError(
                    f"{option.own} is said to own {owners[option.own]} and {name}",
                    hint="A role owns one option at most; let another role own the other, or nobody.",
                )
        return owners

    @property
    def _described(self) -> bool:
        return any(option.description for option in self.options)

    def protocol(self, members: tuple[str, ...], *, weights: Mapping[str, float] | None, seed: int) -> Escalation:
        """Return the ladder with everything that decides, fixed.

        Args:
            members: Role ids of the voters, in seat order.
            weights: By role; None for equal ones.
            seed: Draws lots, where lots are asked for.

        Raises:
            ConfigError: A name is unknown.
            PlanError: Rules contradict each other.
        """
        owners = self._owners()
        for role in (*owners, *(weights or {})):
            if role not in members:
                raise ConfigError(f'no voter is called "{role}"', hint=nearest(role, members))
        missing = [role for role in members if weights is not None and role not in weights]
        if missing:
            raise PlanError(f"no weight is declared for {missing[0]}", hint="Declare one for every voter, or none.")
        if self.method == "weighted" and weights is None:
            raise ConfigError(
                "the method weighted has no weights",
                hint='Declare them by role in the YAML file ("weights: {optimist: 2, …}"), or write "weights: earned".',
            )
        ties = tuple(rule for rule in self.ties if rule != "safety_order" or self.safety_order)
        return Escalation(
            method=self.method,
            threshold=self.threshold,
            truncated=self.truncated,
            quick=self.quick,
            quick_share=self.quick_share,
            full_share=self.full_share,
            passes=self.passes,
            reveal=self.reveal,
            quorum=self.quorum,
            ties=ties,
            safety_order=tuple(self.option_id(said) for said in self.safety_order),
            weights=tuple(weights[role] for role in members) if weights is not None else (),
            own=tuple(owners.get(role, "") for role in members) if owners else (),
            draw=seed,
        )


def read_case(path: Path) -> Case:
    """Return the decision that a YAML file says; paths of documents begin in its folder.

    Raises:
        ConfigError: The file cannot be read, a key is unknown (the nearest is named), or a value does not fit.
    """
    case = load_yaml(path, Case)
    return case.model_copy(update={"files": tuple(path.parent / file for file in case.files)})
