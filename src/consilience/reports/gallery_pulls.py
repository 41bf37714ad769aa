"""The pictures of what moved members, with data, alt text and caption of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from consilience.core.undefined import Undefined
from consilience.experiments.conformity_data import Conformity
from consilience.inference.conformity import Coefficient, Revision
from consilience.inference.intervals import ENOUGH
from consilience.reports.pictures.canvas import Picture, of_sample
from consilience.reports.pictures.pulls import Pull, draw_pulls
from consilience.reports.pulls import Pulls
from consilience.reports.tables import Record

_FITS: Final = ("plain", "controlled", "displaced")
_DRAWN: Final = "controlled"
_NAMES: Final = {"lam": "λ", "zeta": "ζ"}
_AXES: Final = {"lam": "λ, pull of the others", "zeta": "ζ, pull of evidence"}


def pulls(found: Sequence[Pulls]) -> list[Picture]:
    """Return a dot plot of λ and ζ by role for every family of questions in which any of them is known."""
    made = [_picture(one, f"pulls-{number}" if len(found) > 1 else "pulls") for number, one in enumerate(found, 1)]
    return [one for one in made if one is not None]


def _picture(found: Pulls, name: str) -> Picture | None:
    dots: dict[str, list[Pull]] = {coefficient: [] for coefficient in _NAMES}
    missing: dict[tuple[str, str, str], list[str]] = {}
    for one in found.fits:
        for coefficient, share in _told(one, _DRAWN):
            if isinstance(share, Coefficient):
                dots[coefficient].append(Pull(one.arm, one.role, share.value, share.low, share.high))
            else:
                missing.setdefault((coefficient, one.arm, share.reason), []).append(one.role)
    known = {coefficient: pulled for coefficient, pulled in dots.items() if pulled}
    if not known:
        return None
    drawn = [one for pulled in known.values() for one in pulled]
    arms = [arm for arm in dict.fromkeys(one.arm for one in found.fits) if any(pull.arm == arm for pull in drawn)]
    roles = sorted({pull.role for pull in drawn})
    fits = [fit for one in found.fits if not isinstance(fit := one.controlled, Undefined)]
    groups = max(fit.n_clusters for fit in fits)
    fewest = min(fit.n_clusters for fit in fits)
    lacking = "; ".join(_lacking(missing, found.fits)) or "none"
    few = f" Fewer than {ENOUGH} items stand behind some: their intervals may be too narrow." if fewest < ENOUGH else ""
    value = (
        f" What the evidence implies: the members' answers alone on all of it in {found.evidence}, whose noise draws ζ "
        "towards 0."
        if "zeta" in known
        else ""
    )
    return Picture(
        name,
        f"What moves members in their first revision: {found.family}",
        "; ".join(
            f"{pull.role} in {pull.arm}: {_NAMES[coefficient]} {_ends(pull)}"
            for coefficient, pulled in known.items()
            for pull in pulled
        ),
        "Share of the way to the others (λ) and to what new evidence implies (ζ), told from second thoughts by arms "
        f"that do not show the others ({', '.join(found.controls)}): 0 is no pull, 1 all of the way.{value}{few} Not "
        f"defined and so not drawn: {lacking}. Up to {max(fit.n for fit in fits)} "
        "revisions a role, controls included. "
        + of_sample(n=groups, groups=groups, interval="95 % CR1 by item, t(G − 1)"),
        tuple(record for one in found.fits for record in _records(one)),
        partial(draw_pulls, [(_AXES[name], pulled) for name, pulled in known.items()], arms=arms, roles=roles),
    )


def _told(one: Conformity, name: str) -> Iterator[tuple[str, Coefficient | Undefined]]:
    fit: Revision | Undefined = getattr(one, name)
    for coefficient in _NAMES:
        yield coefficient, fit if isinstance(fit, Undefined) else getattr(fit, coefficient)


def _records(one: Conformity) -> Iterator[Record]:
    for name in _FITS:
        fit = getattr(one, name)
        for coefficient, value in _told(one, name):
            yield {
                "arm": one.arm,
                "role": one.role,
                "fit": name,
                "coefficient": "lambda" if coefficient == "lam" else coefficient,
                "drawn": isinstance(value, Coefficient) and name == _DRAWN,
                "value": value.value if isinstance(value, Coefficient) else None,
                "low": value.low if isinstance(value, Coefficient) else None,
                "high": value.high if isinstance(value, Coefficient) else None,
                "n": None if isinstance(fit, Undefined) else fit.n,
                "n_items": None if isinstance(fit, Undefined) else fit.n_clusters,
                "undefined": None if isinstance(value, Coefficient) else value.reason,
            }


def _lacking(missing: Mapping[tuple[str, str, str], Sequence[str]], fits: Sequence[Conformity]) -> list[str]:
    """Return what is not defined of whom and why; arms that lack the same stand together."""
    members = Counter(one.arm for one in fits)
    alike: dict[tuple[str, str, str], list[str]] = {}
    for (coefficient, arm, reason), roles in missing.items():
        whose = "every role" if len(roles) == members[arm] > 1 else ", ".join(roles)
        alike.setdefault((coefficient, whose, reason), []).append(arm)
    return [
        f"{_NAMES[coefficient]} of {roles} in {', '.join(arms)} ({reason})"
        for (coefficient, roles, reason), arms in alike.items()
    ]


def _ends(pull: Pull) -> str:
    return f"{pull.value:.2f} [{pull.low:.2f}, {pull.high:.2f}]".replace("-", "−")
