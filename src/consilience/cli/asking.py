"""``consilience ask``: one question put to one panel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from consilience.cli.console import note, show
from consilience.cli.place import Json, place_of
from consilience.errors import BudgetError, ConfigError
from consilience.registry import nearest

EXAMPLE = 'Example: consilience ask "Which date suits most?" --kind choice --option Monday --option Friday'
SCALES = ("log", "linear")


def ask(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question, in quotes.")],
    kind: Annotated[
        str, typer.Option(help="Kind of answer: estimate, probability, distribution, choice.", show_default=False)
    ],
    option: Annotated[list[str] | None, typer.Option(help="One option of a choice or distribution; repeat it.")] = None,
    documents: Annotated[
        list[Path] | None, typer.Option("--context", help="A document that everybody reads, UTF-8 text; repeat it.")
    ] = None,
    panel: Annotated[
        str,
        typer.Option(
            help="default (five members), generalist (one agent), another of consilience roles, or a YAML file."
        ),
    ] = "default",
    protocol: Annotated[
        str, typer.Option(help="independent, debate, delphi, skeptic, or adversarial (two advocates and a judge).")
    ] = "independent",
    rounds: Annotated[
        int | None, typer.Option(min=1, help="Rounds of deliberation; by default the protocol's.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="One model for all seats, instead of a committee.")] = None,
    committee: Annotated[
        str | None,
        typer.Option(help="How models are given to roles: mixed_random (default), all_anthropic, all_openai."),
    ] = None,
    tier: Annotated[str | None, typer.Option(help="Price tier of the models: mid (default) or small.")] = None,
    max_spend_usd: Annotated[str | None, typer.Option(help="Spend cap in dollars; 0 means zero.")] = None,
    unit: Annotated[str | None, typer.Option(help="For estimates: what the number counts, such as USD.")] = None,
    scale: Annotated[str, typer.Option(help="For estimates: log for positive quantities, or linear.")] = "linear",
    lower: Annotated[float | None, typer.Option(help="For estimates: smallest admissible value.")] = None,
    upper: Annotated[float | None, typer.Option(help="For estimates: largest admissible value.")] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Let real models speak; needs their keys. Otherwise all is simulated.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Shuffling, assignment, simulated answers (default 0).")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask turns again that have no answer.")] = False,
    as_json: Json = False,
) -> None:
    """Ask a panel one question; asked again on the same day, it is answered from the record.

    Exit codes: 3 where a vote is tied, 4 where the spend cap ended it, 5 where too few members answered.
    """
    from consilience.api.asking import Terms, prepare  # noqa: PLC0415 - heavy
    from consilience.api.result import result_of  # noqa: PLC0415 - the same
    from consilience.api.running import now  # noqa: PLC0415 - the same
    from consilience.cli.answered import parts_of  # noqa: PLC0415 - the same
    from consilience.cli.running import carry_out  # noqa: PLC0415 - the same
    from consilience.experiments.asked import Asked, item_of, kind_named  # noqa: PLC0415 - the same
    from consilience.experiments.settings import Flags, keys_and_urls, settle  # noqa: PLC0415 - the same

    place = place_of(context)
    if model is not None and committee is not None:
        raise ConfigError("--model and --committee both say who answers", hint="Give one of them.")
    if scale not in SCALES:
        raise ConfigError(f'--scale: unknown "{scale}"', hint=nearest(scale, SCALES))
    settings = settle(
        place.root,
        Flags(max_spend_usd=max_spend_usd, tier=tier, committee=model or committee, seed=seed),
        os.environ,
    )
    if model is not None:
        settings.catalogue.spec(model)  # says "model" where it is unknown, not "committee"
    asked = Asked(
        text=question,
        kind=kind_named(kind),
        options=option or (),
        context=documents or (),
        unit=unit,
        scale="log" if scale == "log" else "linear",
        lower=lower,
        upper=upper,
    )
    item = item_of(asked, today=now().date())
    terms = Terms(
        panel=panel,
        protocol=protocol,
        rounds=rounds,
        committee=settings.committee,
        tier=settings.tier,
        live=live,
        seed=settings.seed,
        max_spend_nano=settings.max_spend_nano,
        retry_failed=retry_failed,
        results=place.root / "results",
        environ=keys_and_urls(place.root, os.environ),
        catalogue=settings.catalogue,
    )
    job, orders = prepare(item, terms)
    report = carry_out(job, orders)
    if report.stopped_by is not None:
        if not isinstance(report.stopped_by, BudgetError):  # the same command would meet the same cap
            note(f"to go on: {place.command}")
        raise report.stopped_by
    result = result_of(report, item.question)
    for text in result.warnings:
        note(f"panel: {text}")
    show(result.to_dict(), *parts_of(result, place), as_json=as_json)
    if result.unsettled is not None:
        raise result.unsettled
