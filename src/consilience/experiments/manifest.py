"""The manifest of a run: what a reader must know before looking at a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from consilience.experiments.plan import Plan
from consilience.models.prices import NANO
from consilience.protocols import PROTOCOLS

STATUSES = ("answered", "abstained", "unreadable", "failed")


@dataclass(frozen=True)
class RunFacts:
    """What surrounds a run.

    Attributes:
        package_version: Of this package.
        git_commit: Commit of the code, None where unknown.
        environment_sha256: Hash of all installed distributions.
    """

    package_version: str
    git_commit: str | None
    environment_sha256: str


@dataclass(frozen=True)
class Money:
    """What a run spent under which cap, in nano-dollars; lost attempts count at their reservation."""

    spent_nano: int
    cap_nano: int | None
    cap_hit: bool
    lost_attempts: int


def manifest(
    plan: Plan,
    *,
    run_id: str,
    facts: RunFacts,
    head: str | None,
    turns: Mapping[str, int],
    items: Mapping[str, int],
    money: Money,
    accepted: Sequence[str],
) -> dict[str, Any]:
    """Return the manifest as JSON values."""
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
        "weights_source": "none: fitted rules use equal weights",
        "max_spend_usd": None if money.cap_nano is None else money.cap_nano / NANO,
        "spent_usd": money.spent_nano / NANO,
        "spend_cap_hit": money.cap_hit,
        "lost_attempts": money.lost_attempts,
        "turns": {status: turns.get(status, 0) for status in STATUSES},
        "items": dict(items),
        "panel_warnings": list(plan.warnings()),
        "deviations": list(accepted),
        "third_party": PROTOCOLS.third_party(),
        "configuration": plan.model_dump(mode="json", exclude={"preamble", "output_rules", "tasks", "packets"}),
        "journal_head": head,
    }
