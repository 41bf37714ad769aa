"""Verbs on recorded runs: replay, recompute, verify, ledger, runs. None of them makes a call."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from consilience.cli.console import Grid, counted, number, show
from consilience.cli.outputs import check_output
from consilience.cli.place import Json, RunName, place_of, titled
from consilience.errors import ConfigError, DataError, IntegrityError
from consilience.registry import nearest

if TYPE_CHECKING:
    from consilience.core.question import Kind

RULES: dict[Kind, tuple[str, ...]] = {
    "estimate": (
        *("mean", "median", "trimmed_mean_20", "inverse_variance", "stacking", "stacking_nnls", "robust_bayes"),
        "mixture",
    ),
    "probability": (
        *("mean", "median", "trimmed_mean", "geometric_odds", "sqrt_neff", "sqrt_neff_weighted", "neyman"),
        *("extremized_odds", "stacking"),
    ),
    "distribution": ("linear_pool", "logarithmic_pool"),
    "choice": (
        *(
            "plurality",
            "majority",
            "supermajority",
            "unanimity",
            "weighted",
            "confidence_weighted",
            "borda",
            "approval",
        ),
        *("copeland", "minimax", "ranked_pairs", "schulze", "irv"),
    ),
}
"""Names for the help, which may load no rule."""
RULES_HELP = "Aggregation rule. " + " ".join(f"Of {kind}: {', '.join(names)}." for kind, names in RULES.items())


def replay(context: typer.Context, run: RunName, as_json: Json = False) -> None:
    """Run the engine again on the recorded answers, with 0 calls, and compare the predictions byte for byte."""
    import anyio  # noqa: PLC0415 - heavy

    from consilience.api.running import APPLICATIONS, now  # noqa: PLC0415 - the same
    from consilience.experiments.fingerprint import run_facts  # noqa: PLC0415 - the same
    from consilience.experiments.listing import is_simulated  # noqa: PLC0415 - the same
    from consilience.experiments.orders import Shell  # noqa: PLC0415 - the same
    from consilience.experiments.replay import replay_run  # noqa: PLC0415 - the same

    folder = place_of(context).recorded_run(run)
    shell = Shell(clock=now, run_secret="", facts=run_facts())
    report = anyio.run(replay_run, folder, APPLICATIONS, shell)
    same = "byte for byte the recorded ones" if report.identical else "NOT the recorded ones"
    show(
        {
            "run_id": report.run_id,
            "simulated": is_simulated(folder),
            "calls": 0,
            "answers": report.answers,
            "rows": report.predictions.height,
            "finished": report.finished,
            "identical": report.identical,
        },
        f"{titled(folder)}: 0 calls, {counted(report.answers, 'recorded answer')} read again",
        f"{counted(report.predictions.height, 'prediction row')}, {same}",
        as_json=as_json,
    )
    if not report.identical and not report.finished:
        raise DataError(
            f"{folder.name} is not finished; predictions are older than the record",
            hint="The run's own command finishes it and writes them anew.",
        )
    if not report.identical:
        raise IntegrityError(
            f"the predictions of {folder} are not what its record gives",
            hint="predictions.parquet was changed, or the code that reads answers was; consilience verify checks the "
            "journal.",
        )


def recompute(
    context: typer.Context,
    run: RunName,
    aggregation: Annotated[str, typer.Option(help=RULES_HELP, show_default=False)],
    weights: Annotated[
        Path | None, typer.Option(help="Weights that fit-weights froze (default: those the run was made with).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Aggregate a run's recorded answers under another rule, with 0 calls."""
    from consilience.experiments.artefact import load_artefact  # noqa: PLC0415 - heavy
    from consilience.experiments.listing import is_simulated  # noqa: PLC0415 - the same
    from consilience.experiments.protocol import read_frozen  # noqa: PLC0415 - the same
    from consilience.experiments.replay import recompute as computed  # noqa: PLC0415 - the same
    from consilience.experiments.weights import Weights  # noqa: PLC0415 - the same

    frozen = None if weights is None else load_artefact(Weights, weights)
    folder = place_of(context).recorded_run(run)
    used = frozen or read_frozen(folder).plan.weights
    frame = anyio.run(partial(computed, folder, aggregation=aggregation, weights=frozen))
    rows = frame.to_dicts()
    names = frame.columns[3:-1]  # behind item, rule and number of answers, before the flags
    flagged = Counter(flag for row in rows for flag in (row["flags"] or "").split(", ") if flag)
    show(
        {
            "run_id": folder.name,
            "simulated": is_simulated(folder),
            "calls": 0,
            "aggregation": aggregation,
            "weights_sha256": None if used is None else used.sha256,
            "predictions": rows,
        },
        Grid(
            ("item", "answers", *names),
            tuple((row["item_id"], str(row["n_answered"]), *(number(row[name]) for name in names)) for row in rows),
        ),
        *(f"flag {flag.replace('_', ' ')}: {counted(count, 'item')}" for flag, count in sorted(flagged.items())),
        f"{titled(folder)}: {counted(len(rows), 'item')} under {aggregation}, 0 calls",
        as_json=as_json,
    )


