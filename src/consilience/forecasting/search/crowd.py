"""What a market or a crowd is, by host and by name, and whether a text states its forecast."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

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

MARKET_NAMES = (
    *("polymarket", "kalshi", "manifold markets", "manifold love", "metaculus", "predictit", "smarkets", "betfair"),
    *("iowa electronic markets?", "iem", "hypermind", "futuur", "insight prediction", "limitless exchange"),
    *("myriad markets", "augur (?:markets?|protocol)", "zeitgeist pm", "omen (?:markets?|eth)", "drift (?:trade|bet)"),
    *("forecastex", "sx ?bet", "thales ?market", "opinion trade", "gjopen", "good ?judgment", "infer[- ]pub"),
    *("rand forecasting initiative", "fatebook", "predictionbook", "metaforecast", "foretold\\.io", "cultivate ?labs"),
    *("forecastbench", "election ?betting ?odds", "adj(?:acent)? news", "predyx", "odds ?checker", "odds ?portal"),
    *("paddy ?power", "william ?hill", "ladbrokes", "bet ?365", "bovada", "bet ?online", "draft ?kings", "fan ?duel"),
    *("unibet", "sky ?bet", "pinnacle (?:sports|odds|bookmaker)", "matchbook (?:exchange|odds|betting)"),
)
"""Their names in texts, as patterns; a name that is a word of the language stands here beside another word."""
MARKET_WORDS = (
    *("manifold", "matchbook", "pinnacle", "augur", "omen", "drift", "limitless", "myriad", "zeitgeist"),
    "foretold",
)
"""Names that are words of the language: of a market where they act as one, or where something is *on* them."""

NEAR = 100
"""Characters between a number and the name of a market or crowd that make a stated forecast."""
BESIDE = 40
"""Characters between a number and a word such as chance, where traders in general are named."""
BEHIND = 30
"""Characters between the name of a market and a bare number after it."""

_UNITS = "one|two|three|four|five|six|seven|eight|nine"
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_WORDED = rf"(?:(?:{_TENS})(?:[- ](?:{_UNITS}))?|{_UNITS}|{_TEENS}|(?:a|one) hundred)"
_NUMBER = (
    r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,2})?[ -]?(?:%|per ?cent\b|percentage points?\b|¢|c\b|cents?\b)"
    r"|(?<![0-9.])\$?0?\.[0-9]{1,4}\b|\b[0-9]{1,4}[ ]?(?:/|-|\u2044|to)[ ]?[0-9]{1,3}\b(?:[ ]odds)?"
    r"|(?<![0-9])[+-][0-9]{3,5}\b|\b[0-9]{1,3} (?:in|out of) [0-9]{1,4}\b|\b[0-9]{1,2}-in-[0-9]{1,3}\b"
    rf"|\b{_WORDED}[- ](?:per ?cent\b|percentage points?\b|cents?\b|(?:in|out of|to)[- ](?:{_WORDED}|[0-9]{{1,3}})\b)"
    r"|\b(?:one|two|three|four)[- ](?:half|thirds?|quarters?|fifths?)\b"
    r"|\b(?:fifty[- ]fifty|even money|coin[- ](?:flip|toss))\b"
)
_COUNTED = (
    r"(?![0-9.,:/-]*[0-9])(?! ?(?:k|m|mn|bn|million|billion|trillion|thousand|hundred|st|nd|rd|th|am|pm|h|x"
    r"|years?|days?|weeks?|months?|hours?|minutes?|times|people|users|traders|markets?|contracts?|states|countries|employees|staff"
    r"|others|more|new|of|january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b)\b)"
)
_BARE = (
    r"(?<![0-9.,:/$£€#-])(?<!january )(?<!february )(?<!march )(?<!april )(?<!may )(?<!june )(?<!july )(?<!august )"
    rf"(?<!september )(?<!october )(?<!november )(?<!december )\b[1-9]?[0-9](?:\.[0-9]{{1,2}})?\b{_COUNTED}"
)
_ACTING = (
    r"(?:(?:'s)? (?:markets?|users?|traders?|bettors?|crowd|community|odds|price[sd]?|has|have|had|puts?|gives?|gave"
    r"|says?|said|shows?|showed|sees?|saw|implies|implied|forecasts?|predicts?|yes|no)\b|[ ]?[:|])"
)
_TOKENS = re.compile(
    rf"(?P<name>polymarket|\b(?:{'|'.join(map(re.escape, MARKET_HOSTS))}|{'|'.join(MARKET_NAMES)})\b"
    rf"|\b(?:{'|'.join(MARKET_WORDS)}){_ACTING}|\b(?:on|at|from|via|per|by) (?:{'|'.join(MARKET_WORDS)})\b)"
    r"|(?P<crowd>good judgment open|prediction[- ]markets?|betting (?:markets?|odds|sites?)"
    r"|event contracts?|bookmakers?|bookies|oddsmakers?|sportsbooks?|superforecasters?|fedwatch"
    r"|(?:market-)?implied (?:probability|odds|chance)|market[- ]implied"
    r"|(?:community|crowd|crowd's|crowdsourced|aggregate) (?:prediction|forecast|median|estimate|probability)"
    r"|(?:yes|no)[- ](?:shares?|contracts?|price)|\byes trade[ds]?\b)"
    r"|(?P<actor>\btraders?\b|\binvestors\b|\bbettors\b|\bpunters\b|\bgamblers\b|\bwagers?\b|\bmarkets?\b|\bfutures\b"
    r"|\bswaps\b|\bforecasters\b)"
    r"|(?P<chance>\bchances?\b|\bprobabilit(?:y|ies)\b|\bodds\b|\blikelihood\b|\blikely\b)"
    rf"|(?P<number>{_NUMBER})|(?P<bare>{_BARE})"
)
_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")

RULES: Final[Mapping[str, JsonValue]] = {
    "markets": [*MARKET_HOSTS],
    "patterns": _TOKENS.pattern,
    "near": NEAR,
    "beside": BESIDE,
    "behind": BEHIND,
}
"""All that decides, for the record of a run."""


def states_crowd_forecast(text: str) -> bool:
    """Return whether a text states what a market or a crowd holds likely, of whatever question.

    It does where a number that can be a probability or a price (percent, cents, a fraction below one, odds, in digits
    or in words) stands within `NEAR` characters of a market, a crowd forecast or a bookmaker; where a bare number up to
    99 that counts nothing stands within `BEHIND` characters after the name of one; or near traders, investors and
    markets in general when a word such as chance or probability stands within `BESIDE` characters of the number.
    Whether the forecast is of this very question is not judged: a document lost is recorded, a price let through is a
    leak. Linear in the text.

    Example:
        >>> states_crowd_forecast("There is a 63% chance on Polymarket.")
        True
        >>> states_crowd_forecast("Polymarket | Yes 63")
        True
        >>> states_crowd_forecast("The market price of copper rose 5% on Monday, traders said.")
        False
    """
    plain = _HIDDEN.sub("", text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()
    ends: dict[str, int] = {}
    for token in _TOKENS.finditer(plain):
        kind = token.lastgroup or ""
        start = token.start()
        if kind == "bare":
            if start - ends.get("name", -BEHIND - 1) <= BEHIND:
                return True
            continue
        ends[kind] = token.end()
        if kind == "name":
            kind, ends["crowd"] = "crowd", token.end()
        near = {name: start - end for name, end in ends.items() if name not in {kind, "name"}}
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
