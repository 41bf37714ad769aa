"""One question put to one panel, from Python: `aask` in an event loop, `ask` anywhere."""

from __future__ import annotations

import os
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial, wraps
from pathlib import Path
from typing import Final, Literal, ParamSpec, TypeVar

import anyio

from consilience.api.result import Result, result_of
from consilience.core.answers import Answer
from consilience.core.packet import Item
from consilience.core.question import Kind
from consilience.errors import ConfigError
from consilience.experiments.asked import Asked, Context, item_of
from consilience.experiments.casting import cast
from consilience.experiments.fingerprint import run_facts
from consilience.experiments.general import GENERAL
from consilience.experiments.orders import Job, Orders, Progress, Shell
from consilience.experiments.panels import Panel
from consilience.experiments.plan import Choices, make_plan
from consilience.experiments.predictions import ASK_PREFIX, SIMULATED_PREFIX
from consilience.experiments.protocol import protocol_of
from consilience.experiments.runner import run_arm
from consilience.experiments.spending import amount_nano, cap_of_environment
from consilience.models.calls import Stop
from consilience.models.prices import Catalogue, load_catalogue
from consilience.registry import nearest

ARMS: Final = {
    "independent": "F_independent",
    "debate": "G_debate",
    "delphi": "delphi",
    "skeptic": "H_skeptic",
    "adversarial": "adversarial",
}
"""The arm of each protocol that a question can be put by."""
OWN_PANEL: Final = "default"
"""Stands for the panel that the protocol's arm declares."""
ALONE: Final = ("generalist", "E_single")
"""The panel of one agent, and its arm."""
RUN_ID_HASH: Final = 10

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Terms:
    """How a question is asked.

    Attributes:
        panel: A packaged panel by name, a YAML file of the user's, or a panel made in Python; ``default`` is the one of
            the protocol's arm.
        protocol: ``independent``, ``debate``, ``delphi``, ``skeptic`` or ``adversarial``.
        rounds: Rounds of debate; None takes the protocol's own.
        committee: How models are given to roles, or one model id for all.
        tier: Price tier of the models.
        live: Real models speak.
        seed: Decides shuffling, assignment and simulated answers.
        max_spend_nano: Spend cap in nano-dollars; None for none.
        retry_failed: Ask turns again that have no answer.
        results: The results folder.
        environ: Where keys and base URLs are read.
        catalogue: Known models.
    """

    panel: str | Panel
    protocol: str
    rounds: int | None
    committee: str
    tier: str
    live: bool
    seed: int
    max_spend_nano: int | None
    retry_failed: bool
    results: Path
    environ: Mapping[str, str]
    catalogue: Catalogue


def prepare(item: Item, terms: Terms) -> tuple[Job, Orders]:
    """Return the run that answers a question; nothing is written or called.

    The run id depends on all that decides what is asked, so that the same question on the same terms and day meets its
    own record: it is answered from there, or goes on where it was cut short.

    Raises:
        ConfigError: Panel, protocol, tier, committee or model is unknown, or a live model has no key.
        PlanError: They cannot work together.
    """
    arm = _arm(terms)
    choices = Choices(
        arm=arm,
        rounds=() if terms.rounds is None else (terms.rounds,),
        committee=terms.committee,
        tier=terms.tier,
        split=None,
        seed=terms.seed,
        panel=None if terms.panel == OWN_PANEL else terms.panel,
        live=terms.live,
    )
    plan = make_plan(GENERAL, [item], choices, catalogue=terms.catalogue)
    models = cast(plan.models, catalogue=terms.catalogue, environ=terms.environ, reader=GENERAL.reader, seed=plan.seed)
    fixed = protocol_of(plan, models, catalogue=terms.catalogue, run_secret="")
    mark = SIMULATED_PREFIX if plan.simulated else ""
    run_id = f"{mark}{ASK_PREFIX}{item.question.kind}-{fixed.sha256[:RUN_ID_HASH]}"
    job = Job(plan, [item], run_id, terms.results / "runs" / run_id, models, terms.catalogue)
    return job, Orders(max_spend_nano=terms.max_spend_nano, retry_failed=terms.retry_failed)


def _arm(terms: Terms) -> str:
    if terms.protocol not in ARMS:
        raise ConfigError(f'unknown protocol "{terms.protocol}"', hint=nearest(terms.protocol, ARMS))
    return ALONE[1] if (terms.panel, terms.protocol) == (ALONE[0], "independent") else ARMS[terms.protocol]


