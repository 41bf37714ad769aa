"""What is fixed before the first call: the frozen protocol of a run, and how a later process compares with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from consilience.core.canonical import canonical_json, sha256_hex
from consilience.errors import IntegrityError, ResumeMismatchError, reason
from consilience.experiments.fingerprint import code_hashes
from consilience.experiments.plan import Plan
from consilience.experiments.storage import write_json
from consilience.models.base import Model
from consilience.models.prices import Catalogue
from consilience.runtime.briefing import Settings

CODE = "code"


@dataclass(frozen=True)
class Frozen:
    """The protocol in force.

    Attributes:
        content: What ``protocol.json`` holds.
        sha256: Of its canonical bytes; the journal's first record holds it too.
        accepted: Deviations from the recorded protocol that the user allowed by name.
    """

    content: dict[str, Any]
    sha256: str
    accepted: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan:
        """The plan that was fixed.

        Raises:
            IntegrityError: It is none that this version could have written.
        """
        try:
            return Plan.model_validate_json(canonical_json(self.content["plan"]))
        except (ValidationError, KeyError, TypeError) as error:
            raise IntegrityError(
                f"protocol.json of the run holds no plan of this version ({reason(error)})",
                hint="Read the run with the version that wrote it, or restore the file from a copy.",
            ) from error

    def settings(self) -> Settings:
        """How every call is made."""
        return self.plan.settings(run_secret=self.content["run_secret"])


def protocol_of(plan: Plan, models: Mapping[str, Model], *, catalogue: Catalogue, run_secret: str) -> Frozen:
    """Return the protocol of a new run."""
    content = {
        "plan": plan.model_dump(mode="json"),
        "models": {name: dict(vars(model.identity)) for name, model in sorted(models.items())},
        "prices": price_rows(plan, catalogue),
        CODE: code_hashes(),
        "run_secret": run_secret,
    }
    return Frozen(content, sha256_hex(canonical_json(content)))


def price_rows(plan: Plan, catalogue: Catalogue) -> dict[str, Any]:
    """Return the price rows a run uses, in USD per million tokens, with the date they were read."""
    return {name: catalogue.spec(name).model_dump(mode="json") for name in sorted(plan.models)}


def freeze(folder: Path, protocol: Frozen) -> None:
    """Write ``protocol.json`` and ``prices.json`` of a new run."""
    write_json(folder / "prices.json", protocol.content["prices"])
    write_json(folder / "protocol.json", protocol.content)


def read_frozen(folder: Path) -> Frozen:
    """Return the protocol recorded in a run folder.

    Raises:
        IntegrityError: It is missing or no JSON.
    """
    path = folder / "protocol.json"
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise IntegrityError(f"{path} cannot be read: {reason(error)}", hint="Restore it from a copy.") from error
    return Frozen(content, sha256_hex(canonical_json(content)))


def compare(recorded: Frozen, now: Frozen, *, accept: frozenset[str]) -> Frozen:
    """Return the recorded protocol if ``now`` asks the same, or what differs was accepted.

    Args:
        recorded: What the run was started with.
        now: What this process would ask.
        accept: Parts whose change the user allows; only ``code`` can be.

    Raises:
        ResumeMismatchError: With every difference.
    """
    ours = {**now.content, "run_secret": recorded.content["run_secret"]}
    found = list(_differences(recorded.content, ours, ()))
    refused = [path for path in found if not (path[0] == CODE and CODE in accept)]
    if refused:
        named = ", ".join(".".join(path) for path in refused[:8])
        more = f" and {len(refused) - 8} more" if len(refused) > 8 else ""
        only_code = all(path[0] == CODE for path in refused)
        raise ResumeMismatchError(
            f"what would be asked now differs from the recorded run in {named}{more}",
            hint="Resume with --accept code to record the deviation, or start a new run with --run-id."
            if only_code
            else "Start a new run with --run-id.",
        )
    return Frozen(recorded.content, recorded.sha256, tuple(".".join(path) for path in found))


def _differences(before: Any, after: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _differences(before.get(key), after.get(key), (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _differences(one, other, (*path, str(index)))
    elif before != after:
        yield path
