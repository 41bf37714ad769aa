"""Which sources an agent may be shown: hosts, the question's own pages, and what a crowd or a market says of it.

The order is fixed: an unfit address, the blocklist (prediction markets, the run's own, the question's own), the
question's pages, the allowlist, and last the text. What is blocked by host is blocked behind archives, caches and
redirects too. Nobody passes a policy by argument: it belongs to the run and its digest to the record.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Protocol

from pydantic import field_validator

from consilience.core.canonical import tagged_hash
from consilience.core.question import Strict
from consilience.forecasting.search.document import Hit
from consilience.forecasting.search.urls import canonical_host, hosts_behind, is_public, read_url, urls_in, within

MARKET_HOSTS = (
    # real-money and play-money markets on events
    *("polymarket.com", "polymarket.us", "kalshi.com", "manifold.markets", "manifold.love", "predictit.org"),
    *("smarkets.com", "betfair.com", "betfair.com.au", "matchbook.com", "iemweb.biz.uiowa.edu", "hypermind.com"),
    *("futuur.com", "insightprediction.com", "limitless.exchange", "myriad.markets", "augur.net", "zeitgeist.pm"),
    *("omen.eth.limo", "drift.trade", "forecastex.com", "sxbet.io", "sx.bet", "thalesmarket.io", "opinion.trade"),
    # forecasting platforms with a public crowd forecast
    *("metaculus.com", "gjopen.com", "goodjudgment.com", "goodjudgment.io", "infer-pub.com"),
    *("randforecastinginitiative.org", "fatebook.io", "predictionbook.com", "metaforecast.org", "foretold.io"),
    *("cultivatelabs.com", "forecastbench.org"),
    # pages that gather their prices, and bookmakers' odds
    *("electionbettingodds.com", "polymarketanalytics.com", "polymarketwhales.info", "adj.news", "predyx.com"),
    *("oddschecker.com", "oddsportal.com", "paddypower.com", "williamhill.com", "ladbrokes.com", "bet365.com"),
    *("bovada.lv", "betonline.ag", "draftkings.com", "fanduel.com", "pinnacle.com", "unibet.com", "skybet.com"),
)
"""Hosts blocked by default: their pages state the crowd's forecast, often of the very question."""

NEAR = 100
"""Characters between a number and the name of a market or crowd that make a stated forecast."""
BESIDE = 40
"""Characters between a number and a word such as chance, where traders in general are named."""

_NUMBER = (
    r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,2})?[ ]?(?:%|per ?cent\b|percentage points?\b|¢|c\b|cents?\b)"
    r"|(?<![0-9.])\$?0?\.[0-9]{1,4}\b|\b[0-9]{1,4}[ ]?(?:/|-|to)[ ]?[0-9]{1,3}\b(?:[ ]odds)?"
    r"|(?<![0-9])[+-][0-9]{3,5}\b|\b[0-9]{1,3} (?:in|out of) [0-9]{1,4}\b|\b[0-9]{1,2}-in-[0-9]{1,3}\b"
)
_TOKENS = re.compile(
    r"(?P<crowd>polymarket|kalshi|manifold markets|manifold\.markets|metaculus|predictit|betfair|smarkets|hypermind"
    r"|good judgment open|gjopen|infer-pub|prediction[- ]markets?|betting (?:markets?|odds|sites?)"
    r"|event contracts?|bookmakers?|bookies|oddsmakers?|sportsbooks?|superforecasters?|fedwatch"
    r"|(?:market-)?implied (?:probability|odds|chance)|market[- ]implied"
    r"|(?:community|crowd|crowd's|crowdsourced|aggregate) (?:prediction|forecast|median|estimate|probability)"
    r"|(?:yes|no)[- ](?:shares?|contracts?|price)|\byes trade[ds]?\b)"
    r"|(?P<actor>\btraders?\b|\binvestors\b|\bbettors\b|\bpunters\b|\bgamblers\b|\bwagers?\b|\bmarkets?\b|\bfutures\b"
    r"|\bswaps\b|\bforecasters\b)"
    r"|(?P<chance>\bchances?\b|\bprobabilit(?:y|ies)\b|\bodds\b|\blikelihood\b|\blikely\b)"
    rf"|(?P<number>{_NUMBER})"
)
_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


class Asked(Protocol):
    """What a policy reads of a question."""

    @property
    def url(self) -> str | None:
        """Its own page."""
        ...

    @property
    def resolution_criteria(self) -> str:
        """How it resolves."""
        ...

    @property
    def blocked_domains(self) -> tuple[str, ...]:
        """Hosts that it forbids itself."""
        ...


