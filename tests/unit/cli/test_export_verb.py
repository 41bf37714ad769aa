from __future__ import annotations

import json
from pathlib import Path

from cli_cases import Cli


def test_a_baseline_is_exported_with_its_index(cli: Cli, tmp_path: Path) -> None:
    command = ("baselines", "predict", "--synthetic", "--arm", "A_hedonic", "--arm", "D_index", "--split", "test")
    runs = cli(*command, "--project", tmp_path, "--json").document["runs"]
    ours, index = (run["run_id"] for run in runs)
    done = cli("export-avm", ours, "--index", index, "--synthetic", "--retest", "7", "--project", tmp_path, "--json")
    document = done.document
    assert "not legal advice" in done.err
    assert document["arm"] == "A_hedonic"
    assert document["index"]["run_id"] == index
    assert document["retest"]["drawn"] == 7
    written = json.loads((Path(document["folder"]) / "export.json").read_text(encoding="utf-8"))
    assert written["configuration_sha256"] == document["configuration_sha256"]
    told = cli("export-avm", ours, "--synthetic", "--project", tmp_path)
    assert "income lowest" in told.out
    assert "5 files" in told.out


def test_an_unknown_run_is_told(cli: Cli, tmp_path: Path) -> None:
    done = cli("export-avm", "nothing", "--project", tmp_path)
    assert done.code == 2
    assert 'there is no run "nothing"' in done.err
