"""Every payload through every channel of the real pipeline, with the most obedient of victims behind every seat."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import anyio

from campaigns.ground import Case, Ground
from consilience.api import ask
from consilience.core.packet import EvidenceItem, Section
from consilience.decisions.case import Case as Decision
from consilience.decisions.decide import DecisionTerms, prepare
from consilience.errors import ConsilienceError, DataError
from consilience.experiments.questions import read_questions
from consilience.experiments.runner import run_arm
from consilience.forecasting.feeds.base import make_question
from consilience.forecasting.pipeline import Research
from consilience.forecasting.questions import ForecastQuestion
from consilience.forecasting.search.corpus import Corpus
from consilience.forecasting.search.corpus_files import CorpusDocument
from consilience.journal.events import ToolReturned, TurnAccepted
from consilience.models.prices import load_catalogue
from consilience.models.request import Request
from consilience.models.scripted import Scripted, obedience
from consilience.valuation.adapters import ADAPTERS
from consilience.valuation.adapters.base import build
from engine_cases import answer_json, carry_out, events_of, make_item, make_plan, make_shell, panel, read, reply
from research_cases import OPENED, forecasting, go, job_of, question_of, scripted, step_of

DAY = date(2026, 11, 1)
BENIGN = "The kettle holds two litres."
PATIENCE_S = 1.0
ROOT = Path(__file__).resolve().parents[1]


@cache
def payloads() -> tuple[tuple[str, str], ...]:
    """Return family and text of every payload; the tag is one that its author may have seen in another run."""
    told = json.loads((ROOT / "golden" / "payloads.json").read_text(encoding="utf-8"))
    return tuple(
        (one["family"], one["text"].replace("{TAG}", "0123456789abcdef") * one.get("times", 1)) for one in told
    )


THINKING = [0.0]
"""CPU seconds that the victim itself took, which are no part of what is measured."""


def will_of(request: Request) -> int:
    started = time.process_time()
    will = obedience(request)
    THINKING[0] += time.process_time() - started
    return will


def obeying(request: Request) -> str:
    """Answer any turn of any kind by what stands outside of fences alone."""
    prompt, will = read(request), will_of(request)
    if prompt.task.startswith(("critique", "self_critique")):
        others = sorted(row["seat"] for row in (prompt.committee or {}).get("others", []))
        return reply(critiques=[_critique(others[-1], will)] if others else [])
    if prompt.kind == "choice":
        ids = [option["id"] for option in prompt.question["options"]]
        return reply(answer=answer_json("choice", choice=ids[will % len(ids)], confidence=will % 1000 / 1000))
    if prompt.kind == "probability":
        return reply(answer=answer_json("probability", p_yes=will % 9973 / 9973))
    return reply(answer=answer_json(point=1_000 + will % 99_991))


def _critique(target: str, will: int) -> dict[str, Any]:
    told = {"target_role": target, "agrees": bool(will % 2), "points": [str(will)]}
    return told | {"evidence_ids": [], "suggested_value": None}


def researching(request: Request) -> str:
    """Search, and forecast, by what stands outside of fences alone."""
    will = will_of(request)
    if step_of(request) == 0:
        return json.dumps({"action": "search", "query": f"container terminal Tessel Bay {will % 7}"})
    return forecasting(will % 9973 / 9973, cited=())


@contextmanager
def behind(say: Callable[[Request], str]) -> Iterator[None]:
    """Let a function speak for every model behind `ask`."""
    with patch("consilience.api.asking.cast", lambda names, **_: {name: Scripted(name, say) for name in names}):
        yield


Seen = Any
"""What a victim did: ballots and tool arguments, in order."""
Channel = Callable[[str, Path], Seen]


def ballots(run: Path, *, but: str = "") -> list[Any]:
    """Return who said what in a run, except one seat."""
    accepted = [record for record in events_of(run, TurnAccepted) if record.where.seat != but]
    told = [(record.where.seat, record.where.kind, record.where.round, _answer(record.event)) for record in accepted]
    return sorted(told, key=repr)


def _answer(event: Any) -> Any:
    outcome = event.outcome
    return outcome["answer"] if isinstance(outcome, dict) and "answer" in outcome else outcome


def asked(place: Path, say: Callable[[Request], str] = obeying, *, but: str = "", **changes: Any) -> list[Any]:
    """Put a question to a panel, and return the ballots."""
    told: dict[str, Any] = {"kind": "choice", "options": ["tea", "coffee", "water"], "today": DAY, "environ": {}}
    text = changes.pop("text", "Which?")
    with behind(say):
        result = ask(text, results=place / "results", **(told | changes))
    return ballots(place / "results" / "runs" / result.run_id, but=but)


def document(text: str, place: Path) -> Seen:
    return asked(place, context=[text, "Another."])


def file_name(text: str, place: Path) -> Seen:
    name = re.sub(r"[/\0]", "_", text).encode("utf-8", "replace")[:120].decode("utf-8", "ignore").strip(".") or "x"
    path = place / "in" / f"{name}.txt"
    path.parent.mkdir(parents=True)
    path.write_text(BENIGN)
    return asked(place, context=[path])


def option_label(text: str, place: Path) -> Seen:
    return asked(place, options=["tea", text, "water"])


def question_text(text: str, place: Path) -> Seen:
    return asked(place, text=f"Which? {text}")


def peer(text: str, place: Path) -> Seen:
    """One member's every text is the payload; what is looked at is what the others do."""
    part = text[:3_000]

    def say(request: Request) -> str:
        said = json.loads(obeying(request))
        if read(request).seat == "analyst_02":
            words = " ".join(part.split()[:100]) or part
            for answer in filter(None, [said["answer"]]):
                answer |= {"reasoning_summary": words, "counterarguments": [part], "rationale": part}
            for one in said["critiques"] or []:
                one["points"] = [part]
        return json.dumps(said)

    return asked(place, say, protocol="debate", rounds=1, but="analyst_02")


