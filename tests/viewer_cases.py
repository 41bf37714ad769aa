"""The viewer as tests meet it: over real HTTP, on recorded runs, some of them full of hostile texts."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import anyio
import uvicorn

from consilience.api.binding import Binding
from consilience.core.packet import EvidenceItem, Item, Packet, Section
from consilience.models.request import Request
from consilience.reports.exhibits import Exhibits
from consilience.viewer.guard import Access
from consilience.viewer.serve import configured, listen
from consilience.viewer.study import Compared, Study
from engine_cases import DEBATE, answer_json, carry_out, make_item, make_plan, panel, read, reply

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)> javascript:alert(4) "
    '<a href="javascript:alert(5)">here</a> </pre></td></table><style>*{display:none}</style> '
    "\u202eevil\u202c \u200bhidden \x1b[2J\x00 {{ 7*7 }} <!-- --> ]]> &lt;b&gt; https://evil.example/x.png"
)
"""Every sign with which a text has taken over a page, in one."""
LONE = "lone \ud800 surrogate"
HUGE = "long " * 1_000_000
TRUTHS = {"item-01": 317_331.0, "item-02": 322_000.0}


def say_hostile(request: Request) -> str:
    """Answer as a member whose every text is hostile."""
    prompt = read(request)
    hostile: dict[str, Any] = {"reasoning_summary": HOSTILE, "counterarguments": [HOSTILE], "missing_data": [HOSTILE]}
    if "critique" in str(prompt.task):
        points = [{"target_role": "analyst_01", "agrees": False, "points": [HOSTILE], "evidence_ids": []}]
        return reply(critiques=[one | {"suggested_value": None} for one in points if prompt.seat != "analyst_01"])
    return reply(answer=answer_json(point=300_000, **hostile, key_assumptions=[HOSTILE, LONE]))


def hostile_item(number: int = 1) -> Item:
    """Return an item whose evidence is hostile, some of it five million characters long."""
    plain = make_item(number)
    contents: dict[str, Any] = {"note": HOSTILE, HOSTILE[:60]: "a name", "huge": HUGE, "distance_km": 0.4}
    section = Section(code="C", title=HOSTILE[:100], items=(EvidenceItem(id="C01", content=contents),))
    told = {name: getattr(plain.packet, name) for name in Packet.model_fields}
    packet = Packet(**{**told, "sections": {**plain.packet.sections, "C": section}, "notes": (HOSTILE,)})
    asked = plain.question.model_copy(update={"text": f"How much? {HOSTILE}"})
    return Item(question=asked, packet=packet)


def recorded_run(root: Path, run_id: str, *items: Item, say: Any = None, **changes: Any) -> Path:
    """Carry out a debate over items in a project, and return the run's folder."""
    folder = root / "results" / "runs" / run_id
    plan = make_plan(list(items), protocol=changes.pop("protocol", DEBATE), **changes)
    carry_out(folder, plan, list(items), panel() if say is None else panel(say))
    return folder


def study_of(root: Path, truths: Mapping[str, float | str] | None = None) -> Study:
    """Return a study without tables of its own."""
    known = dict(truths or {})
    return Study(
        root,
        lambda asked: {item: known[item] for item in asked if item in known},
        lambda runs: Compared(Exhibits(), tuple(f"compared {run}" for run in runs)),
    )


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8")


@dataclass(frozen=True)
class Viewer:
    """A running viewer."""

    port: int

    def get(self, path: str, *, method: str = "GET", **headers: str) -> Answer:
        """Ask for a page; ``Host`` is right unless it is given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, headers={"Host": f"127.0.0.1:{self.port}", **sent})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()


@contextmanager
def running_viewer(study: Study, *, token: str | None = None) -> Iterator[Viewer]:
    """Serve a study in a thread, on a free port of loopback."""
    binding = Binding("127.0.0.1", 0)
    with listen(binding) as listener:
        port = listener.getsockname()[1]
        server = uvicorn.Server(configured(study, Access(frozenset(binding.hosts(port)), token)))
        thread = threading.Thread(target=anyio.run, args=(server.serve, [listener]), daemon=True)
        thread.start()
        try:
            yield Viewer(port)
        finally:
            server.should_exit = True
            thread.join(10)


class Page(HTMLParser):
    """What a page links to and loads, and which elements it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            self.attributes.add(name)
            if name == "href" and tag == "a":
                self.links.append(value or "")
            elif name in {"href", "src", "srcset", "action", "hx-get"}:
                self.loaded.append(value or "")


@dataclass
class Seen:
    """What a browser did while a test looked on.

    Attributes:
        requests: Addresses it asked for.
        problems: Errors of scripts, refusals of the policy, failed loads.
        dialogs: Texts of dialogs that opened.
    """

    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
