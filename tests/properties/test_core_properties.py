from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilience.core.answers import Distribution, Estimate, Probability
from consilience.core.canonical import canonical_json, tagged_hash
from consilience.core.contracts import Expected, extract_object, read_reply
from consilience.core.outcomes import Abstained, Answered, outcome_from_json, outcome_to_json
from consilience.core.panel import seeded_order
from consilience.errors import ContractError
from engine_cases import OPTIONS, answer_json, question, reply

KINDS = ("estimate", "probability", "distribution", "choice")
YIELDS: tuple[Any, ...] = ("answer", "critiques")
TEXT = st.text(st.characters(codec=None), max_size=40)
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(),
    st.sampled_from([0, 1, -1, 10**400, 0.1 + 0.2, 5e-324, 1.7e308]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(TEXT, part, max_size=3),
)
GOOD = {kind: reply(answer=answer_json(kind)) for kind in KINDS}
FIELDS = sorted({name for kind in KINDS for name in answer_json(kind)})


@st.composite
def nearly_good(draw: st.DrawFn) -> tuple[str, str]:
    """A reply in which a field or a few characters are not what they should be."""
    kind = draw(st.sampled_from(KINDS))
    envelope: dict[str, Any] = json.loads(GOOD[kind])
    for name in draw(st.lists(st.sampled_from(FIELDS), max_size=3)):
        envelope["answer"][name] = draw(VALUES)
    for name in draw(st.lists(st.sampled_from(["critiques", "abstention"]), max_size=1)):
        envelope[name] = draw(VALUES)
    text = json.dumps(envelope, ensure_ascii=draw(st.booleans()))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text)))
        text = (
            text[:at]
            + draw(st.text(st.sampled_from('{}[]",:\\nulNaNI0.9%e+-\ufeff\ud800\x00 '), max_size=3))
            + text[at:]
        )
    return kind, text


def check(kind: Any, yields: Any, text: str) -> None:
    """Read a reply: what comes out keeps every rule, and only a contract error refuses it."""
    expected = Expected(question(kind), yields, ("analyst_02",))
    try:
        outcome = read_reply(text, expected)
    except ContractError:
        return
    assert outcome_from_json(json.loads(canonical_json(outcome_to_json(outcome)))) == outcome
    if isinstance(outcome, Abstained):
        assert outcome.said.by == "member"
        return
    said = outcome.said
    assert outcome.said_type == (kind if yields == "answer" else "critiques")
    if isinstance(said, Estimate):
        assert all(math.isfinite(value) and value > 0 for value in (said.point, *said.quantiles))
        assert all(low <= high for low, high in pairwise(said.quantiles))
        assert said.q05 <= said.point <= said.q95
    if isinstance(said, Probability):
        assert 0 <= said.p_yes <= 1
    if isinstance(said, Distribution):
        assert said.as_dict().keys() == {option.id for option in OPTIONS}
        assert math.fsum(said.as_dict().values()) == pytest.approx(1, abs=1e-9)


@given(kind=st.sampled_from(KINDS), yields=st.sampled_from(YIELDS), text=TEXT | VALUES.map(json.dumps))
def test_no_text_is_ever_read_by_accident_or_crashes(kind: str, yields: str, text: str) -> None:
    check(kind, yields, text)
    assert json.dumps(text)  # whatever it holds, it can be recorded


@given(case=nearly_good(), yields=st.sampled_from(YIELDS))
def test_a_reply_is_read_under_every_rule_or_refused(case: tuple[str, str], yields: str) -> None:
    check(case[0], yields, case[1])


@given(value=st.dictionaries(TEXT, VALUES, max_size=4), before=TEXT, after=TEXT)
def test_an_object_is_cut_out_as_it_is_or_not_at_all(value: dict[str, Any], before: str, after: str) -> None:
    written = json.dumps(value)
    try:
        cut, _ = extract_object(before + written + after)
    except ContractError:
        return
    assert "{" in before or json.loads(cut) == value


@given(p=st.floats(0, 1))
def test_a_probability_is_never_moved(p: float) -> None:
    outcome = read_reply(reply(answer=answer_json("probability", p_yes=p)), Expected(question("probability"), "answer"))
    assert isinstance(outcome, Answered)
    assert isinstance(outcome.said, Probability)
    assert outcome.said.p_yes == p


@given(n=st.integers(0, 40), parts=st.lists(st.text() | st.integers(), max_size=4))
def test_a_seeded_order_is_a_permutation_that_depends_on_its_parts_only(n: int, parts: list[str | int]) -> None:
    order = seeded_order(n, *parts)
    assert sorted(order) == list(range(n))
    assert order == seeded_order(n, *parts)


@given(value=VALUES)
def test_canonical_bytes_are_ascii_and_give_the_value_back(value: Any) -> None:
    written = canonical_json(value)
    assert written.isascii()
    assert json.loads(written) == value
    assert tagged_hash("a", value) != tagged_hash("b", value)
