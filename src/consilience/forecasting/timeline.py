"""What happened to a question, step by step, as plain data and as lines for a terminal.

Everything shown of searches and models is untrusted: characters that a terminal would act on stand as their escapes,
and no text can begin a line of its own, because each of its lines carries a mark.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import Field, JsonValue

from consilience.core.answers import Choice, Distribution, Estimate, Probability
from consilience.core.question import Strict
from consilience.evidence.visible import visible_text
from consilience.forecasting.founding import Imported, ImportedAgent
from consilience.forecasting.founding_shape import FoundAgent, FoundResult
from consilience.forecasting.search.document import Document
from consilience.forecasting.search.records import ToolRecord
from consilience.forecasting.traces import AgentTrace, RunTrace, StepTrace

SNIPPET_CHARACTERS: Final = 300
"""Characters of a snippet in lines; the data holds it whole, and a line says how much is shown."""
_MARK: Final = "│ "


class ShownDocument(Strict):
    """A document as a timeline shows it.

    Attributes:
        id: As it can be cited; None in an import.
        title: Its title.
        published: ISO date or what the source gave; None where it has none.
        url: Its address; None where it has none.
        snippet: Its text, whole.
        note: What is to be known of it, such as that it is undated under a cutoff.
    """

    id: str | None
    title: str
    published: str | None
    url: str | None
    snippet: str
    note: str | None = None


class Event(Strict):
    """One thing that happened.

    Attributes:
        actor: The agent's id; None for a stage of the panel.
        step: The agent's turn; None where there is none.
        kind: What: ``search``, ``read``, ``forecast``, ``abstained``, ``failed``, the name of a stage, or whatever
            action the model sent.
        subject: What was searched for or read; None for everything else.
        facts: What else is known, by name, in order.
        documents: What it brought.
        text: What was said, whole; empty where nothing was.
    """

    actor: str | None
    step: int | None
    kind: str
    subject: str | None = None
    facts: dict[str, JsonValue] = Field(default_factory=dict)
    documents: tuple[ShownDocument, ...] = ()
    text: str = ""


class Timeline(Strict):
    """What happened to one question.

    Attributes:
        question: Its text.
        facts: What is known of it and of the run.
        events: Agent by agent in their order, each in the order of its steps, then the stages and the end.
    """

    question: str
    facts: dict[str, JsonValue]
    events: tuple[Event, ...]


def timeline(trace: RunTrace) -> Timeline:
    """Return the timeline of one of our traces."""
    asked = trace.question
    facts: dict[str, JsonValue] = {
        "id": asked.id,
        "cutoff": None if asked.cutoff is None else asked.cutoff.isoformat(),
        "code": trace.code.package,
        "made": trace.created_at.isoformat(),
    }
    if asked.options:
        facts["options"] = {option.id: option.label for option in asked.options}
    events = [event for agent in trace.agents for event in _agent_events(agent)]
    events += [
        Event(actor=None, step=None, kind=stage.name, facts={"status": stage.status, **stage.record})
        for stage in trace.stages
    ]
    if trace.final is not None:
        known = _known(trace.final.model_dump(mode="json"))
        events.append(Event(actor=None, step=None, kind="forecast of the panel", facts=known))
    return Timeline(question=asked.text, facts=facts, events=tuple(events))


def founding_timeline(read: Imported) -> Timeline:
    """Return the timeline of an imported trace, with what it cannot prove at its end."""
    asked = read.trace.question
    facts: dict[str, JsonValue] = {
        "run": read.trace.run_id,
        "cutoff": asked.cutoff_date or None,
        "model": read.trace.provider,
        "made": read.trace.created_at,
    }
    events: list[Event] = []
    for found, judged in zip(read.trace.agents, read.agents, strict=True):
        events += _founding_events(found, judged)
    if read.aggregate is not None:
        events.append(_stage("aggregate", read.aggregate.model_dump(mode="json")))
    if read.trace.debate is not None:
        events.append(_stage("debate", read.trace.debate.model_dump(mode="json")))
    if read.trace.supervisor is not None:
        told = read.trace.supervisor.model_dump(mode="json", exclude={"rationale", "search_results"})
        results = tuple(map(_result, read.trace.supervisor_results()))
        said = read.trace.supervisor.rationale or ""
        events.append(Event(actor=None, step=None, kind="supervisor", facts=told, documents=results, text=said))
    events.append(_stage("forecast of the panel", read.final.model_dump(mode="json")))
    unproven: dict[str, JsonValue] = {gap.name: gap.message for gap in read.gaps if gap.answer != "no"}
    events.append(_stage("what the file cannot prove", unproven))
    return Timeline(question=asked.question, facts=facts, events=tuple(events))


def _known(facts: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the facts that say something: not null and not empty."""
    return {name: value for name, value in facts.items() if value not in (None, [], {})}


