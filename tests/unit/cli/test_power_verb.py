"""What a study can see: told from numbers, from validation runs, and refused where it would look ahead."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest

from cli_cases import Cli, write_questions
from consilience.inference.power import least_detectable, power_of

BAD = (0.0, -1.0, math.inf, math.nan, 1e308, 1e-320)


def test_numbers_alone_tell_the_least_difference(cli: Cli) -> None:
    done = cli("power", "--n", 1140, "--clusters", 57, "--sd", 0.12, "--rho", 0.05, "--effect", 0.02, "--json")
    assert done.code == 0
    told = done.document
    (measure,) = told["measures"]
    se = 0.12 * math.sqrt((1 + 19 * 0.05) / 1140)
    assert measure["se"] == pytest.approx(se)
    assert measure["least"] == pytest.approx(least_detectable(se=se, df=56))
    assert measure["power"] == pytest.approx(power_of(delta=0.02, se=se, df=56))
    assert (told["n"], told["clusters"]) == (1140, 57)


def test_averaging_runs_lessens_what_varies_from_run_to_run_only(cli: Cli) -> None:
    base = ("power", "--n", 100, "--sd", 0.1, "--run-sd", 0.05, "--json")
    once, many = (cli(*base, "--replicates", runs).document["measures"][0]["se"] for runs in (1, 1_000_000))
    assert once == pytest.approx(0.01)
    assert many == pytest.approx(math.sqrt(0.1**2 - 2 * 0.05**2) / 10, rel=1e-4)


def test_a_person_reads_a_table_and_the_terms(cli: Cli) -> None:
    done = cli("power", "--n", 30, "--clusters", 12, "--sd", 0.12, "--effect", 0.05)
    assert "least difference seen" in done.out
    assert "30 items in 12 clusters" in done.out
    assert "only 12 clusters" in done.err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--n", 30), "nothing to plan from"),
        (("--n", 30, "--clusters", 40, "--sd", 0.1), "40 clusters of 30 items"),
        (("--n", 30, "--sd", 0.1, "--run-sd", 0.2), "--run-sd"),
        (("--n", 30, "--sd", 0.1, "--power", 1.5), "power 1.5"),
        (("_a", "--sd", 0.1), "either runs or numbers"),
        *((("--n", 100, "--sd", sd), f"--sd {sd:g} is no standard deviation of differences") for sd in BAD),
        (("--n", 100, "--sd", 0.1, "--run-sd", -1), "--run-sd -1 is no standard deviation from run to run"),
        (("--n", 100, "--sd", 0.1, "--rho", -1), "every item is its own cluster"),
        (("--n", 100, "--clusters", 50, "--sd", 0.1, "--rho", -1), "--rho -1 is no correlation that 2 items"),
        (("--n", 100, "--clusters", 10, "--sd", 0.1, "--rho", -0.2), "It lies above -0.111"),
        (("--n", 100, "--clusters", 10, "--sd", 0.1, "--rho", 1.1), "--rho 1.1 is no correlation"),
        (("--n", 100, "--clusters", 10, "--sd", 0.1, "--rho", "nan"), "--rho nan is no correlation"),
    ],
)
def test_what_cannot_be_planned_is_said(arguments: tuple[object, ...], named: str, cli: Cli) -> None:
    done = cli("power", *arguments)
    assert done.code in {1, 2}
    assert done.out == ""
    assert named in done.err


def test_an_effect_beyond_all_measure_is_seen(cli: Cli) -> None:
    done = cli("power", "--n", 100, "--sd", 0.1, "--effect", 1e300, "--json")
    assert done.document["measures"][0]["power"] == 1.0


@pytest.fixture(scope="module")
def piloted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from consilience.cli import main  # noqa: PLC0415 - only for this fixture

    root = tmp_path_factory.mktemp("pilot")
    write_questions(root / "questions.jsonl", 12)
    asked = str(root / "questions.jsonl")
    for arm, run in (("E_single", "_single"), ("F_independent", "_panel")):
        assert main(["--project", str(root), "run-arm", "--arm", arm, "--questions", asked, "--run-id", run]) == 0
    return root


def test_runs_tell_it_of_mean_and_median(piloted: Path, tmp_path: Path, cli: Cli) -> None:
    project = shutil.copytree(piloted, tmp_path / "study")
    base = ("--project", project, "power", "_single", "_panel", "--questions", project / "questions.jsonl")
    done = cli(*base, "--n", 48, "--json")
    assert done.code == 0, done.err
    assert [one["measure"] for one in done.document["measures"]] == ["mean |log error|", "MdAPE"]
    assert done.document["clusters"] == 48
    more = cli(*base, "--clusters", 192, "--json").document
    small, large = ([one["se"] for one in told["measures"]] for told in (done.document, more))
    assert small[0] / large[0] == pytest.approx(2, rel=0.1)
    assert small[1] > large[1] > 0
    again = cli(*base, "--n", 48, "--replicates", 2)
    assert again.code == 2
    assert "no repetitions" in again.err
    assert "how large" in cli(*base).err
    alone = cli("--project", project, "power", "_single", "--n", 48, "--questions", project / "questions.jsonl")
    assert "two arms" in alone.err
    assert "no truth" in cli(*base[:5], "--n", 48).err
