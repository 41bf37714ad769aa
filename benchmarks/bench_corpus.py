"""The embedded search: 10,000 queries, each as of its own day, over 100,000 dated documents, one core."""

from __future__ import annotations

import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import anyio
import numpy as np

from consilience.forecasting.search.bm25 import Bm25Index
from consilience.forecasting.search.corpus import Corpus
from consilience.forecasting.search.corpus_files import CorpusDocument
from consilience.forecasting.search.terms import terms

SIZES: Final = (25_000, 50_000, 100_000)
SMALL: Final = 4_999
QUERIES: Final = 10_000
CHECKED: Final = 20
VOCABULARY: Final = 100_000
LENGTH: Final = 150
FIRST: Final = datetime(2016, 1, 1, tzinfo=UTC)
DAYS: Final = 3_650
GOAL_PER_S: Final = 200
GOAL_START_S: Final = 0.3
MAX_RESULTS: Final = 5
MIXES: Final = {"headline words": 4, "a question's sentence": 12}
"""Terms a query has: the rarest of a document's first words, or a sentence as it stands, most of it frequent words."""


def _words() -> list[str]:
    """Return made words, the frequent ones short."""
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    return [
        "".join(letters[place // 26**digit % 26] for digit in range(2 + (place > 500) + 2 * (place > 5_000)))
        for place in range(VOCABULARY)
    ]


def _documents(size: int, *, seed: int) -> Iterator[CorpusDocument]:
    """Yield documents whose words follow Zipf's law and whose lengths are skewed, dated evenly over ten years."""
    rng, words = np.random.default_rng(seed), np.array(_words(), dtype=object)
    share = np.cumsum(1 / (np.arange(VOCABULARY) + 2.7))
    for number in range(size):
        length = max(20, int(rng.lognormal(math.log(LENGTH), 0.5)))
        drawn = words[np.searchsorted(share, rng.random(length) * share[-1])]
        published = FIRST + timedelta(minutes=int(rng.integers(DAYS * 24 * 60)))
        url = f"https://n{number % 97}.example/{number}"
        yield CorpusDocument(url, " ".join(drawn[:8]), " ".join(drawn[8:]), published, "metadata", None)


def _queries(documents: list[CorpusDocument], mix: str) -> list[tuple[str, datetime]]:
    """Return queries made of the words of documents, as of days over the last nine of the ten years."""
    rng = np.random.default_rng(5)
    known = {word: place for place, word in enumerate(_words())}
    made = []
    for number in rng.integers(len(documents), size=QUERIES):
        said = documents[number].text.split()
        chosen = (
            said[: MIXES[mix]] if mix == "a question's sentence" else sorted(said[:12], key=lambda w: -known[w])[:4]
        )
        made.append((" ".join(chosen), FIRST + timedelta(days=int(rng.integers(365, DAYS)))))
    return made


def _answered(corpus: Corpus, queries: list[tuple[str, datetime]]) -> float:
    """Return the CPU-seconds of all queries, hits and passages included."""

    async def ask() -> int:
        found = 0
        for query, cutoff in queries:
            found += len(await corpus.search(query, max_results=MAX_RESULTS, cutoff=cutoff))
        return found

    begun = time.process_time()
    found = anyio.run(ask)
    took = time.process_time() - begun
    assert found > len(queries)
    return took


def _check(corpus: Corpus, documents: list[CorpusDocument], queries: list[tuple[str, datetime]]) -> None:
    """Compare with an index of nothing but the documents before the cutoff, and with plain sums."""
    for query, cutoff in queries[:: len(queries) // CHECKED]:
        early = [one for one in documents if one.published is not None and one.published < cutoff]
        asked = set(terms(query))
        bags = [terms(f"{one.title}\n{one.text}") for one in early]
        mean = statistics.fmean(map(len, bags))
        weight = {}
        for term in asked:
            holding = sum(term in bag for bag in bags)
            weight[term] = math.log1p((len(bags) - holding + 0.5) / (holding + 0.5))
        scores = {}
        for one, bag in zip(early, bags, strict=True):
            norm = 1.2 * (0.25 + 0.75 * len(bag) / mean)
            scores[one.url] = sum(weight[t] * bag.count(t) * 2.2 / (bag.count(t) + norm) for t in asked)
        expected = sorted((score for score in scores.values() if score), reverse=True)[: 2 * MAX_RESULTS]

        async def ask(query: str = query, cutoff: datetime = cutoff) -> list[tuple[float, str]]:
            hits = await corpus.search(query, max_results=MAX_RESULTS, cutoff=cutoff)
            return [(hit.score or 0.0, hit.url) for hit in hits]

        got = anyio.run(ask)
        assert len(got) == len(expected)
        assert all(abs(ours - plain) < 1e-9 for (ours, _), plain in zip(got, expected, strict=True))
        assert all(abs(ours - scores[url]) < 1e-9 for ours, url in got)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def _measure(size: int) -> dict[str, Any]:
    documents = list(_documents(size, seed=1))
    text_mib = sum(len(one.title) + len(one.text) for one in documents) / 2**20
    before = _peak_mib()
    begun = time.process_time()
    corpus = Corpus(documents, retrieved_at=FIRST)
    assert corpus.identity["documents"] == size
    built = time.process_time() - begun
    peak = _peak_mib()
    index: Bm25Index = corpus._index  # noqa: SLF001 - what the index itself keeps
    kept = sum(held.nbytes for held in vars(index).values() if isinstance(held, np.ndarray)) / 2**20
    seconds = {mix: _answered(corpus, _queries(documents, mix)) for mix in MIXES}
    if size == SIZES[0]:
        for mix in MIXES:
            _check(corpus, documents, _queries(documents, mix))
    return {
        "size": size,
        "build_s": built,
        "peak_mib": peak,
        "documents_mib": before,
        "index_mib": kept,
        "text_mib": text_mib,
        "per_s": {mix: QUERIES / took for mix, took in seconds.items()},
    }


def _start() -> list[float]:
    """Return how long a small corpus takes to open from its file, files and dates included; the package is loaded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "documents.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for one in _documents(SMALL, seed=2):
                row = {"url": one.url, "title": one.title, "text": one.text, "published": str(one.published)}
                file.write(json.dumps(row) + "\n")
        took = []
        for _ in range(5):
            begun = time.perf_counter()
            Corpus.open(path, retrieved_at=FIRST)
            took.append(time.perf_counter() - begun)
    return took


def run() -> list[dict[str, Any]]:
    """Return the rows of the result table; every size in a process of its own."""
    one_core = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    found = []
    for size in SIZES:
        command = [sys.executable, __file__, str(size)]
        found.append(json.loads(subprocess.run(command, check=True, capture_output=True, env=one_core).stdout))
    small, large = found[0], found[-1]
    span = math.log(large["size"] / small["size"])
    docs = f"{large['size']:,} documents"
    rows: list[dict[str, Any]] = [
        {
            "name": f"queries of {mix} ({MIXES[mix]} words), {docs}",
            "value": round(large["per_s"][mix]),
            "unit": "queries per CPU-second",
            "goal": GOAL_PER_S,
            "note": f"{QUERIES:,} queries as of days of their own, whole client; one run; "
            + ", ".join(f"{one['size']:,}: {one['per_s'][mix]:,.0f}" for one in found)
            + f"; time per query grows as n^{math.log(small['per_s'][mix] / large['per_s'][mix]) / span:.2f}; "
            f"{CHECKED} answers over {small['size']:,} documents equal plain sums over the earlier documents alone",
        }
        for mix in MIXES
    ]
    start = _start()
    return [
        *rows,
        {
            "name": f"building the index, {docs}",
            "value": round(large["build_s"], 1),
            "unit": "CPU-s",
            "note": ", ".join(f"{one['size']:,}: {one['build_s']:.1f} s" for one in found)
            + f"; grows as n^{math.log(large['build_s'] / small['build_s']) / span:.2f}; documents in memory, "
            "digest included; one run",
        },
        {
            "name": f"memory of the index, {docs}",
            "value": round(large["index_mib"]),
            "unit": "MiB",
            "note": f"texts {large['text_mib']:.0f} MiB; resident peak while building {large['peak_mib']:.0f} MiB, "
            f"of it interpreter and documents {large['documents_mib']:.0f} MiB; "
            + ", ".join(f"{one['size']:,}: {one['index_mib']:.0f} MiB" for one in found),
        },
        {
            "name": f"start, {SMALL:,} documents from JSONL",
            "value": round(statistics.median(start), 3),
            "unit": "s",
            "goal": GOAL_START_S,
            "note": f"wall time of Corpus.open, median of 5, best {min(start):.3f} s; texts of {LENGTH} words",
        },
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(_measure(int(sys.argv[1]))))
    else:
        for row in run():
            print(row)
