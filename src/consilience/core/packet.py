"""The evidence assembled once per item, identical for every arm."""

from __future__ import annotations

from datetime import date
from functools import cached_property
from typing import Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from consilience.core.canonical import tagged_hash
from consilience.core.question import Question, Strict

CutoffRule = Literal["last_admissible", "first_inadmissible"]


class EvidenceItem(Strict):
    """One piece of evidence that can be cited by its id.

    Attributes:
        id: ``P``, ``C01``, ``M1``, ``G1``, ``D01``, ``B1``, ``X1``…
        as_of: The day the fact was true or published; None means undated, which is not "before".
        snapshot: The fact comes from a declared snapshot that may be later than the cutoff (its ``as_of`` says when).
        content: JSON data without fields called ``id``, ``as_of`` or ``snapshot``, which would disguise the item.
            Untrusted: rendered only inside a fence.

    Raises:
        ValueError: The content has a field that would stand for the item's own.
    """

    id: str = Field(min_length=1, max_length=32, pattern=r"^[A-Za-z0-9_.-]+$")
    as_of: date | None = None
    snapshot: bool = False
    content: dict[str, JsonValue]

    @field_validator("content")
    @classmethod
    def _undisguised(cls, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        disguise = {"id", "as_of", "snapshot"} & value.keys()
        if disguise:
            raise ValueError(f'has a field "{min(disguise)}", which would stand for the item\'s own')
        return value

    def shown(self) -> dict[str, JsonValue]:
        """Return the item as a role sees it: id, date and snapshot mark where known, then its content."""
        head: dict[str, JsonValue] = {"id": self.id}
        if self.as_of is not None:
            head["as_of"] = self.as_of.isoformat()
        if self.snapshot:
            head["snapshot"] = True
        return head | self.content


class Section(Strict):
    """All items of one sort under one code, the unit of least privilege."""

    code: str = Field(min_length=1, max_length=8, pattern=r"^[A-Z][A-Z0-9]*$")
    title: str
    items: tuple[EvidenceItem, ...]


class Packet(Strict):
    """The evidence of one item.

    Attributes:
        item_id: The item's id.
        valuation_date: The day the answer is for, where there is one.
        cutoff: The information cutoff.
        cutoff_rule: ``last_admissible`` (valuation: the cutoff day itself still counts) or ``first_inadmissible``
            (forecasting: the cutoff day is already too late).
        sections: By code.
        notes: How the evidence was assembled (radius, candidates, extensions); shown to every role.

    Raises:
        ValueError: Two items share an id, a section stands under another code than its own, or an item is dated past
            the cutoff without being a declared snapshot.

    Example:
        >>> p = Packet(item_id="a", cutoff=date(2015, 3, 1), cutoff_rule="last_admissible",
        ...            sections={"P": Section(code="P", title="Subject", items=(EvidenceItem(id="P", content={}),))})
        >>> p.evidence_ids()
        ('P',)
    """

    item_id: str
    valuation_date: date | None = None
    cutoff: date
    cutoff_rule: CutoffRule
    sections: dict[str, Section]
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _sound(self) -> Self:
        seen: set[str] = set()
        for code, section in self.sections.items():
            if code != section.code:
                raise ValueError(f"section {section.code} stands under code {code}")
            for item in section.items:
                if item.id in seen:
                    raise ValueError(f"two evidence items are called {item.id}")
                seen.add(item.id)
                if not item.snapshot and item.as_of is not None and not self.admits(item.as_of):
                    raise ValueError(f"evidence {item.id} is dated {item.as_of}, past the cutoff {self.cutoff}")
        return self

    def admits(self, day: date) -> bool:
        """Return whether a fact dated ``day`` was knowable at the cutoff."""
        return day <= self.cutoff if self.cutoff_rule == "last_admissible" else day < self.cutoff

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the packet's canonical JSON."""
        return tagged_hash("packet", self.model_dump(mode="json"))

    def items(self) -> tuple[EvidenceItem, ...]:
        """Return all items in section order."""
        return tuple(item for section in self.sections.values() for item in section.items)

    @cached_property
    def _by_id(self) -> dict[str, EvidenceItem]:
        return {item.id: item for item in self.items()}

    def evidence_ids(self) -> tuple[str, ...]:
        """Return all evidence ids in section order."""
        return tuple(self._by_id)

    def with_section(self, section: Section) -> Packet:
        """Return the packet with one more section; what was derived of this one is derived anew.

        Raises:
            ValueError: An item shares an id with another, or is dated past the cutoff.
        """
        own = {name: getattr(self, name) for name in type(self).model_fields}
        return Packet(**{**own, "sections": {**self.sections, section.code: section}})

    def item(self, evidence_id: str) -> EvidenceItem | None:
        """Return the item with this id, or None."""
        return self._by_id.get(evidence_id)


class Item(Strict):
    """One question with its evidence, and the truth where it is known.

    ``truth`` never enters a packet, view or prompt: the leak guard searches for it and the evaluation compares with it.

    Attributes:
        question: What is asked.
        packet: The evidence.
        truth: The number, 0/1, or option id that turned out right; None where unknown.
        strata: Grouping columns for samples and reports, such as class or price tercile.
        cluster: The unit whose errors are shared (parcel, municipality, question).

    Raises:
        ValueError: The packet is of another question, or the truth is none its kind of question can have: a number
            (above 0 on the log scale), 0 or 1, or an option id.
    """

    question: Question
    packet: Packet
    truth: float | str | None = None
    strata: dict[str, str] = Field(default_factory=dict)
    cluster: str | None = None

    @model_validator(mode="after")
    def _same_item(self) -> Self:
        if self.question.id != self.packet.item_id:
            raise ValueError(f"question {self.question.id} has the packet of {self.packet.item_id}")
        return self

    @model_validator(mode="after")
    def _truth_of_the_kind(self) -> Self:
        problem = None if self.truth is None else _unfit_truth(self.question, self.truth)
        if problem is not None:
            raise ValueError(f"truth {self.truth!r} {problem}")
        return self

    @property  # a cached one would go into copies that ask something else
    def digest(self) -> str:
        """SHA-256 of what is asked: question and packet. Truth, strata and cluster are for those who evaluate."""
        return tagged_hash("item", {"question": self.question.model_dump(mode="json"), "packet": self.packet.digest})


def _unfit_truth(question: Question, truth: float | str) -> str | None:
    """Return why a truth cannot be the answer to a question, or None when it can."""
    if question.options:
        known = [option.id for option in question.options]
        return None if truth in known else f"is no option id; known: {', '.join(known)}"
    if isinstance(truth, str):
        return f"is a text, but a question of kind {question.kind} has a number as its truth"
    if question.kind == "probability" and truth not in {0, 1}:
        return "is neither 0 nor 1, which is how a yes-no question turns out"
    if question.scale == "log" and truth <= 0:
        return "is not above 0, as the scale of the question is log"
    return None
