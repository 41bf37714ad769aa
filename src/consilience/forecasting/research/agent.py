"""A research agent: searches, reads, notes, and forecasts in at most so many steps, each of them recorded."""

from __future__ import annotations

import string
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import JsonValue

from consilience.aggregation.stages import CONFIDENCE
from consilience.core.answers import Abstention, AnyAnswer, Probability
from consilience.core.outcomes import Abstained, Answered, Failed, Outcome, Unreadable
from consilience.core.packet import EvidenceItem
from consilience.core.turn import TurnKind
from consilience.errors import AccountError, ModelError
from consilience.evidence.reading import STEP
from consilience.evidence.rendering import fence, fill, render_system, shown_fences
from consilience.forecasting.research.actions import (
    Abstain,
    Action,
    Forecast,
    Note,
    Read,
    Rejected,
    Search,
    Update,
    action_contract,
)
from consilience.forecasting.research.conduct import Conduct
from consilience.forecasting.research.derived import rationale_of
from consilience.forecasting.research.gates import run_gates
from consilience.forecasting.research.replies import Standing, read_action
from consilience.forecasting.research.state import AgentState, GateResult
from consilience.forecasting.search.base import SearchClient
from consilience.forecasting.search.cache import SearchCache
from consilience.forecasting.search.executor import Executor, excerpt
from consilience.forecasting.search.records import Fetched, Tool, ToolRecord
from consilience.forecasting.traces import AgentTrace, StepTrace, Tokens
from consilience.models.request import Block, Completion, Message, Request
from consilience.runtime.answerer import Inquired, Inquiry
from consilience.runtime.steps import Steps
from consilience.runtime.turn import ended_early

RESEARCH: Final[TurnKind] = "estimate"
SUPERVISION: Final[TurnKind] = "supervision"
LONGEST_EXCERPT: Final = 500
"""Characters of a refused reply that the agent is shown again."""
BYTES_PER_STEP: Final = 6_000
"""Allowance for what one step adds to the prompt, when an item's worst case is planned."""
ABOUT: Final[Mapping[TurnKind, str]] = {
    RESEARCH: "Find evidence and forecast the question in the context fence.",
    SUPERVISION: "Oversee the panel whose answers stand above: search for what settles its disagreements, and answer.",
}
STATUSES: Final[Mapping[str, Any]] = {"abstained": "abstained", "failed": "failed", "unreadable": "failed"}
CAN_SEARCH: Final = "You can search, read, note, and end your work."
CANNOT_SEARCH: Final = "No more searching is possible: end your work now."
CLOSED_BOOK: Final = "There is nothing to search: end your work."