def _stage(kind: str, facts: dict[str, JsonValue]) -> Event:
    return Event(actor=None, step=None, kind=kind, facts=facts)


def _agent_events(agent: AgentTrace) -> Iterator[Event]:
    documents = {document.id: document for document in agent.documents}
    steps: Iterable[StepTrace] = agent.steps
    used = {step.step for step in agent.steps}
    turns = sorted({record.step for record in agent.tool_log} - used)
    for step in sorted((*steps, *(StepTrace(step=number, action="") for number in turns)), key=lambda one: one.step):
        records = [record for record in agent.tool_log if record.step == step.step]
        yield from (_tool_event(agent.agent_id, record, documents) for record in records)
        ends = step.action in {"forecast", "abstain", "update"} and step.rejected is None
        if not ends and (step.rejected is not None or not records):
            facts: dict[str, JsonValue] = dict(step.details)
            facts |= {} if step.rejected is None else {"rejected": step.rejected, "message": step.message}
            said = step.reply or ""
            yield Event(actor=agent.agent_id, step=step.step, kind=step.action, facts=facts, text=said)
    yield _end_event(agent)


def _end_event(agent: AgentTrace) -> Event:
    facts: dict[str, JsonValue] = {"status": agent.status, "reason": agent.reason, **_answered(agent)}
    if agent.derived is not None:
        facts["heuristic"] = agent.derived.model_dump(mode="json", exclude={"label"})
    facts["hits"] = agent.counts.model_dump()
    facts["cited"] = list(agent.cited)
    facts["gates"] = {gate.name: gate.status for gate in agent.gates}
    last = agent.steps[-1].step if agent.steps else None
    kind = "forecast" if agent.status == "accepted" else agent.status
    known = _known(facts)
    return Event(actor=agent.agent_id, step=last, kind=kind, facts=known, text=agent.rationale)


def _answered(agent: AgentTrace) -> dict[str, JsonValue]:
    match agent.answer:
        case Probability(p_yes=p):
            return {"p_yes": p}
        case Distribution() as said:
            return {"probabilities": {**said.as_dict()}}
        case Estimate() as said:
            return {"point": said.point, "quantiles": list(said.quantiles)}
        case Choice(choice=chosen):
            return {"choice": chosen}
        case _:
            return {}


def _tool_event(actor: str, record: ToolRecord, documents: Mapping[str, Document]) -> Event:
    filtered: dict[str, JsonValue] = dict(Counter(dropped.reason for dropped in record.filtered))
    facts: dict[str, JsonValue] = {
        "status": record.status,
        "error": record.failure or record.reason,
        "kept": len(record.kept),
        "filtered": filtered or 0,
    }
    facts |= {"repeated": True} if record.repeated else {}
    facts |= {"shared": True} if record.shared else {}
    facts |= {"injections": len(record.injections)} if record.injections else {}
    return Event(
        actor=actor,
        step=record.step,
        kind=record.tool,
        subject=record.query if record.tool == "search" else record.evidence_id,
        facts=_known(facts),
        documents=tuple(_document(documents[name]) for name in record.kept if name in documents),
    )


