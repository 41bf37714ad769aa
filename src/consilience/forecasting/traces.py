"""The run trace: one JSON artefact per question that holds everything behind a forecast, and is never written over."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import AwareDatetime, Field, JsonValue, ValidationError, model_validator

from consilience.core.answers import AnyAnswer
from consilience.core.canonical import sha256_hex, tagged_hash
from consilience.core.question import Strict
from consilience.errors import DataError, IntegrityError, reason
from consilience.experiments.storage import json_line, write_json
from consilience.forecasting.questions import ForecastQuestion
from consilience.forecasting.research.citations import cited_ids
from consilience.forecasting.research.derived import Derived, derive
from consilience.forecasting.research.state import GateResult
from consilience.forecasting.search.document import Document
from consilience.forecasting.search.records import ToolRecord

SCHEMA_VERSION: Final = 1
RECOMPUTED: Final = ("derived", "counts", "cited")
"""Fields of an agent's artefact that are written for other readers, recomputed by us and in no hash."""
HASHED: Final = ("question", "settings", "agents", "stages", "final")
"""Parts with a hash of their own; ``trace`` is that of everything."""

StageName = Literal["panel", "aggregate", "debate", "judge", "supervisor", "final", "recalibrate"]


class Tokens(Strict):
    """What a member used; None where its vendor does not say."""

    input: int | None = Field(default=None, ge=0)
    output: int | None = Field(default=None, ge=0)


class PeriodCounts(Strict):
    """Hits by their date: before the cutoff, without a date, at the cutoff or after it."""

    before: int
    undated: int
    after: int


class StepTrace(Strict):
    """One turn of an agent.

    Attributes:
        step: Its number, as in the tool log.
        action: What it did, by name; an action that could not be read is ``invalid``.
        details: What belongs to it, such as the type of a note or the disagreements of a review.
        rejected: Typed reason why it was no action or was not accepted; None where it was.
        message: What the model was told then.
        reply: What the model wrote, whole; None where the journal alone keeps it.
    """

    step: int = Field(ge=0)
    action: str
    details: dict[str, JsonValue] = Field(default_factory=dict)
    rejected: str | None = None
    message: str | None = None
    reply: str | None = None


class AgentTrace(Strict):
    """The artefact of one agent: an answer with everything behind it.

    ``derived`` (heuristics), ``counts`` and ``cited`` are computed from the rest. They are written, but what a file
    says of them is not read back.

    Attributes:
        agent_id: Its seat.
        framing: How it was told to look at the question; None where it was not.
        model: What answered; None where that is not known.
        status: ``accepted`` has an answer; ``abstained`` and ``failed`` have none and enter no average.
        reason: Typed reason of the status; needed where there is no answer.
        answer: The accepted answer.
        rationale: Its reasons in full, or what an agent said that gave none.
        steps: Its turns in order.
        tool_log: Every use of a tool in order.
        documents: What was kept.
        tokens: What it used.
        gates: What the gates found.

    Raises:
        ValueError: Status, answer and reason contradict one another, or two documents share an id.
    """

    agent_id: str = Field(min_length=1)
    framing: str | None = None
    model: str | None = None
    status: Literal["accepted", "abstained", "failed"]
    reason: str | None = None
    answer: AnyAnswer | None = None
    rationale: str = ""
    steps: tuple[StepTrace, ...] = ()
    tool_log: tuple[ToolRecord, ...] = ()
    documents: tuple[Document, ...] = ()
    tokens: Tokens = Tokens()
    gates: tuple[GateResult, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.status == "accepted") != (self.answer is not None):
            raise ValueError("an accepted agent has an answer, and no other has one")
        if self.status != "accepted" and not self.reason:
            raise ValueError(f"an agent that {self.status} says why")
        ids = Counter(document.id for document in self.documents)
        if any(times > 1 for times in ids.values()):
            raise ValueError("two documents share an id")
        return self

    @property
    def derived(self) -> Derived | None:
        """Heuristics of the accepted answer; None without one."""
        if self.answer is None:
            return None
        sources = len({document.url for document in self.documents})
        queries = {
            record.query.casefold()
            for record in self.tool_log
            if record.query is not None and record.status == "success" and not record.repeated
        }
        return derive(self.answer, sources=sources, queries=len(queries))

    @property
    def counts(self) -> PeriodCounts:
        """Hits of all searches and reads by their date; what came from its own cache does not count again."""
        counted = [record for record in self.tool_log if not record.repeated]
        return PeriodCounts(
            before=sum(record.before for record in counted),
            undated=sum(record.undated for record in counted),
            after=sum(record.after for record in counted),
        )

    @property
    def cited(self) -> tuple[str, ...]:
        """Ids the answer cites, quotes or adjusts; empty without one."""
        return () if self.answer is None else cited_ids(self.answer)


class StageTrace(Strict):
    """What one stage of the panel made; all are kept, so that other rules can be replayed without calls.

    Attributes:
        name: The stage.
        status: Whether it took place, and if not, why.
        record: Everything it said and computed.
    """

    name: StageName
    status: str
    record: dict[str, JsonValue] = Field(default_factory=dict)


class FinalForecast(Strict):
    """The forecast: a probability, probabilities by option id, or quantiles; all None where there is none.

    Attributes:
        rule: The declared rule that made it.
        probability: Of yes.
        distribution: By option id.
        quantiles: At levels .05, .25, .50, .75, .95.
        cdf: The distribution function on the question's grid.
        confidence: High .8, medium .6, low .5 as a supervisor said; None without one.
        flags: What happened beyond the rule's name.
    """

    rule: str
    probability: float | None = Field(default=None, ge=0, le=1)
    distribution: dict[str, float] | None = None
    quantiles: tuple[float, ...] | None = None
    cdf: tuple[float, ...] | None = None
    confidence: float | None = None
    flags: tuple[str, ...] = ()