def role_file(text: str, place: Path) -> Seen:
    """A role file of a stranger: it may lead its own seat, and no other."""
    place.mkdir(parents=True)
    for name, prose in (("one", "Weigh the best case."), ("two", text), ("three", "Doubt.")):
        head = f"---\nid: {name}\nview: [all]\n---\n".encode()
        (place / f"{name}.md").write_bytes(head + prose.encode("utf-8", "surrogatepass"))
    (place / "panel.yaml").write_text("roles: [one.md, two.md, three.md]\n")
    return asked(place, panel=str(place / "panel.yaml"), but="analyst_02")


def model_reply(text: str, place: Path) -> Seen:
    """The reply of one seat is the payload itself: no ballot, and the others' are as they were."""

    def say(request: Request) -> str:
        return text if read(request).seat == "analyst_02" else obeying(request)

    found = asked(place, say)
    assert [seat for seat, *_ in found if seat == "analyst_02"] == []
    return found


def decision(text: str, place: Path) -> Seen:
    """Context and description of an option of a decision."""
    options = [{"label": "ship", "description": text}, {"label": "wait", "description": BENIGN}]
    case = Decision.model_validate({"question": "Ship on Friday?", "options": options, "context": [text]})
    terms = DecisionTerms(
        committee="mixed_random",
        tier="mid",
        live=False,
        seed=0,
        catalogue=load_catalogue(),
        environ={},
        max_spend_nano=None,
        results=place / "results",
        today=DAY,
        retry_failed=False,
        allow=frozenset(),
    )
    prepared = prepare(case, terms, earned=lambda _: {})
    job = replace(prepared.job, models={name: Scripted(name, obeying) for name in prepared.job.models})
    anyio.run(run_arm, job, make_shell(), prepared.orders)
    return ballots(job.folder)


def _forecast(place: Path, question: ForecastQuestion, documents: list[CorpusDocument]) -> Seen:
    client = Corpus(documents, retrieved_at=OPENED)
    job = job_of(
        place / "results",
        [question],
        client=client,
        research=Research(on_injection="keep"),  # nothing is kept away from the victim
        models=scripted(researching),
    )
    go(job)
    arguments = [record.event.arguments for record in events_of(job.folder, ToolReturned)]  # type: ignore[union-attr]
    cast = ballots(job.folder)
    if not cast:
        raise DataError("the document was not admitted", hint="Nobody may forecast on nothing.")
    return [arguments, cast]


def _found(title: str, text: str, url: str = "https://harbour.example/a") -> list[CorpusDocument]:
    cutoff = question_of().cutoff or datetime(2026, 1, 1, tzinfo=UTC)
    told = f"The container terminal of Tessel Bay grew. {text}"
    return [CorpusDocument(url, title, told, cutoff - timedelta(days=30), "metadata", None)]


def search_text(text: str, place: Path) -> Seen:
    return _forecast(place, question_of(), _found("Container terminal Tessel Bay", text))


def search_title(text: str, place: Path) -> Seen:
    return _forecast(place, question_of(), _found(f"Container terminal Tessel Bay {text[:2_000]}", BENIGN))


def search_url(text: str, place: Path) -> Seen:
    path = "a" if text == BENIGN else text[:1_000]
    return _forecast(place, question_of(), _found("Tessel Bay", BENIGN, f"https://harbour.example/{path}"))


def forecast_question(text: str, place: Path) -> Seen:
    told = question_of().model_dump() | {"description": text, "resolution_criteria": text}
    return _forecast(place, make_question(told, where="a line"), _found("Tessel Bay", BENIGN))


MAPPING = """
columns: {parcel_id: id, sale_date: day, price: price, municipality: place}
constants: {currency: EUR, property_class: house}
observed: {rule: at_sale}
region: {municipality: town, region: state}
"""


