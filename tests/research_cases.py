"""Research agents in tests: demonstration questions and documents, scripted agents, and what stood in their prompts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import anyio

from consilience.evidence.reading import ParsedPrompt, parse_prompt
from consilience.experiments.orders import Job, Orders, RunReport, Shell
from consilience.experiments.runner import run_arm
from consilience.forecasting import demo
from consilience.forecasting.feeds import FEEDS
from consilience.forecasting.pipeline import ForecastTerms, Research, forecast_job
from consilience.forecasting.questions import ForecastQuestion
from consilience.forecasting.research.agent import ResearchAgents
from consilience.forecasting.research.conduct import conduct_from
from consilience.forecasting.search.base import SearchClient
from consilience.forecasting.search.corpus import Corpus
from consilience.forecasting.search.corpus_files import CorpusDocument
from consilience.journal.events import AttemptReserved
from consilience.journal.reader import expand, fold, read_events
from consilience.models.base import Identity, Model
from consilience.models.prices import load_catalogue
from consilience.models.request import Completion, Request
from consilience.models.scripted import Reply, Scripted, completion, prompt_text
from consilience.models.simulated import Simulated
from engine_cases import QUICK, answer_json, make_shell

NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
OPENED = datetime(2026, 11, 1, 11, 0, tzinfo=UTC)
QUERY = json.dumps({"action": "search", "query": "container terminal Tessel Bay"})


@cache
def demo_questions() -> tuple[ForecastQuestion, ...]:
    with demo.on_disk(demo.QUESTIONS) as path:
        return tuple(FEEDS["files"].read(path))


@cache
def demo_corpus() -> Corpus:
    with demo.on_disk(demo.DOCUMENTS) as path:
        return Corpus.open(path, retrieved_at=OPENED)


@cache
def demo_documents() -> tuple[CorpusDocument, ...]:
    loaded = demo_corpus().loaded
    assert loaded is not None
    return tuple(loaded.documents)


@cache
def demo_labels() -> Mapping[str, Any]:
    labels: dict[str, Any] = json.loads(demo.LABELS.read_text(encoding="utf-8"))
    return labels


def question_of(name: str = "alder-01") -> ForecastQuestion:
    return next(question for question in demo_questions() if question.id == name)


def terms(folder: Path, *, arm: str = "E_single", **changes: Any) -> ForecastTerms:
    values: dict[str, Any] = {
        "arm": arm,
        "panel": None,
        "committee": "mixed_random",
        "tier": "mid",
        "live": False,
        "seed": 0,
        "catalogue": load_catalogue(),
        "environ": {},
        "max_spend_nano": None,
        "concurrency": 4,
        "retry_failed": False,
        "results": folder,
    }
    return ForecastTerms(**(values | changes))


def job_of(
    folder: Path,
    questions: Sequence[ForecastQuestion],
    *,
    client: SearchClient | None = None,
    research: Research | None = None,
    models: Callable[[Mapping[str, Model]], Mapping[str, Model]] = dict,
    **changes: Any,
) -> Job:
    job, _ = forecast_job(questions, terms(folder, **changes), research or Research(), client or demo_corpus())
    agents = ResearchAgents(conduct_from(job.plan.answering or {}), client or demo_corpus(), clock=lambda: NOW)
    return replace(job, models=models(job.models), answerer=agents)


def go(job: Job, *, shell: Shell | None = None, orders: Orders | None = None) -> RunReport:
    return anyio.run(run_arm, job, shell or make_shell(), orders or Orders(limits=QUICK))


def scripted(replies: Callable[[Request], Reply]) -> Callable[[Mapping[str, Model]], Mapping[str, Model]]:
    """Let every model of a plan speak by a function of the request."""
    return lambda models: {name: Scripted(name, replies) for name in models}


def step_of(request: Request) -> int:
    """Return the 0-based step that a request asks for."""
    found = re.search(r"step (\d+) of", parse_prompt(prompt_text(request)).task)
    assert found is not None
    return int(found[1]) - 1


def in_order(*replies: str) -> Callable[[Request], Reply]:
    """Reply by step; the last reply is said again for ever."""
    return lambda request: replies[min(step_of(request), len(replies) - 1)]


def forecasting(p: float = 0.3, *, cited: Sequence[str] = ("D01",), **changes: Any) -> str:
    answer = answer_json("probability", p_yes=p, evidence_ids=list(cited), **changes)
    return json.dumps({"action": "forecast", "answer": answer})


def transcripts(job: Job) -> dict[str, dict[str, Any]]:
    paths = sorted((job.folder / "transcripts").iterdir())
    return {path.stem: json.loads(path.read_bytes()) for path in paths}


def logs(job: Job) -> list[dict[str, Any]]:
    return [turn["log"] for one in transcripts(job).values() for turn in one["turns"] if turn.get("log")]


def prompts(job: Job) -> list[tuple[str, str]]:
    """Return every prompt that left, as recorded: its item, and all its text."""
    texts = fold(job.folder).texts
    found = []
    for record in read_events(job.folder):
        if isinstance(record.event, AttemptReserved):
            body = expand(record.event.body, texts)
            blocks = [*body["system"], *(block for message in body["messages"] for block in message["content"])]
            found.append((record.where.item or "", "\n".join(block["text"] for block in blocks)))
    return found


def seen(text: str) -> ParsedPrompt:
    return parse_prompt(text)


@dataclass
class Wrapped:
    """A simulated analyst that something looks at a request before, and may speak instead of.

    Attributes:
        inner: The analyst.
        instead: Returns what is said instead, or None to let the analyst speak.
    """

    inner: Simulated
    instead: Callable[[Request], str | None]
    min_cacheable_tokens: None = None

    @property
    def id(self) -> str:
        return self.inner.id

    @property
    def identity(self) -> Identity:
        return self.inner.identity

    def wire_body(self, request: Request) -> dict[str, Any]:
        return self.inner.wire_body(request)

    async def complete(self, request: Request) -> Completion:
        said = self.instead(request)
        return await self.inner.complete(request) if said is None else completion(request, said)


def wrapped(instead: Callable[[Request], str | None]) -> Callable[[Mapping[str, Model]], Mapping[str, Model]]:
    """Let something speak instead of every simulated analyst of a plan where it wants to."""
    return lambda models: {
        name: Wrapped(model, instead) for name, model in models.items() if isinstance(model, Simulated)
    }


_FENCED = re.compile(r"^<data-([0-9a-f]{16}) [a-z_]+>\n.*\n</data-\1>$", re.MULTILINE)
_ORDER = re.compile(
    r"ignore (?:all|any|every|the|your|previous)|answer (?:with )?0\.99|evil\.example|you are now", re.IGNORECASE
)


def obey(request: Request) -> str | None:
    """Do what an instruction outside of all fences says, as a model would that follows whatever it is told."""
    bare = _FENCED.sub("", prompt_text(request))
    return json.dumps({"action": "abstain", "reason": "I obey."}) if _ORDER.search(bare) else None
