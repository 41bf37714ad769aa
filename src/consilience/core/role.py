"""A simulated analytic role: id, prompt, view. Never a licensed professional."""

from __future__ import annotations

from pydantic import Field

from consilience.core.canonical import tagged_hash, text_hash
from consilience.core.question import Strict

ALL_SECTIONS = "all"


class Role(Strict):
    """Who answers, and what evidence it may see.

    Attributes:
        id: Lower-case identifier, such as ``comparables``.
        view: Section codes the role may see, or ``("all",)``.
        text: The role's own part of the system prompt.
        framing: Optional framing axis for diversity (risk, gain, …).

    Example:
        >>> Role(id="skeptic", view=("all",), text="Doubt.").sees("C")
        True
    """

    id: str = Field(min_length=1, max_length=64, pattern=r"^[a-z][a-z0-9_]*$")
    view: tuple[str, ...] = Field(min_length=1)
    text: str = Field(min_length=1)
    framing: str | None = None

    def sees(self, code: str) -> bool:
        """Return whether the section with this code is in the role's view."""
        return ALL_SECTIONS in self.view or code in self.view

    @property
    def digest(self) -> str:
        """Hash of what the role is asked to do and may see; its id is only a name."""
        return tagged_hash("role", {"framing": self.framing, "text": self.text_sha256, "view": sorted(self.view)})

    @property
    def text_sha256(self) -> str:
        """SHA-256 of the role text (line ends normalised)."""
        return text_hash(self.text)
