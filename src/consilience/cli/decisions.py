"""``consilience decisions list|show|resolve``: what was decided, what became of it, and who was right how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from consilience.cli.console import Grid, show
from consilience.cli.place import Json, Place, place_of
from consilience.errors import ConfigError, DataError, reason
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.decisions.log import Decided, EarnedWeight, HitRate, Resolved
    from consilience.decisions.shelf import Shelf

LIST_EXAMPLE = "Example: consilience decisions list"
SHOW_EXAMPLE = "Example: consilience decisions show _ask-decide-0123456789"
RESOLVE_EXAMPLE = (
    'Example: consilience decisions resolve _ask-decide-0123456789 --outcome wait --note "two faults on Saturday"'
)
KINDS = {True: "simulated", False: "real"}

DecisionName = Annotated[str, typer.Argument(metavar="DECISION", help="A decision's run id.")]

app = typer.Typer(no_args_is_help=True)


@app.command("list", epilog=LIST_EXAMPLE)
def decisions_list(context: typer.Context, as_json: Json = False) -> None:
    """List decisions with what became of them, the panel's hit rate and the weights that voters earned.

    Each is checked against its run. What was changed, taken away or never decided is named and not counted (exit code
    6); everything else is listed.
    """
    from consilience.decisions.log import earned_weights, hit_rate, latest  # noqa: PLC0415 - heavy

    folder = _folder(context)
    outcomes = _outcomes(folder)
    shelf = _shelf(context).settled(outcomes)
    made, known, error = shelf.decisions, latest(outcomes), shelf.error()
    gone = shelf.homeless(outcomes)
    alike = {kind: [one for one in made if one.simulated is simulated] for simulated, kind in KINDS.items()}
    rates = {kind: hit_rate(some, outcomes) for kind, some in alike.items() if some}
    weights = {kind: earned_weights(some, outcomes) for kind, some in alike.items() if some}
    document = {
        "decisions": [asdict(one) | {"resolved": _recorded(known.get(one.run_id))} for one in made],
        "hit_rate": {kind: asdict(rate) for kind, rate in rates.items()},
        "weights": {kind: [asdict(one) for one in some.values()] for kind, some in weights.items()},
        "not_believed": dict(shelf.faults),
        "outcomes_without_decision": list(gone),
    }
    if not made and error is None and not gone:
        show(document, f"no decision in {folder}; make one with consilience decide", as_json=as_json)
        return
    rows = tuple(_row(one, known.get(one.run_id)) for one in made)
    parts: list[str | Grid] = [Grid(("decision", "day", "question", "decided", "turned out", "by"), rows, words=6)]
    for kind, rate in rates.items():
        parts += ["", *_rate_lines(kind, rate), *_weight_grid(weights[kind])]
    parts += ["", *(f"not believed and not counted: {name}, {why}" for name, why in shelf.faults.items())]
    parts += [f"outcomes recorded of decisions that are not counted: {len(gone)} ({', '.join(gone)})"] if gone else []
    show(document, *parts, as_json=as_json)
    if error is not None:
        raise error


@app.command("show", epilog=SHOW_EXAMPLE)
def decisions_show(context: typer.Context, decision: DecisionName, as_json: Json = False) -> None:
    """Print a decision as it was told, and everything that was recorded of its outcome."""
    folder = _folder(context)
    decided = _named(context, decision)
    told = folder / decided.run_id / "decision.md"
    try:
        text = told.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{told} cannot be read: {reason(error)}", hint="Decide again with the same words: it is made anew."
        ) from error
    records = [one for one in _outcomes(folder) if one.run_id == decided.run_id]
    history = [
        f"{one.at:%Y-%m-%d}{', corrected' if one.corrects else ''}: {_label(decided, one)}. {one.note}"
        for one in records
    ]
    document = asdict(decided) | {"outcomes": [one.model_dump(mode="json") for one in records]}
    show(document, *text.splitlines(), "", *(history or ["No outcome is recorded."]), as_json=as_json)


@app.command("resolve", epilog=RESOLVE_EXAMPLE)
def decisions_resolve(
    context: typer.Context,
    decision: DecisionName,
    note: Annotated[str, typer.Option(help="Where it is known from, or why it cannot be.")],
    outcome: Annotated[str | None, typer.Option(help="The option that turned out right: its words or its id.")] = None,
    unknowable: Annotated[bool, typer.Option("--unknowable", help="Nobody can know which was right.")] = False,
    correct: Annotated[
        bool, typer.Option("--correct", help="It takes the place of what was recorded, which stays in the log.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Record what became of a decision. Hit rate and earned weights come from these records alone."""
    from consilience.api.running import now  # noqa: PLC0415 - heavy
    from consilience.decisions.log import OUTCOMES, resolve  # noqa: PLC0415 - the same

    if unknowable == (outcome is not None):
        raise ConfigError("what became of the decision?", hint="Give --outcome, or --unknowable; one of them.")
    folder = _folder(context)
    decided = _named(context, decision)
    made = resolve(folder / OUTCOMES, decided, outcome, note=note, at=now(), corrects=correct)
    show(made.model_dump(mode="json"), f"{decided.run_id}: {_label(decided, made)}", as_json=as_json)