class SourcePolicy(Strict):
    """Which sources may be shown. Hosts are kept in IDNA and lower case; subdomains inherit.

    Attributes:
        blocked: Hosts never shown.
        allowed: The only hosts shown; all where it is empty. A blocked host stays blocked.
        block_markets: Prediction markets, crowd platforms and bookmakers (`MARKET_HOSTS`) are blocked.
        block_question_pages: The question's own page and those its resolution criteria link to are blocked.
        block_crowd_forecasts: A document that states a market's or a crowd's forecast is blocked.
        block_private: Hosts that are no public sites are blocked, so that no tool is led into a local network.

    Example:
        >>> SourcePolicy(blocked=("*.Example.ORG",)).blocked
        ('example.org',)
    """

    blocked: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    block_markets: bool = True
    block_question_pages: bool = True
    block_crowd_forecasts: bool = True
    block_private: bool = True

    @field_validator("blocked", "allowed")
    @classmethod
    def _hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        hosts = {raw: canonical_host(raw.strip().removeprefix("*").removeprefix(".")) for raw in value}
        unfit = [raw for raw, host in hosts.items() if host is None]
        if unfit:
            raise ValueError(f'"{unfit[0]}" is no host name; give hosts without scheme and path')
        return tuple(sorted({host for host in hosts.values() if host is not None}))

    @property
    def digest(self) -> str:
        """SHA-256 of all that decides: the fields, the list of markets and the patterns of a stated forecast."""
        rules = {"markets": MARKET_HOSTS, "patterns": _TOKENS.pattern, "near": NEAR, "beside": BESIDE}
        return tagged_hash("source-policy", self.model_dump(mode="json") | rules)

    def why_blocked(self, hit: Hit, question: Asked) -> str | None:
        """Return why a hit may not be shown, in a word or two; None where it may.

        Reasons: ``unfit address: …``, ``prediction market``, ``blocked host``, ``private host``, ``question's page``,
        ``resolution page``, ``not an allowed host``, ``states a crowd forecast``.
        """
        address = read_url(hit.url)
        if address.url is None or address.host is None:
            return f"unfit address: {address.problem}"
        reason = self._why_host_blocked(address.url, address.host, question)
        if reason is None and self.block_question_pages:
            reason = _why_own_page(address.url, question)
        if reason is None and self.allowed and not any(within(address.host, domain) for domain in self.allowed):
            reason = "not an allowed host"
        if reason is None and self.block_crowd_forecasts and states_crowd_forecast(f"{hit.title}\n{hit.text}"):
            reason = "states a crowd forecast"
        return reason

    def _why_host_blocked(self, url: str, host: str, question: Asked) -> str | None:
        named = (host, *hosts_behind(url))
        if self.block_markets and any(within(name, domain) for name in named for domain in MARKET_HOSTS):
            return "prediction market"
        own = [
            canonical_host(domain.strip().removeprefix("*").removeprefix(".")) for domain in question.blocked_domains
        ]
        blocked = {*self.blocked, *(domain for domain in own if domain is not None)}
        if any(within(name, domain) for name in named for domain in blocked):
            return "blocked host"
        return "private host" if self.block_private and not is_public(host) else None


def states_crowd_forecast(text: str) -> bool:
    """Return whether a text states what a market or a crowd holds likely, of whatever question.

    It does where a number that can be a probability or a price (percent, cents, a fraction below one, odds) stands
    within `NEAR` characters of a market, a crowd forecast or a bookmaker; or of traders, investors and markets in
    general when a word such as chance or probability stands within `BESIDE` characters of the number. Whether the
    forecast is of this very question is not judged: a document lost is recorded, a price let through is a leak.
    Linear in the text.

    Example:
        >>> states_crowd_forecast("There is a 63% chance on Polymarket.")
        True
        >>> states_crowd_forecast("The market price of copper rose 5% on Monday, traders said.")
        False
    """
    plain = _HIDDEN.sub("", text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()
    ends: dict[str, int] = {}
    for token in _TOKENS.finditer(plain):
        kind = token.lastgroup or ""
        ends[kind] = token.end()
        start = token.start()
        near = {name: start - end for name, end in ends.items() if name != kind}
        if kind == "number" and near.get("crowd", NEAR + 1) <= NEAR:
            return True
        if kind == "crowd" and near.get("number", NEAR + 1) <= NEAR:
            return True
        if {"actor", "chance", "number"} == {kind, *near} & {"actor", "chance", "number"} and _together(ends, start):
            return True
    return False


def _together(ends: dict[str, int], start: int) -> bool:
    apart = abs(ends["number"] - ends["chance"])
    return (
        apart <= BESIDE
        and abs(ends["actor"] - ends["number"]) <= NEAR
        and start - min(ends[name] for name in ("actor", "chance", "number")) <= NEAR
    )


def _why_own_page(url: str, question: Asked) -> str | None:
    own = None if question.url is None else read_url(question.url).url
    if own is not None and _same_page(url, own, below=True):
        return "question's page"
    if any(_same_page(url, page, below=False) for page in urls_in(question.resolution_criteria)):
        return "resolution page"
    return None


def _same_page(url: str, page: str, *, below: bool) -> bool:
    """Return whether two addresses lead to one page, whatever the scheme, ``www.`` and parameters the page lacks."""
    path, _, query = _bare(url).partition("?")
    page_path, _, page_query = _bare(page).partition("?")
    if path == page_path:
        return not page_query or query == page_query
    return below and "/" in page_path.rstrip("/") and path.startswith(page_path.rstrip("/") + "/")


def _bare(url: str) -> str:
    return url.partition("://")[2].removeprefix("www.")
