"""What a user asks, made into an item: a question with options that have ids, and documents as evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final, Literal, get_args

from pydantic import JsonValue, ValidationError

from consilience.core.answers import Answer, Choice, Distribution, Estimate, Probability
from consilience.core.canonical import tagged_hash
from consilience.core.packet import EvidenceItem, Item, Packet, Section
from consilience.core.question import Kind, Option, Question
from consilience.core.visible import hidden, visible
from consilience.errors import ConfigError, DataError, reason
from consilience.registry import nearest

KIND_OF: Final[dict[type[Answer], Kind]] = {
    Estimate: "estimate",
    Probability: "probability",
    Distribution: "distribution",
    Choice: "choice",
}
DOCUMENTS: Final = "D"
MAX_QUESTION_BYTES: Final = 20_000
MAX_OPTIONS_BYTES: Final = 100_000
MAX_DOCUMENT_BYTES: Final = 200_000
MAX_CONTEXT_BYTES: Final = 500_000
"""Every member reads all documents in every turn."""

Context = Sequence[str | Path]
"""Documents: a string is a text, a path a file."""


@dataclass(frozen=True)
class Asked:
    """What a user asks.

    Attributes:
        text: The question.
        kind: ``estimate``, ``probability``, ``distribution`` or ``choice``, or the class of its answers.
        options: For distributions and choices: at least two distinct labels, of any text.
        context: Documents: strings are texts, paths are files of UTF-8 text.
        unit: For estimates: what the number counts.
        scale: For estimates: ``log`` for positive quantities such as prices, else ``linear``.
        lower: For estimates: smallest admissible value.
        upper: For estimates: largest admissible value.
        descriptions: For distributions and choices: one per option, in their order, or none at all.
        ids: For distributions and choices: what each option is called in ballots and records, in their order; none at
            all for their places, ``o1``, ``o2`` and so on.
    """

    text: str
    kind: Kind | type[Answer]
    options: Sequence[str] = ()
    context: Context = ()
    unit: str | None = None
    scale: Literal["log", "linear"] = "linear"
    lower: float | None = None
    upper: float | None = None
    descriptions: Sequence[str] = ()
    ids: Sequence[str] = ()


def item_of(asked: Asked, *, today: date) -> Item:
    """Return the question with its evidence; the same question has the same id.

    Documents are undated, and declared to be as of the day of asking whatever days they speak of. The information
    cutoff is the next day, the first that is inadmissible.

    Args:
        asked: What a user asks.
        today: The day of asking.

    Raises:
        ConfigError: The kind is unknown, options are missing, superfluous or alike, the question is no question, or a
            document is not there to be read.
        DataError: A document is no text, or is too long.

    Example:
        >>> item = item_of(Asked("Tea or coffee?", "choice", options=("tea", "coffee")), today=date(2026, 11, 1))
        >>> [option.id for option in item.question.options], str(item.packet.cutoff)
        (['o1', 'o2'], '2026-11-02')
    """
    question = _question(asked, kind_named(asked.kind))
    documents = tuple(
        EvidenceItem(id=f"{DOCUMENTS}{number:02d}", snapshot=True, content=content)
        for number, content in enumerate(_documents(asked.context), start=1)
    )
    section = Section(code=DOCUMENTS, title="Documents", items=documents)
    packet = Packet(
        item_id=question.id,
        cutoff=today + timedelta(days=1),
        cutoff_rule="first_inadmissible",
        sections={DOCUMENTS: section} if documents else {},
    )
    return Item(question=question, packet=packet)


def kind_named(kind: str | type[Answer]) -> Kind:
    """Return the kind of a name, or of the class of its answers.

    Raises:
        ConfigError: There is no such kind; the nearest is named.

    Example:
        >>> kind_named(Probability), kind_named("choice")
        ('probability', 'choice')
    """
    known: tuple[Kind, ...] = get_args(Kind)
    found = KIND_OF.get(kind) if isinstance(kind, type) else next((name for name in known if name == kind), None)
    if found is None:
        name = kind.__name__ if isinstance(kind, type) else kind
        raise ConfigError(f'unknown kind of answer "{name}"', hint=nearest(str(name), known))
    return found


def _question(asked: Asked, kind: Kind) -> Question:
    if not asked.text.strip():
        raise ConfigError("the question is empty", hint="Write it as one sentence, in quotes.")
    size = len(asked.text.encode("utf-8", "surrogatepass"))
    if size > MAX_QUESTION_BYTES:
        raise ConfigError(
            f"the question has {size:,} bytes; at most {MAX_QUESTION_BYTES:,} are allowed",
            hint="Give long texts as context.",
        )
    for name, bound in (("lower", asked.lower), ("upper", asked.upper)):
        if bound is not None and not math.isfinite(bound):
            raise ConfigError(f"{name} is {bound}", hint="Give a finite number, or leave it out.")
    options = _options(asked, kind)
    told = {"text": asked.text, "kind": kind, "unit": asked.unit, "options": list(asked.options)}
    told |= {"descriptions": list(asked.descriptions)} if asked.descriptions else {}
    told |= {"ids": list(asked.ids)} if asked.ids else {}
    bounds = {"scale": asked.scale, "lower": asked.lower, "upper": asked.upper}
    try:
        return Question(
            id=f"q-{tagged_hash('ask', told | bounds)[:12]}",
            text=asked.text,
            kind=kind,
            scale=asked.scale,
            unit=asked.unit,
            lower=asked.lower,
            upper=asked.upper,
            options=options,
        )
    except (ValidationError, ValueError) as error:
        raise ConfigError(f"the question cannot be asked: {reason(error)}", hint="Mend it and ask again.") from error


def _options(asked: Asked, kind: Kind) -> tuple[Option, ...]:
    """Return the options with the ids given, or with their places for ids, so that no label is ever an id."""
    labels = asked.options
    if kind in {"estimate", "probability"}:
        if labels:
            raise ConfigError(f"a question of kind {kind} takes no options", hint="Ask for a choice or distribution.")
        return ()
    if isinstance(labels, str) or len(labels) < 2:
        raise ConfigError(
            f"a {kind} needs at least two options", hint="Name each of them, such as --option A --option B."
        )
    _told_apart(labels)
    told = list(asked.descriptions) or [""] * len(labels)
    if len(told) != len(labels):
        raise ConfigError(f"{len(told)} descriptions of {len(labels)} options", hint="Describe every option, or none.")
    ids = list(asked.ids) or [f"o{number}" for number in range(1, len(labels) + 1)]
    if len(ids) != len(labels):
        raise ConfigError(f"{len(ids)} ids of {len(labels)} options", hint="Give every option an id, or none.")
    _short_enough([f"{label}{text}" for label, text in zip(labels, told, strict=True)])
    try:
        return tuple(
            Option(id=name, label=label, description=text) for name, label, text in zip(ids, labels, told, strict=True)
        )
    except ValidationError as error:
        raise ConfigError(f"an option cannot be shown: {reason(error)}", hint="Write it as plain text.") from error


def _short_enough(options: Sequence[str]) -> None:
    """Raise where options with their descriptions are longer than a member should read in every turn.

    Raises:
        ConfigError: With the number of the longest.
    """
    sizes = [len(option.encode("utf-8", "surrogatepass")) for option in options]
    if sum(sizes) > MAX_OPTIONS_BYTES:
        raise ConfigError(
            f"the options have {sum(sizes):,} bytes together, {max(sizes):,} of them in option "
            f"{1 + sizes.index(max(sizes))}; at most {MAX_OPTIONS_BYTES:,} are allowed",
            hint="Give long texts as context.",
        )


def _told_apart(labels: Sequence[str]) -> None:
    """Raise where a label is empty, hides something, or looks like another one.

    Raises:
        ConfigError: With the options' numbers.
    """
    seen: dict[str, int] = {}
    for number, label in enumerate(labels, start=1):
        unseen = hidden(label)
        if unseen:
            raise ConfigError(
                f"option {number} holds characters that nobody sees: {', '.join(unseen)}",
                hint="Take them out: options that look alike must be alike.",
            )
        plain = visible(label)
        if not plain:
            raise ConfigError(f"option {number} is empty", hint="Give every option a label.")
        before = seen.setdefault(plain, number)
        if before != number:
            raise ConfigError(
                f'options {before} and {number} are both "{plain}"', hint="Give every option its own label."
            )


def _documents(context: Context) -> Iterable[dict[str, JsonValue]]:
    if isinstance(context, str | Path):
        raise ConfigError("the context is one text, not a list of them", hint="Write context=[...].")
    total = 0
    for number, document in enumerate(context, start=1):
        named = isinstance(document, Path)
        where = str(document) if named else f"text {number} of the context"
        text = _file_text(document) if isinstance(document, Path) else document
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise DataError(f"{where} is no valid text: {error.reason}", hint="Give it as UTF-8 text.") from error
        if size > MAX_DOCUMENT_BYTES:
            raise _too_long(where)
        if not text.strip():
            raise DataError(f"{where} is empty", hint="Leave it out.")
        total += size
        if total > MAX_CONTEXT_BYTES:
            raise DataError(
                f"the documents have more than {MAX_CONTEXT_BYTES:,} bytes together, with {where}",
                hint="Give the parts that matter: every member reads all of them in every turn.",
            )
        yield {"name": _name(document), "text": text} if isinstance(document, Path) else {"text": text}


def _name(path: Path) -> str:
    """Return a file's name without its folders, which are nobody's business; what is no UTF-8 is escaped."""
    return path.name.encode("utf-8", "backslashreplace").decode()


def _file_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_DOCUMENT_BYTES + 4)  # a byte-order mark does not count
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", hint="Check the path and its permissions."
        ) from error
    if len(data) > MAX_DOCUMENT_BYTES + 3:
        raise _too_long(str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _no_text(path) from error
    if "\0" in text:
        raise DataError(f"{path} holds NUL characters, so it is no text", hint="Give a document as plain text.")
    return text


def _no_text(path: Path) -> DataError:
    return DataError(f"{path} is not text in UTF-8", hint="Give documents as plain text, such as .txt, .md or .csv.")


def _too_long(where: str) -> DataError:
    return DataError(
        f"{where} has more than {MAX_DOCUMENT_BYTES:,} bytes",
        hint="Give the part that matters: every member reads all of it in every turn.",
    )
