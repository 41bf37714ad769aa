"""Whether the vendors can be reached, list the models we know, and answer under a contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from consilience.core.contracts import Expected, read_reply
from consilience.core.question import Question
from consilience.errors import ConfigError, ConsilienceError
from consilience.experiments.casting import cast
from consilience.experiments.general import GENERAL
from consilience.models.anthropic import Anthropic
from consilience.models.base import Model, ProbedModel
from consilience.models.openai import OpenAI
from consilience.models.prices import Catalogue, cost_nano
from consilience.models.request import Block, Message, Request
from consilience.runtime.briefing import contract_of

LIVE = ("anthropic", "openai", "compatible")
QUESTION = Question(id="probe", text="Does a fair coin come up heads more often than not?", kind="probability")
SYSTEM = "Reply with one JSON object that fits the schema: fill `answer`, set `critiques` and `abstention` to null."
MAX_OUTPUT_TOKENS = 2_000


@dataclass(frozen=True)
class Checked:
    """What was found about one model.

    Attributes:
        model: Model id.
        provider: Its provider.
        listed: Whether the vendor lists it; None where it was not asked or lists nothing.
        structured: Whether it answered under a contract; None where it was not asked.
        cost_nano: What that call cost at list price; None when unknown.
        problem: What went wrong, with advice; None when nothing did.
    """

    model: str
    provider: str
    listed: bool | None
    structured: bool | None
    cost_nano: int | None
    problem: str | None


async def check_providers(catalogue: Catalogue, environ: Mapping[str, str]) -> list[Checked]:
    """Return what was found about every hosted model of the catalogue; each is called once with a small question."""
    names = [name for name, spec in catalogue.models.items() if spec.provider in LIVE]
    return [await _check(name, catalogue, environ) for name in names]


async def _check(name: str, catalogue: Catalogue, environ: Mapping[str, str]) -> Checked:
    spec = catalogue.spec(name)
    try:
        model = cast([name], catalogue=catalogue, environ=environ, reader=GENERAL.reader, seed=0)[name]
    except ConfigError as error:
        return Checked(name, spec.provider, None, None, None, str(error))
    try:
        listed = await _listed(model)
        completion, cost = None, None
        if listed is not False:
            if isinstance(model, ProbedModel):
                model.learn(await model.complete(model.probe_request()))
            completion = await model.complete(_request(name))
            cost = None if completion.usage is None else cost_nano(completion.usage, spec.price)
            read_reply(completion.text, Expected(QUESTION, "answer"))
    except ConsilienceError as error:
        return Checked(name, spec.provider, None, False, None, str(error))
    problem = None if listed is not False else f"the vendor does not list {name}. Mend its id in the catalogue."
    return Checked(name, spec.provider, listed, None if completion is None else True, cost, problem)


async def _listed(model: Model) -> bool | None:
    """Return whether the vendor lists the model; servers of other makes are only called."""
    if isinstance(model, Anthropic | OpenAI):
        return await model.is_listed()
    return None


def _request(name: str) -> Request:
    return Request(
        model=name,
        system=(Block(SYSTEM, cache=False),),
        messages=(Message("user", (Block(QUESTION.text, cache=False),)),),
        tools=(),
        contract=contract_of("probability", ()),
        max_output_tokens=MAX_OUTPUT_TOKENS,
        effort="low",
        sampling=None,
        replicate=0,
    )
