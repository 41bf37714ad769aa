"""forecast, backtest and trace as they are typed: what they print, what they refuse, and their exit codes."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from cli_cases import Cli
from consilience.aggregation.recalibration import Recalibration
from consilience.experiments.artefact import write_artefact
from consilience.experiments.calibrations import Calibration, Gain, ProbabilityEntry, Subject
from consilience.forecasting import demo

ASKED = "Will the container terminal at Tessel Bay handle more than 90,000 boxes in April 2031?"
FOUNDING: dict[str, Any] = {
    "notebook": "nb",
    "provider": "m",
    "question": {
        "question": "Rain?",
        "description": "",
        "resolution_date": "2025-03-01",
        "cutoff_date": "",
        "current_market_price": None,
        "resolved_outcome": None,
    },
    "params": {"rho": 0.3},
    "agents": [],
    "aggregation": None,
    "debate": None,
    "supervisor": None,
    "final_probability": None,
    "final_confidence": None,
    "llm_calls": [],
    "notes": "",
    "created_at": "2025-02-01T00:00:00",
    "run_id": "0123456789ab",
}


@pytest.fixture
def here(cli: Cli, tmp_path: Path) -> Cli:
    """Call ``consilience`` in a project of its own."""
    (tmp_path / "project").mkdir()
    return lambda *arguments: cli(*arguments, "--project", tmp_path / "project")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "documents.jsonl"
    path.write_bytes(demo.DOCUMENTS.read_bytes())
    return path


def test_a_question_is_forecast_from_a_corpus_and_read_again_from_its_record(here: Cli, corpus: Path) -> None:
    typed = ["forecast", ASKED, "--cutoff", "2031-04-01", "--corpus", str(corpus)]
    first = here(*typed, "--json").document
    again = here(*typed, "--json").document
    assert first["simulated"] is True
    assert 0 < first["final"]["probability"] < 1
    assert len(first["agents"]) == 5
    assert first["calls"] == 25
    assert first["stages"][0]["record"]["health"]["name"] == "health"
    assert "health of the panel: " in here(*typed).out
    assert (again["calls"], again["final"]) == (0, first["final"])
    shown = here("trace", "show", first["trace"]).out
    assert ASKED in shown
    assert "https://harbours.gov.alder.example" in shown


def test_the_panel_s_distribution_over_options_is_the_forecast(here: Cli) -> None:
    asked = ["forecast", "Which?", "--kind", "multiple_choice", "--option", "red", "--option", "blue"]
    done = here(*asked, "--json")
    assert done.code == 0, done.err
    shares = done.document["final"]["distribution"]
    assert len(shares) == 2
    assert sum(shares.values()) == pytest.approx(1)


@pytest.mark.parametrize("journal", [None, b""])
def test_a_forecast_whose_journal_is_gone_is_not_paid_again(
    here: Cli, corpus: Path, journal: bytes | None, tmp_path: Path
) -> None:
    typed = ["forecast", ASKED, "--cutoff", "2031-04-01", "--corpus", str(corpus), "--arm", "E_single"]
    assert here(*typed).code == 0
    (path,) = (tmp_path / "project" / "results" / "runs").glob("*/events-00001.jsonl")
    path.unlink()
    if journal is not None:
        path.write_bytes(journal)
    for verb in (typed, ["verify", path.parent.name], ["replay", path.parent.name]):
        assert here(*verb).code == 6


def test_what_is_printed_says_simulated_and_that_it_is_no_advice(here: Cli, corpus: Path) -> None:
    out = here("forecast", ASKED, "--cutoff", "2031-04-01", "--corpus", str(corpus), "--arm", "E_single").out
    assert out.startswith("simulated: no real model spoke")
    assert "probability of yes:" in out
    assert "no professional, legal or investment advice" in out


def test_stages_are_told(here: Cli, corpus: Path) -> None:
    typed = ["forecast", ASKED, "--cutoff", "2031-04-01", "--corpus", str(corpus), "--arm", "staged"]
    document = here(*typed, "--final", "blend", "--json").document
    assert document["final"]["rule"] == "blend"
    assert {stage["name"] for stage in document["stages"]} >= {"panel", "aggregate", "debate", "supervisor"}
    assert "supervisor: answered" in here(*typed).out


def test_a_back_test_of_the_demonstration_tells_scores_and_work(here: Cli) -> None:
    document = here("backtest", "--demo", "--n", "4", "--arm", "E_single", "--json").document
    assert document["simulated"] is True
    assert document["skill"]["n"] >= 4
    work = document["work"]
    assert work["after"] == 0
    assert work["before"] > 0
    assert work["undated"] > 0
    assert set(work["gates"]) == {"coverage", "freshness", "consistency", "support", "health"}
    assert sum(work["gates"]["health"].values()) == 1
    assert set(work["health"]["details"]["shares"]) == {"exact_half", "extreme", "retries", "missing_horizons"}
    names = {one["name"] for one in document["scores"]["entrants"]}
    assert {"panel: mean", "generalist"} <= names
    out = here("backtest", "--demo", "--n", "4", "--arm", "E_single").out
    assert "clustered by" in out
    assert "health of all together: " in out
    assert "0 after does not say that none exists" in out
    assert "Brier Index, 100 (1 - sqrt(Brier))" in out
    assert "UNC" in out
    assert "clipped to 1e-06" in out
    assert "before the cutoff" in out


def test_a_founding_trace_is_imported_with_what_it_cannot_prove(here: Cli, tmp_path: Path) -> None:
    path = tmp_path / "founding.json"
    path.write_text(json.dumps(FOUNDING), encoding="utf-8")
    done = here("trace", "import", str(path))
    assert done.code == 0, done.err
    assert "not recorded" in done.out
    assert here("trace", "import", str(path), "--json").document["calls"] == 0


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (["--cutoff", "yesterday"], 2, "cutoff"),
        (["--search", "google"], 2, "--search"),
        (["--search", "corpus"], 2, "--corpus"),
        (["--search", "tavily"], 2, "TAVILY_API_KEY"),
        (["--search", "mcp"], 2, "--mcp-server"),
        (["--live"], 2, "where to search"),
        (["--undated", "maybe"], 2, "--undated"),
        (["--gates", "maybe"], 2, "--gates"),
        (["--on-injection", "eat"], 2, "--on-injection"),
        (["--block", "not a host"], 2, "--block"),
        (["--kind", "poem"], 2, "--kind"),
        (["--final", "best"], 2, "final rule"),
        (["--arm", "X"], 2, "arm"),
        (["--panel", "X"], 2, "panel"),
        (["--cutoff", "2031-04-01", "--resolution-date", "2031-01-01"], 2, "after its resolution"),
        (["--max-spend-usd", "0"], 4, "cap"),
        (["--max-steps", "1"], 5, "too few agents"),
        (["--kind", "multiple_choice"], 2, "options"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_reason(here: Cli, typed: list[str], code: int, said: str) -> None:
    done = here("forecast", "Will it rain?", *typed)
    assert done.code == code
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ([], "--demo or --questions"),
        (["--demo", "--questions", "x.jsonl"], "--demo or --questions"),
        (["--demo", "--corpus", "x.jsonl"], "own documents"),
        (["--questions", "nowhere.jsonl", "--search", "none"], "nowhere.jsonl"),
        (["--questions", "x.jsonl", "--feed", "oracle"], "--feed"),
    ],
)
def test_a_back_test_without_its_parts_is_refused(here: Cli, typed: list[str], said: str) -> None:
    done = here("backtest", *typed)
    assert done.code in {1, 2}
    assert said in done.err


def test_a_trace_that_is_none_is_refused(here: Cli, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}", encoding="utf-8")
    assert here("trace", "show", str(path)).code == 1
    assert here("trace", "show", str(tmp_path / "nowhere.json")).code == 1
    assert here("trace", "import", str(tmp_path / "nowhere.json")).code == 1


def numeric_trace(here: Cli, corpus: Path) -> str:
    typed = ["forecast", ASKED, "--kind", "numeric", "--lower", "0", "--upper", "200000", "--cutoff", "2031-04-01"]
    trace: str = here(*typed, "--corpus", str(corpus), "--json").document["trace"]
    return trace


def test_a_quantity_has_a_distribution_function_that_can_be_exported(here: Cli, corpus: Path, tmp_path: Path) -> None:
    trace = numeric_trace(here, corpus)
    assert len(json.loads(Path(trace).read_bytes())["final"]["cdf"]) == 201
    output = tmp_path / "metaculus.json"
    assert here("trace", "export", trace, "--output", output, "--question", 38880).code == 0
    (forecast,) = json.loads(output.read_bytes())["forecasts"]
    assert (forecast["question"], len(forecast["continuous_cdf"])) == (38880, 201)
    assert here("trace", "export", trace, "--output", output, "--question", 38880).code == 1


def test_options_are_forecast_traced_and_exported(here: Cli, corpus: Path, tmp_path: Path) -> None:
    typed = ["forecast", ASKED, "--kind", "multiple_choice", "--option", "Yes, all", "--option", "No"]
    typed += ["--cutoff", "2031-04-01", "--corpus", str(corpus)]
    done = here(*typed, "--json")
    assert done.code == 0, done.err
    shares = done.document["final"]["distribution"]
    assert set(shares) == {"A", "B"}
    assert sum(shares.values()) == pytest.approx(1)
    assert "probabilities: Yes, all" in here(*typed).out
    shown = here("trace", "show", done.document["trace"]).out
    assert "Yes, all" in shown
    assert str(shares["A"]) in shown
    output = tmp_path / "metaculus.json"
    assert here("trace", "export", done.document["trace"], "--output", output, "--question", 22427).code == 0
    (forecast,) = json.loads(output.read_bytes())["forecasts"]
    assert forecast["probability_yes_per_category"] == {"Yes, all": shares["A"], "No": shares["B"]}


OPEN: list[dict[str, Any]] = [
    {"id": "binary", "text": ASKED, "kind": "binary"},
    {
        "id": "choice",
        "text": f"Which port? {ASKED}",
        "kind": "multiple_choice",
        "options": ["Tessel Bay", "Brisk Sound"],
    },
    {
        "id": "count",
        "text": f"How often? {ASKED}",
        "kind": "discrete",
        "lower": -0.5,
        "upper": 11.5,
        "inbound_outcomes": 12,
    },
    {
        "id": "day",
        "text": f"When? {ASKED}",
        "kind": "date",
        "lower": "2031-04-01",
        "upper": "2032-04-01",
        "open_upper": True,
    },
    {
        "id": "log",
        "text": f"How much? {ASKED}",
        "kind": "numeric",
        "lower": 1,
        "upper": 1e5,
        "zero_point": 0,
        "open_upper": True,
    },
    {
        "id": "days",
        "text": f"By then? {ASKED}",
        "kind": "binary",
        "targets": [{"resolution_date": "2031-05-01"}, {"resolution_date": "2031-06-01"}],
    },
]
ITEMS = ["binary", "choice", "count", "day", "days.2031-05-01", "days.2031-06-01", "log"]


@pytest.fixture
def open_questions(tmp_path: Path) -> Path:
    path = tmp_path / "open.jsonl"
    path.write_text("".join(json.dumps(one | {"cutoff": "2031-04-01"}) + "\n" for one in OPEN), encoding="utf-8")
    return path


def test_open_questions_of_every_kind_are_forecast_from_a_file_and_exported(
    here: Cli, corpus: Path, open_questions: Path, tmp_path: Path
) -> None:
    typed = ["forecast", "--questions", str(open_questions), "--corpus", str(corpus), "--arm", "E_single"]
    first = here(*typed, "--json")
    assert first.code == 0, first.err
    document = first.document
    traces = [Path(one["trace"]) for one in document["forecasts"]]
    assert [trace.stem for trace in traces] == ITEMS
    for trace in traces:
        done = here("trace", "export", trace, "--output", tmp_path / f"{trace.stem}.json", "--question", 5)
        assert done.code == 0, done.err
    out = here(*typed).out
    assert "Tessel Bay " in out
    assert re.search(r"median [0-9]{4}-[0-9]{2}-[0-9]{2}, 90 % interval [0-9]{4}-", out)
    assert out.count("  trace ") == len(ITEMS)


def test_a_back_test_of_open_questions_tells_the_forecasts(here: Cli, corpus: Path, open_questions: Path) -> None:
    typed = ["backtest", "--questions", str(open_questions), "--corpus", str(corpus), "--arm", "E_single"]
    done = here(*typed, "--json")
    assert done.code == 0, done.err
    assert (done.document["scores"], done.document["excluded"]) == (None, len(ITEMS))
    assert [Path(one["trace"]).stem for one in done.document["forecasts"]] == ITEMS
    assert "none of these questions is resolved" in here(*typed).out


def test_what_a_kill_may_have_cost_is_told_beside_the_cost(here: Cli, corpus: Path, tmp_path: Path) -> None:
    typed = ["forecast", ASKED, "--cutoff", "2031-04-01", "--corpus", str(corpus), "--arm", "E_single"]
    whole = here(*typed, "--json").document
    assert whole["lost"] == {"attempts": 0, "reserved_usd": 0.0}
    (path,) = (tmp_path / "project" / "results" / "runs").glob("*/events-00001.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if b'"attempt.reserved"' in line)
    path.write_bytes(b"".join(lines[: last + 1]))
    done = here(*typed)
    assert done.code == 0, done.err
    lost = here(*typed, "--json").document["lost"]
    assert lost["attempts"] == 1
    assert lost["reserved_usd"] > 0
    amount = f"${lost['reserved_usd']:.4f}"
    assert f"of which {amount} is the reservation of 1 lost attempt, which may have been billed" in done.out


def test_a_price_of_the_cutoff_or_later_is_compared_with_nothing(here: Cli, corpus: Path, tmp_path: Path) -> None:
    path, lines = tmp_path / "priced.jsonl", []
    days = {
        "early": "2031-03-31T23:59:59Z",
        "exact": "2031-04-01T00:00:00Z",
        "late": "2031-04-20T00:00:00Z",
        "none": None,
    }
    for name, day in days.items():
        market = {"price": 0.2, "source": "m"} | ({} if day is None else {"as_of": day})
        known = {"outcome": 1, "source": "desk", "known_on": "2031-05-06"}
        asked = {"id": name, "text": f"{name}: {ASKED}", "kind": "binary", "cutoff": "2031-04-01"}
        lines.append(json.dumps(asked | {"market": market, "resolution": known}))
    path.write_text("\n".join(lines), encoding="utf-8")
    typed = ["backtest", "--questions", str(path), "--corpus", str(corpus), "--arm", "E_single"]
    document = here(*typed, "--json").document
    assert (document["late_prices"], document["undated_prices"], document["scores"]["n_priced"]) == (2, 1, 2)
    out = here(*typed).out
    assert "all came out alike" in out
    assert "market prices of the cutoff or later, which nothing is compared with: 2" in out
    assert "market prices without a date, which may be later than the cutoff: 1" in out


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ([], "QUESTION or --questions"),
        (["Rain?", "--questions", "x.jsonl"], "QUESTION or --questions"),
        (["Rain?", "--feed", "files"], "--feed"),
        (["--questions", "x.jsonl", "--lower", "0"], "belong to QUESTION"),
        (["--questions", "x.jsonl", "--cutoff", "2031-01-01"], "belong to QUESTION"),
        (["--questions", "x.jsonl", "--kind", "numeric"], "belong to QUESTION"),
        (["--questions", "x.jsonl", "--feed", "oracle"], "--feed"),
    ],
)
def test_a_file_of_questions_and_a_question_exclude_one_another(here: Cli, typed: list[str], said: str) -> None:
    done = here("forecast", *typed)
    assert done.code == 2
    assert said in done.err


def test_a_file_whose_questions_lack_a_forecast_ends_like_one_question(here: Cli, open_questions: Path) -> None:
    done = here("forecast", "--questions", open_questions, "--max-steps", 1, "--arm", "E_single")
    assert (done.code, done.out.count("no forecast")) == (5, len(ITEMS))


def test_a_question_of_elsewhere_needs_its_number(here: Cli, corpus: Path, tmp_path: Path) -> None:
    done = here("trace", "export", numeric_trace(here, corpus), "--output", tmp_path / "x.json")
    assert done.code == 1
    assert "--question" in done.err


def test_a_simulated_forecast_is_never_sent(here: Cli, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METACULUS_TOKEN", "a-key")
    done = here("trace", "submit", numeric_trace(here, corpus), "--question", 38880, "--base-url", "http://127.0.0.1:9")
    assert done.code == 1
    assert "simulated" in done.err


@pytest.mark.slow
def test_what_a_back_test_wrote_is_evaluated_like_any_run(here: Cli) -> None:
    document = here("backtest", "--demo", "--n", "9", "--arm", "E_single", "--split", "validation", "--json").document
    done = here("evaluate", document["run_id"], "--questions", document["items"], "--include-simulated", "--json")
    assert done.code == 0, done.err
    assert {row["arm"] for row in done.document["probabilities"]["results"]} == {"E_single"}


def test_a_recalibration_of_others_changes_nothing_and_says_so(here: Cli, corpus: Path, tmp_path: Path) -> None:
    made = Calibration(
        package_version="0",
        runs={},
        items=("elsewhere",),
        until=date(2030, 1, 1),
        intervals=(),
        probabilities=(),
        refused=(),
    ).sealed()
    path = tmp_path / "calibration.json"
    write_artefact(made, path)
    typed = ["forecast", ASKED, "--cutoff", "2031-04-01", "--corpus", str(corpus), "--calibration", str(path), "--json"]
    final = here(*typed).document["final"]
    assert "not recalibrated: the artefact holds no map of this panel" in final["flags"]


def test_a_recalibration_of_the_panel_moves_its_probability_and_is_told(
    here: Cli, corpus: Path, tmp_path: Path
) -> None:
    gain = Gain(measure="Brier score", n_fitted=100, n_judged=100, gain=0.01, low=0.001, high=0.02)
    flat = Recalibration(
        method="platt", parameters=(0.0, 0.7), knots=(), pool="geometric_odds", n=200, version="test/1"
    )
    subject = Subject(arm="F_independent", aggregation="geometric_odds", committee="mixed_random", simulated=True)
    made = Calibration(
        package_version="0",
        runs={},
        items=("elsewhere",),
        until=date(2030, 1, 1),
        intervals=(),
        probabilities=(ProbabilityEntry(subject=subject, recalibration=flat, gain=gain),),
        refused=(),
    ).sealed()
    path = tmp_path / "calibration.json"
    write_artefact(made, path)
    typed = ["forecast", ASKED, "--cutoff", "2031-04-01", "--corpus", str(corpus), "--json"]
    before = here(*typed).document["final"]["probability"]
    final = here(*typed, "--calibration", str(path)).document["final"]
    assert final["probability"] == pytest.approx(flat(before))
    assert final["flags"] == [f"recalibrated from {before:.4f} by test/1"]
    early = [*typed[:2], "--cutoff", "2029-06-01", *typed[4:], "--calibration", str(path)]
    assert "no later than 2030-01-01" in here(*early).err
