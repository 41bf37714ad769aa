"""What a post of the Metaculus API asks: its question, or those of its group, as this package's questions.

The range of a date question is in seconds since 1970 UTC there and here. A resolution that is no value of the range
(``annulled``, ``ambiguous``, ``above_upper_bound``, ``below_lower_bound``) is null and keeps its word. The day a
question was resolved is ``known_on``; what agents see is the day it was due.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consilience.core.question import option_label
from consilience.errors import DataError
from consilience.forecasting.feeds.base import (
    Skipped,
    day_of,
    instant_of,
    joined,
    make_question,
    number_of,
    objects,
    refuse,
    text_of,
)
from consilience.forecasting.questions import ForecastQuestion

KINDS = frozenset({"binary", "multiple_choice", "numeric", "discrete", "date"})
ID_PREFIX = "metaculus-"
"""Before the number of a question, which is what a forecast is submitted for."""


def questions_of_post(
    post: Mapping[str, Any], *, where: str, base_url: str, skipped: list[Skipped] | None = None
) -> list[ForecastQuestion]:
    """Return the questions of a post.

    Args:
        post: As the API gives it.
        where: Its name in messages.
        base_url: Where its page is.
        skipped: Takes what holds no question to ask; without it that is an error.

    Raises:
        DataError: The post is not what the API promises; the field is named.

    Example:
        >>> post = {"id": 7, "question": {"id": 9, "title": "Rain?", "type": "binary", "resolution": "annulled"}}
        >>> asked, = questions_of_post(post, where="post 7", base_url="https://www.metaculus.com")
        >>> asked.id, asked.url, asked.resolution.outcome, asked.resolution.said
        ('metaculus-9', 'https://www.metaculus.com/questions/7', None, 'annulled')
    """
    if not isinstance(post.get("id"), int):
        raise DataError(f"{where}, id: {post.get('id')!r} is no number", hint="Ask again; the API may have changed.")
    url = f"{base_url.rstrip('/')}/questions/{post['id']}"
    if isinstance(post.get("question"), dict):
        shared: dict[str, Any] = {}
        asked = [post["question"]]
    elif isinstance(post.get("group_of_questions"), dict):
        shared = post["group_of_questions"]
        asked = objects(shared.get("questions"), where=f"{where}, group_of_questions")
    else:
        what = "a conditional pair" if post.get("conditional") is not None else "no question (a notebook)"
        refuse(where, what, skipped)
        return []
    found = []
    for question in asked:
        here = f"{where}, question {question.get('id')}"
        if question.get("type") not in KINDS:
            refuse(here, f"a question of type {question.get('type')!r}", skipped)
            continue
        found.append(make_question(_fields(question, shared, url, where=here), where=here))
    return found


def _fields(question: Mapping[str, Any], group: Mapping[str, Any], url: str, *, where: str) -> dict[str, Any]:
    def text(field: str) -> str:
        own = text_of(question.get(field), where=where, field=field)
        return own or text_of(group.get(field), where=where, field=field)

    def part(name: str) -> Mapping[str, Any]:
        value = question.get(name)
        return value if isinstance(value, dict) else {}

    if not isinstance(question.get("id"), int):
        raise DataError(f"{where}, id: no number", hint="Ask again; the API may have changed.")
    kind, scaling = question["type"], part("scaling")
    fields: dict[str, Any] = {
        "id": f"{ID_PREFIX}{question['id']}",
        "text": text_of(question.get("title"), where=where, field="title"),
        "kind": kind,
        "description": text("description"),
        "resolution_criteria": joined((text("resolution_criteria"), text("fine_print"))),
        "open_date": day_of(question.get("open_time"), where=where, field="open_time"),
        "close_date": day_of(question.get("scheduled_close_time"), where=where, field="scheduled_close_time"),
        "resolution_date": day_of(question.get("scheduled_resolve_time"), where=where, field="scheduled_resolve_time"),
        "url": url,
        "family": "metaculus",
    }
    options = question.get("options")
    if kind == "multiple_choice" and isinstance(options, list):
        fields["options"] = [{"id": option_label(place), "label": label} for place, label in enumerate(options)]
    if kind in {"numeric", "discrete", "date"}:
        fields |= {
            "lower": number_of(scaling.get("range_min"), where=where, field="range_min"),
            "upper": number_of(scaling.get("range_max"), where=where, field="range_max"),
            "zero_point": number_of(scaling.get("zero_point"), where=where, field="zero_point"),
            "open_lower": question.get("open_lower_bound"),
            "open_upper": question.get("open_upper_bound"),
            "unit": None if kind == "date" else text("unit") or None,
        }
        inbound = question.get("inbound_outcome_count", scaling.get("inbound_outcome_count"))
        fields["inbound_outcomes"] = inbound if kind == "discrete" else None
    said = text_of(question.get("resolution"), where=where, field="resolution")
    if said:
        known = question.get("actual_resolve_time") or question.get("resolution_set_time")
        known_on = day_of(known, where=where, field="actual_resolve_time")
        fields["resolution"] = {"outcome": said, "source": "Metaculus", "known_on": known_on}
    elif kind == "binary":
        fields["market"] = _crowd(part("aggregations"), where=where)
    return fields


def _crowd(aggregations: Mapping[str, Any], *, where: str) -> dict[str, Any] | None:
    """Return the community's present forecast, which holds from the time its average was made."""
    weighted = aggregations.get("recency_weighted")
    latest = weighted.get("latest") if isinstance(weighted, dict) else None
    centers = latest.get("centers") if isinstance(latest, dict) else None
    if not isinstance(latest, dict) or not isinstance(centers, list) or not centers:
        return None
    price = number_of(centers[0], where=where, field="centers")
    start = number_of(latest.get("start_time"), where=where, field="start_time")
    since = None if start is None else instant_of(start * 1000, where=where, field="start_time")
    return None if price is None else {"price": price, "source": "Metaculus community", "as_of": since}
