"""The pre-registration page: what a study will do and ask, written from its freeze alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from consilience.experiments.frozen import HYPOTHESES, RULES, Freeze
from consilience.experiments.hypotheses import EVERY_ARM, OWN_SINGLE
from consilience.experiments.looks import COUNTED

_MEASURE: Final = (
    "Each difference is one of median absolute percentage error, by the primary rule, on the items that all arms "
    "answered, with a cluster-bootstrap interval. The family is adjusted together by Holm; every other comparison and "
    "rule is exploration. All items stay in the counts, whatever came of them."
)

SEEDED: Final = "drawn anew by the seed of each run"
"""Stands for the roles of a panel that is not the same under every seed."""


def prereg_page(freeze: Freeze) -> str:
    """Return the pre-registration of a frozen study as Markdown; every number in it is of the freeze."""
    surroundings = freeze.environment
    made = f"Made with Python {surroundings.python} and {len(surroundings.packages)} packages"
    parts = [
        "# Pre-registration",
        f"Frozen at {freeze.frozen_at.isoformat()}. Head hash of the freeze:",
        f"`{freeze.head}`",
        "## Comparisons",
        _MEASURE,
        _table(("arm", "against", "question", "declared"), _contrasts(freeze)),
        "## Arms",
        _table(("arm", "protocol", "panel", "members", "else"), _arms(freeze)),
        "## Panels",
        _table(("panel", "labels", "roles"), _panels(freeze)),
        "## Rules",
        _table(("kind of answer", "primary rule", "other rules"), _rules(freeze)),
        "## Data",
        _table(("file", "part", "rows", "SHA-256 of the content"), _data(freeze)),
        f"Looked at once after the freeze, {' before '.join(COUNTED)}; every look is noted.",
        "## Models",
        _table(("tier", "models"), ((tier, ", ".join(names)) for tier, names in freeze.tiers.items())),
        f"All known models: {', '.join(freeze.models)}.",
        "## Frozen files",
        _table(("sort", "files"), ((sort, len(named)) for sort, named in freeze.files.items())),
        f"Each is named with its hash in the freeze. {made}, whose versions are recorded and may differ.",
    ]
    if freeze.history:
        past = ((one.frozen_at.isoformat(), one.sha256, one.reason) for one in freeze.history)
        parts += ["## Earlier freezes", _table(("frozen at", "head hash", "replaced because"), past)]
    return "\n\n".join(parts) + "\n"


def _contrasts(freeze: Freeze) -> list[tuple[str, str, str, str]]:
    general = {EVERY_ARM, OWN_SINGLE}
    found = []
    for one in freeze.analysis[HYPOTHESES]:
        missing = [name for name in (one["arm"], one["against"]) if name not in freeze.treatments.keys() | general]
        declared = "yes" if not missing else f"{', '.join(missing)} is no arm of this freeze"
        found.append((one["arm"], one["against"], one["asks"], declared))
    return found


def _arms(freeze: Freeze) -> list[tuple[str, str, str, str, str]]:
    found = []
    for arm, declared in freeze.treatments.items():
        rest = {name: value for name, value in declared.items() if name not in {"protocol", "panel"}}
        casts = {app: panels[declared["panel"]] for app, panels in freeze.panels.items() if declared["panel"] in panels}
        members = ", ".join(f"{len(cast.members)} ({app})" for app, cast in casts.items()) or "unknown"
        found.append((arm, _said(declared["protocol"]), declared["panel"], members, _said(rest)))
    return found


def _panels(freeze: Freeze) -> list[tuple[str, str, str]]:
    named = [(app, name, cast) for app, panels in freeze.panels.items() for name, cast in panels.items()]
    return [
        (f"{app}/{name}", cast.labels, SEEDED if cast.seeded else ", ".join(member.id for member in cast.members))
        for app, name, cast in named
    ]


def _said(value: Any) -> str:
    """Return nested settings in one line."""
    if not isinstance(value, Mapping):
        return str(value)
    return "; ".join(
        f"{name} ({_said(each)})" if isinstance(each, Mapping) and each else f"{name}{_value(each)}"
        for name, each in value.items()
    )


def _value(value: Any) -> str:
    return "" if value == {} else f" {value}"


def _rules(freeze: Freeze) -> list[tuple[str, str, str]]:
    found = []
    for kind, names in freeze.analysis[RULES].items():
        primary = freeze.primary_rules(kind)
        said = [f"{rule} (from {least} seats on)" if least > 1 else rule for least, rule in sorted(primary.items())]
        found.append((kind, "; ".join(said), ", ".join(name for name in names if name not in primary.values())))
    return found


def _data(freeze: Freeze) -> list[tuple[str, str, int | str, str]]:
    found: list[tuple[str, str, int | str, str]] = []
    for name, hashed in freeze.data.items():
        if hashed is None:
            found.append((name, "", "not there", ""))
        else:
            parts: Mapping[str, int | str] = hashed.rows or {"": ""}
            found += [(name, part, rows, hashed.sha256) for part, rows in parts.items()]
    return found


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