def _folder(context: typer.Context) -> Path:
    from consilience.api.deciding import FOLDER  # noqa: PLC0415 - heavy

    place: Place = place_of(context)
    return place.root / "results" / FOLDER


def _outcomes(folder: Path) -> tuple[Resolved, ...]:
    from consilience.decisions.log import OUTCOMES, read_outcomes  # noqa: PLC0415 - heavy

    return read_outcomes(folder / OUTCOMES)


def _shelf(context: typer.Context) -> Shelf:
    from consilience.api.deciding import decisions_of  # noqa: PLC0415 - heavy

    return decisions_of(place_of(context).root / "results")


def _named(context: typer.Context, name: str) -> Decided:
    from consilience.decisions.shelf import named  # noqa: PLC0415 - heavy

    shelf = _shelf(context)
    found = named(shelf, name)
    if found is None:
        made = [one.run_id for one in shelf.decisions]
        hint = nearest(name, made) if made else "Make one with consilience decide."
        raise ConfigError(f'there is no decision "{name}" in {_folder(context)}', hint=hint)
    return found


def _recorded(record: Resolved | None) -> dict[str, object] | None:
    return None if record is None else record.model_dump(mode="json")


def _label(decided: Decided, record: Resolved | None) -> str:
    if record is None:
        return "–"
    return "unknowable" if record.outcome is None else decided.options[record.outcome]


def _row(decided: Decided, record: Resolved | None) -> tuple[str, ...]:
    winner = decided.outcome if decided.winner is None else decided.options[decided.winner]
    voters = KINDS[decided.simulated]
    return decided.run_id, decided.at[:10], decided.question, winner, _label(decided, record), voters


def _rate_lines(kind: str, rate: HitRate) -> Iterator[str]:
    if rate.low is None or rate.high is None:
        yield f"{kind}: no decision with a winner has a known outcome"
    else:
        share = f"{100 * rate.right / rate.n:.0f} % (95 % {100 * rate.low:.0f} to {100 * rate.high:.0f})"
        yield f"{kind}: the winner was right in {rate.right} of {rate.n}, {share}"
    if rate.without:
        told = ", ".join(f"{count} {name}" for name, count in sorted(rate.without.items()))
        yield f"resolved, but without a winner that a vote elected: {told}"
    if rate.unknown:
        yield f"outcome not known: {rate.unknown}"
    if rate.unknowable:
        yield f"outcome that nobody can know: {rate.unknowable}"


def _weight_grid(weights: Mapping[str, EarnedWeight]) -> Sequence[Grid]:
    rows = tuple(
        (one.role, ", ".join(one.flags) or "–", str(one.right), str(one.n), f"{one.weight:.3f}")
        for one in weights.values()
    )
    return [Grid(("voter", "flags", "right", "of", "weight"), rows, words=2)] if rows else []
