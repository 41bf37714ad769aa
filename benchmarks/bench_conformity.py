"""Conformity: simulated committees with known λ per role, and herding that is none.

Members have the λ of the simulated analysts' personas. A first answer is a settled view with noise; asked again, a
member goes part of the way back to its settled view by itself (regression to the mean), and λ of the way to the others'
median where it is shown. Arms: asked again alone, shown the others, shown the others moved by a tenth, up or down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from consilience.inference.conformity import Coefficient, Revision, controlled, displaced, revision_regression
from consilience.inference.effective import Undefined
from consilience.models.simulated import persona

Floats = npt.NDArray[np.float64]

RUNS: Final = 200
GOAL: Final = 0.9
STEP: Final = 0.1


@dataclass(frozen=True)
class World:
    """How committees are made.

    Attributes:
        roles: Members.
        questions: Questions put to each committee in every arm.
        back: Share of the way back to the settled view that a member goes by itself.
        fresh: Standard deviation of what is drawn anew in a revision.
        herding: Members have the λ of their personas; else 0.
    """

    roles: int = 12
    questions: int = 60
    back: float = 0.3
    fresh: float = 0.03
    herding: bool = True


NO_HERDING: Final = World(back=1.0, fresh=0.08, herding=False)
"""λ = 0 and each revision a fresh draw around the settled view: pure regression to the mean."""


@dataclass(frozen=True)
class Studied:
    """What runs showed, one number per run and role.

    Attributes:
        truth: λ.
        plain: Estimate from the arm that shows the others, alone.
        controlled: Estimate with the re-ask arm as control.
        displaced: Estimate by the displacement.
        covers: Whether the plain, the controlled and the displaced interval hold the truth.
    """

    truth: Floats
    plain: Floats
    controlled: Floats
    displaced: Floats
    covers: npt.NDArray[np.bool_]


def study(*, runs: int, world: World, first_seed: int = 0) -> Studied:
    """Return the estimates of every role in seeded runs."""
    rows = [row for seed in range(first_seed, first_seed + runs) for row in _run(seed, world)]
    truth, plain, control, moved = (np.array([row[at] for row in rows]) for at in range(4))
    return Studied(truth, plain, control, moved, np.array([row[4] for row in rows]))


def _run(seed: int, world: World) -> list[tuple[float, float, float, float, tuple[bool, ...]]]:
    rng = np.random.default_rng([seed, world.questions])
    people = [persona(f"Member {number} of a simulated committee.", seed=seed) for number in range(world.roles)]
    pull = np.array([person.anchoring if world.herding else 0.0 for person in people])
    shape = (world.questions, world.roles)
    settled = rng.normal(12.5, 0.4, (world.questions, 1)) + np.array([person.bias for person in people])
    before = settled + people[0].noise * rng.standard_normal(shape)
    others = np.column_stack([np.median(np.delete(before, at, axis=1), axis=1) for at in range(world.roles)])
    by_itself = world.back * (settled - before)
    step = STEP * rng.choice([-1.0, 1.0], shape)
    alone = before + by_itself + world.fresh * rng.standard_normal(shape)
    social = before + by_itself + pull * (others - before) + world.fresh * rng.standard_normal(shape)
    moved = before + by_itself + pull * (others + step - before) + world.fresh * rng.standard_normal(shape)
    items = np.arange(world.questions)
    found = []
    for at, truth in enumerate(pull.tolist()):
        x, m, d = before[:, at], others[:, at], step[:, at]
        plain = revision_regression(before=x, after=social[:, at], consensus=m, clusters=items)
        both = controlled(
            before=np.tile(x, 2),
            after=np.concatenate([alone[:, at], social[:, at]]),
            consensus=np.tile(m, 2),
            shown=np.tile(m, 2),
            peers=np.repeat([False, True], world.questions),
            clusters=np.tile(items, 2),
        )
        by_step = displaced(before=x, after=moved[:, at], consensus=m, shown=m + d, displacement=d, clusters=items)
        lams = [_lam(plain), _lam(both), _lam(by_step)]
        covers = tuple(one.low <= truth <= one.high for one in lams)
        found.append((truth, lams[0].value, lams[1].value, lams[2].value, covers))
    return found


def _lam(fit: Revision | Undefined) -> Coefficient:
    assert isinstance(fit, Revision)
    assert isinstance(fit.lam, Coefficient)
    return fit.lam


def run() -> list[dict[str, object]]:
    """Return rows of coverage and bias."""
    rows: list[dict[str, object]] = []
    herd, none = study(runs=RUNS, world=World()), study(runs=RUNS, world=NO_HERDING)
    about = f"{RUNS} seeded committees of {World().roles} roles, {World().questions} questions"
    for name, made in (("λ of the personas", herd), ("λ = 0, fresh draws", none)):
        shares = made.covers.mean(axis=0)
        for column, what, estimates in ((1, "control arm", made.controlled), (2, "displacement", made.displaced)):
            assert shares[column] >= GOAL
            rows.append(
                {
                    "name": f"95 % intervals that hold the truth, {name}, by {what}",
                    "value": float(shares[column]),
                    "unit": "of the intervals",
                    "goal": GOAL,
                    "note": f"mean error of λ {float((estimates - made.truth).mean()):+.4f}; {about}",
                }
            )
        rows.append(
            {
                "name": f"mean error of λ without a control, {name}",
                "value": float((made.plain - made.truth).mean()),
                "unit": "λ",
                "note": f"regression to the mean taken for herding; its intervals hold the truth in {shares[0]:.1%}",
            }
        )
    small = study(runs=RUNS, world=replace(World(), questions=24))
    rows.append(
        {
            "name": "95 % intervals that hold the truth, λ of the personas, 24 questions, by control arm",
            "value": float(small.covers[:, 1].mean()),
            "unit": "of the intervals",
            "goal": GOAL,
            "note": "as many questions as the pilot tier has",
        }
    )
    return rows


if __name__ == "__main__":
    for row in run():
        print(row)