class ResearchAgents:
    """What stands behind the seats of a forecasting panel; a `consilience.runtime.answerer.Answerer`.

    Args:
        conduct: How they work.
        client: Where they search.
        clock: The time of day; what it says when an agent answers is recorded, as evidence ages.
    """

    turns: Collection[TurnKind] = (RESEARCH, SUPERVISION)

    def __init__(
        self, conduct: Conduct, client: SearchClient, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.conduct = conduct
        self._clock = clock
        self._client = client
        self._caches: dict[str, SearchCache] = {}

    def room(self, turn: TurnKind) -> Sequence[int]:
        """Return for each step how many bytes of what was gathered may stand in the prompt."""
        return [step * BYTES_PER_STEP for step in range(self._steps(turn))]

    def _steps(self, turn: TurnKind) -> int:
        return self.conduct.supervisor_searches + 2 if turn == SUPERVISION else self.conduct.max_steps

    async def answer(self, inquiry: Inquiry, steps: Steps) -> Inquired:
        """Let one agent work until it answers, abstains, or has no step left."""
        item = inquiry.question.id
        question = self.conduct.questions[item]
        state = AgentState(question_id=item, cutoff=question.cutoff, run_id=inquiry.seat.label)
        agent = _Agent(self.conduct, inquiry, steps, state, self._steps(inquiry.turn.kind), self._clock)
        agent.executor = Executor(
            client=self._client,
            question=question,
            cutoff=question.cutoff,
            policy=self.conduct.policy,
            undated=self.conduct.undated,
            max_results=self.conduct.max_search_results,
            id_prefix="" if inquiry.alone else str(inquiry.number),
            carry=agent.carry,
            cache=self._cache_of(item, steps),
            on_injection=self.conduct.on_injection,
        )
        return await agent.work()

    def _cache_of(self, item: str, steps: Steps) -> SearchCache:
        """Return the results that the agents of an item share; what is on record is known from the start."""
        if item not in self._caches:
            self._caches[item] = cache = SearchCache()
            for event in steps.of_item():
                if event.tool in {"search", "read"}:
                    cache.know(event.tool, event.arguments, Fetched.model_validate(event.result, strict=False))
        return self._caches[item]


@dataclass
class _Agent:
    """One agent at work on one question."""

    conduct: Conduct
    inquiry: Inquiry
    steps: Steps
    state: AgentState
    max_steps: int
    clock: Callable[[], datetime]
    executor: Executor = field(init=False)
    shown: list[dict[str, Any]] = field(default_factory=list)
    trace: list[StepTrace] = field(default_factory=list)
    answer: AnyAnswer | None = None
    step: int = 0
    sent_back: bool = False

    @property
    def supervisor(self) -> bool:
        return self.inquiry.turn.kind == SUPERVISION

    async def carry(
        self, tool: Tool, arguments: dict[str, JsonValue], work: Callable[[], Awaitable[Fetched]]
    ) -> Fetched:
        """Use a tool, or take what it gave from the record."""

        async def used() -> dict[str, Any]:
            found: dict[str, Any] = (await work()).model_dump(mode="json")
            return found

        return Fetched.model_validate(await self.steps.use(tool, dict(arguments), self.step, used), strict=False)

    async def work(self) -> Inquired:
        outcome: Outcome | None = None
        for step in range(self.max_steps):
            self.step = step
            try:
                reply = (await self.steps.ask(self._request(), self.step)).completion
            except AccountError:
                raise
            except ModelError as error:
                outcome = Failed(error=type(error).__name__, message=str(error))
            else:
                outcome = ended_early(reply, self.inquiry.seat.model) or await self._act(reply)
            if outcome is not None:
                break
        if outcome is None:
            outcome = Failed(error="OutOfSteps", message=f"{self.max_steps} steps passed without a forecast")
        return self._told(outcome)

    def _request(self) -> Request:
        inquiry, question = self.inquiry, self.inquiry.question
        rules = [self.conduct.prompts["research_rules"]]
        rules += [self.conduct.prompts["supervision_rules"]] if self.supervisor else []
        system = render_system(
            preamble=inquiry.preamble,
            seat_label=inquiry.seat.label,
            role_text=inquiry.seat.role.text,
            output_rules="\n\n".join(rules),
        )
        told = inquiry.state
        before = shown_fences(
            tag=inquiry.tag,
            state=None if told is None else told.committee,
            arguments=() if told is None else told.arguments,
            gathered=[item.shown() for item in inquiry.gathered],
        )
        done = [
            fence(inquiry.tag, shown, label=f"{STEP}{string.ascii_lowercase[number]}")
            for number, shown in enumerate(self.shown)
        ]
        texts = [inquiry.view_block, *(f"{text}\n" for text in (*before, *done))]
        blocks = [Block(text, cache=number in {0, len(texts) - 1}) for number, text in enumerate(texts)]
        return Request(
            model=inquiry.seat.model,
            system=(Block(system, cache=True),),
            messages=(Message("user", (*blocks, Block(f"TASK: {self._task()}\n", cache=False))),),
            tools=(),
            contract=action_contract(
                question.kind, tuple(option.id for option in question.options), supervisor=self.supervisor
            ),
            max_output_tokens=inquiry.max_output_tokens,
            effort=inquiry.effort,
            sampling=None,
            replicate=inquiry.replicate,
        )

    def _task(self) -> str:
        can = CLOSED_BOOK if self.conduct.closed_book else CAN_SEARCH if self._may_search() else CANNOT_SEARCH
        values = {
            "step": str(self.step + 1),
            "steps": str(self.max_steps),
            "seat": self.inquiry.seat.label,
            "about": ABOUT[self.inquiry.turn.kind],
            "can": can,
        }
        return fill(self.conduct.prompts["step"], values)

    def _may_search(self) -> bool:
        left = self.step + 1 < self.max_steps and not self.conduct.closed_book
        searches = sum(1 for record in self.executor.log if record.tool == "search" and not record.repeated)
        return left and (not self.supervisor or searches < self.conduct.supervisor_searches)

    async def _act(self, reply: Completion) -> Outcome | None:
        """Do what a reply asks for; None where the work goes on."""
        if reply.stop_reason == "max_tokens":
            self._refuse("truncated", "the reply was cut off at the limit of its length", reply.text)
            return None
        standing = Standing(
            self.inquiry.question,
            retrieved=self._retrieved(),
            given=self._given(),
            closed_book=self.conduct.closed_book,
            may_search=self._may_search(),
            supervisor=self.supervisor,
        )
        action = read_action(reply.text, standing)
        match action:
            case Rejected():
                self._refuse(action.type, action.message, reply.text)
            case Search():
                self._used(action, await self.executor.search(action.query, step=self.step))
            case Read():
                self._used(action, await self.executor.read(action.evidence_id, step=self.step))
            case Note():
                if action.evidence_id in self.executor.documents:
                    self.state = self.state.noted(action.evidence_id, action.type, step=self.step)
                self._show(action, {"noted": True})
            case Abstain():
                self._show(action, {})
                return Abstained(said=Abstention(reason=action.reason))
            case Forecast() | Update():
                return await self._accept(action)
        return None

    def _used(self, action: Action, record: ToolRecord) -> None:
        documents = [self.executor.documents[name] for name in record.kept]
        self.state = self.state.gathered(record, documents)
        self._show(action, self.executor.shown(record))

    def _retrieved(self) -> dict[str, JsonValue]:
        """Return what stands behind every id that was found, for quotations."""
        return {
            name: {"title": document.title, "texts": list(self.executor.texts(name))}
            for name, document in self.executor.documents.items()
        }

    def _given(self) -> dict[str, JsonValue]:
        items = [item for section in self.inquiry.view.sections for item in section.items]
        return {item.id: item.content for item in (*items, *self.inquiry.gathered)}

    async def _accept(self, action: Forecast | Update) -> Outcome | None:
        gates = await self._gates(action.answer)
        self.state = self.state.gated(gates)
        failed = [f"{gate.name}: {gate.message}" for gate in gates if gate.status == "fail"]
        if failed and self.conduct.gates == "enforce":
            if not self.sent_back and self._may_search():
                self.sent_back = True
                self._refuse("gate", f"gather more first: {'; '.join(failed)}", "")
                return None
            self._show(action, {})
            return Abstained(said=Abstention(reason=f"gates failed: {'; '.join(failed)}"))
        self._show(action, {})
        self.answer = action.answer
        if isinstance(action, Update) and isinstance(self.answer, Probability):
            self.answer = self.answer.model_copy(update={"confidence": CONFIDENCE[action.confidence]})
        kind = self.inquiry.question.kind
        return Answered(said_type=kind, said=self.answer, adjusted=action.adjusted, notes=action.notes)

    async def _gates(self, answer: AnyAnswer) -> tuple[GateResult, ...]:
        """Judge the work as of now; when that was is recorded, so that a replay judges the same."""

        async def now() -> dict[str, Any]:
            return {"now": self.clock().isoformat()}

        told = await self.steps.use("clock", {}, self.step, now)
        return run_gates(
            self.state,
            answer,
            {**self._given(), **self._retrieved()},
            as_of=datetime.fromisoformat(told["now"]),
            closed_book=self.conduct.closed_book,
        )

    def _refuse(self, kind: str, message: str, reply: str) -> None:
        """Note a refused reply and show it with its reason; the step is spent."""
        self.trace.append(StepTrace(step=self.step, action="invalid", rejected=kind, message=message))
        excerpted = reply if len(reply) <= LONGEST_EXCERPT else f"{reply[:LONGEST_EXCERPT]}… (cut)"
        refused = {"type": kind, "message": message}
        self.shown.append({"step": self.step + 1, "refused": refused, **({"reply": excerpted} if reply else {})})

    def _show(self, action: Action, result: Mapping[str, Any]) -> None:
        said = action.model_dump(mode="json", exclude_none=True, exclude={"notes", "answer", "adjusted"})
        self.trace.append(StepTrace(step=self.step, action=action.action, details=said))
        self.shown.append({"step": self.step + 1, "action": said, "result": dict(result)})

    def _told(self, outcome: Outcome) -> Inquired:
        """Return the outcome with what was gathered on the way, and the artefact that tells how."""
        state = self.state.begun()
        self.state = state.completed() if isinstance(outcome, Answered) else state.abstained()
        artefact = AgentTrace(
            agent_id=self.inquiry.seat.label,
            framing=self.inquiry.seat.role.framing,
            model=self.inquiry.seat.model,
            status="accepted" if self.answer is not None else STATUSES[outcome.status],
            reason=_reason(outcome),
            answer=self.answer,
            rationale="" if self.answer is None else rationale_of(self.answer),
            steps=tuple(self.trace),
            tool_log=self.state.trace,
            documents=tuple(self.executor.documents.values()),
            tokens=_tokens(self.steps),
            gates=self.state.gates,
        )
        counts = artefact.counts.model_dump()
        return Inquired(
            outcome,
            evidence=tuple(self._evidence()),
            log=artefact.model_dump(mode="json"),
            summary={"steps": len(self.trace), "kept": len(artefact.documents), **counts},
        )

    def _evidence(self) -> Sequence[EvidenceItem]:
        """Return what was kept as evidence; a day that the packet does not admit (of an open question) is left out."""
        view, found = self.inquiry.view, []
        for document in self.executor.documents.values():
            day = None if document.published is None else document.published.astimezone(UTC).date()
            dated = day if day is not None and day < view.cutoff else None
            content = {name: value for name, value in excerpt(document).items() if name != "id"}
            found.append(EvidenceItem(id=document.id, as_of=dated, content=content))
        return found


def _reason(outcome: Outcome) -> str | None:
    match outcome:
        case Abstained():
            return outcome.said.reason
        case Failed():
            return f"{outcome.error}: {outcome.message}"
        case Unreadable():
            return "; ".join(outcome.problems)
    return None


def _tokens(steps: Steps) -> Tokens:
    """Return what the calls of a turn used; None where a vendor did not say."""
    usages = [call.completion.usage for call in steps.calls]
    known = [usage for usage in usages if usage is not None]
    if not usages or len(known) < len(usages):
        return Tokens()
    output = sum(usage.output_visible + usage.output_reasoning for usage in known)
    return Tokens(input=sum(usage.total for usage in known) - output, output=output)
