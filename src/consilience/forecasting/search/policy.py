"""Which sources an agent may be shown: hosts, the question's own pages, and what a crowd or a market says of it.

The order is fixed: an unfit address, the blocklist (prediction markets, the run's own, the question's own), the
question's pages, the allowlist, and last the text. What is blocked by host is blocked behind archives, caches and
redirects too. Nobody passes a policy by argument: it belongs to the run and its digest to the record.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from pydantic import field_validator

from consilience.core.canonical import tagged_hash
from consilience.core.question import Strict
from consilience.forecasting.search.crowd import MARKET_HOSTS, RULES, states_crowd_forecast
from consilience.forecasting.search.document import Hit
from consilience.forecasting.search.urls import (
    canonical_host,
    hosts_behind,
    is_public,
    read_url,
    urls_in,
    within,
    words_of,
)


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
        return tagged_hash("source-policy", {**self.model_dump(mode="json"), **RULES})

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
        if reason is None and self.block_crowd_forecasts and _tells_a_price(hit, address.url):
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


def _tells_a_price(hit: Hit, url: str) -> bool:
    """Return whether anything an agent is shown of a hit states a crowd forecast; its address is shown, too."""
    texts = (f"{hit.title}\n{hit.text}", f"{words_of(url)}\n{hit.title}")
    return any(states_crowd_forecast(text) for text in texts)


def _why_own_page(url: str, question: Asked) -> str | None:
    own = None if question.url is None else read_url(question.url).url
    if own is not None and _same_page(url, own, below=True):
        return "question's page"
    if any(_same_page(url, page, below=False) for page in urls_in(question.resolution_criteria)):
        return "resolution page"
    return None


def _same_page(url: str, page: str, *, below: bool) -> bool:
    """Return whether two addresses lead to one page, whatever the scheme, ``www.`` and parameters beyond the page's."""
    path, _, query = _bare(url).partition("?")
    page_path, _, page_query = _bare(page).partition("?")
    if path == page_path:
        return not Counter(page_query.split("&")) - Counter(query.split("&")) if page_query else True
    return below and "/" in page_path.rstrip("/") and path.startswith(page_path.rstrip("/") + "/")


def _bare(url: str) -> str:
    return url.partition("://")[2].removeprefix("www.")
