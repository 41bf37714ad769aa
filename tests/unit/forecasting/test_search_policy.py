"""Which sources may be shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from consilience.forecasting.search.crowd import MARKET_HOSTS, states_crowd_forecast
from consilience.forecasting.search.document import Hit
from consilience.forecasting.search.policy import SourcePolicy
from consilience.forecasting.search.urls import canonical_host

NAMES = {
    "betfair.com.au": "betfair",
    "iemweb.biz.uiowa.edu": "iem",
    "sx.bet": "sx bet",
    "omen.eth.limo": "omen",
    "adj.news": "adjacent news",
    "goodjudgment.com": "good judgment",
    "cultivatelabs.com": "cultivate labs",
    "randforecastinginitiative.org": "rand forecasting initiative",
    "opinion.trade": "opinion trade",
    "sxbet.io": "sx bet",
    "polymarketanalytics.com": "polymarket",
    "polymarketwhales.info": "polymarket",
    "thalesmarket.io": "thales market",
    "insightprediction.com": "insight prediction",
}
"""Where the name is not what stands before the last dot."""


@dataclass(frozen=True)
class Asked:
    url: str | None = None
    resolution_criteria: str = ""
    blocked_domains: tuple[str, ...] = ()


def hit(url: str, text: str = "Rates were held.", title: str = "Rates") -> Hit:
    return Hit(
        url=url,
        title=title,
        text=text,
        published=None,
        date_source="none",
        retrieved_at=datetime(2025, 1, 1, tzinfo=UTC),
    )


def why(url: str, policy: SourcePolicy | None = None, asked: Asked | None = None, text: str = "") -> str | None:
    return (policy or SourcePolicy()).why_blocked(hit(url, text), asked or Asked())


def test_hosts_on_the_list_are_in_their_one_spelling() -> None:
    assert [host for host in MARKET_HOSTS if canonical_host(host) != host] == []
    assert len(set(MARKET_HOSTS)) == len(MARKET_HOSTS)


@pytest.mark.parametrize(
    "url",
    [
        *(f"https://{host}/x" for host in ("polymarket.com", "manifold.markets", "metaculus.com", "kalshi.com")),
        *(f"https://{host}/x" for host in ("www.predictit.org", "API.Smarkets.COM", "www.betfair.com.")),
        "https://ｐolymarket.com/event",
        "https://polymarket。com/event",
        "https://web.archive.org/web/2025/https://polymarket.com/event",
        "https://www.google.com/url?q=https%3A%2F%2Fwww.metaculus.com%2Fquestions%2F1",
        "https://polymarket-com.translate.goog/event",
        "https://www-kalshi-com.cdn.ampproject.org/c/s/www.kalshi.com/x",
    ],
)
def test_markets_are_blocked_by_default_also_behind_a_proxy(url: str) -> None:
    assert why(url) == "prediction market"


def test_a_host_that_only_ends_alike_is_another() -> None:
    assert why("https://notpolymarket.com/") is None
    assert why("https://polymarket.com.example.org/") is None
    assert why("https://polymarket.com/", SourcePolicy(block_markets=False)) is None


def test_blocklist_then_allowlist_and_subdomains_inherit() -> None:
    policy = SourcePolicy(blocked=("bad.example.org",), allowed=("Example.ORG", "*.Bücher.example"))
    assert policy.allowed == ("example.org", "xn--bcher-kva.example")
    assert why("https://a.b.example.org/", policy) is None
    assert why("https://shop.bücher.example/", policy) is None
    assert why("https://x.bad.example.org/", policy) == "blocked host"
    assert why("https://example.net/", policy) == "not an allowed host"
    assert why("https://example.net/", asked=Asked(blocked_domains=("EXAMPLE.net",))) == "blocked host"
    assert why("https://kalshi.com/", SourcePolicy(allowed=("kalshi.com",))) == "prediction market"


def test_unfit_and_private_addresses_are_blocked() -> None:
    assert why("javascript:alert(1)") == "unfit address: scheme"
    assert why("https://a:b@example.org/") == "unfit address: credentials"
    assert why("http://169.254.169.254/latest") == "private host"
    assert why("http://localhost/", SourcePolicy(block_private=False)) is None


def test_the_questions_own_pages_are_blocked() -> None:
    asked = Asked(
        url="https://www.example.org/questions/12/",
        resolution_criteria="Resolves by https://stats.example.net/series/UNRATE, or www.example.com/table?id=4.",
    )
    assert why("http://example.org/questions/12?tab=1", asked=asked) == "question's page"
    assert why("https://example.org/questions/12/some-title", asked=asked) == "question's page"
    assert why("https://example.org/questions/123", asked=asked) is None
    assert why("https://stats.example.net/series/UNRATE/", asked=asked) == "resolution page"
    assert why("https://stats.example.net/series/UNRATE?x=1", asked=asked) == "resolution page"
    assert why("https://stats.example.net/series/UNRATE/notes", asked=asked) is None
    assert why("https://www.example.com/table?id=4", asked=asked) == "resolution page"
    assert why("https://www.example.com/table?id=5", asked=asked) is None
    assert why("https://www.example.com/table?id=4&utm=1&lang=en", asked=asked) == "resolution page"
    assert why("https://www.example.com/table?a=1&id=4&id=5", asked=asked) == "resolution page"
    assert why("https://www.example.com/table?id=45", asked=asked) is None
    assert why("https://stats.example.net/series/UNRATE", SourcePolicy(block_question_pages=False), asked) is None


@pytest.mark.parametrize(
    "text",
    [
        "There is a 63% chance on Polymarket.",
        "Polymarket: 63 %",
        "Poly\u200bmarket puts it at ６３％.",
        "Kalshi contracts for a cut trade at 41 cents.",
        "On PredictIt the Yes shares cost $0.41.",
        "The Metaculus community gives 12% to this.",
        "The community prediction is 0.27.",
        "Bookmakers offer 5/2 on the incumbent.",
        "Betting odds moved to +150 overnight.",
        "Traders put the probability of a cut at 70%.",
        "Investors see a 35 percent chance of a recession.",
        "Markets are pricing in a 90% likelihood of a hike.",
        "CME FedWatch shows 88.5%.",
        "Implied probability of default: 14%",
        "Superforecasters say 1 in 5.",
        "There's a 20% chance, according to prediction markets.",
        "Yes trades at 51 cents and no at 49.",
        "a one with 38¢ for the YES contract",
        "Manifold has it at 63%.",
        "manifold users say 63%",
        "63% on Manifold",
        "odds of 3/1 at Ladbrokes",
        "three to one at William Hill",
        "Polymarket | Yes 63",
        "Insight: Polymarket 63",
        "Polymarket traders see sixty-three percent",
        "Markets price a two-in-three chance",
        "Augur's traders say one in five",
        "Kalshi sees a two-thirds chance",
    ],
)
def test_a_stated_crowd_forecast_is_found(text: str) -> None:
    assert states_crowd_forecast(text)
    assert why("https://example.org/", text=text) == "states a crowd forecast"
    assert why("https://example.org/", SourcePolicy(block_crowd_forecasts=False), text=text) is None


@pytest.mark.parametrize("host", MARKET_HOSTS)
def test_every_market_is_known_by_its_address_and_by_its_name(host: str) -> None:
    name = NAMES.get(host, host.rpartition(".")[0])
    assert states_crowd_forecast(f"{host} has it at 63%.")
    assert states_crowd_forecast(f"{name.title()} has it at 63%.")
    assert states_crowd_forecast(f"At {name.title()} it stood at sixty-three per cent.")


@pytest.mark.parametrize(
    "path",
    [
        "polymarket-gives-63-percent-chance",
        "polymarket_gives_63_percent",
        "polymarket%20gives%2063%25",
        "a/polymarket/63%25/x",
        "a?says=kalshi+at+63+cents",
        "a%2Fpolymarket%252D63%252Dpercent",
    ],
)
def test_a_price_in_the_address_is_found(path: str) -> None:
    assert why(f"https://n.example/{path}") == "states a crowd forecast"


def test_a_price_that_address_and_title_state_together_is_found() -> None:
    told = hit("https://n.example/polymarket", title="A 63% chance of ice")
    assert SourcePolicy().why_blocked(told, Asked()) == "states a crowd forecast"


def test_a_date_in_the_address_is_no_price() -> None:
    assert why("https://n.example/2031/03/14/5-things-bookmakers-said", text="Rates were held.") is None


@pytest.mark.parametrize(
    "text",
    [
        "The market price of copper rose 5% on Monday, traders said.",
        "Traders put their money into bonds; shares fell 3%.",
        "In the poll 40% of voters back the incumbent.",
        "Economists see a 40% chance of a recession.",
        "Polymarket was fined by the regulator.",
        "Polymarket raised 45 million dollars on January 20, and 20 January was late.",
        "Kalshi listed 24 contracts in 2024.",
        "The benefits are manifold; 63% agreed.",
        "That does not augur well, with growth of 2%; prices drift lower by 0.5%.",
        "There is a 60% chance of rain.",
        "The odds are long, analysts at the bank said.",
        "Unemployment stood at 4.1% in March 2025.",
        "Prediction markets are a field of research with a long history and many critics." + " x" * 80 + " 5%",
        "The market opened. " + "x " * 80 + "A 20% chance of snow.",
        "",
    ],
)
def test_ordinary_news_is_none(text: str) -> None:
    assert not states_crowd_forecast(text)


def test_the_digest_tells_policies_apart_and_not_their_spelling() -> None:
    assert SourcePolicy(blocked=("B.org", "a.org")).digest == SourcePolicy(blocked=("a.org", "b.ORG", "b.org.")).digest
    assert SourcePolicy(blocked=("a.org",)).digest != SourcePolicy(allowed=("a.org",)).digest
    assert SourcePolicy().digest != SourcePolicy(block_markets=False).digest


def test_a_list_with_something_that_is_no_host_is_refused() -> None:
    with pytest.raises(ValidationError, match="is no host name"):
        SourcePolicy(blocked=("https://example.org/x",))
