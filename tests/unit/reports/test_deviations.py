from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from consilience.reports.deviations import Label, deviations_table, label_warnings, read_label, telling

HEAD = "ab" * 32
KEPT = Label("kept", "E_single", HEAD, (), ())
BENT = Label("bent", "G_debate_r2", HEAD, tuple(f"core/m{n}.py changed" for n in range(5)), ("code.core",))
EARLY = Label("early", "F_independent", None, (), (), other_freeze=True)
LOST = Label("lost", None, None, (), (), unknown=True)


def test_a_label_is_what_the_manifest_says(tmp_path: Path) -> None:
    told = {"arm": "E_single", "freeze_sha256": HEAD, "protocol_deviations": ["a changed"], "deviations": ["code.core"]}
    (tmp_path / "manifest.json").write_text(json.dumps(told))
    label = read_label(tmp_path, frozen=HEAD)
    assert label == Label(tmp_path.name, "E_single", HEAD, ("a changed",), ("code.core",))
    assert read_label(tmp_path, frozen="cd" * 32).other_freeze
    assert not read_label(tmp_path, frozen=None).other_freeze
    for damaged in ("{", "[]", '{"arm": "E_single"}'):
        (tmp_path / "manifest.json").write_text(damaged)
        assert read_label(tmp_path, frozen=HEAD).unknown
    assert read_label(tmp_path / "none", frozen=HEAD).unknown


def test_every_run_that_did_not_keep_to_the_protocol_is_told() -> None:
    assert label_warnings([KEPT]) == []
    bent, early, lost = label_warnings([BENT, KEPT, EARLY, LOST])
    assert bent.startswith("Protocol deviation of run bent: core/m0.py changed")
    assert bent.endswith("and 2 more.")
    assert early.endswith("ran before the freeze.")
    assert "unknown whether run lost" in lost
    assert replace(KEPT, other_freeze=True).kept() == "another freeze"


def test_the_table_names_every_deviation() -> None:
    rows = deviations_table([KEPT, BENT, EARLY, LOST]).cells()
    assert [row[2] for row in rows] == ["kept", "protocol deviation", "ran before the freeze", "unknown"]
    assert rows[1][3] == "; ".join(BENT.deviations)
    assert rows[1][4] == "code.core"
    assert [row[3] for row in (rows[0], rows[2], rows[3])] == ["nothing", "–", "–"]
    assert deviations_table([KEPT], simulated=True).caption.startswith("Simulated. ")


def test_nothing_is_told_where_nothing_was_frozen() -> None:
    plain = Label("r", "E_single", None, (), ())
    assert telling([plain], frozen=None) == ()
    assert telling([plain], frozen=HEAD) == (plain,)
    assert telling([KEPT], frozen=None) == (KEPT,)
    assert telling([replace(plain, accepted=("code.core",))], frozen=None) != ()
