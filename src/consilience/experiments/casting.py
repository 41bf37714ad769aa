"""Who speaks for each model id of a plan: a vendor, a server, the embedded model, or a simulated analyst."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from consilience.errors import ConfigError, PlanError
from consilience.experiments.plan import Plan
from consilience.models import anthropic, openai
from consilience.models.anthropic import Anthropic
from consilience.models.anthropic_batch import AnthropicBatches
from consilience.models.base import Model
from consilience.models.batch import BatchVendor
from consilience.models.compatible import Compatible
from consilience.models.openai import OpenAI
from consilience.models.openai_batch import OpenAIBatches
from consilience.models.prices import ORACLE_PREFIX, SIMULATED_PREFIX, Catalogue, ModelSpec
from consilience.models.simulated import Reader, Simulated

NO_KEY = "none"


def cast(
    names: Iterable[str],
    *,
    catalogue: Catalogue,
    environ: Mapping[str, str],
    reader: Reader,
    seed: int,
    caches: bool = False,
) -> dict[str, Model]:
    """Return the model behind every id; nothing is called.

    Args:
        names: Model ids.
        catalogue: Known models.
        environ: Where keys and base URLs are read: ``ANTHROPIC_API_KEY``, ``OPENAI_API_KEY``, the key variable of a
            compatible server, ``ANTHROPIC_BASE_URL``, ``OPENAI_BASE_URL``. Keys are kept in memory only.
        reader: How the application's simulated analysts read evidence.
        seed: Decides the errors of simulated analysts.
        caches: Simulated analysts count their tokens as if the vendor kept prefixes.

    Raises:
        ConfigError: A key or base URL is missing; says what to set.
    """
    return {
        name: _analyst(name, reader, seed, caches=caches)
        if name.startswith(SIMULATED_PREFIX)
        else _live(name, catalogue.spec(name), environ)
        for name in names
    }


def variables(names: Iterable[str], catalogue: Catalogue) -> frozenset[str]:
    """Return the environment variables that `cast` may read for these models; nothing else need reach a worker."""
    own = {None if name.startswith(SIMULATED_PREFIX) else catalogue.spec(name).key_variable for name in names}
    vendors = {anthropic.VENDOR.key_variable, openai.VENDOR.key_variable}
    return frozenset({*(name for name in own if name), *vendors, "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"})


def _analyst(name: str, reader: Reader, seed: int, *, caches: bool) -> Simulated:
    """Return a simulated analyst; an oracle's signals are told to it when the run's fence tags are known."""
    return Simulated(name, reader, seed, {} if name.startswith(ORACLE_PREFIX) else None, caches)


def _live(name: str, spec: ModelSpec, environ: Mapping[str, str]) -> Model:
    if spec.provider == "anthropic":
        key = _key(name, anthropic.VENDOR.key_variable, environ)
        base_url = environ.get("ANTHROPIC_BASE_URL") or anthropic.BASE_URL
        return Anthropic(name, key, base_url, spec.min_cacheable_tokens)
    if spec.provider == "openai":
        key = _key(name, openai.VENDOR.key_variable, environ)
        base_url = environ.get("OPENAI_BASE_URL") or openai.BASE_URL
        return OpenAI(name, key, base_url, spec.min_cacheable_tokens)
    if spec.provider == "local":
        from consilience.models.local import Local  # noqa: PLC0415 - the engine is an extra

        return Local.found(name)
    if spec.base_url is None:
        raise ConfigError(
            f"model {name} has no base_url", hint="Add it to the model, such as http://127.0.0.1:8000/v1."
        )
    key = _key(name, spec.key_variable, environ) if spec.key_variable else NO_KEY
    return Compatible(name, spec.base_url, key, spec.key_variable)


def _key(name: str, variable: str, environ: Mapping[str, str]) -> str:
    key = environ.get(variable, "").strip()
    if not key:
        raise ConfigError(
            f"model {name} needs a key and {variable} is not set",
            hint=f"Set {variable} in the environment or in .env, or leave --live out for simulated analysts.",
        )
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(
            f"{variable}, the key of model {name}, holds characters that no key has",
            hint=f"Set {variable} to the key alone, without quotes, spaces or line breaks.",
        )
    return key


def recorded_cast(
    plan: Plan, identities: Mapping[str, Mapping[str, str]], *, catalogue: Catalogue, reader: Reader
) -> dict[str, Model]:
    """Return models with the identity and wire form of those a run was made with; they have no key and call nobody.

    Args:
        plan: The run's plan.
        identities: By model id, as ``protocol.json`` holds them.
        catalogue: The models as they were listed then.
        reader: How the application's simulated analysts read evidence.
    """
    return {
        name: _analyst(name, reader, plan.seed, caches=plan.caches)
        if name.startswith(SIMULATED_PREFIX)
        else _speechless(name, catalogue.spec(name), identities[name])
        for name in plan.models
    }


def _speechless(name: str, spec: ModelSpec, identity: Mapping[str, str]) -> Model:
    base_url = f"http://{identity['host']}"
    if spec.provider == "anthropic":
        return Anthropic(name, NO_KEY, base_url, spec.min_cacheable_tokens)
    if spec.provider == "openai":
        return OpenAI(name, NO_KEY, base_url, spec.min_cacheable_tokens)
    if spec.provider == "local":
        from consilience.models.local import Local  # noqa: PLC0415 - the same import as for a live one

        return Local.recorded(name, identity)
    return Compatible(name, base_url, NO_KEY)


def batch_vendors(models: Mapping[str, Model]) -> dict[str, BatchVendor]:
    """Return the batch endpoint of every provider among the models.

    Raises:
        PlanError: A model's provider has none.
    """
    found: dict[str, BatchVendor] = {}
    for name, model in models.items():
        if isinstance(model, Anthropic):
            found[AnthropicBatches.name] = AnthropicBatches(model.client())
        elif isinstance(model, OpenAI):
            found[OpenAIBatches.name] = OpenAIBatches(model.client())
        else:
            raise PlanError(f"model {name} cannot be called in batches", hint="Leave --batch out, or add --live.")
    return found
