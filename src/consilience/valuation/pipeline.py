"""From a project folder to items: build the analytic table, split it, draw the subsample, make packets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl

from consilience.core.packet import Item
from consilience.errors import ConfigError
from consilience.experiments.arms import PLAIN
from consilience.experiments.plan import Application
from consilience.experiments.storage import write_whole
from consilience.registry import nearest
from consilience.valuation.adapters import ADAPTERS, build
from consilience.valuation.adjustments import adjust_comparables
from consilience.valuation.analysts import read_property
from consilience.valuation.exclusions import KEEP_ALL, exclusion_set
from consilience.valuation.features import build_feature_matrix
from consilience.valuation.packets import EVIDENCE_FIELDS, PacketBuilder
from consilience.valuation.roster import SHELF
from consilience.valuation.sampling import select_items, stored_subsamples
from consilience.valuation.schema import Manifest, read_analytic, read_manifest, write_analytic
from consilience.valuation.splits import TimeSplits, read_splits, time_splits, write_splits
from consilience.valuation.synthetic import generate, write_town

SYNTHETIC_SALES = 2_000
SUBSAMPLE_SEED = 2026
ADJUSTED = "adjusted_comparables"
PACKETS = (PLAIN, ADJUSTED)
"""Forms of packets that an arm may declare."""


VALUATION = Application(name="valuation", roles_for=SHELF.roles_for, reader=read_property, fields=EVIDENCE_FIELDS)


@dataclass(frozen=True)
class Project:
    """The files of one valuation study in a folder.

    Attributes:
        root: The folder; ``data`` and ``results`` lie in it.
    """

    root: Path

    @property
    def raw(self) -> Path:
        """Snapshots of sources, as they were read."""
        return self.root / "data" / "raw"

    @property
    def analytic(self) -> Path:
        """The analytic table."""
        return self.root / "data" / "processed" / "analytic.parquet"

    @property
    def splits(self) -> Path:
        """Split by sale."""
        return self.root / "data" / "processed" / "splits.parquet"

    @property
    def subsamples(self) -> Path:
        """The stored stratified subsamples."""
        return self.root / "data" / "processed" / "llm_subsamples.parquet"

    @property
    def runs(self) -> Path:
        """Run folders."""
        return self.root / "results" / "runs"


def build_table(
    project: Project, *, adapter: str, source: Path, mapping: Path | None = None, exclusions: str = KEEP_ALL.name
) -> Manifest:
    """Read a source, keep a snapshot of it, write the analytic table, and return its manifest.

    Raises:
        ConfigError: Unknown adapter or exclusions, or a mapping that does not fit.
        DataError: The source breaks the schema; row and column are named.
    """
    declared = exclusion_set(exclusions)
    built = build(ADAPTERS[adapter].configure(mapping), source, exclusions=declared)
    write_analytic(built.frame, project.analytic, built.manifest)
    snapshot(project, source, built.manifest)
    return built.manifest


def snapshot(project: Project, source: Path, manifest: Manifest) -> Path:
    """Keep the source as it was read, under a name with its hash; it is never overwritten."""
    kept = project.raw / f"{manifest.source_sha256[:16]}-{source.name}"
    if not kept.exists():
        write_whole(kept, lambda target: target.write_bytes(source.read_bytes()))
    return kept


def split_table(
    project: Project, *, boundaries: Sequence[date] | None = None, group_parcels: bool = False
) -> TimeSplits:
    """Split the analytic table by time, write the splits, and return them with what moved."""
    sales = read_analytic(project.analytic)
    splits = time_splits(sales, boundaries=boundaries, group_parcels=group_parcels)
    write_splits(splits.frame, project.splits, sales=sales)
    return splits


def subsample(project: Project, *, seed: int = SUBSAMPLE_SEED) -> pl.DataFrame:
    """Return the stored subsamples, drawn and stored when absent and never redrawn."""
    sales = read_analytic(project.analytic)
    return stored_subsamples(project.subsamples, sales, read_splits(project.splits, sales=sales), seed=seed)


def load_items(project: Project, *, split: str, n: int, packets: str = PLAIN) -> list[Item]:
    """Return the first ``n`` items of a split's stored subsample, with packets and truth.

    Raises:
        DataError: The table or splits are missing, or the subsample holds fewer than ``n``.
        ConfigError: There is no such form of packets.
    """
    return build_items(project, select_items(subsample(project), split=split, n=n), packets=packets)


def build_items(project: Project, chosen: Sequence[str], *, packets: str = PLAIN) -> list[Item]:
    """Return some sales of a project as items.

    Args:
        project: The study.
        chosen: Ids of the sales.
        packets: ``plain``, or ``adjusted_comparables``: each comparable also shows its price brought to the cutoff and
            adjusted to the subject, with parameters of train alone.

    Raises:
        DataError: The table or splits are missing, or hold no such sale.
        ConfigError: There is no such form of packets.
    """
    if packets not in PACKETS:
        raise ConfigError(f'unknown form of packets "{packets}"', hint=nearest(packets, PACKETS))
    sales = read_analytic(project.analytic)
    adjusted = None
    if packets == ADJUSTED:
        matrix = build_feature_matrix(sales, read_splits(project.splits, sales=sales))
        adjusted = adjust_comparables(matrix, chosen)
    builder = PacketBuilder(sales, read_manifest(project.analytic), adjusted=adjusted)
    return [builder.build_item(tx_id) for tx_id in chosen]


def synthetic_project(project: Project, *, seed: int, sales: int = SYNTHETIC_SALES) -> None:
    """Make the synthetic town with its table and splits, unless the same town is there already."""
    source = project.raw / f"town-{sales}-{seed}.parquet"
    if source.exists() and project.splits.exists() and read_manifest(project.analytic).source_file == source.name:
        return
    write_town(generate(sales=sales, seed=seed), source)
    built = build(ADAPTERS["synthetic"], source)
    write_analytic(built.frame, project.analytic, built.manifest)
    split_table(project)
