"""What of a text can be seen: labels that look alike must be alike, and nothing in them may be hidden."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

JOINERS: Final = frozenset("\u200c\u200d")
"""They are hidden and yet belong to words of some scripts and to emoji: allowed, and told apart by nothing."""
BLANKS: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Letters and marks that show nothing, such as the Hangul filler; those of emoji and of Mongolian belong to words."""
FILLERS: Final = frozenset("\u115f\u1160\u3164\uffa0")


def hidden(text: str) -> tuple[str, ...]:
    r"""Return the code points of a text that no reader sees and no word needs, such as ``U+202E``, each once.

    These are controls (line breaks and tabs apart), directions, zero-width marks and letters that are blank.

    Example:
        >>> hidden("wait\u200b"), hidden("so\u0000"), hidden("\U0001f468\u200d\U0001f469")
        (('U+200B',), ('U+0000',), ())
    """
    found = [
        one
        for one in text
        if one in FILLERS or (unicodedata.category(one) in {"Cc", "Cf"} and not one.isspace() and one not in JOINERS)
    ]
    return tuple(dict.fromkeys(f"U+{ord(one):04X}" for one in found))


def visible(text: str) -> str:
    r"""Return what a reader sees of a text: composed, without hidden code points, its white space as single blanks.

    Example:
        >>> visible(" wait\u200d  a\nday ") == visible("wait a day")
        True
    """
    composed = unicodedata.normalize("NFC", text)
    shown = "".join(one for one in composed if one.isspace() or unicodedata.category(one) not in {"Cc", "Cf"})
    return " ".join(BLANKS.sub("", shown).split())
