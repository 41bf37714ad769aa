"""The demonstration corpus holds what its README says, and nothing that may be read gives an outcome away."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections import Counter
from datetime import UTC, datetime, time
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import pytest

from consilience.forecasting import demo
from consilience.forecasting.questions import ForecastQuestion, check_askable
from consilience.forecasting.search.dates import parse_date
from consilience.forecasting.search.document import Hit
from consilience.forecasting.search.policy import SourcePolicy
from consilience.forecasting.search.scan import injection_patterns
from consilience.forecasting.search.urls import canonical_url, urls_in

Row = dict[str, Any]

EVIDENCE = frozenset({"base", "for", "against", "context", "noise"})
VOID = {"alder-37": ["N/A"], "alder-38": [0.49]}
"""As their sources say it; read as a question, it is null."""
HIDDEN = {"Cf"}
"""The Unicode category of what is not seen: directions, joiners, zero widths."""

PLAINLY = {
    "alder-01": r"handled [\d,]+ boxes",
    "alder-02": r"won the 2031|beat the (lanterns|herons)",
    "alder-03": r"was (not )?exceeded between",
    "alder-04": r"lighting act (was|has been) (passed|adopted|rejected)|passed the coastal lighting act",
    "alder-05": r"was (not )?open to road traffic",
    "alder-06": r"court (has )?(overturned|upheld) the|appeal is (allowed|dismissed)",
    "alder-07": r"(no|first|a) sparrow van was delivered",
    "alder-08": r"estimate puts the national winter-rye",
    "alder-09": r"was elected mayor|(was declared|to be) elected",
    "alder-10": r"sailings (ran|took place) in september 2031",
    "alder-11": r"duty (stays|rises|goes up)|did not raise it|raised the beacon duty",
    "alder-12": r"was recorded in october 2031",
    "alder-13": r"weavers (walked out|went on strike|did not strike)|strike at brightloom (began|ended)",
    "alder-14": r"did not abandon the fixed rate|abandoned the fixed rate|tally now floats",
    "alder-15": r"marrowgate foods (grew|shrank) by",
    "alder-16": r"had (not )?seen first light|saw first light",
    "alder-17": r"unemployment rate for december( 2031)? was",
    "alder-18": r"counted [\d,]+ visitors",
    "alder-19": r"marathon (was (started|run|called off) on|did not take place)",
    "alder-20": r"has been awarded|award is through|was not awarded",
    "alder-21": r"session (opened|did not open) on",
    "alder-22": r"readings of 1 march 2032",
    "alder-23": r"was (not )?raised to red",
    "alder-24": r"was (rejected|approved) on sunday|declared (it|the proposal) (not )?approved",
    "alder-25": r"council (did not cut|cut) the herring quota",
    "alder-26": r"level on 1 (april|may|june)( 2032)? was|1 (april|may|june) \d\d\.\d",
    "alder-27": r"are champions|finished first with",
    "alder-28": r"(lowered|raised|left) its lending rate on 28 january",
    "alder-29": r"won the most seats",
    "alder-30": r"commission (recommends|recommended) the (coast|valley|loth|ridge)",
    "alder-31": r"460\.84",
    "alder-32": r"\b3\.12\b",
    "alder-33": r"22,581",
    "alder-34": r"\b6\.21\b",
    "alder-35": r"\b12 days\b",
    "alder-36": r"\b7 march\b|tripod moved on",
    "alder-37": r"was not rowed|millers won the dray cup",
    "alder-38": r"clock stopped on|torn out",
}
"""What would state each outcome, either way."""


@cache
def documents() -> dict[str, Row]:
    rows = [json.loads(line) for line in demo.DOCUMENTS.read_text(encoding="utf-8").splitlines()]
    found = {row["url"]: row for row in rows}
    assert len(found) == len(rows), "two documents share an address"
    return found


@cache
def questions() -> dict[str, Row]:
    rows = [json.loads(line) for line in demo.QUESTIONS.read_text(encoding="utf-8").splitlines()]
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows), "two questions share an id"
    return found


@cache
def labels() -> Row:
    found: Row = json.loads(demo.LABELS.read_text(encoding="utf-8"))
    return found


def labelled(*roles: str) -> list[tuple[Row, Row]]:
    """Return (label, document) of what was planted as one of these roles."""
    return [(label, documents()[label["url"]]) for label in labels()["documents"] if label["role"] in roles]


def published(document: Row) -> datetime | None:
    return parse_date(document["published"], retrieved_at=datetime.fromisoformat(document["retrieved_at"]))


def cutoff(question: Row) -> datetime:
    found = datetime.fromisoformat(question["cutoff"])
    return found if found.tzinfo else datetime.combine(found.date(), time.min, tzinfo=UTC)


def before(document: Row, question: Row) -> bool:
    when = published(document)
    return when is not None and when < cutoff(question)


def outcomes(question: Row) -> list[float | str]:
    return [part["resolution"]["outcome"] for part in question.get("targets", [question])]


class Pages:
    """A question as the policy reads it."""

    def __init__(self, question: Row) -> None:
        self.url: str | None = question.get("url")
        self.resolution_criteria: str = question["resolution_criteria"]
        self.blocked_domains: tuple[str, ...] = tuple(question.get("blocked_domains", ()))


def why_blocked(document: Row, question: Row) -> str | None:
    when = published(document)
    hit = Hit(
        url=document["url"],
        title=document["title"],
        text=document["text"],
        published=when,
        date_source="none" if when is None else "metadata",
        retrieved_at=datetime.fromisoformat(document["retrieved_at"]),
    )
    return SourcePolicy().why_blocked(hit, Pages(question))


def test_the_readme_counts_what_is_there() -> None:
    text = files(demo).joinpath("README.md").read_text(encoding="utf-8")
    roles = Counter(label["role"] for label in labels()["documents"])
    kinds = Counter(question["kind"] for question in questions().values())
    states = sum(label["states_outcome"] for label in labels()["documents"])

    assert {name: int(n) for name, n in re.findall(r"^\| `(\w+)` \| (\d+) \|", text, re.MULTILINE)} == roles
    assert {name: int(n) for name, n in re.findall(r"^\| (\w+) \| (\d+) \|$", text, re.MULTILINE)} == kinds
    assert f"| {len(documents())} documents: url" in text
    assert f"| {len(questions())} questions with" in text
    assert f"{states} documents state the outcome" in text
    assert "**Everything here is synthetic.**" in text


def test_every_document_is_labelled_once_and_has_the_five_fields() -> None:
    assert sorted(label["url"] for label in labels()["documents"]) == sorted(documents())
    assert {label["question"] for label in labels()["documents"]} == set(questions())
    fields = {"url", "title", "text", "published", "retrieved_at"}
    assert [row["url"] for row in documents().values() if set(row) != fields] == []


def test_documents_are_short_and_their_host_is_invented() -> None:
    assert [url for url, row in documents().items() if not 40 <= len(row["text"].split()) <= 160] == []
    real = {urlsplit(label["url"]).hostname for label, _ in labelled("crowd")}
    hosts = {urlsplit(url).hostname or "" for url in documents()}
    outside = {host for host in hosts if not host.endswith(".example")}
    assert len(outside) == 4
    assert outside <= real


def test_no_text_is_there_twice_but_the_duplicates() -> None:
    copies = {row["text"] for _, row in labelled("duplicate")}
    counted = Counter(row["text"] for row in documents().values())
    assert {text for text, n in counted.items() if n > 1} == copies
    addresses = Counter(canonical_url(url) for url in documents())
    same_page = [label["url"] for label, _ in labelled("duplicate") if addresses[canonical_url(label["url"])] == 2]
    assert len(same_page) == 3


def test_dates_are_in_order_and_of_no_real_year() -> None:
    for question in questions().values():
        asked, closed, resolved = (question[name] for name in ("open_date", "close_date", "resolution_date"))
        assert "2031" <= asked < closed <= resolved < "2033", question["id"]
        assert asked < cutoff(question).date().isoformat() <= resolved, question["id"]
        for part in question.get("targets", [question]):
            known_on = part["resolution"]["known_on"]
            assert cutoff(question).date().isoformat() < known_on, question["id"]
    for row in documents().values():
        when = published(row)
        seen = datetime.fromisoformat(row["retrieved_at"])
        assert when is None or when <= seen, row["url"]
        assert 2031 <= seen.year <= 2032, row["url"]


def test_cutoffs_are_days_and_instants_of_several_zones() -> None:
    written = [question["cutoff"] for question in questions().values()]
    assert sum("T" not in text for text in written) >= 20
    assert {text[-6:] for text in written if "T" in text} >= {"-05:00", "+09:00", "+01:00", "+02:00"}


def test_outcomes_are_those_of_36_questions_and_two_are_void() -> None:
    void = {name: outcomes(question) for name, question in questions().items() if name in VOID}
    assert void == VOID
    assert len(questions()) - len(void) == 36
    plain = [
        outcome
        for question in questions().values()
        if question["kind"] == "binary" and question["id"] not in VOID
        for outcome in outcomes(question)
    ]
    assert set(plain) == {0.0, 1.0}
    assert 0.4 <= plain.count(1.0) / len(plain) <= 0.6
    assert [len(q["targets"]) for q in questions().values() if "targets" in q] == [3]
    for question in questions().values():
        if question["kind"] == "multiple_choice":
            assert set(outcomes(question)) <= {option["id"] for option in question["options"]}
        if question["kind"] in {"numeric", "discrete"}:
            (outcome,) = outcomes(question)
            assert isinstance(outcome, float)
            assert question["lower"] < outcome < question["upper"]


def test_every_line_is_a_question_that_can_be_asked() -> None:
    for line in demo.QUESTIONS.read_text(encoding="utf-8").splitlines():
        question = ForecastQuestion.model_validate_json(line)
        row = questions()[question.id]
        check_askable(question)
        assert question.cutoff == cutoff(row)
        settled = [None if part is None else part.outcome for _, part in question.horizons()]
        assert settled == ([None] if question.id in VOID else outcomes(row))


def test_prices_come_from_before_the_cutoff_and_say_from_where() -> None:
    priced = [question for question in questions().values() if "market" in question]
    assert len(priced) == 12
    for question in priced:
        market = question["market"]
        assert 0 < market["price"] < 1
        assert "invented" in market["source"]
        assert datetime.fromisoformat(market["as_of"]) < cutoff(question)


def test_every_question_has_evidence_of_each_sort_before_its_cutoff() -> None:
    for name, question in questions().items():
        mine = [
            label["role"] for label, row in labelled(*EVIDENCE) if label["question"] == name and before(row, question)
        ]
        assert 4 <= len(mine) <= 7, name
        assert {"base", "for", "against", "noise"} <= set(mine), name
    late = [label["url"] for label, row in labelled(*EVIDENCE) if not before(row, questions()[label["question"]])]
    assert late == []


def test_base_rates_are_percentages_and_lie_about_the_true_probability() -> None:
    gaps = []
    for label, row in labelled("base"):
        assert re.search(r"base rate|\b\d+ of (them|those|\d+)\b", row["text"], re.IGNORECASE), row["url"]
        share = re.search(r"\((\d+)%\)|\b(\d+)%", row["text"])
        assert share is not None, row["url"]
        truth = labels()["true_probability"].get(label["question"])
        if isinstance(truth, float):
            shown = int(share[1] or share[2]) / 100
            gaps.append(math.log(shown / (1 - shown)) - math.log(truth / (1 - truth)))
    assert len(gaps) == 25
    assert abs(sum(gaps)) / 25 < 0.25
    assert 0.1 < math.sqrt(sum(gap**2 for gap in gaps) / 25) < 0.8


def test_who_knew_the_true_probabilities_would_beat_one_half_but_not_be_certain() -> None:
    truths = {name: p for name, p in labels()["true_probability"].items() if isinstance(p, float)}
    losses = []
    for name, truth in truths.items():
        (outcome,) = outcomes(questions()[name])
        assert isinstance(outcome, float)
        losses.append((truth - outcome) ** 2)
    assert 0.12 < sum(losses) / len(losses) < 0.25


@pytest.mark.parametrize("role", ["undated", "ambiguous"])
def test_what_has_no_readable_date_is_undated(role: str) -> None:
    assert [row["url"] for _, row in labelled(role) if published(row) is not None] == []
    assert {row["published"] is None for _, row in labelled(role)} == {role == "undated"}


def test_relative_ages_fall_on_both_sides_of_the_cutoff() -> None:
    sides = Counter(before(row, questions()[label["question"]]) for label, row in labelled("relative"))
    assert sides == {True: 4, False: 2}


def test_later_documents_are_no_earlier_than_the_cutoff() -> None:
    for label, row in labelled("after"):
        when = published(row)
        assert when is not None
        assert when >= cutoff(questions()[label["question"]]), row["url"]
        assert label["states_outcome"]
    local = [
        row["published"]
        for label, row in labelled("after")
        if row["published"][:10] < cutoff(questions()[label["question"]]).date().isoformat()
    ]
    assert local == ["2032-01-19T23:30:00-05:00"]


def test_what_states_an_outcome_is_recognised_and_none_of_it_lies_before_a_cutoff() -> None:
    for label in labels()["documents"]:
        row, question = documents()[label["url"]], questions()[label["question"]]
        said = re.search(PLAINLY[label["question"]], f"{row['title']}. {row['text']}", re.IGNORECASE) is not None
        assert said == label["states_outcome"], row["url"]
        assert not (said and before(row, question)), row["url"]


def test_no_question_is_given_away_by_a_document_of_another() -> None:
    for name, question in questions().items():
        topic = [row for label, row in labelled(*EVIDENCE) if label["question"] != name and before(row, question)]
        found = [row["url"] for row in topic if re.search(PLAINLY[name], row["text"], re.IGNORECASE)]
        assert found == [], name


def test_the_policy_blocks_crowds_and_resolution_pages_and_no_evidence() -> None:
    reasons = Counter(
        (label["role"], why_blocked(row, questions()[label["question"]]))
        for label, row in labelled("crowd", "criteria_url")
    )
    assert reasons == {
        ("crowd", "prediction market"): 4,
        ("crowd", "states a crowd forecast"): 4,
        ("criteria_url", "resolution page"): 2,
    }
    kept = labelled(*EVIDENCE, "hostile", "duplicate", "relative")
    assert [row["url"] for label, row in kept if why_blocked(row, questions()[label["question"]])] == []


def test_pages_to_block_are_named() -> None:
    named = [name for name, question in questions().items() if urls_in(question["resolution_criteria"])]
    assert len(named) == 7
    assert [name for name, question in questions().items() if question.get("url")] == ["alder-07", "alder-22"]
    assert [name for name, question in questions().items() if question.get("blocked_domains")] == ["alder-29"]


def test_hostile_documents_lie_before_the_cutoff_and_try_each_trick() -> None:
    hostile = labelled("hostile")
    assert len(hostile) == len({label["question"] for label, _ in hostile}) == 12
    assert [row["url"] for label, row in hostile if not before(row, questions()[label["question"]])] == []
    together = "\n".join(row["text"] for _, row in hostile)
    for trick in (
        "Ignore all previous instructions",
        "</data-",
        "\nTASK:",
        '{"action": "forecast"',
        "https://evil.example/?key=",
        "<script>",
        "<!--",
        "SYSTEM: You are now",
        "Assistant: ",
        'vote for option "other"',
        "SWdub3Jl",
        "\u202e",
        "\u200b",
    ):
        assert trick in together, trick


def test_the_scan_drops_no_evidence_and_half_of_what_is_hostile_at_least() -> None:
    hit = {
        role: sum(bool(injection_patterns(f"{row['title']}\n{row['text']}")) for _, row in labelled(role))
        for role in {label["role"] for label in labels()["documents"]}
    }
    assert hit.pop("hostile") >= 6
    assert set(hit.values()) == {0}


def test_only_hostile_documents_hold_what_cannot_be_seen_or_looks_like_markup() -> None:
    for label in labels()["documents"]:
        row = documents()[label["url"]]
        text = f"{row['title']}{row['text']}"
        odd = any(unicodedata.category(sign) in HIDDEN for sign in text) or re.search(r"[<>{}]|\[\[|###", text)
        assert not odd or label["role"] == "hostile", row["url"]


def test_hidden_signs_are_escapes_in_the_file() -> None:
    raw = demo.DOCUMENTS.read_text(encoding="utf-8")
    assert [sign for sign in raw if unicodedata.category(sign) in HIDDEN] == []
    assert "\\u202e" in raw


def test_files_have_paths() -> None:
    for resource in (demo.DOCUMENTS, demo.QUESTIONS, demo.LABELS):
        with demo.on_disk(resource) as path:
            assert path.stat().st_size > 1_000
