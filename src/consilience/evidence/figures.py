"""One number in every usual way of writing it: what the leak guard looks for in text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache

SMALLEST = 1000
"""Smaller targets are not searched in text: 0, 1 or 12 stand everywhere and prove nothing."""

# Group separators once `_plain` has made every other space and apostrophe one of these.
_SEP = "[,.'_ ]"
_LEFT = r"(?<![0-9])(?<![0-9][,.'_])"
_POWER = r"\s?[x×*·⋅]\s?10(?:\^|\*\*)?\{?"
_THOUSANDS = r"(?:\s?-?(?:k|thousand|grand|tsd|mille|mil)(?![a-z])|e\+?0*3(?![0-9]))"
_MILLIONS = r"(?:mm?(?![a-z])|\s?-?(?:(?-i:M)|mn|mio|mln|millions?|millionen|millones)(?![a-z])|e\+?0*6(?![0-9]))"
_ESCAPED = re.compile(r"\\u(?:00ad|200[b-f]|2060|feff)")
_FOREIGN = re.compile(
    "(?![0-9])\\d|[\u2070\u00b9\u00b2\u00b3\u2074-\u2079’\u066c\u00a0\u00ad\u2000-\u200f\u202f\u205f\u2060\u3000\ufeff]"
)


@dataclass(frozen=True)
class Figure:
    """A whole number of at least `SMALLEST`, to be found however it is written.

    Found are: bare digits (except for 1900–2100, which read as years), groups of three after comma, point,
    apostrophe, underscore or any space (no-break, narrow, zero-width too), Indian groups, thousands (``412k``, ``412
    thousand``), millions (``$0.412M``, ``.412 million``), powers (``4.12e5``, ``4.12 × 10^5``), in the digits of any
    script. Not found are roundings (``410k``) and words (``four hundred…``).

    Example:
        >>> [Figure(412000).occurs_in(t) for t in ("sold at 412 000 $", "about $0.412M", "1,412,000", "4120001")]
        [True, True, False, False]
    """

    value: int

    def occurs_in(self, text: str) -> bool:
        """Return whether the number is written anywhere in the text."""
        text = _plain(text)
        return any(self._written.match(text, stem.start()) for stem in self._stem.finditer(text))

    @cached_property
    def _stem(self) -> re.Pattern[str]:
        """How every way of writing begins, leading zeros apart: with the first three significant digits.

        It starts with a literal, which the engine looks for fastest; nearly every text ends here.
        """
        digits = str(self.value).rstrip("0")
        only = "" if len(digits) > 3 else "(?![1-9])"
        rest = "".join(f"{_SEP}?{digit}" for digit in digits[1:3])
        return re.compile(f"{digits[0]}(?<![1-9]{digits[0]}){rest}{only}")

    @cached_property
    def _written(self) -> re.Pattern[str]:
        """The whole number as it may be written, from its first significant digit on."""
        digits = str(self.value)
        head, groups = _groups(digits, 3)
        forms = [
            f"{_LEFT}{head}(?P<sep>{_SEP})" + "(?P=sep)".join(groups) + "(?![0-9])(?!(?P=sep)[0-9]{3}(?![0-9]))",
            self._scaled(3, _THOUSANDS),
            self._scaled(6, _MILLIONS),
            self._scaled(len(digits) - 1, rf"(?:e\+?0*|{_POWER}){len(digits) - 1}(?![0-9])"),
        ]
        if not 1900 <= self.value <= 2100:
            forms.append(rf"(?<![0-9])(?<![0-9]\.){digits}(?![0-9])")
        if len(digits) > 5:
            lakh, pairs = _groups(digits[:-3], 2)
            forms.append(f"{_LEFT}{','.join([lakh, *pairs, digits[-3:]])}(?![0-9])")
        return re.compile("|".join(forms), re.IGNORECASE)

    def _scaled(self, exponent: int, suffix: str) -> str:
        whole, _, fraction = f"{Decimal(self.value).scaleb(-exponent):f}".partition(".")
        fraction = fraction.rstrip("0")
        if whole == "0":
            digits = fraction.lstrip("0")
            point = "[.,]" + "0" * (len(fraction) - len(digits))
            return f"(?<={point})(?:(?<![0-9]{point})|(?<=(?<![0-9.,])0{point})){digits}0*{suffix}"
        head, groups = _groups(whole, 3)
        decimals = f"[.,]{fraction}0*" if fraction else "(?:[.,]0+)?"
        return f"{_LEFT}{f'{_SEP}?'.join([head, *groups])}{decimals}{suffix}"


def _plain(text: str) -> str:
    """Return the text with digits and separators of every script in ASCII, invisible ones as spaces."""
    if not text.isascii():
        text = _FOREIGN.sub(_to_ascii, text)
    return _ESCAPED.sub(" ", text) if "\\u" in text else text


def _to_ascii(sign: re.Match[str]) -> str:
    digit = unicodedata.digit(sign[0], None)
    if digit is not None:
        return str(digit)
    return "'" if sign[0] == "’" else " "


def _groups(digits: str, size: int) -> tuple[str, list[str]]:
    first = len(digits) % size or size
    return digits[:first], [digits[at : at + size] for at in range(first, len(digits), size)]


@lru_cache(maxsize=512)
def figure_of(target: float | str | None) -> Figure | None:
    """Return the number to look for, or None where the target is no number or a small one.

    Example:
        >>> figure_of(412000.4), figure_of(1.0), figure_of("yes")
        (Figure(value=412000), None, None)
    """
    if target is None or isinstance(target, str) or abs(target) < SMALLEST:
        return None
    return Figure(round(abs(target)))
