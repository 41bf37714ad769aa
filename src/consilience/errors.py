"""The whole error tree. Every error says what happened, where, and (``hint``) what to do.

::

    ConsilienceError                    exit code 1
    ├── ConfigError                     2   a file or flag is wrong (unknown key, wrong type, unknown name)
    ├── PlanError                       2   the parts are right but cannot work together
    ├── DataError                       1   a table breaks its schema; names row and column
    ├── LeakError                       1   something dated past the cutoff, or the target, would be shown
    ├── ContractError                   1   a reply cannot be read under its contract
    ├── ModelError                      1   a call to a model failed
    │   ├── TransientModelError         1   may heal: the pool retries it
    │   │   └── UnreachedModelError     1   nothing was sent, so nothing is charged
    │   └── FinalModelError             1   will not heal: says what to do
    │       └── AccountError            1   no call of this run can succeed: key, billing, permission, model id
    ├── SearchError                     1   a search, or a page behind a result, could not be had
    ├── StoppedError                    1   the user stopped the run; it can be resumed
    ├── NeedsHumanError                 3   only a person can settle this
    ├── BudgetError                     4   the spend cap does not allow the next call
    ├── QuorumError                     5   too few members answered
    ├── IntegrityError                  6   the record is not what was written
    ├── JournalError                    1   the journal cannot be written (disk full, failed fsync, lock held)
    └── ResumeMismatchError             1   prompts, schemas, models, prices or code differ from the recorded run
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

SearchFailure = Literal["timeout", "unreachable", "rate_limited", "refused", "unreadable", "not_found", "broken_client"]

EXIT_CODES: Final[Mapping[int, str]] = {
    0: "ok",
    1: "error",
    2: "usage",
    3: "needs a human",
    4: "budget",
    5: "no quorum",
    6: "integrity",
}
"""What an exit code stands for."""


class ConsilienceError(Exception):
    """Base of every error this package raises on purpose.

    Args:
        message: What happened, and where.
        hint: What the user can do about it.

    Example:
        >>> str(DataError("price is negative in row 3", hint="Remove the row or mend it."))
        'price is negative in row 3. Remove the row or mend it.'
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str) -> None:
        self.message = message
        self.hint = hint
        super().__init__(f"{message.rstrip('.')}. {hint}")


