"""Which runs kept to the frozen protocol, and what the others changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from consilience.reports.tables import ABSENT, Column, Record, Table

_NAMED: Final = 3


@dataclass(frozen=True)
class Label:
    """How one run stands to the freeze.

    Attributes:
        run_id: The run.
        arm: Its arm; None where nothing tells.
        frozen: Head of the freeze it ran under; None where it ran under none.
        deviations: What differed from that freeze.
        accepted: What differed from its own beginning and was accepted when it resumed.
        other_freeze: There is a freeze now, and it did not run under that one.
        unknown: Its manifest does not tell.
    """

    run_id: str
    arm: str | None
    frozen: str | None
    deviations: tuple[str, ...]
    accepted: tuple[str, ...]
    other_freeze: bool = False
    unknown: bool = False

    def kept(self) -> str:
        """Return in words whether the run kept to the protocol.

        Example:
            >>> Label("r", "E_single", "ab" * 32, ("core/role.py changed",), ()).kept()
            'protocol deviation'
        """
        if self.unknown:
            return "unknown"
        if self.deviations:
            return "protocol deviation"
        if self.other_freeze:
            return "another freeze" if self.frozen else "ran before the freeze"
        return "kept" if self.frozen else "nothing was frozen"


def read_label(folder: Path, *, frozen: str | None) -> Label:
    """Return how a run stands to the freeze, as its manifest says.

    Args:
        folder: The run folder.
        frozen: Head of the freeze there is now; None for none.
    """
    try:
        told = json.loads((folder / "manifest.json").read_bytes())
        return Label(
            run_id=folder.name,
            arm=str(told["arm"]),
            frozen=told["freeze_sha256"],
            deviations=tuple(map(str, told["protocol_deviations"])),
            accepted=tuple(map(str, told["deviations"])),
            other_freeze=frozen is not None and told["freeze_sha256"] != frozen,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return Label(folder.name, None, None, (), (), unknown=True)


def telling(labels: Sequence[Label], *, frozen: str | None) -> tuple[Label, ...]:
    """Return the labels if there is anything to tell: a freeze now or then, or a run resumed with other code."""
    told = frozen is not None or any(label.frozen or label.deviations or label.accepted for label in labels)
    return tuple(labels) if told else ()


def label_warnings(labels: Sequence[Label]) -> list[str]:
    """Return one sentence per run that must not be read as if it had kept to the protocol.

    Example:
        >>> label_warnings([Label("r", "E_single", "ab" * 32, ("core/role.py changed", "core/turn.py changed"), ())])
        ['Protocol deviation of run r: core/role.py changed, core/turn.py changed.']
    """
    found = []
    for label in labels:
        if label.deviations:
            rest = len(label.deviations) - _NAMED
            named = ", ".join(label.deviations[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
            found.append(f"Protocol deviation of run {label.run_id}: {named}.")
        elif label.unknown:
            found.append(f"It is unknown whether run {label.run_id} kept to the frozen protocol.")
        elif label.other_freeze:
            found.append(f"Run {label.run_id} is not under the freeze there is: {label.kept()}.")
    return found


def deviations_table(labels: Sequence[Label], *, simulated: bool = False) -> Table:
    """Return one row per run: the freeze it ran under, and everything that differed from it."""
    records = tuple(
        {
            "run_id": label.run_id,
            "arm": label.arm,
            "freeze": label.frozen,
            "protocol": label.kept(),
            "deviations": "; ".join(label.deviations),
            "accepted": "; ".join(label.accepted),
        }
        for label in labels
    )
    columns = (
        Column("Run", lambda r: str(r["run_id"]), numeric=False),
        Column("Freeze", lambda r: "none" if r["freeze"] is None else f"{str(r['freeze'])[:12]}…", numeric=False),
        Column("Protocol", lambda r: str(r["protocol"]), numeric=False),
        Column("Not as it was frozen", _changed, numeric=False),
        Column("Resumed although this changed", lambda r: str(r["accepted"] or "nothing"), numeric=False),
    )
    word = "Simulated. " if simulated else ""
    return Table(f"{word}Whether each run kept to the frozen protocol, as its manifest says.", columns, records)


def _changed(record: Record) -> str:
    return str(record["deviations"] or (ABSENT if record["freeze"] is None else "nothing"))
