from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from consilience.core.role import Role
from consilience.errors import JournalError, LeakError, StoppedError
from consilience.models.base import Identity
from consilience.models.request import Completion, Request
from consilience.models.scripted import IDENTITY, Scripted, prompt_text
from consilience.runtime.gather import gather
from consilience.valuation.roster import placebo_roles, roles_for
from engine_cases import (
    MODEL,
    ROLES,
    answer_json,
    carry_out,
    make_item,
    make_items,
    make_plan,
    panel,
    read,
    reply,
    speak,
)

TWO_ROUNDS = {"debate": {"rounds": 2, "settled_change": 0.0}}


def prompts(requests: Sequence[Request]) -> dict[tuple[str, str, str], str]:
    """Return every prompt by (item view, seat, task)."""
    found = {(read(r).tag, str(read(r).seat), read(r).task): prompt_text(r) for r in requests}
    assert len(found) == len(requests)
    return found


@dataclass
class Dawdling:
    """A model whose replies come in any order."""

    said: Scripted
    rng: random.Random
    id: str = MODEL
    identity: Identity = IDENTITY
    min_cacheable_tokens: int | None = None

    def wire_body(self, request: Request) -> dict[str, Any]:
        return self.said.wire_body(request)

    async def complete(self, request: Request) -> Completion:
        for _ in range(self.rng.randrange(12)):
            await anyio.lowlevel.checkpoint()
        return await self.said.complete(request)


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_asking_and_answering_changes_no_prompt(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = make_items(2)
    plan = make_plan(items, protocol=TWO_ROUNDS)
    straight = panel()
    carry_out(tmp_path / "straight", plan, items, straight)
    rng = random.Random(seed)  # noqa: S311 - an order, no secret
    asked: list[list[int]] = []

    async def shuffled(jobs: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
        order = rng.sample(range(len(jobs)), len(jobs))
        asked.append(order)
        results = await gather([jobs[index] for index in order])
        return [results[order.index(index)] for index in range(len(jobs))]

    monkeypatch.setattr("consilience.runtime.session.gather", shuffled)
    dawdling = Dawdling(panel(), rng)
    again = carry_out(tmp_path / "again", plan, items, dawdling)
    assert prompts(dawdling.said.requests) == prompts(straight.requests)
    assert len({tuple(order) for order in asked}) > 5
    assert [read(r).seat for r in dawdling.said.requests] != [read(r).seat for r in straight.requests]
    for name in ("predictions.parquet", "transcripts/item-01.json", "transcripts/item-02.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "straight" / name).read_bytes()
    assert again.calls == len(straight.requests)


MARKS = {code: f"mark-{code.lower()}-only" for code in "PCMG"}


def marked_item() -> Any:
    item = make_item()
    sections = {
        code: section.model_copy(
            update={
                "title": f"Title {MARKS[code]}",
                "items": tuple(
                    one.model_copy(update={"content": {**one.content, "note": MARKS[code]}}) for one in section.items
                ),
            }
        )
        for code, section in item.packet.sections.items()
    }
    return make_item(sections=sections)


def test_no_prompt_holds_anything_outside_its_roles_view(tmp_path: Path) -> None:
    item = marked_item()
    for name, roles in (("few", ROLES), ("default", roles_for("default12")), ("placebo", placebo_roles(12))):
        model = panel()
        carry_out(tmp_path / name, make_plan([item], protocol=TWO_ROUNDS, roles=roles), [item], model)
        seen: dict[str, set[str]] = defaultdict(set)
        for request in model.requests:
            text = prompt_text(request)
            role = roles[int(str(read(request).seat)[-2:]) - 1]
            shown = {code for code, mark in MARKS.items() if mark in text}
            assert shown == {code for code in MARKS if role.sees(code)}
            assert set(read(request).view) == shown
            seen[role.id] |= shown
        assert seen.keys() == {role.id for role in roles}


def test_a_full_view_shows_everybody_everything(tmp_path: Path) -> None:
    item = marked_item()
    roles = tuple(role.model_copy(update={"view": ("all",)}) for role in ROLES)
    model = panel()
    carry_out(tmp_path / "run", make_plan([item], roles=roles), [item], model)
    assert all(mark in prompt_text(request) for request in model.requests for mark in MARKS.values())


def test_a_prompt_tells_no_role_model_provider_id_or_truth(tmp_path: Path) -> None:
    item = make_item(truth=123_456.0)
    names = ("vendor-one", "vendor-two")
    roles = tuple(role.model_copy(update={"id": f"secretrole_{role.id}"}) for role in ROLES)
    models = {name: panel(name=name) for name in names}
    carry_out(tmp_path / "run", make_plan([item], roles=roles, models=names), [item], models)
    requests = [request for model in models.values() for request in model.requests]
    assert len(requests) == 15
    assert all(model.requests for model in models.values())
    for request in requests:
        text = prompt_text(request)
        for hidden in (*names, "secretrole", "scripted", "item-01", "123456", "123,456"):
            assert hidden not in text


def test_evidence_that_others_cite_outside_a_view_is_named_by_id_only(tmp_path: Path) -> None:
    item = marked_item()

    def cite(request: Request) -> str:
        prompt = read(request)
        if prompt.task.startswith("critique"):
            return reply(critiques=[])
        ids = [one["id"] for rows in prompt.view.values() for one in rows]
        return reply(answer=answer_json(evidence_ids=ids))

    model = panel(cite)
    carry_out(tmp_path / "run", make_plan([item]), [item], model)
    for request in model.requests:
        prompt = read(request)
        if prompt.committee is None:
            continue
        own = {one["id"] for rows in prompt.view.values() for one in rows}
        everything = {"P", "C01", "C02", "C03", "M01", "G01"}
        assert set(prompt.committee.get("cited_outside_your_view", ())) == everything - own


def test_a_members_state_shows_the_others_shuffled_and_its_own_answer_apart(tmp_path: Path) -> None:
    items = make_items(3)
    model = panel()
    carry_out(tmp_path / "run", make_plan(items), items, model)
    orders = set()
    for request in model.requests:
        prompt = read(request)
        assert (prompt.committee is None) == prompt.task.startswith("estimate")
        if prompt.committee is None:
            continue
        seats = [row["seat"] for row in prompt.committee["others"]]
        orders.add(tuple(seats))
        assert sorted([*seats, str(prompt.seat)]) == [f"analyst_{n:02d}" for n in range(1, 6)]
        assert all(set(row) == {"seat", "point", "q05", "q95", "reasoning"} for row in prompt.committee["others"])
        assert prompt.committee["median"] == 345_000
        assert prompt.own_answer is not None
        number = int(str(prompt.seat)[-2:])
        assert prompt.own_answer["point"] == round(300_000 * (1 + 0.05 * number))
    assert len(orders) > 15


def test_critiques_reach_their_member_with_the_critic_hidden(tmp_path: Path) -> None:
    item = make_item()
    model = panel()
    carry_out(tmp_path / "run", make_plan([item]), [item], model)
    said: dict[str, list[int]] = defaultdict(list)
    for request in model.requests:
        prompt = read(request)
        if prompt.task.startswith("critique"):
            others = [row["seat"] for row in (prompt.committee or {})["others"]]
            number = int(str(prompt.seat)[-2:])
            said[others[number % 4]].append(number)
    for request in model.requests:
        prompt = read(request)
        if not prompt.task.startswith("revision"):
            assert prompt.critiques == ()
            continue
        received = [row["suggested_value"] - 1_000 for row in prompt.critiques]
        assert sorted(received) == sorted(said[str(prompt.seat)])
        for row in prompt.critiques:
            assert set(row) == {"agrees", "points", "evidence_ids", "suggested_value"}


def test_states_under_neutral_labels_are_the_same_bytes_whoever_sits_there(tmp_path: Path) -> None:
    """Debate of the default roles, of placebos, and of renamed roles with other texts, given equal answers."""
    items = make_items(2)
    default = roles_for("default12")
    renamed = tuple(
        Role(id=f"other_{number}", view=role.view, text=f"Another text {number}.")
        for number, role in enumerate(default)
    )
    blocks = []
    for name, roles in (("default", default), ("placebo", placebo_roles(12)), ("renamed", renamed)):
        model = panel()  # answers by seat alone, whoever sits there and whatever it sees
        carry_out(tmp_path / name, make_plan(items, protocol=TWO_ROUNDS, roles=roles), items, model)
        blocks.append(
            {
                (read(r).tag, str(read(r).seat), read(r).task): [block.text.encode() for block in r.messages[0].blocks]
                for r in model.requests
            }
        )
    assert len(blocks[0]) == 2 * 12 * 5
    assert blocks[0] == blocks[1] == blocks[2]


def test_what_comes_first_is_constant_for_caches(tmp_path: Path) -> None:
    items = make_items(2)
    model = panel()
    carry_out(tmp_path / "run", make_plan(items, protocol=TWO_ROUNDS), items, model)
    systems: dict[str, set[str]] = defaultdict(set)
    views: dict[tuple[str, str], set[str]] = defaultdict(set)
    for request in model.requests:
        prompt = read(request)
        (system,) = request.system
        view, turn = request.messages[0].blocks
        systems[str(prompt.seat)].add(system.text)
        views[prompt.tag, str(prompt.seat)].add(view.text)
        assert (system.cache, view.cache, turn.cache) == (True, True, False)
        assert request.contract == model.requests[0].contract
    assert {len(texts) for texts in (*systems.values(), *views.values())} == {1}


def test_a_member_that_guesses_the_price_stops_nothing(tmp_path: Path) -> None:
    item = make_item(truth=412_000.0)

    def guess(request: Request) -> str:
        if read(request).task.startswith("critique"):
            return speak(request)
        words = "It is worth 412,000, that is 412k or $0.412M."
        return reply(answer=answer_json(point=412_000, reasoning_summary=words))

    model = panel(guess)
    report = carry_out(tmp_path / "run", make_plan([item]), [item], model)
    assert (report.calls, report.stopped_by) == (15, None)
    assert any("412000" in prompt_text(request) for request in model.requests)


@pytest.mark.parametrize("place", ["note", "title", "role", "field", "preamble", "task"])
def test_a_truth_in_evidence_or_static_prompt_stops_before_any_call(tmp_path: Path, place: str) -> None:
    truth, words = 412_345.0, "Sold for $412,345."
    item = make_item(truth=truth)
    roles = ROLES
    changes: dict[str, Any] = {}
    if place == "note":
        item = make_item(truth=truth, notes=(words,))
    elif place == "title":
        sections = dict(item.packet.sections)
        sections["M"] = sections["M"].model_copy(update={"title": words})
        item = make_item(truth=truth, sections=sections)
    elif place == "field":
        sections = dict(item.packet.sections)
        (one,) = sections["G"].items
        sections["G"] = sections["G"].model_copy(
            update={"items": (one.model_copy(update={"content": {"remark": words}}),)}
        )
        item = make_item(truth=truth, sections=sections)
    elif place == "role":
        roles = (*ROLES[:4], Role(id="leaky", view=("P",), text=words))
    elif place == "preamble":
        changes = {"preamble": words}
    else:
        changes = {"tasks": make_plan([item]).tasks | {"revision": f"revision: {words} ${{seat}} ${{round}}"}}
    model = panel()
    with pytest.raises(LeakError, match="the target value is written here"):
        carry_out(tmp_path / "run", make_plan([item], roles=roles, **changes), [item], model)
    assert model.requests == []


def test_all_are_heard_before_an_error_is_raised() -> None:
    heard: list[int] = []

    async def fail(number: int) -> int:
        heard.append(number)
        if number in {1, 2}:
            for _ in range(4 - number):
                await anyio.lowlevel.checkpoint()
            raise (StoppedError if number == 1 else JournalError)(f"no {number}", hint="Wait.")
        await anyio.lowlevel.checkpoint()
        heard.append(10 + number)
        return number

    async def run() -> None:
        with pytest.raises(StoppedError, match="no 1"):  # the first in order, not in time
            await gather([lambda number=number: fail(number) for number in range(4)])  # type: ignore[misc]

    anyio.run(run)
    assert sorted(heard) == [0, 1, 2, 3, 10, 13]


def test_gathering_keeps_the_order() -> None:
    async def late(number: int) -> int:
        for _ in range(5 - number):
            await anyio.lowlevel.checkpoint()
        return number

    async def run() -> list[int]:
        return await gather([lambda number=number: late(number) for number in range(5)])  # type: ignore[misc]

    assert anyio.run(run) == [0, 1, 2, 3, 4]
