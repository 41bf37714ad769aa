"""Comparables, bootstrap and ratio statistics against peers: the same arrays for everybody, results compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import bench_comparables
from consilience.core.undefined import Undefined
from consilience.inference.bootstrap import analysis_rng, bootstrap_medians, cluster_weights
from consilience.scoring.equity import VerticalEquity, vertical_equity
from consilience.scoring.ratio import PriceRelatedBias, cod, prb, prd, ratio_draws
from consilience.valuation.comparables import ComparableIndex
from environments import BUILD, Peer, PeerError

REPEATS = 5
CUT = date(2015, 2, 15)
EPOCH = date(1970, 1, 1).toordinal()
RESAMPLES, ITEMS, ARMS = 10_000, 1_140, 12
FEW = 100
Row = dict[str, Any]


def _cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.process_time()
    made = work()
    return time.process_time() - begun, made


def _median(work: Callable[[], Any]) -> float:
    return statistics.median(_cpu(work)[0] for _ in range(REPEATS))


def _tried(peer: Peer | PeerError, script: str, *arguments: str) -> Row | PeerError:
    if isinstance(peer, PeerError):
        return peer
    try:
        return peer.run(script, *arguments)
    except PeerError as error:
        return error


def _stored(name: str, **arrays: Any) -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / f"{name}.npz"
    np.savez(path, **arrays)
    return path


def comparables(peers: dict[str, Peer | PeerError]) -> Iterable[Row]:
    """Return subjects per CPU-second by our rule, whose comparables are compared, and by OpenAVMKit's engine."""
    if not bench_comparables.DATA.is_dir():
        return
    table = bench_comparables._king_county().sort("sale_date", "parcel_id", maintain_order=True)  # noqa: SLF001
    subjects = bench_comparables._subjects(table)  # noqa: SLF001
    days = table["sale_date"].to_numpy().astype("datetime64[D]").astype(np.int64)
    path = _stored(
        "sales",
        days=days,
        cutoff=days - 1,
        cut=CUT.toordinal() - EPOCH,
        lat=table["lat"].to_numpy(),
        lng=table["lon"].to_numpy(),
        area=table["area"].to_numpy(),
        year=table["year"].to_numpy(),
        price=table["price"].to_numpy(),
        parcel=table["parcel_id"].rank("dense").to_numpy(),
        klass=np.zeros(table.height, dtype=np.int64),
    )

    def every() -> list[Any]:
        index = bench_comparables._index(table)  # noqa: SLF001
        return [index.query(**subject).rows for subject in subjects]

    took, best = min((_cpu(every) for _ in range(REPEATS)), key=lambda made: made[0])
    ours = len(subjects) / took
    yield {"way": "consilience, index", "subjects per CPU-second": round(ours), "× ours": 1.0, "same comparables": ""}
    scan = bench_comparables._scan(table)  # noqa: SLF001
    some = subjects[::21]
    naive = len(some) / _median(lambda: [scan(subject) for subject in some])
    yield {
        "way": f"scan of all sales in numpy ({len(some):,} subjects)",
        "subjects per CPU-second": round(naive),
        "× ours": round(naive / ours, 3),
        "same comparables": "not compared here: the golden tests do",
    }
    for variant, name in (("kd", "SciPy cKDTree"), ("ball", "scikit-learn BallTree")):
        runs = [_tried(peers["trees"], "peer_trees.py", variant, str(path)) for _ in range(3)]
        good = [run for run in runs if not isinstance(run, PeerError)]
        if not good:
            yield {"way": name, "not run": str(runs[0])}
            continue
        rows = np.load(path.with_name(f"rows-{variant}.npy"))
        same = sum(np.array_equal(rows[at][rows[at] >= 0], mine) for at, mine in enumerate(best))
        rate = good[0]["subjects"] / min(run["cpu_s"] for run in good)
        yield {
            "way": name,
            "subjects per CPU-second": round(rate),
            "× ours": round(rate / ours, 3),
            "same comparables": f"{same:,} of {len(best):,}",
        }
    yield from _engine(peers["openavmkit"], table, path)


