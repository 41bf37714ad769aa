"""Everything one item will be asked with, laid out and guarded before anything is asked."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal

from consilience.config import package_text
from consilience.core.canonical import canonical_json, tagged_hash
from consilience.core.packet import EvidenceItem, Item
from consilience.core.panel import Seat, seating_of
from consilience.core.question import Kind
from consilience.core.role import ALL_SECTIONS
from consilience.core.schema import lint_schema, wire_schema
from consilience.core.turn import Turn, TurnKind
from consilience.errors import ConfigError
from consilience.evidence.leakage import guard_packet, guard_text, guard_view
from consilience.evidence.rendering import fence_tag, fill, render_system, render_turn_block, render_view_block
from consilience.evidence.views import View, view
from consilience.journal.events import Where
from consilience.models.prices import Price, bound_nano, cost_nano
from consilience.models.request import SAMPLES_PER_REPLICATE, Block, Contract, Effort, Message, Request, Usage
from consilience.protocols import Protocol
from consilience.runtime.answerer import Answerer, Inquiry
from consilience.runtime.state import State

STATE_BYTES_PER_ROW = 1_600
"""Allowance per other answer shown, with its summary and critiques, when an item's worst case is planned."""


@dataclass(frozen=True)
class Prompts:
    """The fixed texts of a panel.

    Attributes:
        preamble: Shared by all roles of an application.
        output_rules: How to reply; shared by all applications.
        tasks: The task template of each turn kind.
    """

    preamble: str
    output_rules: str
    tasks: Mapping[TurnKind, str]

    @classmethod
    def packaged(cls, preamble: str, kinds: Iterable[TurnKind]) -> Prompts:
        """Return the package's prompts with the preamble of one application and the tasks of these kinds of turn."""
        return cls(
            preamble=package_text(f"prompts/{preamble}/preamble.md"),
            output_rules=package_text("prompts/output_rules.md"),
            tasks={kind: package_text(f"prompts/tasks/{kind}.md").strip() for kind in kinds},
        )

    def system(self, seat: Seat) -> str:
        """Return a seat's system prompt, the same for every item.

        Raises:
            ConfigError: A text holds what only the layout may write; names the role.
        """
        texts = {"preamble": self.preamble, "role_text": seat.role.text, "output_rules": self.output_rules}
        try:
            return render_system(seat_label=seat.label, **texts)
        except ConfigError as error:
            raise ConfigError(f'role "{seat.role.id}": {error.message}', hint=error.hint) from error


@dataclass(frozen=True)
class Settings:
    """How every call of a run is made.

    Attributes:
        seed: Decides shuffling and, for simulated models, answers.
        replicate: 0 for the run itself; above, a repetition of it, whose calls are told apart by it.
        run_secret: Makes fence tags unguessable.
        max_output_tokens: Output limit of an ask; doubled once after a truncation.
        assumed_output_tokens: Length of a reply that plans assume.
        effort: Reasoning effort.
        reuse_system: A seat's system prompt will be read again, by later turns or for other items.
        reuse_view: Seats whose view later turns will read again; a lone estimate pays no surcharge for caching it.
    """

    seed: int
    replicate: int
    run_secret: str
    max_output_tokens: int
    assumed_output_tokens: int
    effort: Effort
    reuse_system: bool
    reuse_view: frozenset[str]


@dataclass(frozen=True)
class Foreseen:
    """What an item will take, before anything is spent.

    Attributes:
        turns: Planned turns.
        tokens: Expected tokens.
        worst_tokens: The most tokens the planned turns can take.
        expected_nano: Expected cost at list price; None when a model has no price.
        worst_nano: The most the planned turns can cost; None when a model has no price.
    """

    turns: int
    tokens: int
    worst_tokens: int
    expected_nano: int | None
    worst_nano: int | None


@cache
def contract_of(kind: Kind, option_ids: tuple[str, ...]) -> Contract:
    """Return the response schema of a kind of question, linted."""
    schema = wire_schema(kind, option_ids)
    lint_schema(schema, name=kind)
    return Contract(name=kind, schema=schema, sha256=tagged_hash("schema", schema), size=len(canonical_json(schema)))


