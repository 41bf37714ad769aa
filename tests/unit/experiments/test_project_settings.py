from __future__ import annotations

from pathlib import Path

import pytest

from consilience.errors import ConfigError
from consilience.experiments.settings import FILE, Flags, settle
from consilience.experiments.spending import amount_nano


def test_defaults_hold_where_nothing_is_said(tmp_path: Path) -> None:
    settings = settle(tmp_path, Flags(), {})
    assert (settings.max_spend_nano, settings.tier, settings.committee) == (None, "mid", "mixed_random")
    assert (settings.concurrency, settings.seed) == (4, 0)


def test_flags_come_before_the_environment_before_the_file(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("max_spend_usd: 1\ntier: small\nseed: 3\nconcurrency: 2\ncommittee: all_openai\n")
    both = {"CONSILIENCE_MAX_SPEND_USD": "2", "AV_MAX_SPEND_USD": "3"}
    assert settle(tmp_path, Flags(), {}).max_spend_nano == 10**9
    assert settle(tmp_path, Flags(), {"AV_MAX_SPEND_USD": "3"}).max_spend_nano == 3 * 10**9
    assert settle(tmp_path, Flags(), both).max_spend_nano == 2 * 10**9
    settings = settle(tmp_path, Flags(max_spend_usd="4", tier="mid", seed=0), both)
    assert (settings.max_spend_nano, settings.tier, settings.seed) == (4 * 10**9, "mid", 0)
    assert (settings.concurrency, settings.committee) == (2, "all_openai")


@pytest.mark.parametrize(
    ("written", "nano"),
    [("0", 0), ("0.05", 50_000_000), ("0.000000001", 1), ("5.000000000000", 5 * 10**9), ("1e3", 10**12)],
)
def test_amounts_are_exact(written: str, nano: int, tmp_path: Path) -> None:
    assert amount_nano(written, where="test") == nano
    (tmp_path / FILE).write_text(f"max_spend_usd: {written}\n")
    assert settle(tmp_path, Flags(), {}).max_spend_nano == nano


@pytest.mark.parametrize(
    "written", ["-1", "nan", "inf", "five", "", "0.0000000001", "1e-999999999", "1e13", "1." + "0" * 30 + "1"]
)
def test_what_is_no_amount_is_refused(written: str) -> None:
    with pytest.raises(ConfigError, match="--max-spend-usd"):
        amount_nano(written, where="--max-spend-usd")


def test_an_unknown_key_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("max_spend: 5\n")
    with pytest.raises(ConfigError, match=r'"max_spend".*Did you mean "max_spend_usd"'):
        settle(tmp_path, Flags(), {})


@pytest.mark.parametrize(
    "text", ["concurrency: 0\n", "seed: soon\n", "max_spend_usd: [1]\n", "- tier\n", "seed: yes\n"]
)
def test_a_wrong_value_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ConfigError, match=FILE):
        settle(tmp_path, Flags(), {})


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("# nothing yet\n")
    assert settle(tmp_path, Flags(), {}) == settle(tmp_path / "elsewhere", Flags(), {})
