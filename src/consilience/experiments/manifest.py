"""The manifest of a run: what a reader must know before looking at a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from consilience.experiments.plan import Plan
from consilience.models.prices import NANO
from consilience.protocols import PROTOCOLS

UNSHOWN = {"preamble", "output_rules", "tasks", "items", "match", "weights"}
"""Long parts of a plan, which ``protocol.json`` holds."""
STATUSES = ("answered", "abstained", "unreadable", "failed")


@dataclass(frozen=True)
class RunFacts:
    """What surrounds a run.

    Attributes:
        package_version: Of this package.
        git_commit: Commit of the code, None where unknown.
        environment_sha256: Hash of all installed distributions.
        deviations: What differs from the study's freeze, one sentence each; empty also where there is none.
        frozen_sha256: Head hash of the freeze in force; None where the study is not frozen.
    """

    package_version: str
    git_commit: str | None
    environment_sha256: str
    deviations: tuple[str, ...] = ()
    frozen_sha256: str | None = None


@dataclass(frozen=True)
class Money:
    """What a run spent under which cap, in nano-dollars; lost attempts count at their reservation."""

    spent_nano: int
    cap_nano: int | None
    cap_hit: bool
    lost_attempts: int


@dataclass(frozen=True)
class Counts:
    """What came of a run's turns and items, and the tokens of the answers used.

    Attributes:
        turns: By outcome.
        items: By status, with those not run.
        tokens: By bucket; None when any answer's usage is unknown.
    """

    turns: Mapping[str, int]
    items: Mapping[str, int]
    tokens: Mapping[str, int] | None


def manifest(  # noqa: PLR0913 - one argument per thing a reader must know
    plan: Plan,
    *,
    run_id: str,
    facts: RunFacts,
    head: str | None,
    counts: Counts,
    money: Money,
    accepted: Sequence[str],
    said_of_models: Sequence[str],
    panel: Mapping[str, Any] | None,
    matched: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the manifest as JSON values.

    Args:
        plan: What was asked.
        run_id: The run's id.
        facts: What surrounds it.
        head: Hash of the journal's last record.
        counts: What came of turns and items.
        money: What was spent.
        accepted: Deviations from the recorded protocol that the user allowed by name.
        said_of_models: What models say about themselves.
        panel: What its members were worth to each other.
        matched: What came of a match in cost.
    """
    return {
        "run_id": run_id,
        "simulated": plan.simulated,
        "arm": plan.arm,
        "committee": plan.committee,
        "tier": plan.tier,
        "split": plan.split,
        "seed": plan.seed,
        "models": list(plan.models),
        "package_version": facts.package_version,
        "git_commit": facts.git_commit,
        "environment_sha256": facts.environment_sha256,
        "replicate": plan.replicate,
        "levels": dict(plan.levels),
        "weights_source": plan.weights_source,
        "match": None if matched is None else dict(matched),
        "max_spend_usd": None if money.cap_nano is None else money.cap_nano / NANO,
        "spent_usd": money.spent_nano / NANO,
        "spend_cap_hit": money.cap_hit,
        "lost_attempts": money.lost_attempts,
        "tokens": None if counts.tokens is None else dict(counts.tokens),
        "cached_share": None if counts.tokens is None else cached_share(counts.tokens),
        "panel": None if panel is None else dict(panel),
        "turns": {status: counts.turns.get(status, 0) for status in STATUSES},
        "items": dict(counts.items),
        "said_of_models": list(said_of_models),
        "panel_warnings": list(plan.warnings()),
        "deviations": list(accepted),
        "freeze_sha256": facts.frozen_sha256,
        "protocol_deviations": list(facts.deviations),
        "third_party": PROTOCOLS.third_party(),
        "configuration": plan.model_dump(
            mode="json",
            exclude={
                **dict.fromkeys(("preamble", "output_rules", "tasks", "items", "match", "weights"), True),
                "answering": {"questions": True, "prompts": True},
            },
        ),
        "journal_head": head,
    }


def cached_share(tokens: Mapping[str, int]) -> float | None:
    """Return the share of input tokens that were read from a cache; None without input.

    Example:
        >>> cached_share({"input": 25, "cache_read": 75, "cache_write_5m": 0, "cache_write_1h": 0})
        0.75
    """
    total = sum(tokens.get(name, 0) for name in ("input", "cache_read", "cache_write_5m", "cache_write_1h"))
    return tokens.get("cache_read", 0) / total if total else None
