from __future__ import annotations

import gc

import pytest

from consilience.runtime.collector import OBJECTS, seldom


def test_the_collector_is_as_before_even_after_an_error() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()

    def fail() -> None:
        with seldom():
            assert gc.get_threshold()[0] == OBJECTS
            assert gc.get_freeze_count() > frozen
            raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        fail()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