def reason(error: BaseException) -> str:
    r"""Return in one short line what an error of the system or of a library says, without its paths, links and advice.

    Example:
        >>> reason(FileNotFoundError(2, "No such file or directory", "/somewhere"))
        'No such file or directory'
        >>> reason(ValueError("odd\nFor further information visit a page"))
        'odd'
    """
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    problems = getattr(error, "errors", None)  # of a pydantic model
    if callable(problems):
        first = problems()[0]
        place = ".".join(map(str, first["loc"]))
        said = str(first["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
        return f"{place}: {said}" if place else said
    problem, mark = getattr(error, "problem", None), getattr(error, "problem_mark", None)  # of a YAML reader
    if problem is not None and mark is not None:
        return f"{' '.join(str(problem).split())} (line {mark.line + 1}, column {mark.column + 1})"
    lines = str(error).split("\n")
    return " ".join(lines[0].split())[:300] or type(error).__name__


@dataclass(frozen=True)
class Explained:
    """An error as a user is told of it, never with a traceback.

    Attributes:
        name: Its class in the tree above; ``OSError`` of the operating system, ``InternalError`` of a defect.
        exit_code: The command line's.
        message: What happened, and where.
        hint: What the user can do about it.
    """

    name: str
    exit_code: int
    message: str
    hint: str

    @property
    def meaning(self) -> str:
        """What the exit code stands for."""
        return EXIT_CODES[self.exit_code]


def explained(error: BaseException) -> Explained:
    """Return any error as a user is told of it.

    Example:
        >>> explained(QuorumError("too few answered", hint="Ask again.")).meaning
        'no quorum'
        >>> explained(FileNotFoundError(2, "No such file or directory", "sales.csv")).message
        'No such file or directory (sales.csv)'
        >>> explained(KeyError("x")).message
        "internal error, KeyError: 'x'"
    """
    name = type(error).__name__
    if isinstance(error, ConsilienceError):
        return Explained(name, error.exit_code, error.message, error.hint)
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        hint = "Check the path, its permissions and the free space."
        return Explained("OSError", 1, f"{error.strerror or error}{where}", hint)
    said = f"internal error, {name}: {reason(error)}"
    return Explained("InternalError", 1, said, "This is a defect; --debug shows where.")


class ConfigError(ConsilienceError):
    """A configuration file, role file or flag is wrong."""

    exit_code = 2


class PlanError(ConsilienceError):
    """A combination of valid parts that cannot work, found before anything is spent."""

    exit_code = 2


class DataError(ConsilienceError):
    """A table or record breaks its schema; the message names row and column."""


class LeakError(ConsilienceError):
    """Evidence would show the target or something dated past the cutoff."""


class ContractError(ConsilienceError):
    """A reply cannot be read under its contract.

    Args:
        problems: One sentence per violated rule; these are what a corrective retry is told.
        hint: What the user can do about it.
    """

    def __init__(self, problems: list[str], *, hint: str = "The member is asked again with these errors.") -> None:
        self.problems = problems
        super().__init__("; ".join(problems), hint=hint)


class ModelError(ConsilienceError):
    """A call to a model failed.

    Args:
        message: What happened, and where.
        hint: What the user can do about it.
        status: HTTP status where there was one.
    """

    def __init__(self, message: str, *, hint: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message, hint=hint)


class TransientModelError(ModelError):
    """A failure that may heal: rate limit, overload, connection lost.

    Args:
        message: What happened, and where.
        hint: What the user can do about it.
        status: HTTP status where there was one.
        retry_after_s: Seconds the vendor asked to wait, if it said so.
    """

    def __init__(
        self, message: str, *, hint: str, status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message, hint=hint, status=status)


class UnreachedModelError(TransientModelError):
    """No connection was made: nothing was sent, so nothing can have been billed."""


class FinalModelError(ModelError):
    """A failure no retry can heal: bad key, unknown model, refused schema, empty account."""


class AccountError(FinalModelError):
    """No call of this run can succeed (key, billing, quota, permission, model id); the run stops with advice."""


class SearchError(ConsilienceError):
    """A search, or a page behind a result, could not be had.

    Args:
        message: What happened, and where.
        hint: What the user can do about it.
        failure: Its short class, which is all an agent is told of it.
    """

    def __init__(self, message: str, *, hint: str, failure: SearchFailure) -> None:
        self.failure: SearchFailure = failure
        super().__init__(message, hint=hint)


class StoppedError(ConsilienceError):
    """The user asked the run to stop; what was in flight was finished and the run can be resumed."""


class NeedsHumanError(ConsilienceError):
    """Only a person can settle this."""

    exit_code = 3


class BudgetError(ConsilienceError):
    """The spend cap does not allow the next call; what was answered is kept and the run can be resumed.

    Args:
        message: What happened, and where.
        hint: What the user can do about it.
        needed_nano: What going on needs beyond what is spent, in nano-dollars; None where it is not known.
    """

    exit_code = 4

    def __init__(self, message: str, *, hint: str, needed_nano: int | None = None) -> None:
        self.needed_nano = needed_nano
        super().__init__(message, hint=hint)


class QuorumError(ConsilienceError):
    """Too few members answered for the panel to speak."""

    exit_code = 5


class IntegrityError(ConsilienceError):
    """The record is not what was written."""

    exit_code = 6


class JournalError(ConsilienceError):
    """The journal cannot be written; nothing more is dispatched and nothing already written is lost."""


class ResumeMismatchError(ConsilienceError):
    """A run cannot be continued because what it would ask now differs from what it asked before."""
