"""Addresses: one spelling per page, and a reason where something is no page's address.

The canonical form: scheme and host in lower case, the host in IDNA (UTS 46), no default port, no fragment, no tracking
parameters, parameters in order of their names, percent-escapes in one spelling, no dot segments, no trailing slash.
It is a fixed point: the canonical form of a canonical form is itself. Only http and https are pages; a name and
password in an address are no part of a page and often a disguise, so they make it unfit.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple
from urllib.parse import unquote

import idna

UrlProblem = Literal["scheme", "credentials", "host", "port", "characters", "length"]

LONGEST_URL = 2_048
"""Characters of an address, before and after."""
MOST_IN_TEXT = 200
"""Addresses read from one text."""

_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)
_UNFIT = re.compile(r"[\x00-\x20\x7f-\xa0\\\u200b-\u200f\u2028-\u202f\u2060-\u206f\u3000\ud800-\udfff\ufeff]")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_LONE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PLAIN = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/%?]")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)")
_PORT = re.compile(r"[0-9]{1,5}")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_IN_TEXT = re.compile(r"(?:https?://|(?<![\w./@-])www\.)[^\s<>\"'`\])}|\\^]{1,2048}", re.IGNORECASE)
_HOST_IN_PATH = re.compile(r"(?<![a-z0-9.-])(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?![a-z0-9.-])")

_WORD_ENDS = re.compile(r"[-_+/?&=#.,;:~|!()\s]+")
_MOST_ESCAPED = 3
"""Times an escape may be escaped itself and still be undone."""

TRACKING_PARAMETERS = frozenset(
    {"gclid", "gbraid", "wbraid", "dclid", "fbclid", "msclkid", "yclid", "twclid", "ttclid", "li_fat_id", "igshid"}
    | {"mc_cid", "mc_eid", "mkt_tok", "_hsenc", "_hsmi", "vero_id", "_ga", "_gl", "ref_src", "ref_url", "cmpid"}
)
"""Parameters that say who came from where, beside everything that begins with ``utm_``."""


class Address(NamedTuple):
    """A canonical address and its host, or what makes it unfit.

    Attributes:
        url: The canonical form; None where it is unfit.
        host: Its host, in IDNA and lower case, without the port; None where it is unfit.
        problem: What makes it unfit; None where nothing does.
    """

    url: str | None
    host: str | None
    problem: UrlProblem | None


class _UnfitError(Exception):
    def __init__(self, problem: UrlProblem) -> None:
        self.problem: UrlProblem = problem
        super().__init__(problem)


def read_url(raw: str) -> Address:
    """Return a page's canonical address and host, or why it is none.

    Example:
        >>> read_url("HTTPS://Example.ORG:443/a/../b/?utm_source=x&q=1#top").url
        'https://example.org/b?q=1'
        >>> read_url("https://bank.example@evil.example/").problem
        'credentials'
        >>> read_url("javascript:alert(1)").problem
        'scheme'
    """
    try:
        url, host = _canonical(raw)
    except _UnfitError as error:
        return Address(None, None, error.problem)
    return Address(url, host, None)


def canonical_url(raw: str) -> str | None:
    """Return a page's canonical address; None where it is unfit (`read_url` says why).

    Example:
        >>> canonical_url("http://Bücher.example/")
        'http://xn--bcher-kva.example/'
    """
    return read_url(raw).url


def host_of(raw: str) -> str | None:
    """Return an address's host, in IDNA and lower case; None where the address is unfit.

    Example:
        >>> host_of("https://www.Example.org:8080/x")
        'www.example.org'
    """
    return read_url(raw).host


def canonical_host(raw: str) -> str | None:
    """Return a host's one spelling; None where it is no host.

    Example:
        >>> canonical_host("Ｐolymarket。com."), canonical_host("two words")
        ('polymarket.com', None)
    """
    try:
        return _host(raw)
    except _UnfitError:
        return None


def within(host: str, domain: str) -> bool:
    """Return whether a host is a domain or one of its subdomains, both in their one spelling.

    Example:
        >>> within("api.example.org", "example.org"), within("notexample.org", "example.org")
        (True, False)
    """
    return host == domain or host.endswith(f".{domain}")


def urls_in(text: str) -> tuple[str, ...]:
    """Return the canonical addresses written in a text, in order, each once; what begins with ``www.`` is one too.

    Example:
        >>> urls_in("Per https://example.org/a. See (www.example.com/b), or ftp://example.net")
        ('https://example.org/a', 'https://www.example.com/b')
    """
    found: dict[str, None] = {}
    for match in _IN_TEXT.finditer(text):
        raw = match[0].rstrip(".,;:!?*_")
        url = canonical_url(raw if "://" in raw else f"https://{raw}")
        if url is not None:
            found[url] = None
        if len(found) == MOST_IN_TEXT:
            break
    return tuple(found)


def hosts_behind(url: str) -> tuple[str, ...]:
    """Return hosts that a canonical address names beyond its own: those of archives, caches, redirects, translations.

    Example:
        >>> hosts_behind("https://web.archive.org/web/2025/https%3A%2F%2Fexample.com%2Fa")
        ('example.com',)
        >>> hosts_behind("https://example-com.translate.goog/a")
        ('example.com',)
    """
    _, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return tuple(dict.fromkeys((*_translated(host), *_HOST_IN_PATH.findall(unquote(unquote(slash + path)).lower()))))


def unescaped(url: str) -> str:
    """Return an address with its escapes undone, those of escapes too.

    Example:
        >>> unescaped("https://news.example/63%2525")
        'https://news.example/63%'
    """
    for _ in range(_MOST_ESCAPED):
        url = unquote(url)
    return url


def words_of(url: str) -> str:
    """Return an address as the words that a model reads in it.

    Example:
        >>> words_of("https://news.example/a%2Dslug/with_words+and%2520more?q=63%25")
        'https news example a slug with words and more q 63%'
    """
    return _WORD_ENDS.sub(" ", unescaped(url)).strip()


def is_public(host: str) -> bool:
    """Return whether a host can be a public site: no private or loopback address, no name of a local network.

    Example:
        >>> is_public("example.org"), is_public("169.254.169.254"), is_public("localhost")
        (True, False, False)
    """
    try:
        return ipaddress.ip_address(host.strip("[]")).is_global
    except ValueError:
        return "." in host and not host.endswith((".localhost", ".local", ".internal", ".lan", ".home.arpa"))


def _translated(host: str) -> Iterator[str]:
    for proxy in (".translate.goog", ".cdn.ampproject.org"):
        if host.endswith(proxy):
            # A doubled hyphen stands for a hyphen and a single one for a dot.
            yield host.removesuffix(proxy).replace("--", "\0").replace("-", ".").replace("\0", "-")


def _canonical(raw: str) -> tuple[str, str]:
    if len(raw) > LONGEST_URL:
        raise _UnfitError("length")
    stripped = raw.strip(" \t\r\n")
    if _UNFIT.search(stripped):
        raise _UnfitError("characters")
    parts = _PARTS.fullmatch(stripped)
    if parts is None:
        raise _UnfitError("scheme")
    scheme, authority, path, query = parts[1].lower(), parts[2], parts[3], parts[4]
    if scheme not in _DEFAULT_PORTS:
        raise _UnfitError("scheme")
    if not authority:
        raise _UnfitError("host")
    if "@" in unquote(authority):
        raise _UnfitError("credentials")
    host, port = _host_and_port(authority)
    shown = "" if port in {None, _DEFAULT_PORTS[scheme]} else f":{port}"
    kept = _query(query or "")
    url = f"{scheme}://{host}{shown}{_path(path)}" + (f"?{kept}" if kept else "")
    if len(url) > LONGEST_URL:
        raise _UnfitError("length")
    return url, host


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if authority.startswith("["):
        inside, bracket, rest = authority[1:].partition("]")
        try:
            host = f"[{ipaddress.IPv6Address(inside).compressed}]"
        except ValueError:
            raise _UnfitError("host") from None
        if not bracket or "%" in inside or (rest and not rest.startswith(":")):
            raise _UnfitError("host")
        return host, _port(rest[1:])
    name, _, port = authority.partition(":")
    return _host(_decoded(name)), _port(port)


def _decoded(name: str) -> str:
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        raise _UnfitError("host") from None


def _port(text: str) -> int | None:
    if not text:
        return None
    if not _PORT.fullmatch(text) or not 0 < int(text) < 65_536:
        raise _UnfitError("port")
    return int(text)


def _host(raw: str) -> str:
    host = raw.lower() if raw.isascii() else _encoded(raw)
    host = host.removesuffix(".")
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _UnfitError("host")
    if _NUMERIC.fullmatch(labels[-1]):
        try:  # 0x7f.1 and 2130706433 are addresses to some readers, so only the plain spelling is one here
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise _UnfitError("host") from None
    if any(label.startswith("xn--") for label in labels):
        return _encoded(host)
    return host


def _encoded(host: str) -> str:
    try:
        return idna.encode(host.removesuffix("."), uts46=True).decode("ascii").lower()
    except (idna.IDNAError, UnicodeError):
        raise _UnfitError("host") from None


def _escaped(text: str) -> str:
    """Return a part of an address with its escapes in one spelling, in two passes so that the result is a fixed point.

    Unreserved characters are never escaped, escapes are in capitals, and everything unusual is escaped as UTF-8.
    """
    text = _LONE_PERCENT.sub("%25", text)
    text = _PLAIN.sub(lambda odd: "".join(f"%{byte:02X}" for byte in odd[0].encode()), text)
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else f"%{escape[1].upper()}"


def _path(path: str) -> str:
    kept: list[str] = []
    for segment in _escaped(path).split("/")[1:]:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return ("/" + "/".join(kept)).rstrip("/") or "/"


def _query(query: str) -> str:
    pairs = [pair for pair in _escaped(query).split("&") if pair]
    named = [(pair.partition("=")[0], pair) for pair in pairs]
    return "&".join(pair for name, pair in sorted(named, key=lambda named: named[0]) if not _tracks(name.lower()))


def _tracks(name: str) -> bool:
    return name.startswith("utm_") or name in TRACKING_PARAMETERS