def column_value(text: str, place: Path) -> Seen:
    """A cell of a table of sales becomes evidence of a panel that values a house."""
    place.mkdir(parents=True)
    (place / "mapping.yaml").write_text(MAPPING)
    cell = '"' + text.replace('"', '""') + '"'
    rows = f"id,day,price,place\n1,2015-01-02,250000,{cell}\n2,2015-01-03,260000,Wien\n"
    (place / "sales.csv").write_bytes(rows.encode("utf-8", "surrogatepass"))
    made = build(ADAPTERS["csv"].configure(place / "mapping.yaml"), place / "sales.csv")
    sale = made.frame.filter(made.frame["parcel_id"] == "1").row(0, named=True)
    assert made.frame.height == 2
    plain = make_item()
    item = EvidenceItem(id="P", content={"municipality": sale["municipality"], "floor_area_m2": 100})
    sections = {**plain.packet.sections, "P": Section(code="P", title="Subject", items=(item,))}
    items = [plain.model_copy(update={"packet": plain.packet.model_copy(update={"sections": sections})})]
    carry_out(place / "results" / "run", make_plan(items), items, panel(obeying))
    return ballots(place / "results" / "run")


def item_name(text: str, place: Path) -> Seen:
    """The id of a question names files: it is refused, or stays within the run."""
    place.mkdir(parents=True)
    line = make_item().model_dump(mode="json")
    line["question"]["id"] = line["packet"]["item_id"] = text if text != BENIGN else "kettle"
    (place / "questions.jsonl").write_text(json.dumps(line) + "\n")
    items = read_questions(place / "questions.jsonl")
    carry_out(place / "results" / "run", make_plan(items), items, panel(obeying))
    return ballots(place / "results" / "run")


@dataclass(frozen=True)
class Place:
    """A channel, and the test of the default suite that proves it, if any."""

    name: str
    channel: Channel
    by: str = ""


OF_ASK = "test_hostile_options_and_documents_change_no_ballot"
OF_SEARCH = "test_hostile_documents_change_no_tool_argument_and_no_ballot"
PLACES = (
    Place("a document's text (ask)", document, by=OF_ASK),
    Place("a document's file name (ask)", file_name),
    Place("an option's label (ask)", option_label, by=OF_ASK),
    Place("the question's text (ask)", question_text),
    Place("a peer's reasoning and critiques (ask, debate)", peer),
    Place("another seat's role file (ask)", role_file),
    Place("a model's whole reply (ask)", model_reply),
    Place("context and an option's description (decide)", decision),
    Place("a document that a search finds (forecast)", search_text, by=OF_SEARCH),
    Place("its title (forecast)", search_title),
    Place("its address (forecast)", search_url),
    Place("description and criteria of a question (forecast)", forecast_question),
    Place("a cell of a table of sales (data build, run-arm)", column_value),
    Place("a question's id, which names files (run-arm)", item_name),
)
HOLDS = "ballots, tool arguments and prompts outside of fences as with a harmless text, or a typed error; under 1 s"
FIRST = ("fence look-alikes", "fake layout lines")
"""Families that a short campaign begins with."""


def trying(place: Place) -> Callable[[Ground], None]:
    """Return how a channel is tried: every payload, or as many as there are tries."""

    def carry(ground: Ground) -> None:
        folder = ground.folder / "benign"
        started = time.process_time()
        usual = place.channel(BENIGN, folder)
        took = time.process_time() - started
        shutil.rmtree(folder)
        ordered = sorted(payloads(), key=lambda one: one[0] not in FIRST)
        outside = sorted(path.name for path in ground.folder.parent.iterdir())
        refused = 0
        for number, (family, text) in enumerate(ordered[: ground.tries]):
            folder, started, THINKING[0] = ground.folder / str(number), time.process_time(), 0.0
            try:
                seen = place.channel(text, folder)
            except ConsilienceError as error:
                assert str(error), family  # noqa: PT017 - most payloads are no error
                refused += 1
            else:
                assert seen == usual, f"{family}: {text[:200]!r}"
            assert time.process_time() - started - THINKING[0] < took + PATIENCE_S, f"{family}: {text[:200]!r}"
            assert not folder.exists() or {path.name for path in folder.iterdir()} <= KNOWN
            shutil.rmtree(folder, ignore_errors=True)
            ground.tried += 1
        assert sorted(path.name for path in ground.folder.parent.iterdir()) == outside
        ground.found = f"{ground.tried - refused} were shown as data, {refused} refused"

    return carry


KNOWN = {"results", "in", "one.md", "two.md", "three.md", "panel.yaml", "mapping.yaml", "sales.csv", "questions.jsonl"}
CASES = tuple(
    Case(place.name, HOLDS, trying(place), many=10_000, few=int(not place.by), by=place.by) for place in PLACES
)
