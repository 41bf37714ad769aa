"""A panel under control behind `ask`, for the tests of its API and its verb."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from consilience.models.request import Request
from consilience.models.scripted import Reply, Scripted
from engine_cases import answer_json, reply, seat_number


def let_speak(monkeypatch: pytest.MonkeyPatch, say: Callable[[Request], Reply]) -> list[Scripted]:
    """Let every model answer by a function of its request; returns those made, with what they were asked."""
    made: list[Scripted] = []

    def cast(names: Iterable[str], **_: Any) -> dict[str, Scripted]:
        made.extend(Scripted(name, say) for name in names)
        return {model.id: model for model in made[-len(list(names)) :]}

    monkeypatch.setattr("consilience.api.asking.cast", cast)
    return made


def ballots(choices: str) -> Callable[[Request], Reply]:
    """Let seat n vote for the option of the n-th digit; ``-`` abstains, ``?`` cannot be read."""

    def say(request: Request) -> Reply:
        choice = choices[seat_number(request) - 1]
        if choice == "-":
            return reply(abstention="I cannot know.")
        named = "Option 1 (confidence 90%)" if choice == "?" else f"o{choice}"
        return reply(answer=answer_json("choice", choice=named, reasoning_summary=f"For {named}."))

    return say
