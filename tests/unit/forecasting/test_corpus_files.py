"""Documents from files: what is read, what is counted, and where a bad file is bad."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from consilience.errors import DataError
from consilience.forecasting.demo import DOCUMENTS, on_disk
from consilience.forecasting.search.corpus_files import read_documents

ROW: dict[str, Any] = {
    "url": "https://a.example/1",
    "title": "Rates",
    "text": "The bank held.",
    "published": "2025-02-19T23:30:00-05:00",
}
END = datetime(2025, 2, 19, 23, 59, 59, 999999, tzinfo=UTC)


def jsonl(folder: Path, *rows: object, name: str = "documents.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_a_line_is_a_document_with_its_instant_in_utc(tmp_path: Path) -> None:
    (one,) = read_documents(jsonl(tmp_path, ROW | {"retrieved_at": "2025-02-21T06:00:00Z"})).documents
    assert (one.url, one.title, one.text, one.date_source) == (ROW["url"], "Rates", "The bank held.", "metadata")
    assert one.published == datetime(2025, 2, 20, 4, 30, tzinfo=UTC)
    assert one.retrieved_at == datetime(2025, 2, 21, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("change", "published", "source"),
    [
        ({"published": "2025-02-19"}, END, "metadata"),
        ({"published": "2025-02-19T08:00:00"}, END, "metadata"),
        ({"published": None}, None, "none"),
        ({"published": ""}, None, "none"),
        ({"published": "02/03/2025"}, None, "none"),
        ({"published": None, "url": "https://a.example/2025/02/19/x"}, END, "url"),
        ({"published": None, "text": "Published: 19 February 2025\nThe bank held."}, END, "text"),
        ({"published": "2 days ago"}, None, "none"),
        ({"published": "today"}, None, "none"),
        ({"published": "9000 years ago"}, None, "none"),
        ({"published": "2 days ago", "retrieved_at": "2025-02-21T06:00:00Z"}, END, "metadata"),
    ],
)
def test_dates_are_read_as_everywhere_and_ages_only_where_their_moment_is_known(
    tmp_path: Path, change: dict[str, Any], published: datetime | None, source: str
) -> None:
    loaded = read_documents(jsonl(tmp_path, ROW | change))
    assert (loaded.documents[0].published, loaded.documents[0].date_source) == (published, source)
    assert loaded.unreadable_dates == (published is None and bool(change["published"]))


@pytest.mark.parametrize(("name", "expected"), [("a 1/é", "a%201/%C3%A9"), (7, "7")])
def test_a_document_without_a_url_stands_under_its_id_on_no_real_host(
    tmp_path: Path, name: object, expected: str
) -> None:
    row = {key: value for key, value in ROW.items() if key != "url"} | {"id": name}
    assert read_documents(jsonl(tmp_path, row)).documents[0].url == f"https://corpus.invalid/{expected}"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"url": "https://a.example/", "title": "x", "text": "y"}, "line 2: published is missing"),
        ({key: value for key, value in ROW.items() if key != "title"}, "line 2: title is missing"),
        ({key: value for key, value in ROW.items() if key != "url"}, "line 2: url is missing"),
        (ROW | {"url": " "}, "line 2: url is missing"),
        (ROW | {"url": 3}, "line 2: url is int"),
        (ROW | {"url": None, "id": True}, "line 2: id is bool"),
        (ROW | {"text": None}, "line 2: text is NoneType"),
        (ROW | {"text": "half \ud800"}, "line 2: text has half a character at 5"),
        (ROW | {"title": " ", "text": ""}, "line 2: title and text are empty"),
        (ROW | {"published": 1739923200}, "line 2: published is int"),
        (ROW | {"retrieved_at": "yesterday"}, 'line 2: retrieved_at "yesterday" is no date'),
        (["no", "object"], "line 2 is no JSON object"),
    ],
)
def test_a_bad_row_is_named_by_file_line_and_field(tmp_path: Path, row: object, said: str) -> None:
    with pytest.raises(DataError, match=f"documents.jsonl, {said}"):
        read_documents(jsonl(tmp_path, ROW, row))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"url": \n', "line 1 is no JSON"),
        (b"[" * 100_000, "line 1 is no JSON"),
        (b'{"url": "https://a.example/", "score": NaN}', "line 1 is no JSON .*NaN"),
        (b'{"published": "2025-01-01", "published": null}', '"published" stands twice'),
        (b'\n{"title": "\xff"}', "line 2 is not UTF-8"),
        (b"\n \n", "holds no document"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_bytes(data)
    with pytest.raises(DataError, match=said):
        read_documents(path)


def test_what_is_not_used_is_counted(tmp_path: Path) -> None:
    jsonl(tmp_path, ROW | {"author": "x", "tags": ["a"]}, ROW | {"author": "y"}, name="b.ndjson")
    (tmp_path / "labels.json").write_text("{}", encoding="utf-8")
    (tmp_path / ".hidden").mkdir()
    jsonl(tmp_path / ".hidden", {"bad": True})
    loaded = read_documents(tmp_path)
    assert len(loaded.documents) == 2
    assert loaded.ignored_fields == {"author": 2, "tags": 1}
    assert loaded.ignored_files == ["labels.json"]


@pytest.mark.parametrize("name", ["documents.csv", "documents", "absent.jsonl", "absent"])
def test_no_corpus_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "documents.csv").write_text("url,title\n", encoding="utf-8")
    with pytest.raises(DataError, match=name):
        read_documents(tmp_path / name)
    with pytest.raises(DataError, match="holds no document"):
        read_documents(tmp_path)


def test_parquet_with_text_days_and_instants(tmp_path: Path) -> None:
    common = {"url": ["https://a.example/1"], "title": ["Rates"], "text": ["Held."]}
    moment = datetime(2025, 2, 20, 4, 30, tzinfo=UTC)
    for published, expected in [
        (pl.Series(["2025-02-19"]), END),
        (pl.Series([date(2025, 2, 19)]), END),
        (pl.Series([datetime(2025, 2, 19, 8)]), END),  # noqa: DTZ001 - a column without a zone
        (pl.Series([moment]), moment),
        (pl.Series([None], dtype=pl.Date), None),
    ]:
        path = tmp_path / "documents.parquet"
        pl.DataFrame({**common, "published": published}).write_parquet(path)
        assert read_documents(path).documents[0].published == expected


def test_bad_parquet_is_named_by_file_row_and_field(tmp_path: Path) -> None:
    path = tmp_path / "documents.parquet"
    table = {"url": ["https://a.example/1", None], "title": ["a", "b"], "text": ["x", "y"], "published": [None, None]}
    pl.DataFrame(table).write_parquet(path)
    with pytest.raises(DataError, match=r"documents.parquet, row 2: url is missing"):
        read_documents(path)
    path.write_bytes(b"no parquet")
    with pytest.raises(DataError, match=r"cannot read documents.parquet"):
        read_documents(path)


def test_markdown_with_front_matter(tmp_path: Path) -> None:
    head = 'title: "Rates: held"\ndate: 2025-02-19 # a day\nlink: https://a.example/1\ntags:\n  - money\n- x\n'
    (tmp_path / "note.md").write_text(f"---\n{head}---\n\nBody.\n", encoding="utf-8")
    loaded = read_documents(tmp_path)
    (one,) = loaded.documents
    assert (one.title, one.url, one.text, one.published) == ("Rates: held", "https://a.example/1", "Body.", END)
    assert loaded.ignored_fields == {"tags": 1}


def test_markdown_without_front_matter(tmp_path: Path) -> None:
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "2025-02-19-rates.md").write_text("intro\n\n## Held again ##\r\n\nBody.", encoding="utf-8")
    (tmp_path / "undated note.markdown").write_text("Nothing more.", encoding="utf-8")
    first, second = read_documents(tmp_path).documents
    assert (first.title, first.published) == ("Held again", END)
    assert first.url == "https://corpus.invalid/news/2025-02-19-rates.md"
    assert (second.title, second.published) == ("undated note", None)
    assert second.url == "https://corpus.invalid/undated%20note.markdown"


def test_the_front_matter_outranks_the_name_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "2024-01-01-x.md").write_text("---\ndate: 2025-02-19\n---\nBody.", encoding="utf-8")
    assert read_documents(tmp_path).documents[0].published == END


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\ntitle: x\n", "line 1: the front matter has no end"),
        ("---\ntitle: x\ntitle: y\n---\n", "line 3: title is said twice"),
        ("---\ndate: [2025]\n---\nBody", "line 2: published is no plain value"),
        ("---\ntitle: x\ndate 2025-02-19\n---\nBody", "line 3: the front matter has no key here"),
        ("---\ntitle: ''\n---\n", "title and text are empty"),
    ],
)
def test_bad_front_matter_is_named_by_file_and_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "note.md").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=f"note.md.*{said}"):
        read_documents(tmp_path)


def test_the_demonstration_is_a_corpus() -> None:
    with on_disk(DOCUMENTS) as path:
        loaded = read_documents(path)
        said = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [one.url for one in loaded.documents] == [row["url"] for row in said]
    ambiguous = {row["published"] for row in said if row["published"] and row["published"][2:3] in {"/", "."}}
    assert loaded.unreadable_dates == len(ambiguous) > 0
    undated = sum(row["published"] is None for row in said)
    assert sum(one.published is None for one in loaded.documents) == undated + loaded.unreadable_dates
    assert not loaded.ignored_fields
