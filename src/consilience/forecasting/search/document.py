"""What a search finds: a hit as a client returns it, and a document as an agent is shown it."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from consilience.core.question import Strict

DateSource = Literal["metadata", "url", "text", "archive", "none"]
"""What a date was read from; ``none`` exactly where there is no date."""


class Hit(Strict):
    """One result of a search client. Everything in it is untrusted.

    Attributes:
        url: As the client gave it.
        title: Its title.
        text: The snippet, or the whole text where the client has it.
        published: When it was published; None where nobody knows, which is not "before".
        date_source: What that was read from.
        retrieved_at: When it was fetched; relative ages count from here, never from now.
        score: The client's own relevance, higher is better; None where it gives none.
    """

    url: str
    title: str
    text: str
    published: AwareDatetime | None
    date_source: DateSource
    retrieved_at: AwareDatetime
    score: float | None = None


class Document(Hit):
    """A hit that was kept: it has an id that can be cited, and its text stands in an agent's prompt.

    Attributes:
        id: ``D01``, ``D02``… of a lone agent; in a panel the seat's number comes first, as in ``D201``.
        url: Canonical.
        sha256: Of title and text.
        undated: It was kept without a date under a cutoff, because the run says so; the warning follows it.
    """

    id: str = Field(pattern=r"^D[0-9]{2,5}$")
    sha256: str
    undated: bool = False
