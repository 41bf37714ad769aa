from __future__ import annotations

import pytest

from consilience import errors
from consilience.cli.failures import report
from consilience.errors import ConsilienceError


def leaves(kind: type[ConsilienceError]) -> list[type[ConsilienceError]]:
    ours = [kind] if kind.__module__ == errors.__name__ else []  # the double of the vendors has one of its own
    return [*ours, *(found for child in kind.__subclasses__() for found in leaves(child))]


EXPECTED = {
    errors.ConfigError: 2,
    errors.PlanError: 2,
    errors.NeedsHumanError: 3,
    errors.BudgetError: 4,
    errors.QuorumError: 5,
    errors.IntegrityError: 6,
}


@pytest.mark.parametrize("kind", leaves(ConsilienceError))
def test_every_error_has_its_exit_code_a_message_and_a_hint(
    kind: type[ConsilienceError], capsys: pytest.CaptureFixture[str]
) -> None:
    said = ["what happened"] if kind is errors.ContractError else "what happened"
    further = {"failure": "timeout"} if kind is errors.SearchError else {}
    error = kind(said, hint="what to do", **further)  # type: ignore[arg-type]
    assert report(error, debug=False) == EXPECTED.get(kind, 1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "error: what happened\n  what to do\n"


def test_an_escape_in_a_message_does_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    report(errors.DataError('id "\x1b[2J" occurs twice', hint="Mend it."), debug=False)
    assert "\x1b" not in capsys.readouterr().err


def test_what_nobody_foresaw_is_one_line_and_says_how_to_see_more(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(ZeroDivisionError("by zero"), debug=False) == 1
    shown = capsys.readouterr().err
    assert "internal error, ZeroDivisionError: by zero" in shown
    assert "--debug" in shown
    assert "Traceback" not in shown


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(errors.DataError) as caught:
        raise errors.DataError("odd row", hint="Mend it.")
    assert report(caught.value, debug=True) == 1
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert "test_failures.py" in shown


def test_files_and_interrupts(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(PermissionError(13, "Permission denied", "/somewhere"), debug=False) == 1
    assert "Permission denied (/somewhere)" in capsys.readouterr().err
    assert report(KeyboardInterrupt(), debug=False) == 130
    assert capsys.readouterr().err.startswith("stopped at once")
