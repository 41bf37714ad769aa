"""The tables of the campaigns, written by the run itself from what its tests reported, failed and skipped ones too."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TITLES = {
    "faults": (
        "Faults",
        "What was done to runs on purpose. After every try: no answered call lost, none made twice, the cap held.",
    ),
    "hostile": (
        "Hostile input",
        "What was put where outsiders can write. After every try: the same ballots, a typed error or plain data.",
    ),
}
NOTE = "This table is written by `make test-faults` ([decision 0023](../decisions/0023-campaigns.md)); do not edit it."
HELD = "held"


@dataclass
class Row:
    """One case as it went."""

    case: str
    holds: str
    tried: int
    seed: str
    outcome: str
    found: str

    def line(self) -> str:
        outcome = self.outcome + (f"; {self.found}" if self.found else "")
        return (
            f"| {' | '.join(_cell(part) for part in (self.case, self.holds, f'{self.tried:,}', self.seed, outcome))} |"
        )


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def table(campaign: str, rows: Iterable[Row], also: Iterable[Row], *, share: float) -> str:
    """Return a campaign's page."""
    title, what = TITLES[campaign]
    given, beside = list(rows), list(also)
    every = (*given, *beside)
    open_ = sum(not row.outcome.startswith((HELD, "not tried")) for row in every)
    skipped = sum(row.outcome.startswith("not tried") for row in every)
    counts = f"{len(every)} cases, {sum(row.tried for row in every):,} tries, {open_} open, {skipped} not tried"
    made = f"{share:.0%} of the tries of a whole campaign; Python {platform.python_version()}, {platform.system()}."
    lines = [
        f"# {title}",
        "",
        what,
        "",
        NOTE,
        "",
        f"{counts}. {made}",
        "",
        HEAD,
        "| --- | --- | ---: | --- | --- |",
        *(row.line() for row in given),
    ]
    if beside:
        lines += ["", BESIDE, "", HEAD, "| --- | --- | ---: | --- | --- |", *(row.line() for row in beside)]
    return "\n".join([*lines, ""])


HEAD = "| case | what must hold | tried | seed | outcome |"
BESIDE = "## Other tests of faults, by their own words"


def kept(page: str, *, but: Iterable[str]) -> list[Row]:
    """Return the cases of a page that stand there from an earlier run and were not tried in this one."""
    found = []
    for line in page.partition(BESIDE)[0].splitlines():
        cells = [cell.replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]
        cells = [cell.strip() for cell in cells[1:-1]]
        if len(cells) == 5 and cells[0] not in {"case", "---", *but}:
            outcome, _, told = cells[4].partition("; ")
            found.append(Row(cells[0], cells[1], int(cells[2].replace(",", "")), cells[3], outcome, told))
    return found


class Tables:
    """Gathers reports and writes the tables when the run ends."""

    def __init__(self, folder: Path, *, share: float, part: bool) -> None:
        self.folder = folder
        self.share = share
        self.part = part
        self.rows: dict[tuple[str, str], Row] = {}
        self.also: dict[str, Row] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        told: dict[str, Any] = dict(report.user_properties)
        outcome = HELD if report.passed else f"not tried: {_why(report)}" if report.skipped else "FAILED"
        if "campaign" in told:
            self._case(told, outcome)
        elif report.nodeid.startswith("tests/faults/"):
            self._beside(report.nodeid, outcome)

    def _case(self, told: dict[str, Any], outcome: str) -> None:
        key = told["campaign"], told["case"]
        tried = int(told.get("tried", 0))
        new = Row(told["case"], told["holds"], tried, str(told["seed"]), outcome, told.get("found", ""))
        self.rows[key] = new
        sys.stderr.write(f"\n{told['campaign']}: {new.case}: {new.tried:,} tried, {outcome} {new.found}\n")

    def _beside(self, nodeid: str, outcome: str) -> None:
        """Count a test that is no case of a campaign; one failure of many is the outcome of all."""
        name = nodeid.partition("[")[0]
        file, _, test = name.rpartition("::")
        row = self.also.setdefault(
            name, Row(f"`{Path(file).name}`", test.removeprefix("test_").replace("_", " "), 0, "", outcome, "")
        )
        row.tried += outcome == HELD
        row.outcome = row.outcome if row.outcome == "FAILED" else outcome

    def pytest_sessionfinish(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for campaign in TITLES:
            rows = [row for (of, _), row in self.rows.items() if of == campaign]
            also = [self.also[name] for name in sorted(self.also)] if campaign == "faults" else []
            path = self.folder / f"{campaign}.md"
            if rows and self.part and path.exists():
                rows += kept(
                    path.read_text(encoding="utf-8"), but={_cell(row.case).replace("\\|", "|") for row in rows}
                )
            if rows:
                page = table(campaign, sorted(rows, key=lambda row: row.case), also, share=self.share)
                path.write_text(page, encoding="utf-8")


def _why(report: pytest.TestReport) -> str:
    told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return re.sub(r"^Skipped: ", "", told)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tables", default=None, help="folder for the tables of the campaigns")
    parser.addoption("--share", default=1.0, type=float, help="share of the campaigns' tries that are made")


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--tables")
    if folder is not None and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(
            Tables(Path(folder), share=config.getoption("--share"), part=bool(config.option.keyword)), "campaign-tables"
        )