def verify(
    context: typer.Context,
    run: RunName,
    head: Annotated[str | None, typer.Option(help="A head hash noted elsewhere, such as in a report.")] = None,
    as_json: Json = False,
) -> None:
    """Check every file of a run: its journal byte for byte, the others against what the journal says of them."""
    from consilience.experiments.listing import is_simulated  # noqa: PLC0415 - heavy
    from consilience.experiments.verification import verify_run  # noqa: PLC0415 - the same

    noted = None if head is None else _head(head)
    folder = place_of(context).recorded_run(run)
    checked = verify_run(folder, noted)
    found, error = checked.journal, checked.error()
    bad = found.first_bad
    good = f"{counted(found.records, 'record')} {'is' if found.records == 1 else 'are'} byte for byte as written"
    lines = [
        f"{titled(folder)}: {good}",
        f"head {found.head}",
        "finished" if found.finished else "not finished: its command resumes it",
        *(str(finding) for finding in checked.files),
    ]
    show(
        {
            "run_id": folder.name,
            "simulated": is_simulated(folder),
            "ok": checked.ok,
            "records": found.records,
            "head": found.head,
            "finished": found.finished,
            "first_bad": None if bad is None else dict(vars(bad)),
            "files": [dict(vars(finding)) for finding in checked.files],
        },
        *(lines if bad is None else [f"{titled(folder)}: {_verdict(bad.kind, good)}"]),
        as_json=as_json,
    )
    if error is not None:
        raise error


def _head(text: str) -> str:
    head = text.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{64}", head):
        raise ConfigError(
            f'--head: "{text}" is no head', hint="Give the 64 hexadecimal digits that verify and reports print."
        )
    return head


def _verdict(kind: str, good: str) -> str:
    if kind == "torn":
        return f"cut off; before that {good}"
    return f"{good}, but none has the noted head" if kind == "head" else f"damaged; before that {good}"


def ledger(
    context: typer.Context,
    run: RunName,
    by: Annotated[
        str | None,
        typer.Option(help="Totals by item, seat, role, model, provider, tier, status, kind or round."),
    ] = None,
    export: Annotated[Path | None, typer.Option(help="Write every attempt to this .jsonl or .csv file.")] = None,
    as_json: Json = False,
) -> None:
    """Show what a run's calls took: one row per attempt, estimated at list price, never an invoice."""
    from consilience.experiments.listing import is_simulated  # noqa: PLC0415 - not needed for --help
    from consilience.experiments.storage import write_whole  # noqa: PLC0415 - the same
    from consilience.journal.ledger import Group, ledger_rows, totals, write_csv, write_jsonl  # noqa: PLC0415
    from consilience.journal.reader import read_events  # noqa: PLC0415 - not needed for --help

    group = _one_of(Group, by, "--by")
    if export is not None and export.suffix not in {".jsonl", ".csv"}:
        raise ConfigError(f"--export: {export} is neither .jsonl nor .csv", hint="Name the file with one of them.")
    place = place_of(context)
    folder = place.recorded_run(run)
    if export is not None:
        check_output(export, option="--export", root=place.root)
    rows = ledger_rows(read_events(folder))
    if export is not None:
        write = write_csv if export.suffix == ".csv" else write_jsonl
        write_whole(export, lambda target: write(rows, target))
    sums = totals(rows, group)
    document = {
        "run_id": folder.name,
        "simulated": is_simulated(folder),
        "by": by,
        "totals": [{"group": name, **vars(total)} for name, total in sums.items()],
        "exported": None if export is None else str(export),
    }
    lines = [f"{titled(folder)}: an estimate at list price, not an invoice"]
    if export is not None:
        lines.append(f"{counted(len(rows), 'attempt')} in {export}")
    grid = Grid(
        (by or "all", "attempts", "cost", "saved", "cost unknown", "input", "cached", "output", "usage unknown"),
        tuple(_totals_row("all" if by is None else name, total) for name, total in sums.items()),
    )
    show(document, grid, *lines, as_json=as_json)


def _one_of(literal: Any, word: str | None, flag: str) -> Any:
    known = literal.__args__
    if word is not None and word not in known:
        raise ConfigError(f'{flag}: unknown "{word}"', hint=nearest(word, known))
    return word


def _totals_row(name: Any, total: Any) -> tuple[str, ...]:
    from consilience.journal.budget import usd  # noqa: PLC0415 - not needed for --help

    def tokens(*buckets: str) -> str:
        known = [total.tokens[bucket] for bucket in buckets if total.tokens[bucket] is not None]
        return f"{sum(known):,}" if known else "unknown"

    return (
        "–" if name is None else str(name),
        f"{total.attempts:,}",
        "unknown" if total.cost_nano is None else usd(total.cost_nano),
        usd(total.saved_nano),
        f"{total.cost_unknown:,}",
        tokens("input", "cache_write_5m", "cache_write_1h"),
        tokens("cache_read"),
        tokens("output_visible", "output_reasoning"),
        f"{total.tokens_unknown:,}",
    )


def runs(context: typer.Context, as_json: Json = False) -> None:
    """List the runs of the project."""
    from consilience.experiments.listing import listed_runs  # noqa: PLC0415 - not needed for --help

    folder = place_of(context).root / "results" / "runs"
    found = listed_runs(folder)
    if not found:
        show({"runs": []}, f"no runs in {folder}", "make one: consilience run-arm --help", as_json=as_json)
        return
    rows = tuple(
        (
            f"{run['run_id']} (simulated)" if run["simulated"] else run["run_id"],
            run["state"],
            "–" if None in {run["items"], run["items_done"]} else f"{run['items_done']} of {run['items']}",
            "unknown" if run["spent_usd"] is None else f"${run['spent_usd']:.4f}",
            "–" if run["max_spend_usd"] is None else f"${run['max_spend_usd']:.2f}",
        )
        for run in found
    )
    show({"runs": found}, Grid(("run", "state", "items", "spent", "cap"), rows, words=2), as_json=as_json)
