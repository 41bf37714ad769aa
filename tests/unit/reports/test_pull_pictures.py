"""λ and ζ by role: what is defined is drawn, what is not is named, and no text of a role acts."""

from __future__ import annotations

import numpy as np
import pytest

from consilience.experiments.conformity_data import Moved, conformity
from consilience.reports.gallery_pulls import pulls
from consilience.reports.pictures.canvas import inline, rendered
from consilience.reports.pulls import Pulls

HOSTILE = 'skeptic<script>alert("1")</script>\u202e$x$'
FOLLOWS = {"hedonic": 0.6, HOSTILE: 0.2}
"""True pull of the others by role."""


def moves(*arms: str, informed: bool = False, n: int = 40) -> list[Moved]:
    """Return revisions: members move a tenth of the way by themselves, and to the others as `FOLLOWS` says."""
    rng = np.random.default_rng(6)
    told = []
    for arm in arms:
        for role, pull in FOLLOWS.items():
            for k in range(n):
                before, others, noise = rng.normal(0, 1, 3)
                shown = float(others) if arm.startswith("G_") else None
                drift = 0.1 * (others - before) + 0.02 * noise + (0 if shown is None else pull * (others - before))
                after = float(before + drift)
                told.append(
                    Moved(
                        f"i{k:02d}",
                        "estimate (log)",
                        arm,
                        role,
                        float(before),
                        after,
                        float(others),
                        shown,
                        0.0,
                        informed,
                    )
                )
    return told


def found(*arms: str) -> Pulls:
    return Pulls("estimate (log)", conformity(moves(*arms)), tuple(arm for arm in arms if not arm.startswith("G_")))


def test_the_true_pull_of_every_role_lies_in_its_interval() -> None:
    (picture,) = pulls([found("G_debate_r2", "control_reask_r1")])
    drawn = {str(row["role"]): row for row in picture.records if row["drawn"]}
    assert set(drawn) == set(FOLLOWS)
    for role, pull in FOLLOWS.items():
        low, value, high = (drawn[role][name] for name in ("low", "value", "high"))
        assert isinstance(low, float)
        assert isinstance(high, float)
        assert low <= pull <= high
        assert value == pytest.approx(pull, abs=0.05)
        assert high - low < 0.1
    assert "control_reask_r1" in picture.caption
    assert "n = 40 items, G = 40 clusters; intervals: 95 % CR1 by item, t(G − 1)." in picture.caption


def test_what_is_not_defined_is_named_and_not_drawn() -> None:
    (picture,) = pulls([found("G_debate_r2", "control_reask_r1")])
    assert "so not drawn: ζ of every role in G_debate_r2 (no value of the evidence is known)." in picture.caption
    figure = picture.draw()
    assert [axes.get_xlabel() for axes in figure.axes] == ["λ, pull of the others"]
    zetas = [row for row in picture.records if row["coefficient"] == "zeta"]
    assert zetas
    assert all(row["value"] is None and not row["drawn"] and row["undefined"] for row in zetas)


def test_a_role_without_a_control_is_named() -> None:
    told = [
        one
        for one in moves("G_debate_r2", "control_reask_r1")
        if (one.arm, one.role) != ("control_reask_r1", "hedonic")
    ]
    (picture,) = pulls([Pulls("estimate (log)", conformity(told), ("control_reask_r1",))])
    assert "λ of hedonic in G_debate_r2 (there are no revisions without the others shown)" in picture.caption
    assert [row["role"] for row in picture.records if row["drawn"]] == [HOSTILE]


def test_the_plain_fit_is_data_and_no_dot() -> None:
    (picture,) = pulls([found("G_debate_r2", "control_reask_r1")])
    plain = [row for row in picture.records if row["fit"] == "plain" and row["coefficient"] == "lambda"]
    assert len(plain) == 2
    assert not any(row["drawn"] for row in plain)
    controlled = {row["role"]: row["value"] for row in picture.records if row["drawn"]}
    for row in plain:  # it holds what members do by themselves, too
        assert isinstance(row["value"], float)
        assert row["value"] > float(controlled[row["role"]] or 0) + 0.05


def test_without_controls_there_is_no_picture() -> None:
    assert pulls([found("G_debate_r2")]) == []
    assert pulls([]) == []


def test_several_families_have_pictures_of_different_names() -> None:
    one = found("G_debate_r2", "control_reask_r1")
    assert [picture.name for picture in pulls([one, one])] == ["pulls-1", "pulls-2"]


@pytest.mark.slow
def test_hostile_roles_are_only_text_and_the_bytes_are_the_same_twice() -> None:
    (picture,) = pulls([found("G_debate_r2", "G_other_r2", "control_reask_r1")])
    one, two = rendered(picture), rendered(picture)
    assert one == two
    text = inline(one["svg"], name=picture.name, alt=picture.alt)
    assert "<script" not in text
    assert "\u202e" not in text
