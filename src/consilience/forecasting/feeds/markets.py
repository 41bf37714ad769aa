"""Prediction markets by file: what the public APIs of Polymarket and Manifold answer, saved as JSON.

Read are the answers of Polymarket's Gamma API (``/markets`` and ``/events``) and of Manifold's API v0 (``/markets``,
``/search-markets``, ``/market/ID``) as of 2025: a list, or one object. A dump does not say when it was made, so a price
has a date only where the reader gives one (``as_of``). The price of a market that is closed or resolved tells the
outcome and is no price. Questions have no cutoff: the run gives one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, ClassVar

from consilience.core.question import option_label
from consilience.errors import DataError
from consilience.forecasting.feeds.base import (
    Feed,
    Skipped,
    day_of,
    distinct,
    make_question,
    number_of,
    objects,
    read_json,
    read_text,
    refuse,
    text_of,
)
from consilience.forecasting.questions import ForecastQuestion


def _entries(path: Path, *, under: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the markets of a dump, with their place: a list, an object that holds one, or a lone market."""
    whole = read_json(read_text(path), where=str(path))
    if isinstance(whole, dict):
        whole = next((whole[name] for name in under if isinstance(whole.get(name), list)), [whole])
    for number, entry in enumerate(objects(whole, where=str(path)), start=1):
        yield f"{path}, entry {number}", entry


def _price(price: float | None, source: str, as_of: datetime | None) -> dict[str, Any] | None:
    return None if price is None else {"price": price, "source": source, "as_of": as_of}


@dataclass(frozen=True)
class Polymarket(Feed):
    """Markets of Polymarket: yes-no questions, and two named outcomes as multiple choice.

    Attributes:
        as_of: When the file was saved; None where nobody knows, and then its prices have no date.
    """

    name: ClassVar[str] = "polymarket"

    as_of: datetime | None = None

    def read(self, path: Path, *, skipped: list[Skipped] | None = None) -> list[ForecastQuestion]:
        """Return the markets of a file; none is skipped.

        Raises:
            DataError: The file is no dump of markets, or an entry is none; entry and field are named.
        """
        del skipped
        found = []
        for where, entry in _entries(path, under=("data", "markets", "events")):
            if isinstance(entry.get("markets"), list):
                inner = objects(entry["markets"], where=f"{where}, markets")
                places = [(f"{where}, market {number}", market) for number, market in enumerate(inner, start=1)]
            else:
                places = [(where, entry)]
            found += [make_question(self._fields(market, where=place), where=place) for place, market in places]
        return distinct(found, where=str(path))

    def _fields(self, market: Mapping[str, Any], *, where: str) -> dict[str, Any]:
        names = _listed(market.get("outcomes"), where=f"{where}, outcomes")
        prices = _listed(market.get("outcomePrices"), where=f"{where}, outcomePrices")
        if len(names) < 2 or len(prices) not in {0, len(names)}:
            raise DataError(f"{where}, outcomes: {len(names)} with {len(prices)} prices", hint="Save the dump again.")
        numbers = [number_of(price, where=where, field="outcomePrices") for price in prices]
        folded = [name.casefold() for name in names]
        yes_no = sorted(folded) == ["no", "yes"]
        slug = text_of(market.get("slug"), where=where, field="slug")
        fields: dict[str, Any] = {
            "id": f"polymarket-{market.get('id')}" if market.get("id") is not None else market.get("conditionId"),
            "text": text_of(market.get("question"), where=where, field="question"),
            "kind": "binary" if yes_no else "multiple_choice",
            "description": text_of(market.get("description"), where=where, field="description"),
            "options": None if yes_no else _options(names),
            "open_date": day_of(market.get("startDate"), where=where, field="startDate"),
            "close_date": day_of(market.get("endDate"), where=where, field="endDate"),
            "url": f"https://polymarket.com/market/{slug}" if slug else None,
            "family": "polymarket",
        }
        if market.get("closed") is True:
            fields["resolution"] = _polymarket_outcome(market, names, numbers, where=where)
        elif yes_no and numbers:
            fields["market"] = _price(numbers[folded.index("yes")], "Polymarket", self.as_of)
        return fields


def _options(names: list[str]) -> list[dict[str, str]]:
    return [{"id": option_label(place), "label": name} for place, name in enumerate(names)]


