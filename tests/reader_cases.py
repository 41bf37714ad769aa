"""Every reader of what strangers wrote, as a function of bytes: for properties and for fuzzing by coverage."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

from consilience.config import load_role, load_yaml
from consilience.core.contracts import Expected, read_reply
from consilience.core.outcomes import Abstained, Answered
from consilience.decisions.case import read_case
from consilience.errors import ConsilienceError
from consilience.experiments.panels import PanelSpec
from consilience.experiments.questions import read_questions
from consilience.forecasting.feeds import FEEDS
from consilience.forecasting.founding import import_founding
from consilience.forecasting.search.corpus import Corpus
from consilience.forecasting.traces import read_trace
from consilience.valuation.adapters import ADAPTERS
from consilience.valuation.adapters.base import build
from consilience.valuation.adapters.csv import CsvMapping
from engine_cases import answer_json, make_item, question, reply
from research_cases import OPENED

Read = Callable[[Path], object]
GRANDFATHER = '{"question": {"question": "Rain?"}, "agents": [{"agent_id": "a", "p_yes": 0.75, "traces": []}]}'
ROLE = "---\nid: doubter\nview: [P, C]\nframing: short\n---\nDoubt it.\n"
CASE = "question: Ship?\noptions: [ship, wait]\ncontext: [It is Friday.]\n"
MAPPING = (
    "columns: {parcel_id: id, sale_date: day, price: price, municipality: place}\n"
    "constants: {currency: EUR, property_class: house}\nobserved: {rule: at_sale}\n"
    "region: {municipality: town, region: state}\n"
)
SALES = "id,day,price,place\n1,2015-01-02,250000,Graz\n2,2015-01-03,260000,Wien\n"
QUESTIONS = '{"id": "q1", "text": "Rain?", "kind": "binary", "resolution_date": "2030-01-01"}\n'
DOCUMENTS = '{"url": "https://a.example/x", "title": "Rain", "text": "It rains.", "published": "2020-01-01"}\n'


@dataclass(frozen=True)
class Reader:
    """A reader.

    Attributes:
        name: Suffix of the file that it reads.
        read: Reads a file, or raises one of our errors.
        seed: A file that it reads well.
    """

    name: str
    read: Read
    seed: bytes

    def accepts(self, data: bytes) -> bool:
        """Return whether bytes are read; a typed error with words is the only other outcome."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / self.name
            path.write_bytes(data)
            try:
                self.read(path)
            except ConsilienceError as error:
                assert str(error).strip()  # noqa: PT017 - most are read
                return False
        return True


def _reply(kind: Any) -> Read:
    expected = Expected(question(kind), "answer", ())

    def read(path: Path) -> object:
        outcome = read_reply(path.read_bytes().decode("utf-8", "surrogateescape"), expected)
        assert isinstance(outcome, Answered | Abstained)
        return outcome

    return read


@cache
def _csv() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mapping.yaml"
        path.write_text(MAPPING)
        return ADAPTERS["csv"].configure(path)


def _sales(path: Path) -> object:
    made = build(_csv(), path)
    prices = made.frame["price"].to_numpy()
    assert np.isfinite(prices).all()
    assert made.frame["parcel_id"].dtype == pl.String
    return made


def _readers() -> Mapping[str, Reader]:
    item = json.dumps(make_item().model_dump(mode="json")).encode()
    kinds = ("estimate", "probability", "distribution", "choice")
    replies = [Reader(f"{kind}.reply", _reply(kind), reply(answer=answer_json(kind)).encode()) for kind in kinds]
    readers = [
        *replies,
        Reader("role.md", load_role, ROLE.encode()),
        Reader("panel.yaml", lambda path: load_yaml(path, PanelSpec), b"roles: [one.md, two.md]\n"),
        Reader("case.yaml", read_case, CASE.encode()),
        Reader("mapping.yaml", lambda path: load_yaml(path, CsvMapping), MAPPING.encode()),
        Reader("items.jsonl", read_questions, item + b"\n"),
        Reader("founding.json", lambda path: import_founding(path.read_bytes()), GRANDFATHER.encode()),
        Reader("trace.json", read_trace, b'{"schema_version": 1}'),
        Reader("sales.csv", _sales, SALES.encode()),
        Reader("questions.jsonl", FEEDS["files"].read, QUESTIONS.encode()),
        Reader("questions.csv", FEEDS["files"].read, b"id,text,kind,resolution_date\nq,Rain?,binary,2030-01-01\n"),
        Reader("corpus.jsonl", lambda path: Corpus.open(path, retrieved_at=OPENED), DOCUMENTS.encode()),
    ]
    return {reader.name: reader for reader in readers}


READERS = _readers()

NASTY = [
    *(b"", b"\xef\xbb\xbf", b"\x00", b"\xff\xfe", b"\r", b"\n" * 50, b"{" * 5_000, b"[" * 5_000, b'{"a":' * 3_000),
    *(
        b"1" * 5_000,
        b"-",
        b"NaN",
        b"1e999",
        b'"\\ud800"',
        b"\xed\xa0\x80",
        b"null",
        b"true",
        b"[]",
        b"{}",
        b"---\n---\n",
    ),
    *(b"a: &a [*a]\n", b"!!python/object/apply:os.system ['true']", b"? a\n: b", b"%YAML 9.9\n---\n", b"\x1b[2J"),
    *(b'"' * 999, b"," * 9_999, b"=1+1,@x\n", b"&a " * 99, b"0x1F", b"1_000", b"9999-99-99", b"0000-01-01"),
]
PIECES = st.binary(max_size=12) | st.sampled_from(NASTY)


@st.composite
def spoilt(draw: st.DrawFn, seed: bytes) -> bytes:
    """A good file with pieces cut out, doubled or replaced; or nothing of it."""
    data = bytearray(draw(st.sampled_from([seed, seed, seed, b""])))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 0, 1, 2, 5, 20])))
        piece = draw(PIECES | st.just(bytes(data[start:end]) * 2))
        data[start:end] = piece
    return bytes(data)
