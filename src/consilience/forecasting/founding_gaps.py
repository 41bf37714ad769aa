"""What a founding trace cannot prove, said file by file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, Literal

from consilience.core.question import Strict
from consilience.forecasting.founding_shape import Found, FoundMessage, FoundTrace, parts
from consilience.forecasting.search.dates import parse_date

GapName = Literal[
    "undated_results",
    "trimmed_texts",
    "failed_calls_not_recorded",
    "sampling_settings_not_recorded",
    "latencies_not_recorded",
    "finish_reasons_not_recorded",
    "market_price_in_prompt",
    "no_integrity",
    "agents_without_forecast",
    "unknown_fields",
    "unknown_actions",
    "aggregation_not_recomputed",
    "supervisor_confidence_unknown",
]
Answer = Literal["yes", "no", "unknown"]

_CALL_FIELDS: Final[tuple[tuple[GapName, str, frozenset[str]], ...]] = (
    (
        "failed_calls_not_recorded",
        "calls that failed or were retried are not recorded: their number, cost and errors are unknown",
        frozenset({"error", "status", "failure", "failure_reason", "attempt", "attempts"}),
    ),
    (
        "sampling_settings_not_recorded",
        "sampling settings are not recorded per call, so no call can be repeated as it was",
        frozenset({"temperature", "top_p", "seed", "max_tokens", "sampling"}),
    ),
    (
        "latencies_not_recorded",
        "how long a call took is not recorded",
        frozenset({"latency", "latency_s", "latency_ms", "latency_seconds", "duration", "duration_seconds"}),
    ),
    (
        "finish_reasons_not_recorded",
        "why a reply ended is not recorded, so a cut one looks like a complete one",
        frozenset({"finish_reason", "stop_reason"}),
    ),
)
_TWO_INSTANTS: Final = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2001, 7, 15, tzinfo=UTC))
_CUT: Final = re.compile(r"(?:…|\.\.\.|\[(?:truncated|trimmed|cut)\])\s*$", re.IGNORECASE)


class Gap(Strict):
    """Something a file cannot prove.

    Attributes:
        name: What, by name.
        answer: To the question whether it is so; ``unknown`` where the file cannot tell even that.
        message: What was found, in one sentence.
        count: How often; None where counting makes no sense.
        of: Of how many; None where that makes no sense.
    """

    name: GapName
    answer: Answer
    message: str
    count: int | None = None
    of: int | None = None


def gaps(trace: FoundTrace) -> tuple[Gap, ...]:
    """Return what the file cannot prove, always in the same order; a name with the answer ``no`` was looked for.

    Example:
        >>> read = FoundTrace.model_validate({"question": {"question": "?"}, "agents": []})
        >>> [(gap.name, gap.answer) for gap in gaps(read)][:3]
        [('undated_results', 'unknown'), ('trimmed_texts', 'no'), ('failed_calls_not_recorded', 'yes')]
    """
    return (_undated(trace), _trimmed(trace), *_call_fields(trace), _price(trace), _NO_INTEGRITY, _unknown(trace))


_NO_INTEGRITY: Final = Gap(
    name="no_integrity",
    answer="yes",
    message="the file has no schema version, no hash and no log of tools: what was searched, filtered or dropped and "
    "whether it was edited cannot be checked",
)


def _undated(trace: FoundTrace) -> Gap:
    results = [result for agent in trace.agents for result in agent.results()] + trace.supervisor_results()
    dated = [result for result in results if (result.published or "").strip()]
    read = sum(1 for result in dated if _is_date(result.published or ""))
    undated = len(results) - read
    message = f"{read} of {len(results)} results carry a date that can be read"
    if len(dated) > read:
        message += f", {len(dated) - read} carry something else in its place"
    if undated:
        message += ": that the others were published before the cutoff cannot be shown"
    answer: Answer = "unknown" if not results else "yes" if undated else "no"
    return Gap(name="undated_results", answer=answer, message=message, count=undated, of=len(results))


def _is_date(text: str) -> bool:
    """Whether a text is a date by itself: an age is none, because nobody knows from when it counts."""
    first, second = (parse_date(text, retrieved_at=instant) for instant in _TWO_INSTANTS)
    return first is not None and first == second


def _trimmed(trace: FoundTrace) -> Gap:
    places: Counter[str] = Counter()
    texts = 0
    for path, text in _texts(trace):
        texts += 1
        places[path] += bool(_CUT.search(text))
    found = {path: times for path, times in places.items() if times}
    told = ", ".join(f"{path} {times}" for path, times in found.items())
    message = f"texts that end as if cut (… or ...): {told}; what stood there is lost" if found else "no text ends in …"
    count = sum(found.values())
    return Gap(name="trimmed_texts", answer="yes" if found else "no", message=message, count=count, of=texts)


def _texts(trace: FoundTrace) -> Iterator[tuple[str, str]]:
    for path, part in parts(trace):
        for name in type(part).model_fields:
            value = getattr(part, name)
            rows = value if isinstance(value, list) else [value]
            yield from ((f"{path}.{name}".lstrip("."), row) for row in rows if isinstance(row, str))


def _call_fields(trace: FoundTrace) -> Iterator[Gap]:
    """Yield what calls do not say; a newer file that says it in some field is believed."""
    calls = trace.calls()
    for name, message, fields in _CALL_FIELDS:
        telling = sum(1 for call in calls if fields & call.unknown().keys())
        complete = bool(calls) and telling == len(calls)
        said = f"{telling} of {len(calls)} calls tell of it" if telling else message
        yield Gap(
            name=name, answer="no" if complete else "yes", message=said, count=len(calls) - telling, of=len(calls)
        )


def _price(trace: FoundTrace) -> Gap:
    price, calls = trace.question.current_market_price, trace.calls()
    if price is None or not calls:
        missing = "no market price is recorded" if price is None else "no prompt is recorded"
        message = f"{missing}, so nobody can say whether it was shown"
        return Gap(name="market_price_in_prompt", answer="unknown", message=message, of=len(calls))
    pattern = _written(price)
    shown = [call for call in calls if any(map(pattern.search, _prompted(call.messages or [])))]
    message = f"the market's price {price:g} stands in the prompt of {len(shown)} of {len(calls)} calls"
    if shown:
        message += " (as a number; a coincidence is possible)"
    answer: Answer = "yes" if shown else "no"
    return Gap(name="market_price_in_prompt", answer=answer, message=message, count=len(shown), of=len(calls))


def _prompted(messages: list[FoundMessage]) -> Iterator[str]:
    return (message.text() for message in messages if message.role != "assistant")


def _written(price: float) -> re.Pattern[str]:
    r"""Return a pattern for a probability as people write it.

    Example:
        >>> [bool(_written(0.07).search(text)) for text in ("at 0.07.", "7%", "7.0 %", "0.070", "17%", "0.075")]
        [True, True, True, True, False, False]
    """
    share, percent = f"{price:.10f}".rstrip("0").rstrip("."), f"{price * 100:.8f}".rstrip("0").rstrip(".")
    zeros = r"0*" if "." in share else r"(?:\.0+)?"
    zeros_percent = r"0*" if "." in percent else r"(?:\.0+)?"
    bare = re.escape(share.removeprefix("0")) if share.startswith("0.") else re.escape(share)
    decimal = rf"(?<![\d.,])0?{bare}{zeros}(?![\d%]|\.\d)"
    return re.compile(rf"{decimal}|(?<![\d.,]){re.escape(percent)}{zeros_percent}\s?(?:%|percent|per cent)")


def _unknown(trace: FoundTrace) -> Gap:
    found: Counter[str] = Counter()
    for path, part in parts(trace):
        found.update(f"{path}.{name}".lstrip(".") for name in _unknown_names(part))
    message = "fields of no known generation, kept as they are: " + ", ".join(sorted(found)) if found else "none"
    return Gap(name="unknown_fields", answer="yes" if found else "no", message=message, count=sum(found.values()))


def _unknown_names(part: Found) -> list[str]:
    return list(part.unknown())
