"""``consilience score``: what forecasts from anywhere were worth, with nothing run and 0 calls."""

from __future__ import annotations

import csv
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.cli.console import Grid, counted, show
from consilience.cli.outputs import check_output
from consilience.cli.place import Json, place_of
from consilience.core.undefined import Undefined
from consilience.errors import ConfigError

if TYPE_CHECKING:
    from consilience.experiments.score_pools import TimeFit
    from consilience.experiments.score_table import Common, Entrant, ScoreTable
    from consilience.inference.intervals import DifferenceInterval
    from consilience.scoring.calibration import Reliability

LONGEST, _KEPT = 60, 40
"""Characters of a name in a table, and of one that is longer."""
_MARKS = {"at_bound": "(at its bound)", "smoothed_targets": "(smoothed targets)"}
EXAMPLE = "Example: consilience score --forecasts forecasts.csv --outcomes outcomes.csv --aggregate mean,geometric_odds"


def score(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    forecasts: Annotated[
        Path, typer.Option(help="CSV, JSONL or Parquet: question, target, forecaster, probability, as_of, submitted.")
    ],
    outcomes: Annotated[Path, typer.Option(help="The same: question, target, outcome, market_price, as_of.")],
    columns: Annotated[
        list[str] | None, typer.Option(metavar="NAME=COLUMN", help="What a file calls a column; may be repeated.")
    ] = None,
    forecasters: Annotated[
        str | None, typer.Option(help='Whom, comma-separated ("Smith, J" in quotes); otherwise all.')
    ] = None,
    aggregate: Annotated[
        str | None,
        typer.Option(help="Pools of them by rule, comma-separated; extremized_in_sample shows what hindsight gains."),
    ] = None,
    fit_before: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="Fit maps on forecasts before this date, judge them from it on."),
    ] = None,
    reliability: Annotated[
        Path | None, typer.Option(help="Also write reliability curves with consistency bands to this CSV file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Score a table of forecasts against outcomes: Brier with its parts, pools, time-forward fits, and warning signs.

    Intervals are clustered by question; comparisons are made on common targets only.
    """
    from consilience.experiments.forecast_table import read_forecasts  # noqa: PLC0415 - heavy
    from consilience.experiments.score_table import reliabilities, score_table  # noqa: PLC0415 - the same

    if reliability is not None:
        check_output(reliability, option="--reliability", root=place_of(context).root, inputs=[forecasts, outcomes])
    rules = _listed(aggregate)
    table = read_forecasts(
        forecasts, outcomes, columns=mapping(columns or ()), forecasters=_listed(forecasters) or None
    )
    found = score_table(table, rules=rules, fit_before=None if fit_before is None else fit_before.date())
    if reliability is not None:
        _write_curves(reliability, reliabilities(table, rules=rules))
    document = {**plain(found), "reliability": None if reliability is None else str(reliability), "calls": 0}
    parts: list[str | Grid] = [f"{_about(found)}; 0 calls", "", entrants_grid(found.entrants), legend()]
    if found.common is not None:
        parts += ["", *_common(found.common)]
    for fit in found.fits:
        parts += ["", *_fit(fit)]
    parts += signs(found)
    if reliability is not None:
        parts += ["", f"reliability curves in {reliability}"]
    show(document, *parts, as_json=as_json)


def signs(found: ScoreTable) -> list[str | Grid]:
    """Return what in scores should not be believed, and what to know before reading them."""
    flagged = [f"{shortened(one.name)}: {_flags(one)}" for one in found.entrants if one.flags]
    told: list[str | Grid] = ["", "Signs to look into", *flagged] if flagged else []
    return [*told, *(["", *found.warnings] if found.warnings else [])]


def _listed(text: str | None) -> tuple[str, ...]:
    """Return names parted by commas; one that holds a comma stands in double quotes."""
    parts = next(csv.reader([text or ""], skipinitialspace=True), [])
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def mapping(pairs: list[str] | tuple[()]) -> dict[str, str]:
    """Return the columns by name of the options ``--columns``.

    Raises:
        ConfigError: One is no pair, or a name stands twice.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, sign, column = pair.partition("=")
        if not (name and sign and column):
            raise ConfigError(f'--columns: "{pair}" is no NAME=COLUMN', hint="Such as --columns probability=p_yes.")
        if found.setdefault(name, column) != column:
            raise ConfigError(f"--columns: {name} is both {found[name]} and {column}", hint="Give it once.")
    return found


def plain(value: Any) -> Any:
    """Return a result as JSON values; what is undefined is null, with its reason beside."""
    if isinstance(value, Undefined):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        every = {field.name: getattr(value, field.name) for field in fields(value)}
        reasons = {name: one.reason for name, one in every.items() if isinstance(one, Undefined)}
        made = {name: plain(one) for name, one in every.items()}
        return {**made, "undefined": reasons} if reasons else made
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    return value.isoformat() if isinstance(value, date) else value


def _about(found: ScoreTable) -> str:
    return (
        f"{counted(found.n_items, 'target')} of {counted(found.n_questions, 'question')}, "
        f"{counted(found.n_dates, 'date')} of forecast, {found.base_rate:.1%} came true"
    )


def legend() -> str:
    """Return what the columns of the table of scores are, with the definitions that differ between books."""
    from consilience.scoring.probability import LOG_CLIP  # noqa: PLC0415 - heavy

    return (
        "Brier = MCB - DSC + UNC (CORP: miscalibration, discrimination, uncertainty); index: Brier Index, 100 (1 - "
        f"sqrt(Brier)), 100 is best; log: natural logarithm, probabilities clipped to {LOG_CLIP:g} from 0 and 1; null: "
        "what a calibrated forecaster would show by chance"
    )


def entrants_grid(entrants: tuple[Entrant, ...]) -> Grid:
    """Return the scores of forecasters, pools and the market as a table."""
    rows = []
    for one in entrants:
        errors = one.calibration
        rows.append(
            (
                shortened(one.name),
                one.sort,
                str(one.n),
                f"{one.brier.point:.4f}",
                _interval(one.brier),
                f"{one.brier_index:.1f}",
                f"{unsigned(f'{errors.mcb.value:.4f}')} ({errors.mcb.null:.4f})",
                unsigned(f"{one.corp.dsc:.4f}"),
                f"{one.corp.unc:.4f}",
                f"{one.log_score:.3f}{f' ({one.n_clipped} clipped)' if one.n_clipped else ''}",
                f"{errors.ece.value:.3f} ({errors.ece.null:.3f})",
                f"{one.sharpness:.3f}",
                _number(one.peer_score, "+.1f"),
                _number(one.skill_market, "+.1%"),
                _number(one.skill_base_rate, "+.1%"),
            )
        )
    headings = ("name", "sort", "n", "Brier", "95 %", "index", "MCB (null)", "DSC", "UNC", "log", "ECE (null)")
    return Grid((*headings, "sharpness", "peer", "v market", "v base rate"), tuple(rows), words=2)


def _common(common: Common) -> list[str | Grid]:
    rows = tuple(
        (shortened(row.name), row.sort, f"{row.brier:.4f}", signed(row.change.point), _interval(row.change))
        for row in common.rows
    )
    told = f"On the {counted(common.n, 'target')} that all answered ({counted(common.n_questions, 'question')}): "
    told += f"mean of individuals {common.mean_of_individuals:.4f}"
    if common.error_correlation is not None:
        told += f", correlation of errors {unsigned(f'{common.error_correlation:.2f}')}"
    return [told, Grid(("name", "sort", "Brier", "less mean of individuals", "95 %"), rows, words=2)]


def _fit(fit: TimeFit) -> list[str | Grid]:
    sides = ("before", "from it on") if fit.direction == "forward" else ("from it on", "before")
    told = f"{fit.before}, {fit.direction}: maps of {fit.pool} fitted on {counted(fit.n_fitted, 'target')} {sides[0]}, "
    told += f"judged on {fit.n_scored:,} {sides[1]}"
    rows = [("as it is", "–", f"{fit.brier:.4f}", "–", "–", "–")]
    for name, made in fit.maps.items():
        if isinstance(made, Undefined):
            rows.append((f"{name} (undefined: {made.reason})", "–", "–", "–", "–", "no"))
            continue
        numbers = " ".join([*(f"{x:.3f}" for x in made.parameters), *(_MARKS[flag] for flag in made.flags)])
        helps = "yes" if made.helps else "no"
        rows.append((name, numbers, f"{made.brier:.4f}", signed(made.change.point), _interval(made.change), helps))
    lines: list[str | Grid] = [told, Grid(("map", "fitted", "Brier", "change", "95 %", "helps"), tuple(rows), words=1)]
    if fit.unresolved_then:
        lines.append(f"{fit.unresolved_then} of those fitted on are dated {fit.before} or later: not known then")
    return lines


def _flags(one: Entrant) -> str:
    told = {
        "missing_targets": "no probability of {:.0f} targets",
        "missing_horizons": "only some of the targets of {:.0f} questions",
        "unsubmitted_half": "{:.0f} unsubmitted at exactly 0.5",
        "copies_price": "copies the price (r = {:.4f})",
        "far_below_peers": "Brier at most {:.2f} of most others': did it know the outcomes?",
        "leak": "leak: {:.0%} beyond .01 and .99",
        "at_bound": "its exponent {:.3g} is at the bound of what is tried, so that the best one may lie beyond",
    }
    return "; ".join(told[name].format(number) for name, number in one.flags.items())


def _interval(made: DifferenceInterval) -> str:
    if made.low is None or made.high is None:
        return "–"
    few = " (few)" if made.flags and made.flags != ("identical",) else ""
    few = " (few; the score itself cannot be below 0)" if "below_possible" in made.flags else few
    return f"{_plain(made.low)} to {_plain(made.high)}{few}"


def _plain(value: float) -> str:
    return signed(value).removeprefix("+")


def signed(value: float) -> str:
    """Return a difference with its sign and four digits; what rounds to 0 has no sign.

    Example:
        >>> signed(-0.00001), signed(0.25), signed(-0.25)
        ('0.0000', '+0.2500', '-0.2500')
    """
    return unsigned(f"{value:+.4f}")


def unsigned(text: str) -> str:
    """Return a number's text, without its sign where only zeros are left of it.

    Example:
        >>> unsigned("-0.0%"), unsigned("-0.1%")
        ('0.0%', '-0.1%')
    """
    return text if text.strip("+-0.%") else text.lstrip("+-")


def shortened(name: str) -> str:
    """Return a name as a table shows it: of one that is too long the start, and how long it is; JSON has all of it.

    Example:
        >>> shortened("analyst"), shortened("x" * 100_000)
        ('analyst', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (100,000 characters)')
    """
    return name if len(name) <= LONGEST else f"{name[:_KEPT]}… ({len(name):,} characters)"


def _number(value: float | Undefined, form: str) -> str:
    return "–" if isinstance(value, Undefined) else unsigned(format(value, form))


def _write_curves(path: Path, curves: dict[str, Reliability]) -> None:
    import polars as pl  # noqa: PLC0415 - heavy

    from consilience.experiments.storage import write_whole  # noqa: PLC0415 - the same

    frame = pl.concat(
        pl.DataFrame(
            {
                "name": [name] * one.stated.size,
                "stated": one.stated,
                "count": one.count,
                "seen": one.seen,
                "low": one.low,
                "high": one.high,
            }
        )
        for name, one in curves.items()
    )
    write_whole(path, lambda target: target.write_bytes(frame.write_csv().encode()))
