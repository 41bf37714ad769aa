"""Boosted trees by LightGBM as text: the same rows and parameters give the same model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

from consilience.errors import PlanError, reason
from consilience.valuation.baselines.base import Floats

SEED: Final = 2026
PATIENCE: Final = 40
"""Rounds without gain after which training stops."""
MOST_ROUNDS: Final = 1_500


def lightgbm() -> ModuleType:
    """Return LightGBM.

    Raises:
        PlanError: It, or the OpenMP library it needs, is not installed.
    """
    try:
        import lightgbm as loaded  # noqa: PLC0415 - an extra, loaded where it is used
    except ImportError as error:
        raise PlanError(
            "this baseline needs LightGBM, which is not installed",
            hint='Install the extra: pip install "consilience[baselines]".',
        ) from error
    except OSError as error:
        raise PlanError(
            f"LightGBM cannot be loaded: {reason(error)}",
            hint="Install the OpenMP library: libgomp1 (Linux) or libomp (macOS).",
        ) from error
    return loaded


@dataclass(frozen=True)
class Trees:
    """What a boosted model is grown with.

    Attributes:
        leaves: Leaves of a tree, at least 2.
        rounds: Trees; None stops early, on rows that are given for it.
        learning_rate: Share of each tree that is added, in (0, 1].
        level: None fits the mean (squared error), a number in (0, 1) that quantile (pinball loss).
        min_rows: Fewest rows of a leaf.
    """

    leaves: int
    rounds: int | None
    learning_rate: float
    level: float | None = None
    min_rows: int = 20

    def grow(self, values: Floats, target: Floats, *, stop_on: tuple[Floats, Floats] | None = None) -> str:
        """Return a fitted model as text.

        Args:
            values: Shape (n, columns), NaN where unknown.
            target: Shape (n,).
            stop_on: Values and target of later rows; training stops when these gain no more.

        Raises:
            PlanError: LightGBM is missing.
        """
        engine = lightgbm()
        settings: dict[str, Any] = {
            "objective": "regression" if self.level is None else "quantile",
            "num_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.min_rows,
            "feature_fraction": 0.7,
            "bagging_fraction": 0.8,
            "bagging_freq": 1,
            "seed": SEED,
            "num_threads": 1,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
        }
        if self.level is not None:
            settings["alpha"] = self.level
        rows = engine.Dataset(values, target)
        kept: dict[str, Any] = {}
        if stop_on is not None:
            kept["valid_sets"] = [engine.Dataset(*stop_on, reference=rows)]
            kept["callbacks"] = [engine.early_stopping(PATIENCE, verbose=False)]
        model = engine.train(settings, rows, self.rounds or MOST_ROUNDS, **kept)
        return str(model.model_to_string(num_iteration=model.best_iteration or -1))


def grown(text: str, values: Floats) -> Floats:
    """Return what a model says of rows, shape (n,); values are NaN where unknown.

    Raises:
        PlanError: LightGBM is missing.
    """
    if not len(values):
        return values[:, 0]
    said: Floats = _parsed(text).predict(values, num_threads=1)
    return said


def rounds_of(text: str) -> int:
    """Return the number of trees of a model."""
    return int(_parsed(text).num_trees())


@lru_cache(maxsize=64)
def _parsed(text: str) -> Any:
    return lightgbm().Booster(model_str=text)
