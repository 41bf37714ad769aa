"""Who may ask, checked over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from consilience.api.binding import Binding
from consilience.errors import ConfigError
from consilience.viewer.guard import SECURITY
from consilience.viewer.serve import listen
from engine_cases import make_items
from viewer_cases import Viewer, recorded_run, running_viewer, study_of

TOKEN = "0123456789abcdef-secret"  # noqa: S105 - made up


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("study")
    recorded_run(root, "_run", *make_items(1))
    (root / "secret.txt").write_text("not for the viewer")
    (root / "results" / "secret.txt").write_text("not a run")
    return root


@pytest.fixture(scope="module")
def viewer(root: Path) -> Iterator[Viewer]:
    with running_viewer(study_of(root)) as served:
        yield served


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80", ""])
def test_another_host_is_refused(viewer: Viewer, host: str) -> None:
    assert viewer.get("/", Host=host).status == 400


def test_the_names_of_loopback_are_answered(viewer: Viewer) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST", "[::1]"):
        assert viewer.get("/", Host=f"{host}:{viewer.port}").status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1", "ftp://x"]
)
def test_a_foreign_origin_is_refused(viewer: Viewer, origin: str) -> None:
    assert viewer.get("/", Origin=origin).status == 403
    assert viewer.get("/", Origin=f"http://127.0.0.1:{viewer.port}").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(viewer: Viewer, method: str) -> None:
    assert viewer.get("/", method=method).status == 405


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/runs/..%2f",
            "/runs/..%2fsecret.txt",
            "/runs/%2e%2e/%2e%2e/secret.txt",
            "/runs/_run%2f..",
            "/static/..%2fapp.py",
        ),
        *("/runs/_run/items/..%2f..%2fmanifest", "/runs/_run/items/%00", "/runs/_run/forecasts/..%2fmanifest"),
        *("/decisions/..%2f..%2f..", "/static/guard.py", "/nothing", "/runs/none", "/runs/_run/none.svg", "/runs/%ff"),
        *("/runs/secret.txt", "/runs/_run/items/item-01/turn", "/runs/_run/items/item-01/bytes?seq=1"),
    ],
)
def test_what_is_not_there_or_elsewhere_is_not_found(viewer: Viewer, path: str) -> None:
    answer = viewer.get(path)
    assert answer.status == 404
    assert "not for the viewer" not in answer.text


def test_a_link_out_of_the_results_is_not_followed(root: Path, viewer: Viewer, tmp_path: Path) -> None:
    outside = recorded_run(tmp_path, "_outside", *make_items(1))
    link = root / "results" / "runs" / "_link"
    link.symlink_to(outside)
    assert viewer.get("/runs/_link").status == 404
    assert viewer.get("/").status == 200
    inside = root / "results" / "runs" / "_run" / "packets" / "stolen.json"
    inside.symlink_to(root / "secret.txt")
    assert viewer.get("/runs/_run/items/stolen").status == 404
    link.unlink()
    inside.unlink()


@pytest.mark.parametrize("path", ["/", "/nothing", "/static/viewer.css", "/static/htmx.min.js", "/runs/_run"])
def test_every_answer_bears_the_policy(viewer: Viewer, path: str) -> None:
    headers = viewer.get(path).headers
    assert {name.lower(): value for name, value in SECURITY.items()}.items() <= headers.items()
    policy = headers["content-security-policy"]
    assert policy.startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"
    )
    assert "unsafe" not in policy
    assert "server" not in headers


def test_a_refusal_bears_the_policy_too(viewer: Viewer) -> None:
    assert "default-src 'none'" in viewer.get("/", Host="evil.example").headers["content-security-policy"]


def test_a_proxy_may_add_tls(viewer: Viewer) -> None:
    assert viewer.get("/", Origin=f"https://127.0.0.1:{viewer.port}").status == 200


def test_a_taken_port_is_said() -> None:
    with listen(Binding("127.0.0.1", 0)) as first, pytest.raises(ConfigError, match="cannot listen"):
        listen(Binding("127.0.0.1", first.getsockname()[1]))


def test_a_token_opens_once_and_is_kept_in_a_cookie_alone(root: Path) -> None:
    with running_viewer(study_of(root), token=TOKEN) as viewer:
        assert viewer.get("/").status == 401
        assert viewer.get("/?token=wrong").status == 401
        assert viewer.get("/static/viewer.css").status == 401
        opened = viewer.get(f"/runs/_run?page=1&token={TOKEN}")
        assert (opened.status, opened.headers["location"]) == (303, "/runs/_run?page=1")
        cookie = opened.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert viewer.get("/", Cookie=cookie.split(";")[0]).status == 200
        assert viewer.get("/", Authorization=f"Bearer {TOKEN}").status == 200
        assert viewer.get("/", Cookie="consilience_token=é").status == 401
        assert TOKEN not in viewer.get("/", Authorization=f"Bearer {TOKEN}").text
