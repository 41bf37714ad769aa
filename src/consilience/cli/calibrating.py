"""``consilience calibrate``: from finished validation runs to calibrations that are applied unchanged afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli.console import Grid, counted, number, show
from consilience.cli.gathering import checked, strata_of, times_of
from consilience.cli.place import Json, place_of, titled
from consilience.cli.truths import truths_of
from consilience.errors import DataError

if TYPE_CHECKING:
    from consilience.experiments.calibrations import Calibration, Gain

EXAMPLE = "Example: consilience calibrate _F_independent-validation-0123456789"


def calibrate(
    context: typer.Context,
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Finished runs on the validation split.")],
    out: Annotated[Path | None, typer.Option(help="Where to freeze them; by default results/calibration.json.")] = None,
    questions: Annotated[Path | None, typer.Option(help="JSONL file that holds the truths of question sets.")] = None,
    primary: Annotated[str, typer.Option(help="Aggregation rule fixed beforehand.")] = "median",
    as_json: Json = False,
) -> None:
    """Learn how far intervals and probabilities of arms are off on validation and freeze what surely gains.

    Learnt on the earlier half of the items and judged on the later one: what does not gain there is refused. Apply it
    to later splits with evaluate --calibration FILE.
    """
    import consilience  # noqa: PLC0415 - reads the installed distribution
    from consilience.experiments.artefact import write_artefact  # noqa: PLC0415 - heavy
    from consilience.experiments.calibrating import calibrate as calibrated  # noqa: PLC0415 - heavy
    from consilience.experiments.calibrations import FILE  # noqa: PLC0415 - the same
    from consilience.experiments.predictions import load_runs  # noqa: PLC0415 - the same

    place = place_of(context)
    folders = [place.recorded_run(run) for run in dict.fromkeys(runs)]
    loaded = load_runs(place.root / "results", [folder.name for folder in folders], include_simulated=True)
    heads, unfinished = checked(place, loaded.run_ids)
    if unfinished:
        raise DataError(f"{unfinished[0]} is not finished", hint="The run's own command finishes it.")
    truth, _, _ = truths_of(place, questions, set(loaded.predictions["item_id"]))
    made = calibrated(
        loaded.predictions,
        truth,
        runs=heads,
        package_version=consilience.__version__,
        strata=strata_of(place, loaded.predictions),
        times=times_of(place, loaded.predictions),
        primary=primary,
    )
    path = out or place.root / "results" / FILE
    write_artefact(made, path)
    show(
        {**made.model_dump(mode="json"), "file": str(path), "calls": 0},
        Grid(("arm", "what", "kept", "fitted", "judged", "gain", "95 %"), tuple(_rows(made)), words=3),
        *(f"{one.subject.arm}, {one.what}: refused, {one.reason}" for one in made.refused),
        *_unknown(made),
        f"learnt from {', '.join(titled(folder) for folder in folders)}, {counted(len(made.items), 'item')} whose "
        f"truths were known by {made.until}, 0 calls",
        f"calibration {made.sha256[:12]} in {path}; it is applied to later splits only",
        as_json=as_json,
    )


def _unknown(made: Calibration) -> list[str]:
    """Return what is to be said of truths that were not known in time, or of which nobody says when."""
    gains: list[tuple[str, Gain | None]] = [(one.subject.arm, one.gain) for one in made.intervals]
    gains += [(one.subject.arm, one.gain) for one in made.probabilities]
    gains += [(one.subject.arm, one.gain) for one in made.refused]
    late = {arm: gain.n_unresolved for arm, gain in gains if gain is not None and gain.n_unresolved}
    told = [
        f"{arm}: left out of the earlier half, as their truth was not known when the later half was asked: {n}"
        for arm, n in sorted(late.items())
    ]
    if made.n_assumed:
        told.append(
            f"{counted(made.n_assumed, 'item')} without a valuation_date: the truth is taken to be known the day after "
            "the cutoff"
        )
    return told


def _rows(made: Calibration) -> list[tuple[str, ...]]:
    kept = [(one.subject.arm, f"{100 * (1 - one.cqr.alpha):.0f} % interval", "yes", one.gain) for one in made.intervals]
    kept += [(one.subject.arm, "probability", "yes", one.gain) for one in made.probabilities]
    refused = [(one.subject.arm, one.what, "no", one.gain) for one in made.refused]
    return [
        (arm, what, word, *_gained(gain)) for arm, what, word, gain in sorted([*kept, *refused], key=lambda r: r[:2])
    ]


def _gained(gain: Gain | None) -> tuple[str, ...]:
    if gain is None:
        return ("–",) * 4
    return str(gain.n_fitted), str(gain.n_judged), number(gain.gain), f"[{number(gain.low)}, {number(gain.high)}]"