def _engine(peer: Peer | PeerError, table: pl.DataFrame, path: Path) -> Iterable[Row]:
    """Compare with an engine of another rule on the same four fields: what it costs, and how far off it is."""
    after = table["sale_date"].to_numpy() >= np.datetime64(CUT)
    prices = table["price"].to_numpy().astype(float)
    subjects = [row | {"cutoff": CUT} for row, late in zip(_rows(table), after, strict=True) if late]

    def all_of_them() -> list[float]:
        index: ComparableIndex = bench_comparables._index(table.filter(~pl.Series(after)))  # noqa: SLF001
        return [float(np.median(prices[~after][index.query(**subject).rows])) for subject in subjects]

    took, said = _cpu(all_of_them)
    actual = prices[after]
    yield {
        "way": f"consilience, sales before {CUT} for those after it",
        "subjects per CPU-second": round(len(subjects) / took),
        "× ours": 1.0,
        "same comparables": f"median of the comparables: MdAPE {_mdape(said, actual):.2f} %",
    }
    theirs = _tried(peer, "peer_openavmkit.py", "comparables", str(path))
    if isinstance(theirs, PeerError):
        yield {"way": "OpenAVMKit, the same", "not run": str(theirs)}
        return
    spent = theirs["fit_s"] + theirs["ask_s"]
    yield {
        "way": f"OpenAVMKit, the same, {theirs['fit_s']:.0f} CPU-s of fitting included",
        "subjects per CPU-second": round(theirs["subjects"] / spent),
        "× ours": round(theirs["subjects"] / spent / (len(subjects) / took), 4),
        "same comparables": f"another rule, same four fields: MdAPE {_mdape(theirs['estimates'], actual):.2f} %; "
        f"once fitted {theirs['subjects'] / theirs['ask_s']:,.0f} subjects per CPU-second",
    }


def _rows(table: pl.DataFrame) -> list[Row]:
    return bench_comparables._subjects(table)  # noqa: SLF001


def _mdape(said: Any, actual: Any) -> float:
    return 100 * float(np.nanmedian(np.abs(np.asarray(said) / actual - 1)))


