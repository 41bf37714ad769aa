"""``consilience run-arm``: one arm over one set of items, resumable."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from consilience.cli.place import Json, place_of
from consilience.errors import ConfigError
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.core.panel import Labels

SPLIT = "validation"
N = 24
ENGINES = ("local", "ray")

EXAMPLE = "Example: consilience run-arm --arm G_debate --rounds 2 --split validation --n 24 --seed 7 --max-spend-usd 5"


def run_arm(  # noqa: PLR0913, PLR0917 - a verb's options are its parameters
    context: typer.Context,
    arm: Annotated[
        str,
        typer.Option(help="Treatment, such as E_single, F_independent, G_debate, H_skeptic.", show_default=False),
    ],
    rounds: Annotated[
        str | None,
        typer.Option(help="Rounds, by default the arm's own; 1,2,4 writes the results of each of one debate."),
    ] = None,
    panel: Annotated[
        str | None,
        typer.Option(help="Who answers, instead of the arm's own: a name (consilience roles) or a YAML file."),
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="What members know each other by: neutral or role; by default the panel's own.")
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(help="For J_single_matched: sample up to what RUN took per item, or usd:X or tokens:N per item."),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Weights that fit-weights froze (default: the project's, for test and holdout).")
    ] = None,
    replicate: Annotated[
        int, typer.Option(min=0, max=99, help="Above 0: ask a tenth of the items again, as this repetition.")
    ] = 0,
    committee: Annotated[
        str | None,
        typer.Option(help="How models are given to roles: mixed_random (default), all_anthropic, all_openai."),
    ] = None,
    model: Annotated[str | None, typer.Option(help="One model for all seats, instead of a committee.")] = None,
    tier: Annotated[str | None, typer.Option(help="Price tier of the models: mid (default) or small.")] = None,
    split: Annotated[
        str | None, typer.Option(help="validation (default), test or holdout; of --questions, the part they are.")
    ] = None,
    n: Annotated[int | None, typer.Option(min=1, help="Items of the split's stored subsample (default 24).")] = None,
    questions: Annotated[Path | None, typer.Option(help="JSONL file of questions, instead of a split.")] = None,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Ask about the synthetic town, made where it is absent.")
    ] = False,
    oracle: Annotated[
        bool, typer.Option("--oracle", help="Simulated analysts know the truth within 5 %; for --synthetic only.")
    ] = False,
    cached: Annotated[
        bool, typer.Option("--simulate-caching", help="Simulated analysts count tokens as with the vendors' caches.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Let real models speak; needs their keys. Otherwise all is simulated.")
    ] = False,
    batch: Annotated[
        bool, typer.Option("--batch", help="Call round by round through the vendors' batches: half price, up to a day.")
    ] = False,
    drop_empty_seats: Annotated[
        bool, typer.Option("--drop-empty-seats", help="Leave out seats whose view shows one section at most. Recorded.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Shuffling, assignment, simulated answers (default 0).")] = None,
    max_spend_usd: Annotated[str | None, typer.Option(help="Spend cap in dollars; 0 means zero.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Items in flight (default 4).")] = None,
    engine: Annotated[
        str, typer.Option(help="Where turns are taken: local (this process) or ray (workers on a Ray cluster).")
    ] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Of --engine ray (default: one per CPU of the cluster).")
    ] = None,
    run_id: Annotated[str | None, typer.Option(help="Name of the run; by default derived from what is asked.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print bounds; write and spend nothing.")] = False,
    accept: Annotated[
        list[str] | None, typer.Option(help="Resume although this changed since the run began: code. Recorded.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask turns again that have no answer.")] = False,
    as_json: Json = False,
) -> None:
    """Run one arm; the same command again resumes it.

    Flags come before CONSILIENCE_MAX_SPEND_USD, that before consilience.yaml. Without --live all is simulated; keys are
    read from the environment or .env and never stored.
    """
    from consilience.cli.one_run import perform, preview  # noqa: PLC0415 - heavy
    from consilience.cli.planning import Asked  # noqa: PLC0415 - the same
    from consilience.cli.running import Wanted  # noqa: PLC0415 - the same
    from consilience.experiments.settings import Flags, settle  # noqa: PLC0415 - the same

    place = place_of(context)
    _agree(model=model, committee=committee, accept=accept or [])
    _engine(engine, workers, batch=batch)
    if questions is not None and (n is not None or synthetic):
        raise ConfigError("--questions brings its own items", hint="Leave --n and --synthetic out, or --questions.")
    if oracle and (live or not synthetic):
        raise ConfigError(
            "--oracle knows the truth of made-up items only", hint="Add --synthetic and leave --live out."
        )
    flags = Flags(
        max_spend_usd=max_spend_usd, tier=tier, committee=model or committee, concurrency=concurrency, seed=seed
    )
    asked = Asked(
        arm=arm,
        rounds=_rounds(rounds),
        panel=panel,
        labels=_labels(labels),
        replicate=replicate,
        match=match,
        weights=weights,
        model=model,
        run_id=run_id,
        drop_empty_seats=drop_empty_seats,
        live=live,
        caches=cached,
        oracle=oracle,
        batch=batch,
        engine=engine,
        workers=workers,
        wanted=Wanted(
            split=split if questions is not None else split or SPLIT,
            n=n or N,
            questions=questions,
            synthetic=synthetic,
        ),
        settings=settle(place.root, flags, os.environ),
    )
    if dry_run:
        preview(place, asked, as_json=as_json)
    else:
        perform(place, asked, accept=frozenset(accept or []), retry_failed=retry_failed, as_json=as_json)


def _rounds(text: str | None) -> tuple[int, ...]:
    """Return the numbers of rounds a user gave, such as ``1,2,4``."""
    parts = [] if text is None else text.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise ConfigError(f"--rounds {text} is no number of rounds", hint="Such as 2, or 1,2,4 for nested ones.")
    return tuple(int(part) for part in parts)


def _labels(text: str | None) -> Labels | None:
    if text is None or text in {"neutral", "role"}:
        return cast("Labels | None", text)
    raise ConfigError(f'--labels: unknown "{text}"', hint=nearest(text, ["neutral", "role"]))


def _engine(engine: str, workers: int | None, *, batch: bool) -> None:
    """Raise where what is said of the engine cannot be."""
    if engine not in ENGINES:
        raise ConfigError(f'--engine: unknown "{engine}"', hint=nearest(engine, ENGINES))
    if engine == "local" and workers is not None:
        raise ConfigError("--workers is of --engine ray", hint="Add --engine ray, or leave --workers out.")
    if engine == "ray" and batch:
        raise ConfigError("batches are one process's work", hint="Leave --engine ray or --batch out.")


def _agree(*, model: str | None, committee: str | None, accept: Sequence[str]) -> None:
    """Raise where flags contradict each other."""
    if model is not None and committee is not None:
        raise ConfigError("--model and --committee both say who answers", hint="Give one of them.")
    for part in accept:
        if part != "code":
            raise ConfigError(f'--accept: unknown part "{part}"', hint="Known: code.")
