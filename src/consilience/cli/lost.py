"""What a run was charged for attempts whose outcome nobody knows, told beside its cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilience.cli.console import counted

if TYPE_CHECKING:
    from consilience.experiments.orders import RunReport


@dataclass(frozen=True)
class Lost:
    """Attempts without an outcome, as after a kill.

    Attributes:
        attempts: How many there are.
        reserved_usd: What they are charged with, their reservations; None where any has no price.
    """

    attempts: int
    reserved_usd: float | None

    @property
    def told(self) -> str:
        """What is said behind the cost; nothing where none was lost.

        Example:
            >>> Lost(2, 0.5).told
            ', of which $0.5000 is the reservation of 2 lost attempts, which may have been billed'
        """
        if not self.attempts:
            return ""
        if self.reserved_usd is None:
            return f", without {counted(self.attempts, 'lost attempt')} of unknown price, which may have been billed"
        amount = f"${self.reserved_usd:.4f}"
        attempts = counted(self.attempts, "lost attempt")
        return f", of which {amount} is the reservation of {attempts}, which may have been billed"


def lost_of(report: RunReport) -> Lost:
    """Return the lost attempts of a run, from its record, which is read only where the manifest says there are any."""
    from consilience.journal.ledger import ledger_rows  # noqa: PLC0415 - heavy
    from consilience.journal.reader import read_events  # noqa: PLC0415 - the same
    from consilience.models.prices import NANO  # noqa: PLC0415 - the same

    if not report.manifest["lost_attempts"]:
        return Lost(0, 0.0)
    charged = [row.cost_nano for row in ledger_rows(read_events(report.folder)) if row.status == "lost"]
    known = [nano for nano in charged if nano is not None]
    return Lost(len(charged), sum(known) / NANO if len(known) == len(charged) else None)