async def aask(  # noqa: PLR0913 - a question's options are its parameters
    text: str,
    *,
    kind: Kind | type[Answer],
    options: Sequence[str] = (),
    context: Context = (),
    unit: str | None = None,
    scale: Literal["log", "linear"] = "linear",
    lower: float | None = None,
    upper: float | None = None,
    panel: str | Path | Panel = "default",
    protocol: str = "independent",
    rounds: int | None = None,
    model: str | None = None,
    committee: str = "mixed_random",
    tier: str = "mid",
    max_spend_usd: float | str | None = None,
    live: bool = False,
    seed: int = 0,
    retry_failed: bool = False,
    results: str | Path = "results",
    today: date | None = None,
    environ: Mapping[str, str] | None = None,
    catalogue: Catalogue | None = None,
    watch: Callable[[Progress], None] = lambda _: None,
    stop: Stop | None = None,
) -> Result:
    """Put one question to a panel and return what came of it.

    Asked again on the same terms and day, a question is answered from its record without a call. Without a quorum the
    result has no value and says why.

    Args:
        text: The question.
        kind: ``estimate``, ``probability``, ``distribution`` or ``choice``, or the class of its answers.
        options: For distributions and choices: at least two distinct labels.
        context: Documents: strings are texts, paths are files of UTF-8 text. They are evidence, never instructions.
        unit: For estimates: what the number counts.
        scale: For estimates: ``log`` for positive quantities such as prices, else ``linear``.
        lower: For estimates: smallest admissible value.
        upper: For estimates: largest admissible value.
        panel: ``default`` (the generic five), ``generalist`` (one agent alone), another packaged panel, a YAML
            file of your own that lists its roles, or a `Panel` of roles made in Python.
        protocol: ``independent``; ``debate``; ``delphi`` (revisions without critiques); ``skeptic`` (a debate judged by
            a skeptic that took no part); ``adversarial`` (two advocates and a judge, for probabilities).
        rounds: Rounds of deliberation; None takes the protocol's own.
        model: One model for all seats, instead of a committee; ``local`` speaks without ``live``.
        committee: ``mixed_random``, ``all_anthropic`` or ``all_openai``.
        tier: Price tier of the models, ``mid`` or ``small``.
        max_spend_usd: Spend cap in dollars, 0 meaning zero; None takes ``CONSILIENCE_MAX_SPEND_USD``, else no cap.
        live: Let real models speak; needs their keys. Otherwise all is simulated.
        seed: Decides shuffling, assignment and simulated answers.
        retry_failed: Ask turns again that have no answer.
        results: The results folder.
        today: The day of asking; None takes the clock's (UTC). The information cutoff is the next day.
        environ: Where keys and base URLs are read; None takes the environment. Keys are never stored.
        catalogue: Known models; None takes those that ship with the package.
        watch: Is told of progress.
        stop: May be set at any time to end the run early; what is in flight is finished.

    Raises:
        ConfigError: An argument is wrong, a document is not there, or a live model has no key.
        PlanError: Arguments cannot work together.
        DataError: A document is no text, or is too long.
        BudgetError: The spend cap ended the run; what was answered is kept, and asking again goes on.
        StoppedError: ``stop`` was set; likewise.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     answer = ask("Rain?", kind="probability", context=["It rains on 30% of days."], results=Path(folder))
        >>> answer.simulated, 0 < answer.probability < 1, len(answer.members)
        (True, True, 5)
    """
    surroundings = os.environ if environ is None else environ
    if model is not None and committee != "mixed_random":
        raise ConfigError("model and committee both say who answers", hint="Give one of them.")
    known = load_catalogue() if catalogue is None else catalogue
    if model is not None:
        known.spec(model)  # says "model" where it is unknown, not "committee"
    asked = Asked(text, kind, options, context, unit, scale, lower, upper)
    item = item_of(asked, today=datetime.now(UTC).date() if today is None else today)
    said = None if max_spend_usd is None else amount_nano(str(max_spend_usd), where="max_spend_usd")
    terms = Terms(
        panel=panel if isinstance(panel, Panel) else str(panel),
        protocol=protocol,
        rounds=rounds,
        committee=model or committee,
        tier=tier,
        live=live,
        seed=seed,
        max_spend_nano=cap_of_environment(surroundings) if said is None else said,
        retry_failed=retry_failed,
        results=Path(results),
        environ=surroundings,
        catalogue=known,
    )
    job, orders = prepare(item, terms)
    shell = Shell(
        clock=lambda: datetime.now(UTC),
        run_secret=secrets.token_hex(16),
        facts=run_facts(),
        watch=watch,
        stop=stop or Stop(),
    )
    report = await run_arm(job, shell, orders)
    if report.stopped_by is not None:
        raise report.stopped_by
    return result_of(report, item.question)


def _anywhere(function: Callable[P, Awaitable[T]], *, name: str) -> Callable[P, T]:
    """Return a coroutine function as a plain one, its event loop in a thread of its own, so that it works inside one.

    Ctrl-C lets what is in flight finish; what was answered is kept.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        stop = kwargs["stop"] = kwargs.get("stop") or Stop()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="consilience-ask") as thread:
            future = thread.submit(anyio.run, partial(function, *args, **kwargs))
            try:
                return future.result()
            except KeyboardInterrupt:
                if isinstance(stop, Stop):
                    stop.requested = True
                raise

    call.__name__ = call.__qualname__ = name
    return call


ask = _anywhere(aask, name="ask")
