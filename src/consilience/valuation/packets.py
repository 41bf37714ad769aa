"""Packets: the evidence of one sale as of the day before it, identical for every arm.

A packet is built from a table without the subject's price: the price of a subject is read by `PacketBuilder.build_item`
alone, where it becomes the truth that evaluation uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import JsonValue

from consilience.core.packet import EvidenceItem, Item, Packet, Section
from consilience.core.question import Question
from consilience.errors import DataError, LeakError
from consilience.experiments.exposed import EvidenceFields
from consilience.valuation.comparables import ComparableIndex, Comparables
from consilience.valuation.geo import GEO_COLUMNS, geographic_context
from consilience.valuation.market import MarketHistory
from consilience.valuation.sampling import stratify
from consilience.valuation.schema import Manifest, available_date

if TYPE_CHECKING:
    from consilience.valuation.adjustments import AdjustedPrices

ATTRIBUTES = ("floor_area_m2", "land_area_m2", "year_built", "storeys", "n_dwellings", "new_construction")
ASSESSMENTS = ("assessment_land", "assessment_building", "assessment_total")
UNSEEN = ("condition", "quality")
PLACE = ("property_class", "property_subtype", "municipality", "borough")

EVIDENCE_FIELDS = EvidenceFields(
    subject={"P": frozenset({"valuation_date", "cutoff", "currency", *PLACE, "lat", "lng", *ATTRIBUTES})},
    amounts=frozenset(
        {
            *ASSESSMENTS,
            "prior_sale_price",
            "price",
            "indexed_price",
            "adjusted_price",
            "median_price",
            "median_price_per_m2",
        }
    ),
)
"""What names the subject, and which fields hold amounts in the currency of the answer."""

_TERM_WORDS = {"floor_area": "Floor area", "year_built": "Year built"}


class PacketBuilder:
    """Builds the packet of any sale in an analytic table.

    The cutoff is the day before the sale. Comparables became known strictly before it, market figures use what was
    known on it or before. No packet holds a parcel id, a transaction id of another sale, an address, or coordinates
    finer than 3 decimals.

    Args:
        analytic: The whole analytic table (all splits: evidence is as of each subject's own cutoff).
        manifest: The table's manifest; its observation rules say which attributes come from a later snapshot.
        declare_condition: Show ``condition`` and ``quality``. Off by default, as condition is not observed.
        adjusted: Show each comparable's price brought to the cutoff (``indexed_price``) and to the subject's
            attributes too (``adjusted_price``), and say in the notes how. Off by default.

    Example:
        >>> from consilience.valuation.schema import ANALYTIC, IDENTITY, Observation, RegionMap
        >>> sale = {"tx_id": "t1", "parcel_id": "p1", "sale_date": date(2015, 3, 2), "price": 412000.0,
        ...         "currency": "USD", "property_class": "house", "source": "s", "flags": [],
        ...         "lat": 47.12345, "lng": -122.0}
        >>> rules = {c: Observation(rule="at_sale") for c in ANALYTIC if c not in IDENTITY}
        >>> manifest = Manifest(adapter="csv", source_file="s.csv", source_sha256="0" * 64, rows=1, currency="USD",
        ...                     region=RegionMap(municipality="town", region="county"), observations=rules)
        >>> packet = PacketBuilder(pl.DataFrame([sale], schema=ANALYTIC), manifest).build("t1")
        >>> packet.cutoff, packet.item("P").content["lat"], packet.notes[0]
        (datetime.date(2015, 3, 1), 47.123, 'Comparables: none; no sale qualifies within 25 km.')
    """

    def __init__(
        self,
        analytic: pl.DataFrame,
        manifest: Manifest,
        *,
        declare_condition: bool = False,
        adjusted: AdjustedPrices | None = None,
    ) -> None:
        self._adjusted = adjusted
        table = analytic.with_columns(available_date()).sort("available_date", "parcel_id", maintain_order=True)
        self._manifest = manifest
        self._attributes = (*ATTRIBUTES, *UNSEEN) if declare_condition else ATTRIBUTES
        self._shown = tuple(name for name in self._attributes if manifest.observations[name].rule != "absent")
        self._price = table["price"]
        self._facts = table.drop("price")
        self._row_of = {tx_id: row for row, tx_id in enumerate(table["tx_id"])}
        self._rows_of: dict[str, list[int]] = {}
        for row, parcel in enumerate(table["parcel_id"]):
            self._rows_of.setdefault(parcel, []).append(row)
        self._index = ComparableIndex(
            dates=table["available_date"].to_numpy(),
            lat=_floats(table, "lat"),
            lng=_floats(table, "lng"),
            area=_floats(table, "floor_area_m2"),
            year_built=_floats(table, "year_built"),
            parcel=table["parcel_id"].to_list(),
            klass=table["property_class"].to_list(),
        )
        self._market = MarketHistory(table)
        self._strata = stratify(table)["stratum"]

    def build(self, tx_id: str) -> Packet:
        """Return the packet of one sale: sections P, C, M and G.

        Raises:
            DataError: The table has no such sale, or it has no adjusted prices although they are to be shown.
            LeakError: The subject's roll is dated past its cutoff.
        """
        return self._build(self._facts.row(self._find(tx_id), named=True))[0]

    def build_item(self, tx_id: str) -> Item:
        """Return question, packet and truth (the price) of one sale, with strata and the parcel as cluster.

        Strata: ``property_class``, ``municipality``, ``municipality_size`` and ``price_tercile`` (over the sales of the
        table), ``comparables`` (their number), ``radius_km``, ``prior_sale``, ``missing_fields`` (their number).

        Raises:
            DataError: The table has no such sale.
            LeakError: The subject's roll is dated past its cutoff.
        """
        row = self._find(tx_id)
        subject = self._facts.row(row, named=True)
        packet, found = self._build(subject)
        shown = packet.sections["P"].items[0].content
        missing = shown["missing_fields"]
        _, size, tercile = self._strata[row].rsplit("/", 2)
        question = Question(
            id=tx_id,
            text=f"What is the transaction price of the subject property on {subject['sale_date']}?",
            kind="estimate",
            scale="log",
            unit=subject["currency"],
        )
        strata = {
            "property_class": subject["property_class"],
            "municipality": subject["municipality"] or "unknown",
            "municipality_size": size,
            "price_tercile": tercile,
            "comparables": str(len(found.rows)),
            "radius_km": "none" if found.radius_km is None else f"{found.radius_km:g}",
            "prior_sale": "no" if shown["prior_sale_price"] is None else "yes",
            "missing_fields": str(len(missing) if isinstance(missing, list) else 0),
        }
        truth = float(self._price[row])
        return Item(question=question, packet=packet, truth=truth, strata=strata, cluster=subject["parcel_id"])

    def _find(self, tx_id: str) -> int:
        row = self._row_of.get(tx_id)
        if row is None:
            raise DataError(f'no sale "{tx_id}" in the analytic table', hint="Take a tx_id of that table.")
        return row

    def _build(self, subject: dict[str, Any]) -> tuple[Packet, Comparables]:
        cutoff = subject["sale_date"] - timedelta(days=1)
        found = self._index.query(
            lat=subject["lat"],
            lng=subject["lng"],
            area=subject["floor_area_m2"],
            year_built=subject["year_built"],
            parcel=subject["parcel_id"],
            klass=subject["property_class"],
            cutoff=cutoff,
        )
        market = self._market.context(
            lat=subject["lat"],
            lng=subject["lng"],
            municipality=subject["municipality"],
            region=subject["region"],
            property_class=subject["property_class"],
            cutoff=cutoff,
        )
        sections = (
            Section(code="P", title="Subject property", items=(self._subject(subject, cutoff),)),
            Section(code="C", title="Comparable sales", items=self._comparables(subject["tx_id"], found)),
            Section(code="M", title="Market", items=(EvidenceItem(id="M1", as_of=cutoff, content=market),)),
            Section(code="G", title="Geography", items=self._geography(subject, cutoff)),
        )
        packet = Packet(
            item_id=subject["tx_id"],
            valuation_date=subject["sale_date"],
            cutoff=cutoff,
            cutoff_rule="last_admissible",
            sections={section.code: section for section in sections},
            notes=(*_search_notes(found), *self._adjustment_notes(), *self._snapshot_notes()),
        )
        return packet, found

    def _subject(self, subject: Mapping[str, Any], cutoff: date) -> EvidenceItem:
        reference = subject["roll_reference_date"]
        if reference is not None and reference > cutoff:
            raise LeakError(
                f"the roll of sale {subject['tx_id']} refers to {reference}, past its cutoff {cutoff}",
                hint="Give the roll in force at the sale, or leave it null.",
            )
        prior = self._prior_sale(subject["parcel_id"], cutoff)
        known: dict[str, JsonValue] = {
            **{name: subject[name] for name in PLACE},
            "lat": _rounded(subject["lat"], 3),
            "lng": _rounded(subject["lng"], 3),
            **{name: _compact(subject[name]) for name in self._attributes},
            **{name: _rounded(subject[name], 0) for name in ASSESSMENTS},
            "roll_reference_date": None if reference is None else reference.isoformat(),
        }
        missing: list[JsonValue] = [name for name, value in known.items() if value is None]
        content: dict[str, JsonValue] = {
            "valuation_date": subject["sale_date"].isoformat(),
            "cutoff": cutoff.isoformat(),
            "currency": subject["currency"],
            **known,
            "prior_sale_date": None if prior is None else self._facts["sale_date"][prior].isoformat(),
            "prior_sale_price": None if prior is None else round(self._price[prior]),
            "missing_fields": missing,
        }
        return self._observed("P", content, (*PLACE, "lat", "lng", *self._attributes), cutoff)

    def _prior_sale(self, parcel: str, cutoff: date) -> int | None:
        """Return the row of the parcel's latest sale known strictly before the cutoff."""
        sold = self._facts["available_date"]
        return max((row for row in self._rows_of[parcel] if sold[row] < cutoff), default=None)

    def _comparables(self, tx_id: str, found: Comparables) -> tuple[EvidenceItem, ...]:
        items = []
        adjusted = {} if self._adjusted is None else self._adjusted.of(tx_id)
        for rank, (row, distance) in enumerate(zip(found.rows.tolist(), found.distances_km.tolist(), strict=True), 1):
            facts = self._facts.row(row, named=True)
            price, roll = self._price[row], facts["assessment_total"]
            content: dict[str, JsonValue] = {
                "sale_date": facts["sale_date"].isoformat(),
                "price": round(price),
                **({} if self._adjusted is None else adjusted[facts["tx_id"]]),
                "distance_km": round(distance, 2),
                **{name: _compact(facts[name]) for name in self._shown},
                "price_to_assessment": round(price / roll, 3) if roll else None,
            }
            items.append(EvidenceItem(id=f"C{rank:02d}", as_of=facts["available_date"], content=content))
        return tuple(items)

    def _geography(self, subject: Mapping[str, Any], cutoff: date) -> tuple[EvidenceItem, ...]:
        mapped = self._manifest.observations["flood_zone"].rule != "absent"
        content = geographic_context(subject, flood_mapped=mapped)
        return () if content is None else (self._observed("G1", content, GEO_COLUMNS, cutoff),)

    def _observed(
        self, evidence_id: str, content: dict[str, JsonValue], columns: tuple[str, ...], cutoff: date
    ) -> EvidenceItem:
        """Date an item by the observation rules of its columns: the cutoff, or a declared later snapshot's own day."""
        rules = [self._manifest.observations[name] for name in columns]
        later = [rule for rule in rules if rule.later_than_sale]
        if not later:
            return EvidenceItem(id=evidence_id, as_of=cutoff, content=content)
        days = [rule.as_of for rule in later if rule.as_of is not None]
        as_of = max(days) if len(days) == len(later) else None
        return EvidenceItem(id=evidence_id, as_of=as_of, snapshot=True, content=content)

    def _adjustment_notes(self) -> tuple[str, ...]:
        return () if self._adjusted is None else (self._adjusted.note,)

    def _snapshot_notes(self) -> tuple[str, ...]:
        shown = {*PLACE, "lat", "lng", *self._attributes, *GEO_COLUMNS}
        names = [name for name in self._manifest.later_snapshots() if name in shown]
        if not names:
            return ()
        return (f"One snapshot for all sales, which may be later than the sale: {', '.join(names)}.",)


def _search_notes(found: Comparables) -> tuple[str, ...]:
    if "distance" in found.missing_terms:
        return ("Comparables: none; the subject has no coordinates.",)
    if found.radius_km is None:
        return ("Comparables: none; no sale qualifies within 25 km.",)
    notes = [f"Comparables: {len(found.rows)} of {found.n_candidates} candidates within {found.radius_km:g} km."]
    if found.extended:
        notes.append("Fewer than 3 candidates within 10 km: the search was extended to 25 km.")
    notes += [
        f"{_TERM_WORDS[term]} is unknown for the subject or some candidates: its score term is their median there."
        for term in found.missing_terms
    ]
    return tuple(notes)


def _rounded(value: float | None, digits: int) -> JsonValue:
    if value is None:
        return None
    return round(value, digits) if digits else round(value)


def _compact(value: float | bool | None) -> JsonValue:
    """Return a number to one decimal, whole ones without a decimal point: tokens cost money."""
    if value is None or isinstance(value, bool | int):
        return value
    rounded = round(value, 1)
    return int(rounded) if rounded.is_integer() else rounded


def _floats(table: pl.DataFrame, column: str) -> npt.NDArray[np.float64]:
    return table[column].cast(pl.Float64).to_numpy().astype(np.float64)
