"""The fault campaign: a few tries of every case by default, all of them by ``make test-faults``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from campaigns.disks import CASES as DISKS
from campaigns.ground import Case, Ground
from campaigns.journals import CASES as JOURNALS
from campaigns.processes import CASES as PROCESSES
from campaigns.vendors import CASES as VENDORS

CASES: tuple[Case, ...] = (*PROCESSES, *JOURNALS, *DISKS, *VENDORS)


def name_of(case: Case) -> str:
    return re.sub(r"\W+", "-", case.name)


@pytest.mark.parametrize("case", [case for case in CASES if case.few], ids=name_of)
def test_a_few_faults_of_every_kind(case: Case, tmp_path: Path) -> None:
    ground = Ground(tmp_path, case.few, case.seed)
    case.carry(ground)
    assert ground.tried >= 1


@pytest.mark.faults
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_campaign(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None], pytestconfig: pytest.Config
) -> None:
    told = {"campaign": "faults", "case": case.name, "holds": case.holds, "seed": case.seed}
    for name, value in told.items():
        record_property(name, value)
    ground = Ground(tmp_path, max(1, int(case.many * pytestconfig.getoption("--share"))), case.seed)
    try:
        case.carry(ground)
    finally:
        record_property("tried", ground.tried)
        record_property("found", ground.found)
    assert ground.tried >= 1