def bootstrap(peers: dict[str, Peer | PeerError]) -> Iterable[Row]:
    """Return CPU seconds of 10,000 resamples of 1,140 items and 12 arms; slow peers draw fewer and are scaled up."""
    for groups in (ITEMS, 1_000, 52):
        rng = np.random.default_rng(groups)
        clusters = np.concatenate([np.arange(groups), rng.integers(0, groups, ITEMS - groups)])
        values = np.abs(rng.standard_normal((ITEMS, ARMS))) * 0.15
        path = _stored(f"bootstrap-{groups}", values=values, clusters=clusters)

        def draw(resamples: int, values: Any = values, clusters: Any = clusters) -> Any:
            stream = analysis_rng(seed=1, analysis="bench")
            weights = cluster_weights(clusters=clusters, n_resamples=resamples, rng=stream)
            return weights, bootstrap_medians(values=values, clusters=clusters, weights=weights)

        weights, medians = draw(RESAMPLES)
        ours = _median(partial(draw, RESAMPLES))
        spread = float(np.std(medians[:, 0]))
        where = "every item its own cluster" if groups == ITEMS else f"{groups:,} clusters"
        yield {"way": f"consilience, {where}", "CPU-s": ours, "× ours": 1.0, "note": f"sd {spread:.5f}"}

        def loop(values: Any = values, clusters: Any = clusters, weights: Any = weights) -> Any:
            return [[np.median(np.repeat(column, weights[b][clusters])) for column in values.T] for b in range(FEW)]

        def plain(values: Any = values, clusters: Any = clusters, weights: Any = weights) -> Any:
            columns, codes = values.T.tolist(), clusters.tolist()
            for b in range(FEW // 10):
                times = weights[b].tolist()
                for column in columns:
                    statistics.median([x for x, at in zip(column, codes, strict=True) for _ in range(times[at])])

        took, looped = _cpu(loop)
        assert np.array_equal(np.array(looped), medians[:FEW])
        scaled = took * RESAMPLES / FEW
        yield {
            "way": f"loop over numpy.median, {where}",
            "CPU-s": scaled,
            "× ours": scaled / ours,
            "note": f"from {FEW} resamples, equal to ours bit for bit",
        }
        scaled = _cpu(plain)[0] * RESAMPLES / (FEW // 10)
        yield {
            "way": f"plain Python, {where}",
            "CPU-s": scaled,
            "× ours": scaled / ours,
            "note": f"from {FEW // 10} resamples",
        }
        variant = "rows" if groups == ITEMS else "clusters"
        theirs = _tried(peers["arch"], "peer_arch.py", variant, str(path), str(RESAMPLES))
        if isinstance(theirs, PeerError):
            yield {"way": f"arch, {where}", "not run": str(theirs)}
            continue
        yield {
            "way": f"arch, {where}",
            "CPU-s": theirs["cpu_s"],
            "× ours": theirs["cpu_s"] / ours,
            "note": f"sd {theirs['sd']:.5f}, draws of its own",
        }


def ratios(peers: dict[str, Peer | PeerError]) -> Iterable[Row]:
    """Return what COD, PRD, PRB and VEI cost and are, and 10,000 resamples of COD and PRD."""
    rng = np.random.default_rng(158)
    paid = np.exp(rng.normal(12.9, 0.5, ITEMS))
    said = paid * np.exp(rng.normal(0.0, 0.15, ITEMS)) * (paid / np.exp(12.9)) ** -0.05
    path = _stored("ratios", estimate=said, price=paid)

    def points() -> Row:
        bias, equity = prb(estimate=said, price=paid), vertical_equity(estimate=said, price=paid, grouping="percentile")
        if not isinstance(bias, PriceRelatedBias) or not isinstance(equity, VerticalEquity):
            raise SystemExit("a ratio statistic is undefined")
        return {
            "cod": cod(ratio=said / paid),
            "prd": prd(estimate=said, price=paid),
            "prb": bias.value,
            "vei": equity.value,
        }

    def draws() -> Any:
        own = np.arange(ITEMS)
        weights = cluster_weights(clusters=own, n_resamples=RESAMPLES, rng=analysis_rng(seed=1, analysis="bench"))
        return ratio_draws(estimate=said, price=paid, clusters=own, weights=weights)

    mine = points()
    quick, drawn = _median(points), draws()
    slow = _median(draws)
    if isinstance(drawn.prb, Undefined):
        raise SystemExit("the bias is undefined in a resample")
    ends = {name: np.quantile(getattr(drawn, name), (0.025, 0.975)) for name in ("cod", "prd")}
    theirs = _tried(peers["openavmkit"], "peer_openavmkit.py", "ratios", str(path))
    yield {"what": "COD, PRD, PRB, VEI once", "way": "consilience", "CPU-ms": 1e3 * quick, "× ours": 1.0} | {
        name.upper(): round(value, 4) for name, value in mine.items()
    }
    if isinstance(theirs, PeerError):
        yield {"what": "the same", "way": "OpenAVMKit", "not run": str(theirs)}
    else:
        took = statistics.median(theirs["points_s"])
        yield {"what": "the same", "way": "OpenAVMKit", "CPU-ms": 1e3 * took, "× ours": took / quick} | {
            name.upper(): round(value, 4) for name, value in theirs["values"].items()
        }
    yield {
        "what": f"{RESAMPLES:,} resamples of {ITEMS:,} sales",
        "way": "consilience: median, COD, PRD and PRB",
        "CPU-ms": 1e3 * slow,
        "× ours": 1.0,
    } | {name.upper(): f"{low:.4f} to {high:.4f}" for name, (low, high) in ends.items()}
    if not isinstance(theirs, PeerError):
        took = statistics.median(theirs["draws_s"])
        yield {
            "what": "the same",
            "way": "OpenAVMKit: median, mean, COD and PRD",
            "CPU-ms": 1e3 * took,
            "× ours": took / slow,
        } | {name.upper(): f"{low:.4f} to {high:.4f}" for name, (low, high) in theirs["intervals"].items()}
