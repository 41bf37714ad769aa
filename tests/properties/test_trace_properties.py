"""Whatever texts a trace holds it reads back; whatever stands in a founding file, it is read or refused."""

from __future__ import annotations

import json
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from consilience.errors import DataError
from consilience.forecasting.founding import import_founding
from consilience.forecasting.timeline import founding_timeline, lines, timeline
from consilience.forecasting.traces import StepTrace, read_trace, write_trace
from forecast_cases import accepted, document, run_trace
from founding_cases import panel

TEXTS = st.text(st.characters(), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ACTED_ON = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def safe(shown: list[str]) -> bool:
    return not any(
        unicodedata.category(character) in ACTED_ON for line in shown for character in line.replace("\t", "")
    )


@given(title=TEXTS, snippet=TEXTS, rationale=TEXTS, reply=TEXTS, action=TEXTS)
def test_a_trace_of_any_texts_reads_back(title: str, snippet: str, rationale: str, reply: str, action: str) -> None:
    agent = accepted().model_copy(
        update={
            "rationale": rationale,
            "documents": (document("D01", title=title, text=snippet),),
            "steps": (StepTrace(step=1, action=action, reply=reply, rejected="not_json"),),
        }
    )
    trace = run_trace(agents=(agent,))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "q.json"
        first = write_trace(trace, path)
        read = read_trace(path)
        assert write_trace(trace, path) == first
        assert write_trace(read, path) == first
    assert read == trace.sealed()
    if read.escaped == 0:
        assert read.agents[0].rationale == rationale
    assert safe(lines(timeline(trace)))


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(below for name, part in inner for below in places(part, (*path, name)))]


@given(data=st.data(), name=st.sampled_from(["three", "hike"]))
def test_a_founding_file_with_anything_in_any_place_is_read_or_refused(data: st.DataObject, name: str) -> None:
    content = json.loads(panel(name))
    for agent in content["agents"]:
        agent["traces"] = agent["traces"][-2:]
    *way, last = data.draw(st.sampled_from(places(content)[1:]))
    place = content
    for part in way:
        place = place[part]
    place[last] = data.draw(VALUES)
    try:
        read = import_founding(json.dumps(content))
    except DataError:
        return
    assert len(read.agents) == len(content["agents"])
    assert all((agent.p_yes is not None) == (agent.status == "accepted") for agent in read.agents)
    assert safe(lines(founding_timeline(read)))
