"""The index against plain sums, and its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from consilience.errors import DataError, PlanError
from consilience.forecasting.search import bm25
from consilience.forecasting.search.bm25 import Bm25Index
from consilience.forecasting.search.passages import passage
from consilience.forecasting.search.terms import terms


def plain(texts: list[str], query: str, *, k1: float = 1.2, b: float = 0.75) -> dict[int, float]:
    """Return the scores above 0 of texts that are all there is, written from the formula."""
    bags = [text.split() for text in texts]
    mean = sum(map(len, bags)) / len(bags) if bags else 0.0
    scores = {}
    for place, bag in enumerate(bags):
        score = 0.0
        for term in set(query.split()):
            holding = sum(term in other for other in bags)
            weight = math.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
            often = bag.count(term)
            score += weight * often * (k1 + 1) / (often + k1 * (1 - b + b * len(bag) / mean)) if often else 0.0
        if score:
            scores[place] = score
    return scores


def made_texts(size: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    words = np.array([f"w{place}" for place in range(60)])
    shares = 1 / np.arange(1, 61)
    return [" ".join(rng.choice(words, size=rng.integers(1, 40), p=shares / shares.sum())) for _ in range(size)]


def test_a_score_worked_by_hand() -> None:
    index = Bm25Index(["a b", "a a c d", "c"], [1, 2, 3])
    (first, second) = index.search("a", cutoff=3, limit=9).best
    weight = math.log(1 + 0.5 / 2.5)  # 2 of 2 texts before the cutoff have it
    assert (first.place, second.place) == (1, 0)
    assert first.score == pytest.approx(weight * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 4 / 3)), rel=1e-12)
    assert second.score == pytest.approx(weight * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 2 / 3)), rel=1e-12)


@pytest.mark.parametrize(("k1", "b"), [(1.2, 0.75), (0.0, 0.0), (2.0, 1.0), (0.9, 0.4)])
def test_scores_as_of_a_cutoff_are_plain_sums_over_the_earlier_texts(k1: float, b: float) -> None:
    texts = made_texts(80, seed=3)
    index = Bm25Index(texts, [place // 3 for place in range(80)], k1=k1, b=b)
    for cutoff in (1, 5, 13, 27, 99):
        expected = plain(texts[: 3 * cutoff], "w0 w3 w17 w40", k1=k1, b=b)
        found = index.search("w0 w3 w17 w40 w0", cutoff=cutoff, limit=80).best
        assert {ranked.place: ranked.score for ranked in found} == pytest.approx(expected, rel=1e-12)


def test_without_a_cutoff_undated_texts_are_texts_like_all_others() -> None:
    texts = made_texts(40, seed=4)
    found = Bm25Index(texts, list(range(30))).search("w1 w9", cutoff=None, limit=40)
    assert {ranked.place: ranked.score for ranked in found.best} == pytest.approx(plain(texts, "w1 w9"), rel=1e-12)
    assert found.undated == ()


def test_pruning_changes_no_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = made_texts(600, seed=5)
    index = Bm25Index(texts, list(range(600)))
    queries = [" ".join(text.split()[:9]) for text in texts[::15]]
    cutoffs = [15 * seed for seed in range(40)]

    def answers(least: int) -> list[object]:
        monkeypatch.setattr(bm25, "_WORTH_PRUNING", least)
        return [index.search(q, cutoff=c, limit=4) for q, c in zip(queries, cutoffs, strict=True)]

    pruned, whole = answers(0), answers(10**9)
    assert pruned == whole


def test_many_frequent_terms_outweigh_a_rare_one_that_was_scored_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "_WORTH_PRUNING", 0)
    texts = ["rare " * 20, "rare", *["b c d"] * 6, *["x y z " * 10] * 192]
    found = Bm25Index(texts, range(200)).search("rare b c d", cutoff=999, limit=1)
    rare = found.weights["rare"]
    assert rare > found.weights["b"] * 1.2  # so that no single one of the others reaches it
    (best,) = found.best
    assert best.place == 7
    assert best.score == pytest.approx(plain(texts, "rare b c d")[7], rel=1e-12)


def test_pruning_leaves_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bm25, "_WORTH_PRUNING", 0)
    texts = ["rare common"] * 3 + ["common"] * 500
    scores = np.zeros(503)
    scores[:3] = 5.0
    kept = bm25._survivors(scores, None, limit=3, to_come=0.01)
    assert kept is not None
    assert kept.tolist() == [0, 1, 2]
    assert bm25._survivors(scores, None, limit=3, to_come=6.0) is None
    assert bm25._survivors(scores, None, limit=4, to_come=0.01) is None
    assert [r.place for r in Bm25Index(texts, range(503)).search("rare common", cutoff=999, limit=3).best] == [2, 1, 0]


def test_ties_go_to_the_later_date_and_then_to_the_earlier_place() -> None:
    index = Bm25Index(["x y"] * 6, [1, 2, 2, 3])
    assert [ranked.place for ranked in index.search("x", cutoff=None, limit=6).best] == [3, 1, 2, 0, 4, 5]
    assert [ranked.place for ranked in index.search("x", cutoff=None, limit=2).best] == [3, 1]
    under = index.search("x", cutoff=3, limit=5)
    assert [ranked.place for ranked in under.best] == [1, 2, 0]
    assert [ranked.place for ranked in under.undated] == [4, 5]


def test_undated_texts_are_ranked_by_the_statistics_of_the_dated() -> None:
    dated = ["a b c", "a d"]
    alone = Bm25Index([*dated, "a a"], [1, 2]).search("a", cutoff=9, limit=5)
    many = Bm25Index([*dated, "a a", *["a"] * 50], [1, 2]).search("a", cutoff=9, limit=60)
    assert alone.best == many.best
    assert alone.undated[0] in many.undated


def test_nothing_before_the_cutoff_still_ranks_undated_texts() -> None:
    found = Bm25Index(["a", "a a", "a"], [5]).search("a", cutoff=5, limit=5)
    assert found.best == ()
    assert [ranked.place for ranked in found.undated] == [1, 2]
    assert found.undated[1].score == pytest.approx(math.log(2) * 2.2 / 2.2)


@pytest.mark.parametrize("query", ["", "  ", "!?", "unknown words", "’"])
def test_a_query_without_a_known_term_finds_nothing(query: str) -> None:
    assert Bm25Index(["a b"], [1]).search(query, cutoff=None, limit=5).best == ()


def test_an_empty_index_and_empty_texts_find_nothing() -> None:
    assert Bm25Index([], []).search("a", cutoff=None, limit=5).best == ()
    assert Bm25Index(["", "…", "a"], [1, 2]).search("a", cutoff=3, limit=5).best == ()
    assert Bm25Index(["a"], [1]).search("a", cutoff=None, limit=0).best == ()


def test_more_texts_than_are_counted_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = made_texts(50, seed=6)
    whole = Bm25Index(texts, range(50)).search("w2 w5", cutoff=45, limit=50)
    for chunk in (1, 7, 50):
        monkeypatch.setattr(bm25, "_CHUNK", chunk)
        assert Bm25Index(texts, range(50)).search("w2 w5", cutoff=45, limit=50) == whole


@pytest.mark.parametrize(("k1", "b"), [(-0.1, 0.5), (math.nan, 0.5), (math.inf, 0.5), (1.2, 1.1), (1.2, -0.1)])
def test_parameters_out_of_range_are_refused(k1: float, b: float) -> None:
    with pytest.raises(PlanError, match="BM25"):
        Bm25Index(["a"], [1], k1=k1, b=b)


@pytest.mark.parametrize("instants", [[2, 1], [1, 2, 3]])
def test_dates_that_do_not_ascend_are_refused(instants: list[int]) -> None:
    with pytest.raises(DataError, match="ascend"):
        Bm25Index(["a", "b"], instants)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Straße STRASSE ﬁne", ["strasse", "strasse", "fine"]),
        ("２０２５ ½", ["2025", "1", "2"]),
        ("naïve nai\u0308ve", ["naïve", "naïve"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("東京の金利", ["東", "京", "の", "金", "利"]),
        ("한국 은행", ["한국", "은행"]),
        ("quo\u00adta quo\u200bta quo\u2060ta", ["quota", "quo", "ta", "quota"]),
        ("ΣΊΣΥΦΟΣ σίσυφος", ["σίσυφοσ", "σίσυφοσ"]),
        ("snake_case don't e-mail", ["snake", "case", "don", "t", "e", "mail"]),
        ("\ud800 \x00 🙂", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_the_passage_is_where_the_rarest_terms_are() -> None:
    text = " ".join(["filler words stand here"] * 50 + ["the herring quota was cut"] + ["more filler after it"] * 50)
    shown = passage(text, {"herring": 3.0, "filler": 0.1}, characters=80)
    assert "herring quota" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert shown.strip("…") in text
    assert len(shown) <= 82


def test_a_passage_without_white_space_is_cut() -> None:
    assert passage("x" * 50, {"y": 1.0}, characters=10) == "x" * 10 + "…"
    assert passage("x" * 50, {}, characters=2) == "xx…"


def test_the_end_of_a_text_can_be_its_best_part() -> None:
    text = "a " * 100 + "quota"
    assert passage(text, {"quota": 1.0}, characters=20).endswith("a quota")