def _listed(value: Any, *, where: str) -> list[str]:
    """Return a list of texts, which the Gamma API writes as JSON within a text."""
    read = read_json(value, where=where) if isinstance(value, str) and value else value
    if read is None or read == "":
        return []
    if not isinstance(read, list):
        raise DataError(f"{where}: no list", hint="Save the dump again.")
    return [str(part) for part in read]


def _polymarket_outcome(
    market: Mapping[str, Any], names: list[str], prices: list[float | None], *, where: str
) -> dict[str, Any] | None:
    """Return how a closed market was settled; a last price alone is no settlement."""
    if market.get("umaResolutionStatus") != "resolved" and market.get("automaticallyResolved") is not True:
        return None
    won = [name for name, price in zip(names, prices, strict=False) if price == 1]
    lost = [name for name, price in zip(names, prices, strict=False) if price == 0]
    clear = len(won) == 1 and len(won) + len(lost) == len(names)
    ended = str(market.get("closedTime") or "") or None
    return {
        "outcome": won[0] if clear else None,
        "source": "Polymarket",
        "said": None if clear else f"paid {prices}",
        # Written as "2025-11-05 06:11:09+00": only the day is used.
        "known_on": None if ended is None else day_of(ended[:10], where=where, field="closedTime"),
    }


@dataclass(frozen=True)
class Manifold(Feed):
    """Markets of Manifold: yes-no questions, and multiple choice whose answers exclude each other.

    Attributes:
        as_of: When the file was saved; None where nobody knows, and then its prices have no date.
    """

    name: ClassVar[str] = "manifold"

    as_of: datetime | None = None

    def read(self, path: Path, *, skipped: list[Skipped] | None = None) -> list[ForecastQuestion]:
        """Return the markets of a file; other types (polls, bounties, numbers, sets of answers) are skipped.

        Raises:
            DataError: The file is no dump of markets, or an entry is none; entry and field are named.
        """
        found = []
        for where, market in _entries(path, under=("data", "markets")):
            kind = market.get("outcomeType")
            if not isinstance(kind, str):
                raise DataError(f"{where}, outcomeType: {kind!r} is no type of market", hint="Save the dump again.")
            if kind == "BINARY":
                found.append(make_question(self._fields(market, where=where), where=where))
            elif kind != "MULTIPLE_CHOICE":
                refuse(where, f"a market of type {kind}", skipped)
            elif market.get("shouldAnswersSumToOne") is not True:
                refuse(where, "answers that do not exclude each other are questions of their own", skipped)
            elif not isinstance(market.get("answers"), list):
                refuse(where, "a list of markets does not hold the answers of a multiple-choice one", skipped)
            else:
                found.append(make_question(self._fields(market, where=where), where=where))
        return distinct(found, where=str(path), skipped=skipped)

    def _fields(self, market: Mapping[str, Any], *, where: str) -> dict[str, Any]:
        binary = market["outcomeType"] == "BINARY"
        resolved = market.get("isResolved") is True
        ended = day_of(market.get("resolutionTime"), where=where, field="resolutionTime") if resolved else None
        fields: dict[str, Any] = {
            "id": None if market.get("id") is None else f"manifold-{market['id']}",
            "text": text_of(market.get("question"), where=where, field="question"),
            "kind": "binary" if binary else "multiple_choice",
            "description": text_of(market.get("textDescription"), where=where, field="textDescription"),
            "open_date": day_of(market.get("createdTime"), where=where, field="createdTime"),
            "close_date": self._close(market, ended, where=where),
            "url": market.get("url"),
            "family": "manifold",
        }
        if not binary:
            answers = objects(market["answers"], where=f"{where}, answers")
            fields["options"] = [{"id": answer.get("id"), "label": answer.get("text")} for answer in answers]
        if resolved:
            said = text_of(market.get("resolution"), where=where, field="resolution")
            fields["resolution"] = {"outcome": said or None, "source": "Manifold", "known_on": ended}
        elif binary:
            price = number_of(market.get("probability"), where=where, field="probability")
            fields["market"] = _price(price, "Manifold", self.as_of)
        return fields

    @staticmethod
    def _close(market: Mapping[str, Any], ended: date | None, *, where: str) -> date | None:
        """Return the closing day; Manifold moves it to the end of a market that ends early, which tells the outcome."""
        closes = day_of(market.get("closeTime"), where=where, field="closeTime")
        return None if closes is not None and ended is not None and closes >= ended else closes
