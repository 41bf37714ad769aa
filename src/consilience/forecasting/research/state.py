"""The state of one agent while it gathers and answers: frozen, so that every step makes a new one.

Synthesis goes ``pending`` → ``in_progress`` → ``complete`` or ``abstained``, and no other way. Evidence can be gathered
until it has ended, since a gate may send an agent to gather more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import AwareDatetime, Field, JsonValue, ValidationError, model_validator

from consilience.core.question import Strict
from consilience.errors import DataError, PlanError, reason
from consilience.forecasting.research.actions import EvidenceType
from consilience.forecasting.search.document import DateSource, Document
from consilience.forecasting.search.records import ToolRecord

SCHEMA_VERSION: Literal[1] = 1

SynthesisStatus = Literal["pending", "in_progress", "complete", "abstained"]
GateName = Literal["coverage", "freshness", "consistency", "support", "health"]
GateStatus = Literal["pass", "fail", "not_answerable", "nothing_to_enforce"]
GateMode = Literal["report", "enforce"]
"""Whether a failed gate is only told, or sends the agent to gather more once and then makes it abstain."""

_NEXT: dict[SynthesisStatus, tuple[SynthesisStatus, ...]] = {
    "pending": ("in_progress",),
    "in_progress": ("complete", "abstained"),
    "complete": (),
    "abstained": (),
}


class GateResult(Strict):
    """What one gate found.

    Attributes:
        name: The gate.
        status: ``not_answerable`` where what it would judge was not recorded; ``nothing_to_enforce`` where its rule
            does not apply to this run.
        message: What it found, in one sentence.
        details: The figures and ids behind it.
    """

    name: GateName
    status: GateStatus
    message: str
    details: dict[str, JsonValue] = Field(default_factory=dict)


class Classified(Strict):
    """What an agent took a piece of evidence for, and when.

    Attributes:
        type: The class.
        step: The agent's turn.
    """

    type: EvidenceType
    step: int = Field(ge=0)


class GatheredEvidence(Strict):
    """One kept source, without its text, which the artefact's tool log and the journal hold.

    Attributes:
        id: As it can be cited.
        url: Canonical.
        title: Its title.
        sha256: Of title and text.
        published: When it was published; None where nobody knows.
        date_source: What that was read from.
        retrieved_at: When it was fetched; None where an import does not know.
        undated: It was kept without a date under a cutoff, because the run says so.
        classified: Every classification in order; the last one counts.
    """

    id: str = Field(min_length=1)
    url: str
    title: str
    sha256: str
    published: AwareDatetime | None
    date_source: DateSource
    retrieved_at: AwareDatetime | None
    undated: bool = False
    classified: tuple[Classified, ...] = ()

    @property
    def type(self) -> EvidenceType | None:
        """What it counts as; None while nobody classified it."""
        return self.classified[-1].type if self.classified else None

    @classmethod
    def of(cls, document: Document) -> Self:
        """Return the record of a document that was kept."""
        return cls(
            id=document.id,
            url=document.url,
            title=document.title,
            sha256=document.sha256,
            published=document.published,
            date_source=document.date_source,
            retrieved_at=document.retrieved_at,
            undated=document.undated,
        )


class AgentState(Strict):
    """What one agent has and where it stands.

    Attributes:
        schema_version: Of this model.
        question_id: The question.
        cutoff: The first inadmissible instant; None for an open question.
        run_id: The run.
        evidence: Kept sources, in the order they were found.
        open_questions: What it still wants to know.
        trace: Every use of a tool, in order.
        gates: What gates found, in order; a gate that judged twice stands twice.
        synthesis: How far its answer is.

    Raises:
        ValueError: Two pieces of evidence share an id, or the version is not this one.

    Example:
        >>> state = AgentState(question_id="q", cutoff=None, run_id="r")
        >>> state.begun().completed().synthesis
        'complete'
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    question_id: str
    cutoff: AwareDatetime | None
    run_id: str
    evidence: tuple[GatheredEvidence, ...] = ()
    open_questions: tuple[str, ...] = ()
    trace: tuple[ToolRecord, ...] = ()
    gates: tuple[GateResult, ...] = ()
    synthesis: SynthesisStatus = "pending"

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        ids = [item.id for item in self.evidence]
        if len(set(ids)) != len(ids):
            raise ValueError("two pieces of evidence share an id")
        return self

    def gathered(self, record: ToolRecord, documents: Iterable[Document] = ()) -> Self:
        """Return the state after one use of a tool.

        A document with a known id replaces what was known of it (a read brings the whole text, so another hash) and
        keeps its classifications.

        Args:
            record: What became of it.
            documents: What it kept.

        Raises:
            PlanError: The synthesis has ended.
        """
        self._require_open()
        items = {item.id: item for item in self.evidence}
        for document in documents:
            known = items.get(document.id)
            new = GatheredEvidence.of(document)
            items[document.id] = new if known is None else new.model_copy(update={"classified": known.classified})
        return self._with(trace=(*self.trace, record), evidence=tuple(items.values()))

    def noted(self, evidence_id: str, kind: EvidenceType, *, step: int) -> Self:
        """Return the state after a piece of evidence was classified.

        Raises:
            DataError: There is no such evidence.
            PlanError: The synthesis has ended.
        """
        self._require_open()
        if evidence_id not in {item.id for item in self.evidence}:
            raise DataError(
                f'the state of question {self.question_id} holds no evidence "{evidence_id[:80]}"',
                hint="Classify evidence after it was gathered.",
            )
        added = Classified(type=kind, step=step)
        return self._with(
            evidence=tuple(
                item.model_copy(update={"classified": (*item.classified, added)}) if item.id == evidence_id else item
                for item in self.evidence
            )
        )

    def asking(self, open_questions: Iterable[str]) -> Self:
        """Return the state with these open questions in place of the former ones."""
        return self._with(open_questions=tuple(open_questions))

    def gated(self, results: Iterable[GateResult]) -> Self:
        """Return the state with what gates found added."""
        return self._with(gates=(*self.gates, *results))

    def begun(self) -> Self:
        """Return the state in which an answer is being made.

        Raises:
            PlanError: It is not pending.
        """
        return self._moved("in_progress")

    def completed(self) -> Self:
        """Return the state in which an answer was accepted.

        Raises:
            PlanError: None is in progress.
        """
        return self._moved("complete")

    def abstained(self) -> Self:
        """Return the state in which there will be no answer.

        Raises:
            PlanError: None is in progress.
        """
        return self._moved("abstained")

    def to_json(self) -> str:
        """Return the state as JSON; `from_json` gives it back."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the state that `to_json` wrote.

        Raises:
            DataError: It is no state, or one of a newer version.

        Example:
            >>> state = AgentState(question_id="q", cutoff=None, run_id="r")
            >>> AgentState.from_json(state.to_json()) == state
            True
        """
        try:
            version = _version_of(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"an agent's state is not valid JSON: {reason(error)}", hint="Read the original."
            ) from error
        if version != SCHEMA_VERSION:
            newer = version is not None and version > SCHEMA_VERSION
            raise DataError(
                f"an agent's state has schema version {version}; this program reads {SCHEMA_VERSION}",
                hint="Update consilience to read it." if newer else "Read the original.",
            )
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise DataError(
                f"an agent's state breaks its schema: {reason(error)}", hint="Read the original."
            ) from error

    def _with(self, **changes: Any) -> Self:
        return self.model_copy(update=changes)

    def _moved(self, status: SynthesisStatus) -> Self:
        if status not in _NEXT[self.synthesis]:
            raise PlanError(
                f"the synthesis of question {self.question_id} is {self.synthesis}; it cannot become {status}",
                hint="It goes from pending to in_progress, and then to complete or abstained.",
            )
        return self._with(synthesis=status)

    def _require_open(self) -> None:
        if not _NEXT[self.synthesis]:
            raise PlanError(
                f"the synthesis of question {self.question_id} is {self.synthesis}; nothing more can be gathered",
                hint="Gather before the synthesis ends.",
            )


def _version_of(value: Any) -> int | None:
    """Return the version that a JSON value names; None where it names none."""
    version = value.get("schema_version") if isinstance(value, dict) else None
    return version if isinstance(version, int) and not isinstance(version, bool) else None
