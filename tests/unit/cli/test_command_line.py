"""What holds for every verb: help with an example, one JSON document, usage errors, where options may stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import consilience
from cli_cases import Cli, verbs_of
from consilience.cli.app import app, hoisted

VERBS = [
    ("baselines", "fit"),
    ("baselines", "predict"),
    ("export-avm",),
    ("demo",),
    ("ask",),
    ("data", "build"),
    ("data", "describe"),
    ("data", "splits"),
    ("data", "subsample"),
    ("data", "synth"),
    ("run-arm",),
    ("freeze",),
    ("grid",),
    ("fit-weights",),
    ("roles",),
    ("evaluate",),
    ("calibrate",),
    ("report",),
    ("score",),
    ("ratios",),
    ("power",),
    ("forecast",),
    ("backtest",),
    ("trace", "show"),
    ("trace", "import"),
    ("trace", "export"),
    ("trace", "submit"),
    ("decide",),
    ("decisions", "list"),
    ("decisions", "show"),
    ("decisions", "resolve"),
    ("replay",),
    ("recompute",),
    ("verify",),
    ("ledger",),
    ("runs",),
    ("providers-check",),
    ("mcp",),
    ("fake-server",),
    ("view",),
    ("models", "install"),
]
ENDLESS = {("mcp",), ("fake-server",), ("view",)}
"""They serve until they are ended and print no result."""


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_help_has_one_example_and_offers_json(verb: tuple[str, ...], cli: Cli) -> None:
    done = cli(*verb, "--help")
    assert done.code == 0
    assert done.out.count("Example: consilience " + " ".join(verb)) == 1
    assert ("--json" in done.out) == (verb not in ENDLESS)


def test_every_verb_is_known_to_these_tests() -> None:
    assert sorted(VERBS) == sorted(verbs_of(get_command(app)))


def test_usage_errors_exit_2_and_name_the_mistake(cli: Cli) -> None:
    for arguments, named in [
        (("verfy", "x"), "verfy"),
        (("run-arm",), "--arm"),
        (("run-arm", "--arm", "E_single", "--n", "0"), "--n"),
        (("run-arm", "--arm", "E_single", "--live"), "--live"),
        (("verify",), "RUN"),
        (("runs", "--project", "/no/such/folder"), "/no/such/folder"),
    ]:
        done = cli(*arguments)
        assert done.code == 2
        assert done.out == ""
        assert named in done.err
        assert "Traceback" not in done.err


def test_without_a_verb_the_help_is_shown(cli: Cli) -> None:
    done = cli()
    assert done.code == 2
    assert "Commands" in done.out
    assert done.err == ""


def test_options_before_the_verb_may_stand_behind_it() -> None:
    assert hoisted(["runs", "--project=a", "--json"]) == ["--project=a", "runs", "--json"]
    assert hoisted(["runs", "--project"]) == ["--project", "runs"]
    assert hoisted(["verify", "--", "--debug"]) == ["verify", "--", "--debug"]


def test_the_version_is_the_installed_one(cli: Cli) -> None:
    assert cli("--version").out == f"consilience {consilience.__version__}\n"
    with pytest.raises(AttributeError):
        consilience.no_such_name  # type: ignore[attr-defined]  # noqa: B018 - the look-up is the test


def test_it_runs_as_a_module_and_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "consilience", "runs", "--json"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(write)
    assert done.returncode == 1
    assert done.stderr == b""


def test_a_stream_that_cannot_show_a_sign_stops_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-X", "utf8=0", "-m", "consilience", "verify", "naïve–run"]
    environment = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert r"na\xefve-run" in done.stderr
