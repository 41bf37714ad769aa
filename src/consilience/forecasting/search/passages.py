"""The part of a long text that a search result shows: the one with most of what was looked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from consilience.forecasting.search.terms import terms

CUT: Final = "…"
"""Stands where a text was cut."""


def passage(text: str, weights: Mapping[str, float], *, characters: int) -> str:
    """Return a whole text that is short enough, else its best part, with "…" where it is cut.

    Parts overlap by half and begin and end between words; a word longer than a part is cut. The best one has the
    highest sum of the weights of the terms that occur in it, the first of equals.

    Args:
        text: The text.
        weights: What the terms looked for weigh.
        characters: Longest part, at least 2, the signs of a cut not counted.

    Example:
        >>> passage("one two three four five six", {"five": 1.0}, characters=10)
        '…four five…'
        >>> passage("one two", {"five": 1.0}, characters=10)
        'one two'
    """
    if len(text) <= characters:
        return text

    def weight(part: tuple[int, int]) -> float:
        inside = set(terms(text[slice(*part)]))
        return sum(gain for word, gain in weights.items() if word in inside)

    start, end = max(_parts(text, characters), key=weight)
    return f"{CUT if start else ''}{text[start:end].strip()}{CUT if end < len(text) else ''}"


def _parts(text: str, characters: int) -> Iterator[tuple[int, int]]:
    """Yield where parts begin and end."""
    start = 0
    while True:
        end = start + characters
        if end >= len(text):
            yield start, len(text)
            return
        end = _gap(text, start, end)
        yield start, end
        start = _gap(text, start, start + max(1, characters // 2))


def _gap(text: str, start: int, end: int) -> int:
    """Return the last place up to ``end`` where white space begins a new word; ``end`` itself where there is none."""
    for at in range(end, start, -1):
        if text[at - 1].isspace() or (at < len(text) and text[at].isspace()):
            return at
    return end
