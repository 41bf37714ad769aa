"""A decision of a project: on which terms it is made, and the files that tell of it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from consilience.api.running import now
from consilience.decisions.case import Case
from consilience.decisions.decide import DecisionTerms, Prepared, prepare
from consilience.decisions.log import OUTCOMES, earned_weights, read_outcomes
from consilience.decisions.reading import result_of
from consilience.decisions.result import DecisionResult
from consilience.decisions.sheet import headline, to_html, to_markdown
from consilience.decisions.shelf import Shelf, read_shelf, record_written
from consilience.errors import ConsilienceError, NeedsHumanError, PlanError, QuorumError
from consilience.experiments.orders import RunReport
from consilience.experiments.settings import Flags, keys_and_urls, settle
from consilience.experiments.storage import write_whole

FOLDER: Final = "decisions"


def decision_terms(  # noqa: PLR0913 - what a user chooses
    root: Path,
    environment: Mapping[str, str],
    *,
    model: str | None = None,
    tier: str | None = None,
    max_spend_usd: str | None = None,
    seed: int | None = None,
    live: bool = False,
    retry_failed: bool = False,
    anyway: bool = False,
    allow: Collection[str] = (),
    run_id: str | None = None,
) -> DecisionTerms:
    """Return who votes and at what cost, from what a user chose and what the project says; None takes the project's.

    Raises:
        ConfigError: The project's file is wrong, an amount is none, or the model is unknown.
    """
    settings = settle(root, Flags(max_spend_usd=max_spend_usd, tier=tier, committee=model, seed=seed), environment)
    if model is not None:
        settings.catalogue.spec(model)
    return DecisionTerms(
        committee=settings.committee,
        tier=settings.tier,
        live=live,
        seed=settings.seed,
        catalogue=settings.catalogue,
        environ=keys_and_urls(root, environment),
        max_spend_nano=settings.max_spend_nano,
        retry_failed=retry_failed,
        results=root / "results",
        today=now().date(),
        anyway=anyway,
        allow=frozenset(allow),
        run_id=run_id,
    )


def prepared_decision(case: Case, terms: DecisionTerms) -> Prepared:
    """Return the run that decides, with the weights that voters earned where the case asks for them.

    Raises:
        ConfigError: A name is unknown, or a live model has no key.
        PlanError: The rules contradict each other, nobody has earned a weight yet, or the panel is none.
    """
    return prepare(case, terms, earned=partial(_earned, terms))


def _earned(terms: DecisionTerms, members: Sequence[str]) -> dict[str, float]:
    """Return the weights that voters earned on decisions of the same kind, simulated or real."""
    outcomes = read_outcomes(terms.results / FOLDER / OUTCOMES)
    believed = decisions_of(terms.results).settled(outcomes).decisions
    earned = earned_weights([one for one in believed if one.simulated is not terms.live], outcomes, members)
    if not any(earned[role].weight for role in members):
        raise PlanError(
            "no voter has earned a weight yet",
            hint="Resolve decisions with consilience decisions resolve, or declare weights.",
        )
    return {role: earned[role].weight for role in members}


def decisions_of(results: Path) -> Shelf:
    """Return the decisions of a results folder, each checked against its run, and why others are not believed.

    Raises:
        DataError: The log of what was written cannot be read.
        IntegrityError: That log was changed.
    """
    return read_shelf(results / FOLDER, results / "runs")


def written_decision(prepared: Prepared, report: RunReport, results: Path) -> tuple[DecisionResult, list[Path]]:
    """Return what a decision came to, and write it into the results folder as JSON, Markdown and a page.

    Raises:
        IntegrityError: The transcript that the run left cannot be read, or the log of what was written was changed.
        DataError: That log cannot be written.
    """
    result = result_of(prepared, report)
    folder = results / FOLDER / result.run_id
    texts = {
        "decision.json": f"{json.dumps(result.to_dict(), indent=2, ensure_ascii=True)}\n",
        "decision.md": to_markdown(result),
        "decision.html": to_html(result),
    }
    files = {name: text.encode("utf-8", "backslashreplace") for name, text in texts.items()}
    for name, data in files.items():
        write_whole(folder / name, lambda target, data=data: target.write_bytes(data))  # type: ignore[misc]
    record_written(results / FOLDER, result.run_id, str(result.audit["journal_head"]), files, at=now())
    return result, [folder / name for name in files]


def unsettled(result: DecisionResult) -> ConsilienceError | None:
    """Return why no decision stands, as an error; None where one does."""
    if result.outcome == "no_quorum":
        return QuorumError(headline(result), hint="See who is missing; ask again with --retry-failed.")
    if result.winner is None:
        return NeedsHumanError(headline(result), hint="A person settles it; nothing was drawn by lot.")
    return None