class Briefing:
    """What each seat of a panel is shown of one item, and what asking it will take.

    Packet, views and static prompts pass the leak guard when the briefing is made, before any call.

    Args:
        item: The question with its evidence.
        seats: Who answers.
        prompts: The fixed texts.
        settings: How calls are made.

    Attributes:
        item: As given.
        seats: As given.
        systems: Each seat's system prompt, by label; the same for every item.
        settings: As given.
        tag: The item's fence tag.
        views: What each seat sees, in seat order.
        seating: Who is a member, and who has a part beside the members.

    Raises:
        LeakError: Evidence or a static prompt gives the target away.
    """

    def __init__(
        self,
        item: Item,
        *,
        seats: Sequence[Seat],
        prompts: Prompts,
        settings: Settings,
    ) -> None:
        self.item = item
        self.seats = tuple(seats)
        self.systems = {seat.label: prompts.system(seat) for seat in seats}
        self.settings = settings
        self.tag = fence_tag(
            run_secret=settings.run_secret, packet_digest=item.packet.digest, item_id=item.packet.item_id
        )
        self.views = [view(item.packet, seat.role) for seat in seats]
        self.seating = seating_of(self.seats)
        self._place = {seat.label: index for index, seat in enumerate(self.seats)}
        self._prompts = prompts
        self._contract = contract_of(item.question.kind, tuple(option.id for option in item.question.options))
        self._view_blocks = self._rendered()
        self._guard()

    def _rendered(self) -> list[str]:
        """Render each distinct view once; seats with the same sections share the text."""
        once: dict[tuple[str, ...], str] = {}
        for seen in self.views:
            if seen.codes not in once:
                once[seen.codes] = render_view_block(question=self.item.question, view=seen, tag=self.tag)
        return [once[seen.codes] for seen in self.views]

    def _guard(self) -> None:
        target = self.item.truth
        guard_packet(self.item.packet, question=self.item.question, target=target)
        distinct: dict[tuple[str, ...], View] = {seen.codes: seen for seen in self.views}
        for seen in distinct.values():
            guard_view(seen, target=target)
        for label, system in self.systems.items():
            guard_text(system, target=target, where=f"system prompt of {label}")
        for kind, task in self._prompts.tasks.items():
            guard_text(task, target=target, where=f"task {kind}")

    def seat(self, label: str) -> Seat:
        """Return the seat of a label."""
        return self.seats[self._place[label]]

    def view(self, label: str) -> View:
        """Return what the seat of a label sees."""
        return self.views[self._place[label]]

    @cached_property
    def whole(self) -> View:
        """The whole packet as a view, guarded like any other.

        Raises:
            LeakError: It gives the target away.
        """
        role = self.seats[0].role.model_copy(update={"view": (ALL_SECTIONS,)})
        seen = view(self.item.packet, role)
        guard_view(seen, target=self.item.truth)
        return seen

    def request(
        self,
        label: str,
        turn: Turn,
        state: State | None,
        *,
        whole: bool = False,
        gathered: Sequence[EvidenceItem] = (),
    ) -> Request:
        """Lay a call out for prefix caches: system (constant per seat), view (constant per item), then what varies."""
        seat = self.seat(label)
        task = fill(self._prompts.tasks[turn.kind], {"round": str(turn.round), "seat": label})
        told = State() if state is None else state
        block = render_turn_block(
            tag=self.tag,
            task_line=task,
            state=told.committee,
            critiques=told.critiques,
            flags=told.flags,
            own_answer=told.own_answer,
            arguments=told.arguments,
            packet=self.whole if whole else None,
            gathered=[item.shown() for item in gathered],
        )
        view_block = Block(self._view_blocks[self._place[label]], cache=label in self.settings.reuse_view)
        return Request(
            model=seat.model,
            system=(Block(self.systems[label], cache=self.settings.reuse_system),),
            messages=(Message("user", (view_block, Block(block, cache=False))),),
            tools=(),
            contract=self._contract,
            max_output_tokens=self.settings.max_output_tokens,
            effort=self.settings.effort,
            sampling=None,
            replicate=self.replicate(turn),
        )

    def replicate(self, turn: Turn) -> int:
        """Return the index that tells apart samples of one prompt, and repetitions of the run."""
        return SAMPLES_PER_REPLICATE * self.settings.replicate + turn.sample

    def inquiry(
        self, label: str, turn: Turn, state: State | None, *, view: View, gathered: Sequence[EvidenceItem] = ()
    ) -> Inquiry:
        """Return what a seat that works in steps of its own is to answer, and from what."""
        place = self._place[label]
        return Inquiry(
            question=self.item.question,
            seat=self.seats[place],
            number=place + 1,
            alone=len(self.seats) == 1,
            turn=turn,
            view=view,
            view_block=self._view_blocks[place],
            state=state,
            gathered=tuple(gathered),
            preamble=self._prompts.preamble,
            tag=self.tag,
            max_output_tokens=self.settings.max_output_tokens,
            effort=self.settings.effort,
            replicate=self.replicate(turn),
        )

    def foreseen(
        self,
        protocol: Protocol,
        prices: Mapping[str, Price | Literal["free"] | None],
        *,
        ended: Container[Where] = (),
        discount: int = 1,
        answerer: Answerer | None = None,
    ) -> Foreseen:
        """Return what the item's planned turns will take, corrections apart; turns in ``ended`` take nothing more.

        Each other answer's row, summary and critiques enter at an allowance; expected are four bytes a token and
        replies of the assumed length; the worst case counts every byte as a token and every reply at its limit. Calls
        cost the list price divided by ``discount``. A turn that ``answerer`` takes is as many calls as it has steps.
        """
        expected = worst = turns = tokens = worst_tokens = 0
        priced = True
        reply = min(self.settings.assumed_output_tokens, self.settings.max_output_tokens)
        for planned in protocol.plan(self.seating):
            turn, label = planned.turn, planned.seat
            if Where(self.item.question.id, turn.round, label, turn.kind, turn.sample) in ended:
                continue
            block = self._view_blocks[self._place[label]]
            fixed = len(self.systems[label].encode()) + len(block.encode("utf-8", "surrogatepass"))
            size = (
                fixed + STATE_BYTES_PER_ROW * planned.rows + len(self._prompts.tasks[turn.kind]) + self._contract.size
            )
            price = prices[self.seat(label).model]
            turns += 1
            stepwise = answerer is not None and turn.kind in answerer.turns
            for gathered in answerer.room(turn.kind) if answerer is not None and stepwise else (0,):
                usual = Usage(-(-(size + gathered) // 4), 0, 0, 0, reply, 0)
                limit = self.settings.max_output_tokens
                bound = bound_nano(input_tokens=size + gathered, output_tokens=limit, price=price)
                tokens += usual.total
                worst_tokens += size + gathered + limit
                priced = priced and bound is not None
                worst += -(-(bound or 0) // discount)
                expected += -(-min(bound or 0, cost_nano(usual, price) or 0) // discount)
        return Foreseen(turns, tokens, worst_tokens, expected if priced else None, worst if priced else None)
