"""What an answer cites, and whether it is there: ids against what was retrieved or given, quotes against its text."""

from __future__ import annotations

from collections.abc import Container, Mapping

from pydantic import JsonValue

from consilience.core.answers import AnyAnswer, Estimate, Quote
from consilience.evidence.quotes import contains_passage


def cited_ids(answer: AnyAnswer) -> tuple[str, ...]:
    """Return every id an answer cites, quotes or adjusts, once each, in the order it names them.

    Example:
        >>> from consilience.core.answers import Probability
        >>> cited_ids(Probability(p_yes=0.2, rationale="", evidence_ids=("D02", "D01", "D02"), reasoning_summary="",
        ...                       counterarguments=(), missing_data=()))
        ('D02', 'D01')
    """
    adjusted = [row.evidence_id for row in answer.adjustments] if isinstance(answer, Estimate) else []
    return tuple(dict.fromkeys((*answer.evidence_ids, *(quote.evidence_id for quote in answer.quotes), *adjusted)))


def unknown_ids(answer: AnyAnswer, known: Container[str]) -> tuple[str, ...]:
    """Return the cited ids that do not exist; compared exactly, so that ``d01`` is not ``D01``.

    Example:
        >>> from consilience.core.answers import Probability
        >>> unknown_ids(Probability(p_yes=0.2, rationale="", evidence_ids=("D01", "D09"), reasoning_summary="",
        ...                         counterarguments=(), missing_data=()), {"D01"})
        ('D09',)
    """
    return tuple(name for name in cited_ids(answer) if name not in known)


def missing_quotes(answer: AnyAnswer, contents: Mapping[str, JsonValue]) -> tuple[Quote, ...]:
    """Return the quotes that the item they name does not contain, as `contains_passage` reads it.

    A quote of an id that is not in ``contents`` is not among them: that is an unknown id, or a text nobody kept.

    Example:
        >>> from consilience.core.answers import Probability
        >>> quotes = (Quote(evidence_id="D01", text="rose by 3 %"), Quote(evidence_id="D01", text="rose by 4 %"))
        >>> answer = Probability(p_yes=0.2, rationale="", evidence_ids=(), reasoning_summary="", counterarguments=(),
        ...                      missing_data=(), quotes=quotes)
        >>> [quote.text for quote in missing_quotes(answer, {"D01": {"text": "Rates rose by 3 % in May."}})]
        ['rose by 4 %']
    """
    return tuple(
        quote
        for quote in answer.quotes
        if quote.evidence_id in contents and not contains_passage(contents[quote.evidence_id], quote.text)
    )
