"""No reference vector is left out: each stands in a golden file, whose own tests hold it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def held() -> set[str]:
    """Return the ids of all vectors in the golden files; the test module of each checks every one it holds."""
    files = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(GOLDEN.glob("*.json")))
    listed = (file["vectors"] for file in files if isinstance(file, dict) and "vectors" in file)
    return {vector["id"] for vectors in listed for vector in vectors}


@pytest.mark.shared_data
def test_every_reference_vector_is_held(shared: Path) -> None:
    reference = json.loads((shared / "vectors" / "statistics.json").read_text(encoding="utf-8"))["vectors"]
    assert len(reference) >= 80
    assert {vector["id"] for vector in reference} - held() == set()
