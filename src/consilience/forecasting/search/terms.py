"""The terms of a text, for an index and for what is looked up in it: one rule for every language, no stemming.

A text is folded to one spelling (NFKC, case folding, NFKC again) and cut into runs of letters, marks and digits;
everything else separates. So ``U.S.`` gives two terms and ``4.25`` too, ``Straße`` is ``strasse``, and full-width
digits are digits. A Han character or kana is a term of its own, because these are written without spaces; Thai, Lao,
Khmer and Burmese are too, and their runs stay whole. Characters that only shape a line (soft hyphen, joiners, direction
marks) vanish, so that nothing invisible hides a word.
"""

from __future__ import annotations

import unicodedata
from typing import Final

TOKENIZER: Final = "nfkc-casefold-nfkc/1"
"""Changes whenever the same text may give other terms."""

_ALONE = ("CJK UNIFIED", "CJK COMPATIBILITY", "HIRAGANA", "KATAKANA")
_WORD_SPACE = 0x200B
"""Zero width space: it says where a word ends."""


class _Separators(dict[int, str]):
    """What `str.translate` puts in a character's place, decided at its first appearance."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if category == "Cf" and code != _WORD_SPACE:
            kept = ""
        elif category[0] not in "LMN":
            kept = " "
        elif code > 0x2E7F and unicodedata.name(character, "").startswith(_ALONE):
            kept = f" {character} "
        else:
            kept = character
        self[code] = kept
        return kept


_SEPARATED = _Separators()


def terms(text: str) -> list[str]:
    """Return the terms of a text in their order, repeats included; none for a text without letters and digits.

    Example:
        >>> terms("The U.S. rate: 4.25 % (STRASSE, Straße)")
        ['the', 'u', 's', 'rate', '4', '25', 'strasse', 'strasse']
        >>> terms("金利 2025")
        ['金', '利', '2025']
    """
    if text.isascii():  # is NFKC already
        folded = text.lower()
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return folded.translate(_SEPARATED).split()
