"""What is derived from an accepted answer in code, never asked of the model: heuristic, and labelled so.

The lists are found by form (bullets, numbers, words), not by meaning. They are recomputed on a replay, not read back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from consilience.core.answers import AnyAnswer, Choice, Estimate, Probability
from consilience.core.question import Strict

MOST_FINDINGS = 10
MOST_UNCERTAINTIES = 5

Sentiment = Literal["strongly_bullish", "bullish", "neutral", "bearish", "strongly_bearish"]
Volume = Literal["high", "medium", "low"]

_BULLET = re.compile(r"(?:[*\-+•‣▪◦·–—]|\d{1,2}[.)])\s+(?P<item>\S.*)")
_MARKER = re.compile(r"(?<!\w)\((\d{1,2})\)")
_JOINING = re.compile(r"[,;]? ?(?:\b(?:and|or))?$")
_DOUBT = re.compile(r"(?<![^\W_])(?:uncertain|unclear|unknown|risk|caveat|however|but|although)", re.IGNORECASE)
"""Words are told apart here as readers do: an underscore before one is emphasis."""
_END = re.compile(r"(?:(?<![.!?…])[.!?…]++[\"'”’»)\]*_]*+(?=\s)|[。！？]++[」』”’）]*+)\s*+")
"""Possessive, so that the time is linear in the text."""
_DOTTED = re.compile(r"(?<!\w)(?:\w\.)+$")
_LAST_WORD = re.compile(r"(?<!\w)(\w+)\.$")
_LONGEST_ABBREVIATION = 40
_PARAGRAPH = re.compile(r"\n\s*\n")
_TITLES = frozenset({"mr", "mrs", "ms", "dr", "prof", "gov", "sen", "rep", "gen", "col", "lt", "capt", "sgt", "hon"})
_SHORTENED = frozenset({"st", "jr", "sr", "inc", "ltd", "corp", "vs", "approx", "est", "dept", "al", "mt", "cf"})
_MONTHS = frozenset({"jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec"})
_BEFORE_NUMBERS = _MONTHS | {"no", "nos", "fig", "vol", "pp", "ca", "sec", "art", "ch", "eq"}


class Derived(Strict):
    """What the artefact of an accepted answer shows besides the answer.

    Attributes:
        label: What all of it is.
        extremity: 2·|p − ½| in [0, 1]; None for every kind but a probability.
        sentiment: In five classes; None for every kind but a probability.
        stated_confidence: What the model volunteered, in [0, 1]; never mixed with the extremity.
        key_findings: At most ten.
        findings_found: How many there were.
        uncertainties: At most five.
        uncertainties_found: How many there were.
        evidence_volume: How much was looked at.
    """

    label: Literal["heuristic"] = "heuristic"
    extremity: float | None
    sentiment: Sentiment | None
    stated_confidence: float | None
    key_findings: tuple[str, ...]
    findings_found: int
    uncertainties: tuple[str, ...]
    uncertainties_found: int
    evidence_volume: Volume


def derive(answer: AnyAnswer, *, sources: int, queries: int) -> Derived:
    r"""Return what is derived from an accepted answer.

    Args:
        answer: The answer; its rationale and its summary are read.
        sources: Distinct sources that were kept.
        queries: Distinct queries that were carried out.

    Example:
        >>> said = Probability(p_yes=0.9, rationale="- Rates fell.\n- Votes are due.", evidence_ids=(),
        ...                    reasoning_summary="However, it is early.", counterarguments=(), missing_data=())
        >>> found = derive(said, sources=5, queries=1)
        >>> found.extremity, found.sentiment, found.key_findings, found.uncertainties, found.evidence_volume
        (0.8, 'strongly_bullish', ('Rates fell.', 'Votes are due.'), ('However, it is early.',), 'medium')
    """
    text = rationale_of(answer)
    findings, doubts = all_findings(text), all_uncertainties(text)
    p = answer.p_yes if isinstance(answer, Probability) else None
    return Derived(
        extremity=None if p is None else extremity(p),
        sentiment=None if p is None else sentiment(p),
        stated_confidence=answer.confidence if isinstance(answer, Probability | Choice) else None,
        key_findings=findings[:MOST_FINDINGS],
        findings_found=len(findings),
        uncertainties=doubts[:MOST_UNCERTAINTIES],
        uncertainties_found=len(doubts),
        evidence_volume=evidence_volume(sources=sources, queries=queries),
    )


def rationale_of(answer: AnyAnswer) -> str:
    r"""Return the texts in which an answer gives its reasons: the rationale, then the summary, as two paragraphs.

    Example:
        >>> rationale_of(Probability(p_yes=0.5, rationale="A.", evidence_ids=(), reasoning_summary="B.",
        ...                          counterarguments=(), missing_data=()))
        'A.\n\nB.'
    """
    own = answer.confidence_rationale if isinstance(answer, Estimate) else answer.rationale
    return "\n\n".join(part for part in (own, answer.reasoning_summary) if part.strip())


def extremity(p: float) -> float:
    """Return 2·|p − ½|: 0 at one half, 1 at certainty. The founding text calls it confidence; it is none.

    Raises:
        ValueError: ``p`` is outside [0, 1] or no number.

    Example:
        >>> extremity(0.12), extremity(0.5)
        (0.76, 0.0)
    """
    if not 0 <= p <= 1:
        raise ValueError(f"a probability lies in [0, 1], not at {p}")
    return 2 * abs(p - 0.5)


def sentiment(p: float) -> Sentiment:
    """Return the class of a probability: above .8, .6, .4, .2, or not; a limit belongs to the lower class.

    Raises:
        ValueError: ``p`` is outside [0, 1] or no number.

    Example:
        >>> sentiment(0.8), sentiment(0.81), sentiment(0.2)
        ('bullish', 'strongly_bullish', 'strongly_bearish')
    """
    if not 0 <= p <= 1:
        raise ValueError(f"a probability lies in [0, 1], not at {p}")
    if p > 0.8:
        return "strongly_bullish"
    if p > 0.6:
        return "bullish"
    if p > 0.4:
        return "neutral"
    return "bearish" if p > 0.2 else "strongly_bearish"


def evidence_volume(*, sources: int, queries: int) -> Volume:
    """Return how much was looked at: high with 10 sources and 3 queries, medium with 5 sources or 2 queries, else low.

    Example:
        >>> evidence_volume(sources=10, queries=3), evidence_volume(sources=20, queries=1)
        ('high', 'medium')
    """
    if sources >= 10 and queries >= 3:
        return "high"
    return "medium" if sources >= 5 or queries >= 2 else "low"


def key_findings(text: str) -> tuple[str, ...]:
    """Return the findings a text lists, at most ten; none found, none.

    Lines with a bullet or a number; without any, two or more parts marked (1), (2), … in a sentence, the last of which
    ends with its sentence.

    Example:
        >>> key_findings("Because (1) rates in the U.S. fell, and (2) votes are due. So yes.")
        ('rates in the U.S. fell', 'votes are due.')
    """
    return all_findings(text)[:MOST_FINDINGS]


def all_findings(text: str) -> tuple[str, ...]:
    r"""Return what `key_findings` takes its ten from.

    Example:
        >>> len(all_findings("\n".join(f"- finding {number}" for number in range(12))))
        12
    """
    bulleted = tuple(item for line in text.splitlines() if (item := _bulleted(line)) is not None)
    return bulleted or _inline_findings(text)


def _bulleted(line: str) -> str | None:
    """Return what follows the bullet or number of a line; None without one, or without a word behind it."""
    found = _BULLET.fullmatch(line.strip())
    return found["item"] if found and re.search(r"\w", found["item"]) else None


def _inline_findings(text: str) -> tuple[str, ...]:
    """Return the parts after (1), (2), … while they count up by one; fewer than two are a remark."""
    marks: list[re.Match[str]] = []
    for found in _MARKER.finditer(text):
        if int(found[1]) == len(marks) + 1:
            marks.append(found)
    if len(marks) < 2:
        return ()
    ends = [mark.start() for mark in marks[1:]]
    parts = [_trimmed(text[mark.end() : end]) for mark, end in zip(marks, ends, strict=False)]
    parts.append(next(_sentences(_PARAGRAPH.split(text[marks[-1].end() :].strip())[0]), ""))
    kept = tuple(" ".join(part.split()) for part in parts if re.search(r"\w", part))
    return kept if len(kept) >= 2 else ()


def _trimmed(part: str) -> str:
    """Return a part of an enumeration without what joins it to the next."""
    return _JOINING.sub("", " ".join(part.split()))


def uncertainties(text: str) -> tuple[str, ...]:
    """Return the sentences with a word that starts like one of doubt, at most five, in order.

    Words that start with uncertain, unclear, unknown, risk, caveat, however, but or although; "distribution" has
    "but" inside, not at its start. Headings are no sentences.

    Example:
        >>> uncertainties("The distribution is wide. Turnout is unknown.")
        ('Turnout is unknown.',)
    """
    return all_uncertainties(text)[:MOST_UNCERTAINTIES]


def all_uncertainties(text: str) -> tuple[str, ...]:
    """Return what `uncertainties` takes its five from.

    Example:
        >>> all_uncertainties("But why? Risks: 1.5 million at U.S. banks. Fine.")
        ('But why?', 'Risks: 1.5 million at U.S. banks.')
    """
    return tuple(sentence for block in _blocks(text) for sentence in _sentences(block) if _DOUBT.search(sentence))


def _blocks(text: str) -> Iterator[str]:
    """Yield runs of text that no sentence crosses: a bulleted line with what continues it, or a paragraph."""
    block: list[str] = []
    for line in text.splitlines():
        item = _bulleted(line)
        if item or not line.strip() or _is_heading(line):
            yield " ".join(block)
            block = [item] if item else []
        elif _MARKER.match(line.lstrip()):
            yield " ".join(block)
            block = [line.strip()]
        else:
            block.append(line.strip())
    yield " ".join(block)


def _is_heading(line: str) -> bool:
    """Return whether a line is a Markdown heading, or at most four words and a colon."""
    return line.lstrip().startswith("#") or (line.rstrip().endswith(":") and len(line.split()) <= 4)


def _sentences(block: str) -> Iterator[str]:
    """Yield the sentences of a run of text; when in doubt (an abbreviation, a small letter next) it goes on."""
    start = 0
    for end in _END.finditer(block):
        before = block[max(start, end.start() - _LONGEST_ABBREVIATION) : end.start()]
        if end.end() < len(block) and not _ends_sentence(before, end[0].strip(), block[end.end()]):
            continue
        yield block[start : end.end()].strip()
        start = end.end()
    if block[start:].strip():
        yield block[start:].strip()


def _ends_sentence(before: str, mark: str, following: str) -> bool:
    if following.islower():
        return False
    if mark[0] != "." or mark[1:2] in set(".!?…"):
        return True
    last = f"{before}."
    if _DOTTED.search(last) and not last[-2].isdigit():
        return False
    word = _LAST_WORD.search(last)
    name = word[1].lower() if word else ""
    return name not in _TITLES | _SHORTENED and not (name in _BEFORE_NUMBERS and following.isdigit())
