"""``consilience decide``: a vote that escalates only where it must, and a record of who dissented."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from consilience.cli.console import Grid, note, show
from consilience.cli.place import Json, Place, place_of
from consilience.errors import BudgetError, ConfigError, reason

if TYPE_CHECKING:
    from consilience.decisions.case import Case
    from consilience.decisions.decide import DecisionTerms
    from consilience.decisions.result import DecisionResult

EXAMPLE = (
    'Example: consilience decide --question "Ship on Friday?" --option ship --option wait --safety-order wait,ship'
)


def decide(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    file: Annotated[Path | None, typer.Argument(metavar="FILE.yaml", help="The decision; flags say more.")] = None,
    question: Annotated[str | None, typer.Option(help="What is to be decided.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="One option; repeat it.")] = None,
    documents: Annotated[
        list[Path] | None, typer.Option("--context", help="A document that everybody reads, UTF-8 text; repeat it.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="majority (default), supermajority, unanimity, plurality, borda, irv …")
    ] = None,
    threshold: Annotated[str | None, typer.Option(help="What a supermajority demands, such as 2/3.")] = None,
    safety_order: Annotated[
        list[str] | None,
        typer.Option(
            help='All options, safest first; settles ties. With commas ("quote" one that holds any), or repeat.'
        ),
    ] = None,
    ties: Annotated[
        str | None, typer.Option(help="The tie rule, in order: safety_order, moderator, human, random.")
    ] = None,
    quick: Annotated[int | None, typer.Option(min=0, help="Members of the quick vote; 0 leaves it out.")] = None,
    quick_share: Annotated[float | None, typer.Option(help="What a quick vote demands (default 0.85).")] = None,
    full_share: Annotated[float | None, typer.Option(help="What a full vote demands (default 0.66).")] = None,
    passes: Annotated[int | None, typer.Option(min=0, max=3, help="Most passes of the debate (default 1).")] = None,
    reveal: Annotated[str | None, typer.Option(help="In the debate: positions, or arguments alone.")] = None,
    quorum: Annotated[int | None, typer.Option(min=0, help="Valid ballots needed; 0 for more than half.")] = None,
    panel: Annotated[str | None, typer.Option(help="Who votes: a panel, or a YAML file.")] = None,
    critical: Annotated[bool, typer.Option("--critical", help="Needs five voters or more.")] = False,
    irreversible: Annotated[bool | None, typer.Option("--irreversible/--reversible", help="Can it be undone?")] = None,
    uncertain: Annotated[bool | None, typer.Option("--uncertain/--certain", help="Is much uncertain?")] = None,
    perspectives: Annotated[
        bool | None, typer.Option("--perspectives/--one-view", help="Is more than one perspective needed?")
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--panel-anyway", help="A panel votes although the stakes do not justify one.")
    ] = False,
    allow: Annotated[
        list[str] | None, typer.Option(help="Allow a panel in spite of: copies, axes, few, even; repeat it.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="One model for all seats, instead of a committee.")] = None,
    tier: Annotated[str | None, typer.Option(help="Price tier of the models: mid (default) or small.")] = None,
    max_spend_usd: Annotated[str | None, typer.Option(help="Spend cap in dollars; 0 means zero.")] = None,
    seed: Annotated[int | None, typer.Option(help="Shuffling, assignment, lots, simulated votes (default 0).")] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Let real models speak; needs their keys. Otherwise all is simulated.")
    ] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask turns again that have no answer.")] = False,
    run_id: Annotated[str | None, typer.Option(help="Id of the run; by default made of everything decisive.")] = None,
    as_json: Json = False,
) -> None:
    """Decide: two vote, then all, then a debate with a secret final vote, then the tie rule, as far as is needed.

    Everything that decides is fixed before the first vote. Exit codes: 3 a tie, no decision, or a person must settle
    it; 4 the spend cap ended it; 5 no quorum.
    """
    from consilience.api.deciding import decision_terms, unsettled  # noqa: PLC0415 - heavy

    place = place_of(context)
    said = {
        "question": question,
        "options": option,
        "files": documents,
        "method": method,
        "threshold": threshold,
        "safety_order": None if safety_order is None else _ordered(safety_order),
        "ties": None if ties is None else _listed(ties),
        "quick": quick,
        "quick_share": quick_share,
        "full_share": full_share,
        "passes": passes,
        "reveal": reveal,
        "quorum": quorum,
        "panel": panel,
        "critical": critical or None,
    }
    stakes = {"irreversible": irreversible, "uncertain": uncertain, "perspectives": perspectives}
    case = _case(file, {key: value for key, value in said.items() if value is not None}, stakes)
    terms = decision_terms(
        place.root,
        os.environ,
        model=model,
        tier=tier,
        max_spend_usd=max_spend_usd,
        seed=seed,
        live=live,
        retry_failed=retry_failed,
        anyway=anyway,
        allow=allow or (),
        run_id=run_id,
    )
    result, files = decided(place, case, terms)
    from consilience.decisions.sheet import SIMULATED, sheet_of  # noqa: PLC0415 - heavy

    parts: list[str | Grid] = [SIMULATED] if result.simulated else []
    for section in sheet_of(result):
        parts += ["", section.title] if section.title else []
        parts += list(section.lines)
        if section.rows:
            parts.append(Grid(section.headings, section.rows, words=len(section.headings)))
    parts.append(f"written: {', '.join(str(path) for path in files)}")
    show(result.to_dict() | {"files": [str(path) for path in files]}, *parts, as_json=as_json)
    error = unsettled(result)
    if error is not None:
        raise error


def _ordered(said: list[str]) -> list[str]:
    """Return options that are named one by one, or all in one text with commas, where quotes keep a comma."""
    if len(said) != 1:
        return said
    return [part.strip() for part in next(csv.reader(said, skipinitialspace=True), []) if part.strip()]


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _case(file: Path | None, said: dict[str, Any], stakes: dict[str, bool | None]) -> Case:
    """Return the decision of a file, with what flags say in its place."""
    from pydantic import ValidationError  # noqa: PLC0415 - heavy

    from consilience.decisions.case import Case, read_case  # noqa: PLC0415 - the same
    from consilience.decisions.necessity import Stakes  # noqa: PLC0415 - the same

    brought = {} if file is None else read_case(file).model_dump()
    known = {name: value for name, value in stakes.items() if value is not None}
    if "files" in said:
        said = {**said, "files": (*brought.get("files", ()), *said["files"])}
    told = {**brought, **said, "stakes": Stakes(**{**brought.get("stakes", {}), **known})}
    for name in ("question", "options"):
        if not told.get(name):
            raise ConfigError(f"a decision needs {name}", hint=f"Give --{name.removesuffix('s')}, or a YAML file.")
    try:
        return Case.model_validate(told)
    except ValidationError as error:
        raise ConfigError(
            f"the decision does not fit: {reason(error)}", hint="See consilience decide --help."
        ) from error


def decided(place: Place, case: Case, terms: DecisionTerms) -> tuple[DecisionResult, list[Path]]:
    """Carry a decision out, and write it as JSON, Markdown and a page.

    Raises:
        BudgetError: The spend cap ended it.
        StoppedError: The user did.
    """
    from consilience.api.deciding import decisions_of, prepared_decision, written_decision  # noqa: PLC0415 - heavy
    from consilience.cli.running import carry_out  # noqa: PLC0415 - the same

    shelf = decisions_of(terms.results) if case.weights == "earned" else None
    for name, why in shelf.faults.items() if shelf is not None else ():
        note(f"decision {name} teaches no weight: {why}")
    prepared = prepared_decision(case, terms)
    for hint in (*([] if prepared.need.justified is not False else [prepared.need.why]), *prepared.need.hints):
        note(hint)
    report = carry_out(prepared.job, prepared.orders)
    if report.stopped_by is not None:
        if not isinstance(report.stopped_by, BudgetError):  # the same command would meet the same cap
            note(f"to go on: {place.command}")
        raise report.stopped_by
    return written_decision(prepared, report, place.root / "results")
