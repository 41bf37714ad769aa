"""The coverage studies of `benchmarks/` in small: intervals hold what they should, controls remove false herding."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # its dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_intervals_hold_the_known_pull_in_20_runs() -> None:
    bench = load("bench_conformity")
    made = bench.study(runs=20, world=bench.World())
    assert made.truth.min() >= 0.1
    assert made.covers[:, 1:].mean(axis=0).min() >= 0.9
    assert abs(made.controlled - made.truth).mean() < 0.1


@pytest.mark.slow
def test_the_control_arm_removes_false_herding_in_20_runs() -> None:
    bench = load("bench_conformity")
    made = bench.study(runs=20, world=bench.NO_HERDING)
    assert made.plain.mean() > 0.7
    assert abs(made.controlled.mean()) < 0.05
    assert abs(made.displaced.mean()) < 0.05
    assert made.covers[:, 0].mean() < 0.05
    assert made.covers[:, 1:].mean(axis=0).min() >= 0.9


@pytest.mark.slow
def test_clusters_hold_the_true_difference_where_rows_do_not() -> None:
    bench = load("bench_coverage")
    assert bench.coverage(groups=60, uneven=True, simulations=150) >= 0.9
    assert bench.coverage(groups=60, uneven=True, simulations=40, by_row=True) < 0.85
