"""Canonical addresses and hosts."""

from __future__ import annotations

import pytest

from consilience.forecasting.search.urls import (
    canonical_host,
    canonical_url,
    hosts_behind,
    is_public,
    read_url,
    urls_in,
)


@pytest.mark.parametrize(
    ("raw", "url"),
    [
        ("HTTPS://Example.ORG:443", "https://example.org/"),
        ("http://example.org:80/a/", "http://example.org/a"),
        ("http://example.org:8080/a//", "http://example.org:8080/a"),
        ("https://example.org./a#part", "https://example.org/a"),
        ("https://example.org/a?utm_source=x&UTM_Medium=y&%75tm_id=1&gclid=2&b=2&a=1", "https://example.org/a?a=1&b=2"),
        ("https://example.org/a?", "https://example.org/a"),
        ("https://example.org/%7euser/%c3%a9", "https://example.org/~user/%C3%A9"),
        ("https://example.org/é", "https://example.org/%C3%A9"),
        ("https://example.org/a/./b/../../../c", "https://example.org/c"),
        ("https://example.org/%2e%2e/c", "https://example.org/c"),
        ("https://example.org/100%", "https://example.org/100%25"),
        ("https://example.org/%2561", "https://example.org/%2561"),
        ("https://Bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://XN--BCHER-KVA.example/", "https://xn--bcher-kva.example/"),
        ("https://ｅｘａｍｐｌｅ。org/", "https://example.org/"),
        ("https://ex%61mple.org/", "https://example.org/"),
        ("https://[2001:DB8::0:1]:443/x", "https://[2001:db8::1]/x"),
        ("https://192.0.2.1/x", "https://192.0.2.1/x"),
        ("  https://example.org/x\n", "https://example.org/x"),
    ],
)
def test_one_page_has_one_spelling(raw: str, url: str) -> None:
    assert canonical_url(raw) == url
    assert canonical_url(url) == url


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("javascript:alert(1)", "scheme"),
        ("JaVaScRiPt://example.org/%0aalert(1)", "scheme"),
        ("data:text/html,x", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("ftp://example.org/", "scheme"),
        ("//example.org/", "scheme"),
        ("example.org/a", "scheme"),
        ("", "scheme"),
        ("https://me:secret@example.org/", "credentials"),
        ("https://example.org%40evil.example/", "credentials"),
        ("https:///path", "host"),
        ("https:example.org", "host"),
        ("https://exa mple.org/", "characters"),
        ("https://example.org\\@evil.example/", "characters"),
        ("https://example.org/\x00", "characters"),
        ("https://exam\u200bple.org/", "characters"),
        ("https://example.org/\u202egpj.exe", "characters"),
        ("https://example.org/\ud800", "characters"),
        ("https://a..b/", "host"),
        ("https://-a-.b/", "host"),
        ("https://2130706433/", "host"),
        ("https://0x7f.1/", "host"),
        ("https://127.1/", "host"),
        ("https://xn--a.example/", "host"),
        ("https://[::1/", "host"),
        ("https://[fe80::1%25eth0]/", "host"),
        ("https://example.org:99999/", "port"),
        ("https://example.org:8a/", "port"),
        ("https://example.org/" + "a" * 3_000, "length"),
        ("https://example.org/" + "é" * 1_000, "length"),
        ("https://" + "é" * 300 + ".example/", "host"),
        ("https://%ff.example/", "host"),
    ],
)
def test_what_is_no_pages_address_says_why(raw: str, problem: str) -> None:
    assert read_url(raw) == (None, None, problem)


def test_hosts_in_one_spelling() -> None:
    assert canonical_host("ＰOLYMARKET.com.") == "polymarket.com"
    assert canonical_host("pоlymarket.com") != "polymarket.com"  # with a Cyrillic letter: another host
    assert [canonical_host(odd) for odd in ("", ".", "a b", "https://x.org", "x/y", "a..b")] == [None] * 6


def test_addresses_in_a_text() -> None:
    text = (
        "By <https://example.org/a>, www.Example.com/b. (http://example.net/c?x=1), me@www.no.example, ftp://no.example"
    )
    assert urls_in(text) == ("https://example.org/a", "https://www.example.com/b", "http://example.net/c?x=1")
    assert urls_in("https:// http://a b") == ("http://a/",)


def test_hosts_behind_proxies() -> None:
    assert "polymarket.com" in hosts_behind("https://www.google.com/url?q=https%253A%252F%252Fpolymarket.com%252Fa")
    assert hosts_behind("https://polymarket-com.translate.goog/x") == ("polymarket.com",)
    assert hosts_behind("https://my--site-org.translate.goog/x")[0] == "my-site.org"
    assert hosts_behind("https://example.org/plain/path?x=1.5") == ()


@pytest.mark.parametrize("host", ["localhost", "printer.local", "10.0.0.1", "127.0.0.1", "[::1]", "169.254.169.254"])
def test_local_hosts_are_not_public(host: str) -> None:
    assert not is_public(host)
