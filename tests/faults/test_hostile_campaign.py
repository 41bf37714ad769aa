"""The hostile campaign: a few payloads through every channel by default, all of them by ``make test-faults``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from campaigns.ground import Case, Ground
from campaigns.hostile import CASES as CHANNELS
from campaigns.hostile import payloads
from campaigns.readers import CASES as READERS
from campaigns.sockets import CASES as SOCKETS

CASES: tuple[Case, ...] = (*CHANNELS, *SOCKETS, *READERS)


@pytest.mark.parametrize("case", [case for case in CASES if case.few], ids=lambda case: re.sub(r"\W+", "-", case.name))
def test_a_few_payloads_through_every_channel(case: Case, tmp_path: Path) -> None:
    ground = Ground(tmp_path / "ground", case.few, case.seed)
    case.carry(ground)
    assert ground.tried >= case.few


@pytest.mark.faults
@pytest.mark.parametrize("case", CASES, ids=lambda case: re.sub(r"\W+", "-", case.name))
def test_every_payload_through_every_channel(
    case: Case, tmp_path: Path, record_property: Callable[[str, object], None], pytestconfig: pytest.Config
) -> None:
    told = {
        "campaign": "hostile",
        "case": case.name,
        "holds": case.holds,
        "seed": "all" if case in CHANNELS else case.seed,
    }
    for name, value in told.items():
        record_property(name, value)
    ground = Ground(tmp_path / "ground", max(1, int(case.many * pytestconfig.getoption("--share"))), case.seed)
    try:
        case.carry(ground)
    finally:
        record_property("tried", ground.tried)
        record_property("found", ground.found)
    assert ground.tried >= (len(payloads()) if case in CHANNELS else 1)
    assert len(payloads()) >= 40
