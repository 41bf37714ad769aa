"""What a run has come to so far: rows, outcomes and tokens, counted as turns and items end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

from consilience.core.outcomes import Answered
from consilience.experiments.manifest import Counts
from consilience.experiments.predictions import predictions_frame
from consilience.experiments.totals import Totals
from consilience.runtime.session import TurnRecord
from consilience.runtime.turn import Taken


class Tally:
    """The counts of one process's work on one run.

    Attributes:
        turns_taken: Turns so far, those of unfinished items too.
        turns_unanswered: Those of them without an answer.
        tokens_seen: Tokens of all of them whose usage is known.
    """

    def __init__(self) -> None:
        self.turns_taken = self.turns_unanswered = self.tokens_seen = 0
        self._rows: list[dict[str, Any]] = []
        self._statuses: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()
        self._tokens: Counter[str] | None = Counter()

    @property
    def items_done(self) -> int:
        """Items that have a result."""
        return self._statuses.total()

    def turn(self, taken: Taken) -> None:
        """Count a turn."""
        usages = [call.completion.usage for call in taken.calls]
        self.turns_taken += 1
        self.turns_unanswered += not isinstance(taken.outcome, Answered)
        self.tokens_seen += sum(usage.total for usage in usages if usage is not None)

    def item(self, rows: Sequence[dict[str, Any]], *, status: str, took: Totals, records: Sequence[TurnRecord]) -> None:
        """Count an item with its prediction rows and turns; unknown usage makes the run's tokens unknown."""
        self._rows += rows
        if self._tokens is not None:
            self._tokens = None if took.tokens is None else self._tokens + Counter(took.tokens)
        self._statuses[status] += 1
        self._turns.update(record.taken.outcome.status for record in records)

    def predictions(self) -> pl.DataFrame:
        """Return the rows of all items so far, checked and sorted.

        Raises:
            DataError: A row does not fit.
        """
        return predictions_frame(self._rows)

    def recorded(self) -> dict[str, Any]:
        """Return the counts as the last record of a journal holds them."""
        return {"items": self._statuses, "turns": self._turns, "tokens": self._tokens}

    def counts(self, items: int) -> Counts:
        """Return the counts of a run over so many items."""
        return Counts(
            turns=self._turns,
            items={**self._statuses, "not_run": items - self.items_done},
            tokens=self._tokens,
        )
