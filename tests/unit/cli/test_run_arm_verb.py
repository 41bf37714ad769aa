from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from cli_cases import Cli, question, run_of
from consilience.cli import one_run
from consilience.cli.running import carry_out
from consilience.errors import FinalModelError, StoppedError
from consilience.experiments.engines.base import Local
from consilience.experiments.engines.ray import RayEngine
from consilience.experiments.general import read_anything
from consilience.experiments.orders import Job, Orders, RunReport
from consilience.experiments.plan import Plan
from consilience.models.base import Identity, Model
from consilience.models.request import Completion, Request
from consilience.models.simulated import Simulated


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_a_run_is_resumed_by_the_same_command(cli: Cli, tmp_path: Path, questions: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    command = ("run-arm", "--arm", "F_independent", "--questions", questions, "--seed", 7, "--project", study)
    first = cli(*command)
    again = cli(*command)
    assert (first.code, again.code) == (0, 0)
    assert "15 calls;" in first.out
    assert "0 calls;" in again.out
    table = first.out.partition("_F_independent")[0]
    assert table == again.out.partition("_F_independent")[0]
    assert "(simulated)" in first.out
    assert "3 of 3 items, 15 turns" in first.err
    run = run_of(study, "F_independent")
    kept = files(study / "results" / "runs" / run)
    assert {"manifest.json", "protocol.json", "prices.json", "predictions.parquet", "packets/q0.json"} <= kept


def test_json_holds_manifest_and_predictions(cli: Cli, tmp_path: Path, questions: Path) -> None:
    done = cli("run-arm", "--arm", "E_single", "--questions", questions, "--project", tmp_path, "--json")
    found = done.document
    assert found["simulated"] is True
    assert found["calls"] == 3
    assert found["stopped_by"] is None
    assert [row["item_id"] for row in found["predictions"]] == ["q0", "q1", "q2"]


def test_a_dry_run_writes_and_spends_nothing(cli: Cli, tmp_path: Path, questions: Path) -> None:
    before = files(tmp_path)
    command = ("run-arm", "--arm", "G_debate", "--rounds", 1, "--questions", questions, "--project", tmp_path)
    done = cli(*command, "--dry-run", "--json")
    assert files(tmp_path) == before
    found = done.document
    assert found["turns"] == 3 * 5 * 3
    assert 0 < found["expected_cost_usd"] < found["worst_cost_usd"]
    told = cli(*command, "--dry-run", "--max-spend-usd", "0.01").out
    assert "does not bear the expected cost" in told
    assert "nothing was written" in told
    ran = cli(*command, "--json").document
    assert ran["run_id"] == found["run_id"]
    assert ran["spent_usd"] < found["worst_cost_usd"]


def test_a_dry_run_of_the_town_leaves_no_town(cli: Cli, tmp_path: Path) -> None:
    done = cli("run-arm", "--arm", "E_single", "--synthetic", "--n", 3, "--dry-run", "--project", tmp_path)
    assert done.code == 0
    assert files(tmp_path) == set()


def test_a_dry_run_draws_the_subsample_that_the_run_will_store(cli: Cli, demo_project: Path) -> None:
    stored = demo_project / "data" / "processed" / "llm_subsamples.parquet"
    stored.unlink()
    command = ("run-arm", "--arm", "E_single", "--n", 3, "--seed", 5, "--project", demo_project, "--json")
    foreseen = cli(*command, "--dry-run").document
    assert not stored.exists()
    assert cli(*command).document["run_id"] == foreseen["run_id"]
    assert stored.exists()


def test_the_cap_stops_with_4_keeps_what_was_answered_and_can_be_raised(
    cli: Cli, tmp_path: Path, questions: Path
) -> None:
    command = ("run-arm", "--arm", "F_independent", "--questions", questions, "--project", tmp_path)
    whole = cli(*command, "--run-id", "_whole", "--json").document
    stopped = cli(*command, "--concurrency", 1, "--max-spend-usd", "0.05", "--json")
    found = stopped.document
    assert stopped.code == 4
    assert "spend cap reached" in stopped.err
    assert "run the same command again" in stopped.err
    assert found["spend_cap_hit"] is True
    assert 0 < found["spent_usd"] <= 0.05
    assert found["stopped_by"]["error"] == "BudgetError"
    resumed = cli(*command, "--json").document
    assert found["calls"] + resumed["calls"] == whole["calls"]
    same = ("item_id", "point", "q05", "q25", "q50", "q75", "q95", "status", "cost_usd")
    assert [[row[name] for name in same] for row in resumed["predictions"]] == [
        [row[name] for name in same] for row in whole["predictions"]
    ]


@dataclass(frozen=True)
class Poor:
    """A model that says what it is told, or fails where that is nothing."""

    simulated: Simulated
    text: str | None
    min_cacheable_tokens: int | None = None

    @property
    def id(self) -> str:
        return self.simulated.id

    @property
    def identity(self) -> Identity:
        return self.simulated.identity

    def wire_body(self, request: Request) -> dict[str, Any]:
        return self.simulated.wire_body(request)

    async def complete(self, request: Request) -> Completion:
        if self.text is None:
            raise FinalModelError("\x1b[31mthe seat\nis broken " + "x" * 200, hint="none")
        return replace(await self.simulated.complete(request), text=self.text)


@pytest.mark.parametrize(
    ("text", "calls", "told"),
    [
        (None, 3, "generalist (analyst_01): failed in 3 turns; estimate of q0, round 0: the seat is broken xxx"),
        ("nonsense", 9, "generalist (analyst_01): unreadable in 3 turns; estimate of q0, round 0: "),
    ],
)
def test_seats_without_an_answer_are_named_with_the_first_reason(
    text: str | None, calls: int, told: str, cli: Cli, tmp_path: Path, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def poor(plan: Plan, *_: object, **__: object) -> dict[str, Model]:
        return {name: Poor(Simulated(name, read_anything, 0), text) for name in plan.models}

    monkeypatch.setattr(one_run, "models_of", poor)
    command = ("run-arm", "--arm", "E_single", "--questions", questions, "--project", tmp_path)
    done = cli(*command)
    assert "3 of 3 items, 3 turns, 3 without answer" in done.out
    assert f"{calls} call" in done.out
    (line,) = [line for line in done.out.splitlines() if line.startswith("generalist")]
    assert line.startswith(told)
    assert len(line) < 220
    assert ("more calls than turns: replies that were corrected" in done.out) == (calls > 3)
    (silent,) = cli(*command, "--json").document["without_answer"]
    assert (silent["role"], silent["turns"]) == ("generalist", 3)


def test_seats_that_abstain_are_named_with_their_reason(cli: Cli, tmp_path: Path) -> None:
    empty = question(0)
    for item in empty["packet"]["sections"]["E"]["items"]:
        item["content"] = {"text": "Nothing is known."}
    path = tmp_path / "empty.jsonl"
    path.write_text(json.dumps(empty) + "\n")
    done = cli("run-arm", "--arm", "E_single", "--questions", path, "--project", tmp_path)
    assert "1 of 1 item, 1 turn, 1 without answer" in done.out
    assert "1 call;" in done.out
    assert "generalist (analyst_01): abstained in 1 turn; estimate of q0, round 0: " in done.out
    again = cli("run-arm", "--arm", "E_single", "--questions", path, "--project", tmp_path)
    assert "turns that were on record were not asked again" in again.out


def test_a_stopped_run_says_once_how_to_go_on(
    cli: Cli, tmp_path: Path, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(job: Job, orders: Orders) -> RunReport:
        return replace(carry_out(job, orders), stopped_by=StoppedError("the run was asked to stop", hint="Resume it."))

    monkeypatch.setattr(one_run, "carry_out", stopped)
    done = cli("run-arm", "--arm", "E_single", "--questions", questions, "--project", tmp_path)
    assert done.code == 1
    assert done.err.count("resume") + done.err.count("Resume") == 1
    assert f"To resume: consilience run-arm --arm E_single --questions {questions}" in done.err


def test_a_cap_of_zero_is_zero_wherever_it_is_said(
    cli: Cli, tmp_path: Path, questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("run-arm", "--arm", "E_single", "--questions", questions, "--project", tmp_path)
    by_flag = cli(*command, "--max-spend-usd", "0")
    assert by_flag.code == 4
    assert "0 calls; $0.00 of $0.00 spent" in by_flag.out
    (tmp_path / "consilience.yaml").write_text("max_spend_usd: 0\n")
    assert cli(*command).code == 4
    monkeypatch.setenv("CONSILIENCE_MAX_SPEND_USD", "1")
    assert cli(*command).code == 0


def test_a_chosen_id_is_marked_simulated_and_the_user_is_told(cli: Cli, tmp_path: Path, questions: Path) -> None:
    command = ("run-arm", "--arm", "E_single", "--questions", questions, "--project", tmp_path)
    done = cli(*command, "--run-id", "mine")
    assert "its id is _mine" in done.err
    assert run_of(tmp_path, "mine") == "_mine"
    other = cli(*command, "--run-id", "mine", "--seed", 1)
    assert other.code == 1
    assert "differs from the recorded run" in other.err


@pytest.mark.parametrize(
    ("extra", "named"),
    [
        (("--run-id", "../escape"), "../escape"),
        (("--run-id", ""), "cannot name a run"),
        (("--run-id", "nul"), "cannot name a run"),
        (("--model", "gpt-6-lunar"), 'Did you mean "gpt-6-luna"'),
        (("--model", "gpt-6-luna", "--committee", "all_openai"), "--committee"),
        (("--committee", "mixed_randon"), 'Did you mean "mixed_random"'),
        (("--tier", "middle"), 'Did you mean "mid"'),
        (("--accept", "prompts"), "prompts"),
        (("--n", "3"), "--questions"),
        (("--max-spend-usd", "lots"), "lots"),
        (("--rounds", "2"), "has no rounds"),
        (("--engine", "rai"), 'Did you mean "ray"'),
        (("--workers", "2"), "--engine ray"),
        (("--engine", "ray", "--batch"), "one process's work"),
        (("--engine", "ray"), 'pip install "consilience[ray]"'),
    ],
)
def test_wrong_choices_are_usage_errors(
    extra: tuple[str, ...],
    named: str,
    cli: Cli,
    tmp_path: Path,
    questions: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as where the extra is not installed
    done = cli("run-arm", "--arm", "E_single", "--questions", questions, *extra, "--project", tmp_path)
    assert done.code == 2
    assert named in done.err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("extra", "workers"), [((), None), (("--workers", 3), 3)])
def test_the_engine_is_given_workers_and_what_makes_their_models(
    extra: tuple[Any, ...],
    workers: int | None,
    cli: Cli,
    tmp_path: Path,
    questions: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Orders] = []

    def local(job: Job, orders: Orders) -> RunReport:
        given.append(orders)
        return carry_out(job, replace(orders, engine=Local()))

    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    monkeypatch.setenv("SOMETHING_ELSE", "of no concern to a worker")
    monkeypatch.setattr(one_run, "carry_out", local)
    command = ("run-arm", "--arm", "E_single", "--questions", questions, "--project", tmp_path)
    assert cli(*command, "--engine", "ray", *extra).code == 0
    engine = given[0].engine
    assert isinstance(engine, RayEngine)
    assert (engine.workers, engine.here) == (workers, False)
    assert isinstance(engine.models, partial)
    assert "SOMETHING_ELSE" not in engine.models.keywords["environ"]
    assert engine.models.keywords["environ"]["OPENAI_API_KEY"] == "a key"
    assert all(isinstance(model, Simulated) for model in engine.models().values())
    again = cli(*command, "--engine", "local")
    assert "0 calls;" in again.out
    assert isinstance(given[1].engine, Local)


def test_one_model_takes_all_seats(cli: Cli, tmp_path: Path, questions: Path) -> None:
    command = ("run-arm", "--arm", "F_independent", "--questions", questions, "--project", tmp_path)
    found = cli(*command, "--model", "gpt-6-luna", "--json").document
    assert found["models"] == ["simulated:gpt-6-luna"]
    assert found["panel_warnings"] == [] or "differ" in found["panel_warnings"][0]


def test_missing_tables_say_which_verb_makes_them(cli: Cli, tmp_path: Path) -> None:
    done = cli("run-arm", "--arm", "E_single", "--project", tmp_path)
    assert done.code == 1
    assert "analytic.parquet" in done.err
    assert "consilience data build" in done.err


def test_the_town_is_kept_apart_from_the_users_table(cli: Cli, demo_project: Path) -> None:
    table = demo_project / "data" / "processed" / "analytic.parquet"
    before = table.read_bytes()
    command = ("run-arm", "--arm", "E_single", "--synthetic", "--n", 2, "--run-id", "_t", "--project", demo_project)
    assert "2 calls;" in cli(*command).out
    assert "0 calls;" in cli(*command).out
    assert table.read_bytes() == before
    assert json.loads((demo_project / "results" / "runs" / "_t" / "manifest.json").read_text())["simulated"] is True


def test_an_oracle_is_for_made_up_items_only_and_errs_by_its_known_noise(cli: Cli, tmp_path: Path) -> None:
    refused = cli("run-arm", "--arm", "E_single", "--oracle", "--project", tmp_path)
    assert refused.code == 2
    assert "--oracle knows the truth of made-up items only" in refused.err
    told = cli("run-arm", "--arm", "F_independent", "--synthetic", "--n", "4", "--oracle", "--project", tmp_path)
    assert told.code == 0
    (run,) = (tmp_path / "results" / "runs").iterdir()
    town = pl.read_parquet(tmp_path / "data" / "synthetic" / "data" / "processed" / "analytic.parquet")
    prices = dict(town.select("tx_id", "price").iter_rows())
    rows = pl.read_parquet(run / "predictions.parquet").filter(pl.col("aggregation") == "median")
    assert rows.height == 4
    for item_id, point in rows.select("item_id", "point").iter_rows():
        assert abs(math.log(point / prices[item_id])) < 0.3
        assert f"{prices[item_id]:.0f}" not in (run / "packets" / f"{item_id}.json").read_text()