class CodeVersion(Strict):
    """What computed it: the package's version, the commit (None outside a checkout) and hashes of its rooms."""

    package: str
    commit: str | None = None
    rooms: dict[str, str] = Field(default_factory=dict)


class JournalReference(Strict):
    """Where the calls behind it are recorded.

    Attributes:
        run_id: The run.
        path: Its folder, relative to the results.
        head: Hash of the journal's last event when this was written.
    """

    run_id: str
    path: str
    head: str


class RunTrace(Strict):
    """Everything behind the forecast of one question.

    Attributes:
        schema_version: Of this model.
        question: As it was asked.
        settings: As the run declared them.
        code: What computed it.
        created_at: When it was made.
        agents: Their artefacts, in order of seats.
        stages: What followed, in order.
        final: The forecast; None where no stage made one.
        journal: Where the calls are recorded; None where none were.
        escaped: Texts in which a lone surrogate, which JSON readers refuse, stands as its escape.
        hashes: Of the parts (`HASHED`) and of everything (``trace``), recomputed fields apart; see `sealed`.

    Raises:
        ValueError: Two agents share an id.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    question: ForecastQuestion
    settings: dict[str, JsonValue]
    code: CodeVersion
    created_at: AwareDatetime
    agents: tuple[AgentTrace, ...] = ()
    stages: tuple[StageTrace, ...] = ()
    final: FinalForecast | None = None
    journal: JournalReference | None = None
    escaped: int = Field(default=0, ge=0)
    hashes: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len({agent.agent_id for agent in self.agents}) != len(self.agents):
            raise ValueError("two agents share an id")
        return self

    def sealed(self) -> Self:
        """Return the trace with its hashes, and with every text such that it can be read back."""
        found: list[str] = []
        content = _readable(self.model_dump(mode="json"), found)
        content["escaped"] += len(found)
        content["hashes"] = content_hashes(content)
        return type(self).model_validate_json(json_line(content))

    def content(self) -> dict[str, Any]:
        """Return the JSON object that is written: the trace, and of each agent what is derived of it."""
        content = self.model_dump(mode="json")
        for agent, written in zip(self.agents, content["agents"], strict=True):
            written["derived"] = None if agent.derived is None else agent.derived.model_dump(mode="json")
            written["counts"] = agent.counts.model_dump(mode="json")
            written["cited"] = list(agent.cited)
        return content


def content_hashes(content: Mapping[str, Any]) -> dict[str, str]:
    """Return the hashes of a trace as it stands in a file; recomputed fields and the hashes themselves are apart.

    Example:
        >>> first = content_hashes({"agents": [{"agent_id": "a", "derived": None}], "final": None})
        >>> first == content_hashes({"agents": [{"agent_id": "a", "derived": {"label": "x"}}], "final": None})
        True
    """
    kept = {name: value for name, value in _recorded(content).items() if name != "hashes"}
    parts = {name: tagged_hash(f"trace.{name}", kept.get(name)) for name in HASHED}
    return parts | {"trace": tagged_hash("trace", kept)}


def _recorded(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trace's content without what is recomputed."""
    agents = [{name: agent[name] for name in agent if name not in RECOMPUTED} for agent in content.get("agents", ())]
    return {**content, "agents": agents}


def write_trace(trace: RunTrace, path: Path) -> str:
    """Write a trace with its hashes, and return the SHA-256 of the file.

    The same trace once more changes nothing. Another one, such as a replay's, is refused: it belongs elsewhere.

    Raises:
        DataError: Another file is there, or the folder cannot be written.
    """
    content = trace.sealed().content()
    line = json_line(content)
    try:
        before = path.read_bytes()
    except FileNotFoundError:
        return write_json(path, content)
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {reason(error)}", hint="Nothing was written; write the trace elsewhere."
        ) from error
    if before != line:
        raise DataError(
            f"{path} holds another trace (sha256 {sha256_hex(before)[:12]}), and a trace is not written over",
            hint="Write this one elsewhere, such as into a folder of its own for the replay.",
        )
    return sha256_hex(line)


def read_trace(path: Path) -> RunTrace:
    """Return a trace; its derived fields are computed anew.

    Raises:
        DataError: The file cannot be read or holds no trace of this version.
        IntegrityError: It was changed after it was written.
    """
    try:
        content = json.loads(path.read_bytes())
        trace = RunTrace.model_validate_json(json_line(_recorded(content)))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, ValidationError) as error:
        raise DataError(
            f"{path} holds no run trace of version {SCHEMA_VERSION}: {reason(error)}",
            hint="Traces of the founding notebooks are read with consilience trace import.",
        ) from error
    found = content_hashes(content)
    changed = [name for name in (*HASHED, "trace") if trace.hashes.get(name) != found[name]]
    if changed:
        raise IntegrityError(
            f"{path} is not what was written: the hash of {', '.join(changed)} does not fit",
            hint="Restore it from a copy, or make it again by replaying the run's journal.",
        )
    return trace


def _readable(value: Any, found: list[str]) -> Any:
    """Return a JSON value whose texts hold no lone surrogate; those that did are added to ``found``."""
    if isinstance(value, dict):
        return {_readable(name, found): _readable(part, found) for name, part in value.items()}
    if isinstance(value, list):
        return [_readable(part, found) for part in value]
    if not isinstance(value, str):
        return value
    plain = value.encode("utf-8", "backslashreplace").decode()
    if plain != value:
        found.append(plain)
    return plain
