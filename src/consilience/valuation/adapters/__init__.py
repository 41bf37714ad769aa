"""Sources of sales, one file each; every one ends in the analytic table."""

from __future__ import annotations

from consilience.registry import Registry
from consilience.valuation.adapters.ames import Ames
from consilience.valuation.adapters.base import Adapter, Built, build
from consilience.valuation.adapters.csv import CsvAdapter
from consilience.valuation.adapters.king_county import KingCounty
from consilience.valuation.adapters.lucas import Lucas
from consilience.valuation.adapters.seattle import Seattle
from consilience.valuation.adapters.synthetic import SyntheticTown

__all__ = ["ADAPTERS", "Adapter", "Built", "build"]

ADAPTERS: Registry[Adapter] = Registry(
    "adapter", (SyntheticTown(), KingCounty(), Seattle(), Lucas(), Ames(), CsvAdapter()), group="consilience.adapters"
)
"""Adapters by name; `Adapter.configure` binds one to a mapping file before it reads."""
