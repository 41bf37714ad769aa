"""What assistants may read, what is told of errors, and that nothing else comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from consilience.config import package_text
from consilience.decisions.necessity import JUSTIFIED, POINTS
from consilience.errors import ConfigError, DataError, explained
from consilience.mcp.arguments import AskPanel, GetTrace, ListRuns, read_arguments
from consilience.mcp.documents import error_document, shown
from consilience.mcp.errands import Project, errand_of
from consilience.mcp.folders import inside
from consilience.mcp.records import runs_told, trace_told
from consilience.mcp.tools import TOOLS
from mcp_cases import CAPPED

RUN = "_ask-choice-0123456789"
TRACE = f"runs/{RUN}/transcripts/q.json"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    for part in ("transcripts", "traces"):
        (folder / "runs" / RUN / part).mkdir(parents=True)
    (folder / TRACE).write_text('{"a":1}')
    (folder / "runs" / RUN / "protocol.json").write_text('{"run_secret": "s"}')
    (tmp_path / "secret.json").write_text('"secret"')
    return folder


def read(results: Path, trace: str) -> dict[str, Any]:
    return trace_told(results, GetTrace(trace=trace))


def test_a_trace_is_read(results: Path) -> None:
    assert read(results, TRACE)["text"] == '{"a":1}'


@pytest.mark.parametrize(
    "trace",
    [
        "../secret.json",
        f"runs/{RUN}/transcripts/../../../../secret.json",
        "runs/../transcripts/q.json",
        f"runs/{RUN}/transcripts/..",
        f"runs/{RUN}/transcripts/./q.json",
        f"runs/{RUN}//transcripts/q.json",
        f"runs\\{RUN}\\transcripts\\q.json",
        f"runs/{RUN}/transcripts/q.json\0",
        f"runs/{RUN}/protocol.json",
        f"runs/{RUN}/transcripts/missing.json",
        "decisions/../../secret.json",
        "",
    ],
)
def test_nothing_else_is(results: Path, trace: str) -> None:
    with pytest.raises(ConfigError):
        read(results, trace)
    with pytest.raises(ConfigError):
        read(results, str(results / trace))


def test_no_symbolic_link_is_followed(results: Path, tmp_path: Path) -> None:
    (results / "runs" / RUN / "transcripts" / "linked.json").symlink_to(tmp_path / "secret.json")
    (results / "runs" / "elsewhere").symlink_to(tmp_path)
    (tmp_path / "transcripts").mkdir()
    (tmp_path / "transcripts" / "q.json").write_text('"secret"')
    for trace in (f"runs/{RUN}/transcripts/linked.json", "runs/elsewhere/transcripts/q.json"):
        with pytest.raises(ConfigError, match="symbolic link"):
            read(results, trace)
    assert trace_told(results, GetTrace(run_id=RUN))["traces"] == [TRACE]
    with pytest.raises(ConfigError):
        trace_told(results, GetTrace(run_id="elsewhere"))
    assert [run["run_id"] for run in runs_told(results, ListRuns())["runs"]] == [RUN]


def test_a_project_reached_by_a_link_is_whoever_runs_the_server_s_choice(results: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(results)
    assert read(tmp_path / "link", TRACE)["text"] == '{"a":1}'


def test_a_trace_that_is_no_text_is_told(results: Path) -> None:
    (results / TRACE).write_bytes(b"\xff")
    with pytest.raises(DataError, match="cannot be read"):
        read(results, TRACE)


def test_pages_follow_each_other(results: Path) -> None:
    text = json.dumps("é" * 120_000, ensure_ascii=False)
    (results / TRACE).write_text(text, encoding="utf-8")
    pages = [read(results, TRACE)]
    while pages[-1]["next_offset"] is not None:
        pages.append(trace_told(results, GetTrace(trace=TRACE, offset=pages[-1]["next_offset"])))
    assert "".join(page["text"] for page in pages) == text
    assert len(pages) == 3


@pytest.mark.parametrize("said", ["", "/", ".", "a/", "a//b", "/a", "a/../b", "C:\\a", "a\0"])
def test_names_that_lead_out_are_refused(tmp_path: Path, said: str) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(ConfigError):
        inside(tmp_path, said, what="corpus")
    assert inside(tmp_path, "a", what="corpus") == tmp_path.resolve() / "a"


def test_no_runs_are_no_error(tmp_path: Path) -> None:
    assert runs_told(tmp_path / "results", ListRuns()) == {
        "status": "answered",
        "runs": [],
        "total": 0,
        "next_offset": None,
    }


def test_the_cap_of_whoever_runs_the_server_is_not_exceeded(tmp_path: Path) -> None:
    said = read_arguments("ask_panel", CAPPED, AskPanel)
    with pytest.raises(ConfigError, match=r"allows \$0\.20"):
        errand_of(said, Project(tmp_path, {"CONSILIENCE_MAX_SPEND_USD": "0.20"}))
    (tmp_path / "consilience.yaml").write_text("max_spend_usd: 0.3\n")
    with pytest.raises(ConfigError, match=r"allows \$0\.30"):
        errand_of(said, Project(tmp_path, {}))
    errand = errand_of(said, Project(tmp_path, {"CONSILIENCE_MAX_SPEND_USD": "5"}))
    assert errand.orders.max_spend_nano == 500_000_000
    assert not (tmp_path / "results").exists()


def test_errors_are_told_by_class_and_a_defect_without_its_traceback() -> None:
    told = error_document(explained(ZeroDivisionError("by zero")), run_id="r")
    assert told["error"]["name"] == "InternalError"
    assert told["error"]["exit_code"] == 1
    assert told["run_id"] == "r"
    assert shown({"\u202e": ["\x07", 1, None]}) == {"\\u202e": ["\\u0007", 1, None]}


def test_every_argument_of_a_schema_is_described_or_plain() -> None:
    for tool in TOOLS:
        schema = tool.schema
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert len(tool.description.split()) >= 5


def test_the_skill_says_when_a_panel_is_not_justified() -> None:
    text = package_text("mcp/SKILL.md")
    assert text.startswith("---\nname: consilience\n")
    assert "When a panel is not justified" in text
    assert (
        f"from {JUSTIFIED} points on: irreversible {POINTS['irreversible']}, much uncertain {POINTS['uncertain']}"
        in text
    )
    assert all(f"`{tool.name}`" in text for tool in TOOLS)
    assert "never a confidence" in text
