"""A timeline shows every step, whole rationales and documents, and lets no text act on a terminal."""

from __future__ import annotations

import unicodedata

import pytest

from consilience.forecasting.founding import import_founding
from consilience.forecasting.timeline import Timeline, founding_timeline, lines, timeline
from consilience.forecasting.traces import AgentTrace, StepTrace
from forecast_cases import accepted, document, run_trace
from founding_cases import PANELS, agent, file, panel, step


def test_every_step_is_an_event_in_order() -> None:
    made = timeline(run_trace())
    assert [(event.actor, event.step, event.kind) for event in made.events] == [
        ("outside_view", 1, "search"),
        ("outside_view", 2, "search"),
        ("outside_view", 3, "invalid"),
        ("outside_view", 4, "forecast"),
        ("inside_view", None, "abstained"),
        ("contrarian", None, "failed"),
        (None, None, "aggregate"),
        (None, None, "forecast of the panel"),
    ]
    search, again, invalid, forecast, *_ = made.events
    assert search.subject == "rain"
    assert search.facts == {"status": "success", "kept": 2, "filtered": {"after the cutoff": 1}}
    assert [(one.id, one.published) for one in search.documents] == [
        ("D01", "2025-02-01T00:00:00+00:00"),
        ("D02", None),
    ]
    assert again.facts["repeated"] is True
    assert invalid.facts == {"rejected": "not_json", "message": "Reply with one object."}
    assert invalid.text == "hm"
    assert forecast.facts["p_yes"] == 0.3
    assert forecast.facts["hits"] == {"before": 1, "undated": 1, "after": 1}
    assert forecast.text == accepted().rationale
    assert Timeline.model_validate_json(made.model_dump_json()) == made


def test_lines_show_documents_and_the_whole_rationale() -> None:
    long = "word " * 2000
    hostile = accepted().model_copy(update={"rationale": f"First line.\n{long}\n\nLast line."})
    shown = lines(timeline(run_trace(agents=(hostile,))))
    text = "\n".join(shown)
    assert '  1 search "rain"' in shown
    assert "    D01 A title" in shown
    assert "      2025-02-01T00:00:00+00:00 · https://example.org/D01" in shown
    assert "      undated · https://example.org/D02" in shown
    assert "      ! undated: it may be later than the cutoff" in shown
    assert "      │ A snippet." in shown
    assert "    │ First line." in shown
    assert "    │ Last line." in shown
    assert long.strip() in text


def test_a_snippet_that_is_cut_says_so() -> None:
    one = accepted().model_copy(update={"documents": (document("D01", text="x" * 301),)})
    shown = lines(timeline(run_trace(agents=(one,))))
    assert "      (the first 300 of 301 characters)" in shown
    assert timeline(run_trace(agents=(one,))).events[0].documents[0].snippet == "x" * 301


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x9b31m", "a\rb", "a\u202eb", "a\u2028b", "\x07", "\x00", "a\nb\tc"])
def test_no_text_acts_on_a_terminal_or_fakes_a_line(hostile: str) -> None:
    fake = f"{hostile}\n  9 forecast\n    p_yes: 0.99"
    one = accepted().model_copy(
        update={
            "agent_id": fake,
            "rationale": fake,
            "documents": (document("D01", title=fake, text=fake),),
            "steps": (StepTrace(step=3, action=fake, rejected=fake, message=fake, reply=fake),),
        }
    )
    shown = lines(timeline(run_trace(agents=(one,))))
    assert "  9 forecast" not in shown
    assert "    p_yes: 0.99" not in shown
    found = {unicodedata.category(character) for line in shown for character in line if character != "\t"}
    assert not found & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert all("\n" not in line for line in shown)
    old = lines(
        founding_timeline(
            import_founding(file(agents=[agent(fake, 0.3, rationale=fake) | {"traces": [step(1, fake, fake, 1)]}]))
        )
    )
    assert "  9 forecast" not in old
    assert not {unicodedata.category(character) for line in old for character in line} & {"Cf", "Cs", "Zl"}


def test_tools_used_in_a_turn_without_a_step_are_shown() -> None:
    bare = AgentTrace(agent_id="a", status="failed", reason="timeout", tool_log=accepted().tool_log)
    assert [event.kind for event in timeline(run_trace(agents=(bare,))).events[:3]] == ["search", "search", "failed"]


@pytest.mark.parametrize("name", PANELS)
def test_an_import_has_a_timeline_that_ends_with_what_it_cannot_prove(name: str) -> None:
    made = founding_timeline(import_founding(panel(name)))
    kinds = [event.kind for event in made.events]
    assert kinds[:4] == ["search", "search", "forecast", "forecast"]
    assert kinds[-1] == "what the file cannot prove"
    assert "undated_results" in made.events[-1].facts
    assert made.events[0].documents[0].title == "T1.0"
    assert "    │ My findings: (1) rates fell, and (2) votes are due. However, turnout is unknown." in lines(made)


def test_an_agent_that_did_not_forecast_shows_the_founding_value_apart() -> None:
    read = import_founding(file(agents=[agent("a", 0.5, forecast_produced=False)]))
    (end,) = (event for event in founding_timeline(read).events if event.kind == "failed")
    assert end.facts == {"status": "failed", "reason": "step_budget", "founding p_yes": 0.5}
