from __future__ import annotations

import pytest

from consilience.registry import nearest


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("medain", ["mean", "median"], "median"),
        ("PRICE", ["Price", "date"], "Price"),
        ("sale_date", ["date", "id"], "date"),
        ("price", ["parcel_id", "sale_date"], None),
        ("xyz", [], None),
    ],
)
def test_only_what_is_really_close_is_suggested(word: str, known: list[str], meant: str | None) -> None:
    said = nearest(word, known)
    assert said.endswith(f"Known: {', '.join(sorted(known))}.")
    assert said.startswith("Known" if meant is None else f'Did you mean "{meant}"? ')
