"""Write who wins 10,000 random elections under pref_voting, an oracle that pins numpy and so has its own environment.

    python3 -m venv /tmp/oracle && /tmp/oracle/bin/pip install pref_voting==1.18.2
    /tmp/oracle/bin/python tests/golden/make_vote_golden.py

The elections are made anew by ``tests/vote_cases.py``; one character per election and rule is kept.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from vote_cases import APART, NAMES, PROFILES, Profile, approvals, digest_of_profiles, profile, written  # noqa: E402 - above

METHODS = {
    "plurality": ("scoring_methods", "plurality"),
    "majority": ("other_methods", "absolute_majority"),
    "borda": ("scoring_methods", "borda"),
    "copeland": ("c1_methods", "copeland"),
    "minimax": ("margin_based_methods", "minimax"),
    "schulze": ("margin_based_methods", "beat_path"),
    "ranked_pairs": ("margin_based_methods", "ranked_pairs"),
    "irv": ("iterative_methods", "instant_runoff_put"),
    "instant_runoff": ("iterative_methods", "instant_runoff"),
}
FACTS = {"condorcet_winner": ("c1_methods", "condorcet"), "smith_set": ("c1_methods", "smith_set")}


def function(module: str, name: str) -> Any:
    return getattr(import_module(f"pref_voting.{module}"), name)


def ranked_pairs(election: Any) -> list[Any]:
    """Return its winners by way of stacks (Zavist & Tideman 1989): the same, without trying every order of ties."""
    beats_all = election.condorcet_winner()
    if beats_all is not None:
        return [beats_all]
    found: list[Any] = function(*METHODS["ranked_pairs"])(election, algorithm="from_stacks")
    return found


def approved(voters: Profile, options: int) -> list[int]:
    grades = [{option: int(option in voter) for option in range(options)} for voter in voters]
    made = import_module("pref_voting.grade_profiles").GradeProfile(grades, [0, 1], candidates=list(range(options)))
    return [int(winner) for winner in function("grade_methods", "approval")(made)]


def main() -> None:
    methods = {name: function(*where) for name, where in (METHODS | FACTS).items()}
    methods["ranked_pairs"] = ranked_pairs
    winners: dict[str, list[str]] = {name: [] for name in (*methods, "approval")}
    make = import_module("pref_voting.profiles").Profile
    for index in range(PROFILES):
        voters = profile(index)
        options = len(voters[0])
        election = make([list(ranking) for ranking in voters])
        for name, method in methods.items():
            found = [int(winner) for winner in method(election)]
            # Where nobody beats all others the oracle's method returns everybody.
            none = name == "condorcet_winner" and len(found) > 1
            winners[name].append(written([] if none else found))
        winners["approval"].append(written(approved(approvals(index), options)))
    told = {
        "oracle": f"pref_voting {metadata.version('pref_voting')}",
        "methods": {name: ".".join(where) for name, where in (METHODS | FACTS).items()},
        "options": NAMES,
        "profiles": PROFILES,
        "profiles_sha256": digest_of_profiles(),
        "apart": {
            name: written([int(winner) for winner in methods[name](make([list(ranking) for ranking in APART]))])
            for name in ("irv", "instant_runoff")
        },
        "winners": {name: "".join(found) for name, found in winners.items()},
    }
    (HERE / "votes_pref_voting.json").write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
