"""Whatever bytes a stranger writes, every reader reads them or says in our words why not, within a second."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings

from reader_cases import NASTY, READERS, Reader, spoilt


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_any_bytes_are_read_or_refused_in_our_words(reader: Reader) -> None:
    slowest = [0.0]

    @settings(max_examples=settings().max_examples // 10)
    @given(spoilt(reader.seed))
    def check(data: bytes) -> None:
        started = time.process_time()
        reader.accepts(data)
        slowest[0] = max(slowest[0], time.process_time() - started)

    check()
    assert slowest[0] < 1


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_what_is_nasty_is_read_or_refused_in_our_words(reader: Reader) -> None:
    assert reader.accepts(reader.seed) or reader.name == "trace.json"
    accepted = [data for data in NASTY if reader.accepts(data)]
    assert len(accepted) < len(NASTY) // 2
