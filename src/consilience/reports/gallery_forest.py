"""The picture of contrasts that an evaluation has, with its data, alt text and caption."""

from __future__ import annotations

from functools import partial
from typing import Final

from consilience.core.undefined import Undefined
from consilience.experiments.contrasts import ContrastResult
from consilience.experiments.evaluation import Evaluation
from consilience.inference.intervals import ENOUGH, DifferenceInterval
from consilience.reports.judged import turned
from consilience.reports.pictures.canvas import Picture, of_sample
from consilience.reports.pictures.forest import Contrast, Gap, Panel, draw_forest
from consilience.reports.tables import Record, points

_MEASURES: Final = (("difference", "MdAPE, points"), ("wis", "WIS5 × 100"), ("ppe10", "PPE10, points"))
"""Fields of a contrast with what they are called; all are told in hundredths."""
_SIDES: Final = {"difference": "← better", "wis": "← better", "ppe10": "better →"}


def forest(evaluation: Evaluation) -> Picture | None:
    """Return the forest of contrasts, a panel per measure; None without any contrast."""
    found, drawn = evaluation.contrasts, evaluation.overall.resampling
    if found is None or drawn is None:
        return None
    base = evaluation.baseline_arm
    explored = [one for one in found.exploratory if base in {one.arm, one.against}]
    explored = [turned(one) if one.arm == base else one for one in explored]
    shown = [*found.declared, *sorted(explored, key=lambda one: one.difference.point)]
    if not shown:
        return None
    known = [(name, said) for name, said in _MEASURES if any(_interval(one, name) is not None for one in shown)]
    rows = [
        Contrast(
            f"{one.arm} − {one.against}",
            tuple(_gap(_interval(one, name)) for name, _ in known),
            f"MdAPE: {p_text(one)}" if len(known) > 1 else p_text(one),
            one.declared,
        )
        for one in shown
    ]
    panels = [Panel(said, _SIDES[name], found.margin if name == "difference" else None) for name, said in known]
    rule = "percentile" if drawn.clusters.n_clusters >= ENOUGH else "SE × t(G − 1)"
    told = of_sample(
        n=drawn.n_items,
        groups=drawn.clusters.n_clusters,
        resamples=drawn.n_resamples,
        seed=drawn.seed,
        interval=f"95 % cluster bootstrap ({rule}), the same draws for all arms and measures, not adjusted",
    )
    names = [said.partition(" ")[0].rstrip(",") for _, said in known]
    further = f"; {' and '.join(names[1:])} beside it {'has' if len(names) == 2 else 'have'} no test of their own"
    wis = " WIS5 of the log price × 100 is near percentage points, too." if "WIS5" in names else ""
    return Picture(
        "forest",
        f"Contrasts of arms in {_listed(names)}",
        "; ".join(f"{row.label}: {_said(row, names)}, {p_text(one)}" for one, row in zip(shown, rows, strict=True)),
        "First arm less the second, in percentage points; the better side is marked. Filled: the "
        f"declared family ({len(found.declared)}); hollow: exploration, each arm with {base}. The p belongs to MdAPE "
        f"alone: by Holm over the declared family, by the rate of false discoveries (BH) in exploration{further}. "
        f"Shaded: ±{points(found.margin).lstrip('+')} points of MdAPE, which do not matter.{wis} {told}",
        tuple(_record(one) for one in shown),
        partial(draw_forest, rows, panels=panels),
    )


def p_text(contrast: ContrastResult) -> str:
    """Return the adjusted p of a contrast in words: of the declared family by Holm, else by the discovery rate."""
    value, name = (contrast.holm, "Holm") if contrast.declared else (contrast.bh, "BH")
    if not isinstance(value, float):
        return "no p"
    return f"p < 0.001 ({name})" if value < 0.001 else f"p = {value:.3f} ({name})"


def _interval(one: ContrastResult, name: str) -> DifferenceInterval | None:
    found: DifferenceInterval | Undefined = getattr(one, name)
    return None if isinstance(found, Undefined) else found


def _gap(found: DifferenceInterval | None) -> Gap | None:
    return None if found is None else Gap(found.point, found.low, found.high)


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _said(row: Contrast, names: list[str]) -> str:
    return ", ".join(f"{name} {_ends(gap)}" for name, gap in zip(names, row.gaps, strict=True))


def _ends(gap: Gap | None) -> str:
    if gap is None:
        return "unknown"
    if gap.low is None or gap.high is None:
        return points(gap.point)
    return f"{points(gap.point)} [{points(gap.low)}, {points(gap.high)}]"


def _record(one: ContrastResult) -> Record:
    told: dict[str, str | float | bool | None] = {"arm": one.arm, "against": one.against, "declared": one.declared}
    told |= {name: value if isinstance(value := getattr(one, name), float) else None for name in ("p", "holm", "bh")}
    for name, _ in _MEASURES:
        found = _interval(one, name)
        stem = "" if name == "difference" else f"{name}_"
        told |= {
            f"{stem}difference": None if found is None else found.point,
            f"{stem}low": None if found is None else found.low,
            f"{stem}high": None if found is None else found.high,
        }
    return told
