"""λ and ζ: reference vectors, what controls remove, what cannot be told apart, and the instrument."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from consilience.errors import DataError
from consilience.inference.conformity import Coefficient, Revision, controlled, displaced, revision_regression
from consilience.inference.effective import FloatArray, Undefined
from consilience.inference.tests import cluster_t

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "conformity_vectors.json"
VECTORS: list[dict[str, Any]] = [
    vector for vector in json.loads(GOLDEN.read_text())["vectors"] if vector["method"] == "revision_regression"
]


def known(one: Coefficient | Undefined) -> Coefficient:
    assert isinstance(one, Coefficient)
    return one


def fitted(one: Revision | Undefined) -> Revision:
    assert isinstance(one, Revision)
    return one


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_revision_vector_holds(vector: dict[str, Any]) -> None:
    given = {name: np.array(values) for name, values in vector["input"].items()}
    made = revision_regression(
        before=given["before"],
        after=given["after"],
        consensus=given["others_consensus"],
        evidence=given["evidence_target"],
        clusters=np.arange(6),
    )
    expected = vector["expected"]
    for one, value in ((made.lam, expected["lam"]), (made.zeta, expected["zeta"])):
        assert known(one).value == pytest.approx(value, rel=vector["rel_tol"], abs=1e-9)
    assert made.flags[-1] == "descriptive_only"


@pytest.mark.shared_data
def test_conformity_golden_equals_the_reference(shared: Path) -> None:
    reference = json.loads((shared / "vectors" / "statistics.json").read_text())["vectors"]
    methods = {"revision_regression", "shapley", "shapley_influence"}
    mine = [vector for vector in reference if vector["method"] in methods]
    golden = json.loads(GOLDEN.read_text())["vectors"]
    assert [{key: value for key, value in vector.items() if key != "note"} for vector in mine] == golden


def committee(seed: int, n: int = 80) -> tuple[FloatArray, FloatArray, FloatArray, np.random.Generator]:
    """Return a member's settled view, its noisy first answers, the others' consensus, and random numbers."""
    rng = np.random.default_rng(seed)
    settled = rng.normal(12.5, 0.3, n)
    return settled, settled + rng.normal(0, 0.1, n), settled + rng.normal(0, 0.03, n), rng


def two_arms(lam: float, seed: int) -> tuple[Revision, Revision]:
    """Return the plain and the controlled fit of fresh draws, moved by λ of the way where the others are shown."""
    settled, x, m, rng = committee(seed)
    alone, moved = (settled + rng.normal(0, 0.05, x.size) for _ in range(2))
    moved = moved + lam * (m - x)
    plain = revision_regression(before=x, after=moved, consensus=m, clusters=np.arange(x.size))
    both = controlled(
        before=np.tile(x, 2),
        after=np.concatenate([alone, moved]),
        consensus=np.tile(m, 2),
        shown=np.tile(m, 2),
        peers=np.repeat([False, True], x.size),
        clusters=np.tile(np.arange(x.size), 2),
    )
    return plain, fitted(both)


def test_the_control_arm_removes_false_herding() -> None:
    plain, both = two_arms(0.0, 1)
    assert known(plain.lam).low > 0.7
    assert known(both.lam).covers_zero
    assert known(both.spontaneous).low > 0.5
    assert known(two_arms(0.4, 2)[1].lam).value == pytest.approx(0.4, abs=0.15)


def test_a_random_displacement_tells_the_pull_without_another_arm() -> None:
    settled, x, m, rng = committee(3, 400)
    d = rng.choice([-0.1, 0.1], x.size)
    after = settled + rng.normal(0, 0.05, x.size) + 0.3 * (m + d - x)
    said = {"before": x, "after": after, "consensus": m, "clusters": np.arange(x.size)}
    made = fitted(displaced(shown=m + d, displacement=d, **said))
    lam = known(made.lam)
    assert lam.low < 0.3 < lam.high
    assert lam.high - lam.low < 0.2
    assert "weak_instrument" not in made.flags
    assert known(revision_regression(before=x, after=after, consensus=m + d, clusters=np.arange(400)).lam).low > 0.5
    assert isinstance(displaced(shown=m, displacement=np.zeros(400), **said), Undefined)
    faint = fitted(displaced(shown=m + rng.normal(0, 0.1, 400), displacement=d, **said))
    assert "weak_instrument" in faint.flags


def test_a_consensus_that_is_the_evidence_leaves_their_sum_only() -> None:
    _, x, m, rng = committee(4)
    after = x + 0.6 * (m - x) + rng.normal(0, 0.01, x.size)
    made = revision_regression(before=x, after=after, consensus=m, evidence=m, clusters=np.arange(80))
    assert made.lam == made.zeta == Undefined("the gaps to the others and to the evidence cannot be told apart")
    assert known(made.total).value == pytest.approx(0.6, abs=0.02)
    half = revision_regression(before=x, after=after, consensus=m, evidence=(m + x) / 2, clusters=np.arange(80))
    assert isinstance(half.lam, Undefined)
    assert isinstance(half.total, Undefined)  # λ + ζ/2 is all that is determined


def test_evidence_and_others_are_told_apart_by_their_arms() -> None:
    _, x, m, rng = committee(5, 150)
    v = x + rng.normal(0.1, 0.2, x.size)
    peers, informed = np.repeat([False, True, False], 150), np.repeat([False, False, True], 150)
    xs, ms, vs = (np.tile(one, 3) for one in (x, m, v))
    after = xs + rng.normal(0, 0.02, 450) + 0.1 * (ms - xs) + 0.3 * peers * (ms - xs) + 0.5 * informed * (vs - xs)
    said = {"before": xs, "after": after, "consensus": ms, "shown": ms, "peers": peers}
    clusters = np.tile(np.arange(150), 3)
    made = fitted(controlled(**said, evidence=vs, informed=informed, clusters=clusters))  # type: ignore[arg-type]
    assert known(made.lam).value == pytest.approx(0.3, abs=0.06)
    assert known(made.zeta).value == pytest.approx(0.5, abs=0.03)
    assert known(made.total).value == pytest.approx(known(made.lam).value + known(made.zeta).value)
    uninformed = controlled(**said, evidence=vs, informed=np.zeros(450, dtype=bool), clusters=clusters)  # type: ignore[arg-type]
    assert isinstance(uninformed, Undefined)


def test_without_controls_nothing_is_identified() -> None:
    _, x, m, _ = committee(6)
    for peers in (np.ones(80, dtype=bool), np.zeros(80, dtype=bool)):
        made = controlled(before=x, after=x, consensus=m, shown=m, peers=peers, clusters=np.arange(80))
        assert isinstance(made, Undefined)


def test_the_error_is_that_of_clusters() -> None:
    rng = np.random.default_rng(7)
    gap, clusters = np.ones(60), np.repeat(np.arange(20), 3)
    moved = rng.normal(0.3, 0.1, 20)[clusters] + rng.normal(0, 0.02, 60)
    made = revision_regression(before=np.zeros(60), after=moved, consensus=gap, clusters=clusters)
    assert isinstance(made.lam, Undefined)  # a gap that is constant is the intercept
    x = rng.normal(0, 1, 60)
    shifted = revision_regression(
        before=x, after=x + moved, consensus=x + np.tile([1.0, 2.0, 3.0], 20), clusters=clusters
    )
    mean = cluster_t(differences=moved, clusters=clusters)
    assert isinstance(mean.se, float)
    assert known(shifted.lam).se < mean.se


def test_single_questions_and_misfits() -> None:
    _, x, m, _ = committee(8)
    made = revision_regression(before=x, after=x, consensus=m, clusters=np.zeros(80))
    assert isinstance(made.lam, Undefined)
    outside = revision_regression(before=x, after=x - 0.5 * (m - x), consensus=m, clusters=np.arange(80))
    assert outside.flags == ("lambda_outside_0_1",)
    with pytest.raises(DataError, match="do not fit"):
        revision_regression(before=x, after=x[:3], consensus=m, clusters=np.arange(80))
    with pytest.raises(DataError, match="not finite"):
        revision_regression(before=x, after=x * np.nan, consensus=m, clusters=np.arange(80))
    with pytest.raises(DataError, match="level"):
        revision_regression(before=x, after=x, consensus=m, clusters=np.arange(80), level=2.0)


def test_members_that_stand_there_already_are_pulled_nowhere() -> None:
    _, x, m, _ = committee(9)
    made = revision_regression(before=x, after=x, consensus=x, evidence=m, clusters=np.arange(80))
    assert made.lam == Undefined("every member stood there already")
    assert known(made.zeta).value == pytest.approx(0, abs=1e-9)