def _document(document: Document) -> ShownDocument:
    return ShownDocument(
        id=document.id,
        title=document.title,
        published=None if document.published is None else document.published.isoformat(),
        url=document.url,
        snippet=document.text,
        note="undated: it may be later than the cutoff" if document.undated else None,
    )


def _founding_events(found: FoundAgent, judged: ImportedAgent) -> Iterator[Event]:
    for step in found.steps():
        yield Event(
            actor=found.agent_id,
            step=step.step,
            kind=step.action or "no action",
            subject=step.query,
            documents=tuple(map(_result, step.results or [])),
        )
    facts: dict[str, JsonValue] = {"status": judged.status, "reason": judged.reason, "p_yes": judged.p_yes}
    if judged.p_yes != judged.founding_p_yes:
        facts["founding p_yes"] = judged.founding_p_yes
    kind = "forecast" if judged.status == "accepted" else judged.status
    known = _known(facts)
    yield Event(actor=found.agent_id, step=None, kind=kind, facts=known, text=found.rationale or "")


def _result(result: FoundResult) -> ShownDocument:
    return ShownDocument(
        id=None,
        title=result.title or "",
        published=result.published or None,
        url=result.url,
        snippet=result.snippet or "",
    )


def lines(shown: Timeline) -> list[str]:
    r"""Return a timeline as lines for a terminal: no control characters, no line that untrusted text began.

    Example:
        >>> event = Event(actor="a", step=1, kind="search", subject="rain\x1b[2J\nfaked", facts={"kept": 0})
        >>> for line in lines(Timeline(question="Rain?", facts={"cutoff": None}, events=(event,))):
        ...     print(line)
        Rain?
          cutoff: unknown
        <BLANKLINE>
        a
          1 search "rain\u001b[2J\nfaked"
            kept: 0
    """
    made = [_one_line(shown.question), *_facts(shown.facts, indent=2)]
    actor: str | None = None
    for event in shown.events:
        if event.actor is None or event.actor != actor:
            made += ["", _one_line(event.actor or event.kind)]
        actor = event.actor
        if event.actor is not None:
            number = "" if event.step is None else f"{event.step} "
            subject = "" if event.subject is None else f' "{_one_line(event.subject)}"'
            made.append(f"  {number}{_one_line(event.kind)}{subject}")
        made += _facts(event.facts, indent=4)
        for document in event.documents:
            made += _document_lines(document)
        made += _text_lines(event.text, indent=4)
    return made


def _facts(facts: Mapping[str, JsonValue], *, indent: int) -> list[str]:
    return [f"{' ' * indent}{_one_line(name)}: {_value(value)}" for name, value in facts.items()]


def _value(value: JsonValue) -> str:
    if value is None:
        return "unknown"
    return _one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _document_lines(document: ShownDocument) -> list[str]:
    name = "" if document.id is None else f"{_one_line(document.id)} "
    made = [
        f"    {name}{_one_line(document.title) or '(no title)'}",
        f"      {_one_line(document.published or 'undated')} · {_one_line(document.url or 'no address')}",
    ]
    if document.note is not None:
        made.append(f"      ! {_one_line(document.note)}")
    cut = document.snippet[:SNIPPET_CHARACTERS]
    made += _text_lines(cut, indent=6)
    if len(document.snippet) > len(cut):
        made.append(f"      (the first {len(cut)} of {len(document.snippet)} characters)")
    return made


def _text_lines(text: str, *, indent: int) -> list[str]:
    rows: Sequence[str] = visible_text(text).split("\n") if text.strip() else ()
    return [f"{' ' * indent}{_MARK}{row}".rstrip() for row in rows]


def _one_line(text: str) -> str:
    """Return a text that stays on its line."""
    return visible_text(text).replace("\n", "\\n").replace("\t", "\\t")
