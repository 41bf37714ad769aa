r"""An index of dated texts that answers as of any instant, as if later texts did not exist.

BM25 (S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", Foundations and Trends in
Information Retrieval 3(4), 2009, eq. 3.15), each distinct term of the query counted once:

.. math::
    s(d, q) = \sum_{t \in q} \ln\left(1 + \frac{N - n_t + 1/2}{n_t + 1/2}\right)
              \frac{f_{t,d} (k_1 + 1)}{f_{t,d} + k_1 (1 - b + b\, l_d / \bar l)}

The 1 in the logarithm is the one departure: without it a term in more than half of the texts counts against them.
:math:`N`, :math:`n_t` and :math:`\bar l` are taken over the texts dated strictly before the cutoff and over nothing
else. Texts lie in order of their dates, so those before a cutoff are a prefix of the texts and of every term's
postings: a cutoff costs a binary search per term, and a score depends on no byte beyond it.

Undated texts lie behind all others. Under a cutoff they are no part of any statistic and are ranked apart, by the
statistics of the dated ones; without a cutoff they are texts like all others.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from consilience.errors import DataError, PlanError
from consilience.forecasting.search.terms import terms

Integers = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

K1: Final = 1.2
B: Final = 0.75

_CHUNK = 8_192
"""Texts counted at a time, which bounds the memory of building."""
_WORTH_PRUNING = 1_024
"""Postings of a term from which on it pays to look which texts can still be among the best."""
_MARGIN = 1.0 + 1e-9
"""What a bound is enlarged by, far above what rounding can do to a sum of a few terms."""
_NEVER = np.iinfo(np.int64).min


class Ranked(NamedTuple):
    """A text that was found: its place in the index and its score, above 0."""

    place: int
    score: float


class Found(NamedTuple):
    """What a query found.

    Attributes:
        best: Best first: by score, then the later date, then the earlier place.
        undated: Under a cutoff the undated texts, ranked likewise; without one they are among the best.
        weights: The weight of each term of the query that some text of the index has, by the statistics used.
    """

    best: tuple[Ranked, ...]
    undated: tuple[Ranked, ...]
    weights: dict[str, float]


class _Term(NamedTuple):
    """A term of a query: its weight and where its postings lie."""

    weight: float
    word: str
    start: int
    before: int
    end: int


class _Numbers(dict[str, int]):
    """Numbers of terms in the order of their first appearance."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class Bm25Index:
    """Texts by their terms.

    Args:
        texts: The texts, the dated ones first, in order of their dates; among equals the order breaks ties.
        instants: The dates of the first texts, as integers of any one unit, ascending; the others are undated.
        k1: How soon more occurrences of a term count no more, 0 or above; at 0 only its presence counts.
        b: How far a text's length counts, from 0 (not at all) to 1.

    Raises:
        PlanError: ``k1`` or ``b`` is out of its range.
        DataError: The dates do not ascend, or there are more of them than texts.

    Example:
        >>> index = Bm25Index(["rates were held", "the harvest was good", "rates rates rates"], [10, 20, 30])
        >>> [ranked.place for ranked in index.search("Rates?", cutoff=30, limit=5).best]
        [0]
        >>> [ranked.place for ranked in index.search("Rates?", cutoff=None, limit=5).best]
        [2, 0]
    """

    def __init__(self, texts: Iterable[str], instants: Sequence[int], *, k1: float = K1, b: float = B) -> None:
        if not (0 <= k1 < math.inf and 0 <= b <= 1):
            raise PlanError(f"BM25 takes no k1 = {k1} with b = {b}", hint="k1 is 0 or above, b lies in [0, 1].")
        self.k1, self.b = float(k1), float(b)
        self._numbers = _Numbers()
        lengths, keys, counts = self._count(texts)
        self.size = len(lengths)
        self._instants = np.array(instants, dtype=np.int64)
        self._dated = self._instants.size
        if self._dated > self.size or (self._instants[1:] < self._instants[:-1]).any():
            raise DataError("the dates of the texts do not ascend", hint="Sort the texts by date, undated ones last.")
        self._lengths = np.array(lengths, dtype=np.int32)
        self._total: Integers = np.concatenate(([0], np.cumsum(self._lengths, dtype=np.int64)))
        if (keys[1:] < keys[:-1]).any():  # counted in several chunks
            order = np.argsort(keys, kind="stable")
            keys, counts = keys[order], counts[order]
        self._counts = counts
        self._places: Places = (keys & 0xFFFFFFFF).astype(np.int32)
        held = np.bincount(keys >> 32, minlength=len(self._numbers))
        self._starts: Integers = np.concatenate(([0], np.cumsum(held, dtype=np.int64)))

    def before(self, cutoff: int | None) -> int:
        """Return how many dated texts lie strictly before a cutoff; without one, how many there are.

        Example:
            >>> Bm25Index(["a", "b", "c"], [10, 20]).before(20)
            1
        """
        return self._dated if cutoff is None else int(np.searchsorted(self._instants, cutoff, side="left"))

    def search(self, query: str, *, cutoff: int | None, limit: int) -> Found:
        """Return the texts with the highest scores.

        Args:
            query: What is looked for.
            cutoff: The first instant whose texts take no part; None for all.
            limit: How many at most, of each sort.

        Example:
            >>> index = Bm25Index(["rates were held", "rates"], [10])
            >>> found = index.search("rates", cutoff=11, limit=1)
            >>> found.best[0].place, found.undated[0].place, round(found.weights["rates"], 3)
            (0, 1, 0.288)
        """
        known = sorted({word for word in terms(query) if word in self._numbers})
        if limit < 1 or not known:
            return Found((), (), {})
        n = self.size if cutoff is None else self.before(cutoff)
        asked = sorted((self._term(word, n) for word in known), key=lambda term: (-term.weight, term.word))
        total = int(self._total[n])
        # Where nothing has a length, no length is above the average.
        base, slope = (self.k1 * (1 - self.b), self.k1 * self.b * n / total) if total else (self.k1, 0.0)
        best = self._best([term for term in asked if term.before > term.start], n, base, slope, limit)
        undated = () if cutoff is None else self._best_undated(asked, base, slope, limit)
        return Found(best, undated, {term.word: term.weight for term in asked})

    def _count(self, texts: Iterable[str]) -> tuple[array[int], Integers, Places]:
        """Return the texts' lengths, and per term and text its key (number << 32 | place) and its occurrences."""
        lengths = array("i")
        chunk: list[Places] = []
        keys: list[Integers] = []
        counts: list[Places] = []
        first = 0

        def counted() -> None:
            places = np.repeat(np.arange(first, len(lengths)), np.array(lengths[first:], dtype=np.int64))
            numbered = np.concatenate([*chunk, np.empty(0, dtype=np.int32)]).astype(np.int64)
            unique, times = np.unique((numbered << 32) | places, return_counts=True)
            keys.append(unique)
            counts.append(times.astype(np.int32))

        number = self._numbers.__getitem__
        for text in texts:
            words = terms(text)
            lengths.append(len(words))
            chunk.append(np.fromiter(map(number, words), dtype=np.int32, count=len(words)))
            if len(lengths) - first == _CHUNK:
                counted()
                first, chunk = len(lengths), []
        counted()
        return lengths, np.concatenate(keys), np.concatenate(counts)

    def _term(self, word: str, n: int) -> _Term:
        number = self._numbers[word]
        start, end = int(self._starts[number]), int(self._starts[number + 1])
        before = start + int(np.searchsorted(self._places[start:end], n, side="left"))
        holding = before - start
        return _Term(math.log1p((n - holding + 0.5) / (holding + 0.5)), word, start, before, end)

    def _gained(self, term: _Term, counts: Places, places: Places, base: float, slope: float) -> Floats:
        """Return what a term adds to the scores of texts."""
        often: Floats = counts.astype(np.float64)
        gained: Floats = term.weight * (often * (self.k1 + 1.0)) / (often + (base + slope * self._lengths[places]))
        return gained

    def _best(self, asked: Sequence[_Term], n: int, base: float, slope: float, limit: int) -> tuple[Ranked, ...]:
        """Score the first ``n`` texts, the rarest term first, and give up those that can no longer be among the best.

        A term adds at most weight × (k1 + 1). Once the ``limit``-th score exceeds all that the terms to come can add,
        no text without a score can pass it, nor one that is further below it than that. The scores of the others are
        the same sums in the same order, so pruning changes none of their bytes.
        """
        scores = np.zeros(n)
        kept: Places | None = None
        left = [term.weight * (self.k1 + 1.0) * _MARGIN for term in asked]
        for at, term in enumerate(asked):
            places, counts = self._places[term.start : term.before], self._counts[term.start : term.before]
            if at and places.size >= _WORTH_PRUNING:
                kept = _survivors(scores, kept, limit=limit, to_come=sum(left[at:]))
            if kept is None:
                scores[places] += self._gained(term, counts, places, base, slope)
                continue
            found = np.minimum(np.searchsorted(places, kept), places.size - 1)
            found = found[places[found] == kept]
            scores[places[found]] += self._gained(term, counts[found], places[found], base, slope)
        scored = np.flatnonzero(scores).astype(np.int32) if kept is None else kept
        return self._top(scored, scores[scored], limit)

    def _best_undated(self, asked: Sequence[_Term], base: float, slope: float, limit: int) -> tuple[Ranked, ...]:
        scores = np.zeros(self.size - self._dated)
        for term in asked:
            start = term.start + int(np.searchsorted(self._places[term.start : term.end], self._dated, side="left"))
            places = self._places[start : term.end]
            scores[places - self._dated] += self._gained(term, self._counts[start : term.end], places, base, slope)
        scored = np.flatnonzero(scores)
        return self._top((scored + self._dated).astype(np.int32), scores[scored], limit)

    def _top(self, places: Places, scores: Floats, limit: int) -> tuple[Ranked, ...]:
        if places.size > limit:
            among = scores >= _highest(scores, limit)  # with every tie of the last, so that the order decides
            places, scores = places[among], scores[among]
        instants = np.full(places.size, _NEVER)
        dated = places < self._dated
        instants[dated] = self._instants[places[dated]]
        order = np.lexsort((places, -(instants + 1), -scores))[:limit]
        return tuple(Ranked(int(places[at]), float(scores[at])) for at in order)


def _highest(scores: Floats, rank: int) -> float:
    """Return the score of a rank, 1 for the best."""
    return float(np.partition(scores, scores.size - rank)[scores.size - rank])


def _survivors(scores: Floats, kept: Places | None, *, limit: int, to_come: float) -> Places | None:
    """Return the places that can still be among the best; None while every text can."""
    scored = np.flatnonzero(scores).astype(np.int32) if kept is None else kept
    if scored.size < limit:
        return kept
    least = _highest(scores[scored], limit) / _MARGIN - to_come
    if least <= 0:
        return kept
    survivors: Places = scored[scores[scored] >= least]
    return survivors
