"""Keys: needed before any work, kept in memory, shown nowhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

from consilience.fakes.calls import simulated_responder
from consilience.fakes.faults import Fault, status
from consilience.fakes.hits import Hit
from consilience.fakes.server import FakeServer
from consilience.fakes.settings import COMPATIBLE_MODEL, Settings
from consilience.valuation.analysts import read_property

OURS, THEIRS = "sk-ant-canary-5417263809", "sk-oai-canary-9081726354"
CANARIES = (OURS.encode(), THEIRS.encode())
KEYS = {"ANTHROPIC_API_KEY": OURS, "OPENAI_API_KEY": THEIRS}
RUN = ("run-arm", "--arm", "G_debate", "--rounds", "1", "--synthetic", "--n", "1", "--seed", "7", "--live")
SERVER = f"""\
models:
  {COMPATIBLE_MODEL}: {{provider: compatible, base_url: "BASE", key_variable: MY_SERVER_KEY, price: free}}
"""


@dataclass
class Place:
    """An empty folder, and the command line in it."""

    folder: Path
    fake: FakeServer
    said: list[bytes] = field(default_factory=list)

    def run(self, *words: str, keys: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
        environ = {name: value for name, value in os.environ.items() if name not in {*KEYS, "MY_SERVER_KEY"}}
        environ |= {"ANTHROPIC_BASE_URL": self.fake.base_url, "OPENAI_BASE_URL": self.fake.openai_base_url}
        command = [sys.executable, "-m", "consilience", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=environ | dict(keys or {}), capture_output=True, check=False, timeout=120
        )
        self.said += [done.stdout, done.stderr]
        return done

    def showing(self) -> list[str]:
        """Name whatever holds a canary: files, their names, tables inside compressed files, and what was printed."""
        found = [str(path) for path in self.folder.rglob("*") if any(key.decode() in path.name for key in CANARIES)]
        for path in self.folder.rglob("*"):
            if path.is_file() and holds(path.read_bytes()):
                found.append(str(path))
            if path.suffix == ".parquet" and holds(json.dumps(pl.read_parquet(path).to_dicts(), default=str).encode()):
                found.append(f"{path} (inside)")
        return found + [text.decode() for text in self.said if holds(text)]


def holds(text: bytes) -> bool:
    return any(key in text for key in CANARIES)


@dataclass
class Processes:
    """Looks at every process's command line at every hit, while the command is at work."""

    faults: tuple[Fault | None, ...] = ()
    looked_at: int = 0
    shown: list[bytes] = field(default_factory=list)

    def __call__(self, hit: Hit) -> Fault | None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes()
            except OSError:
                continue  # it has ended
            self.looked_at += b"consilience" in line
            if holds(line):
                self.shown.append(line)
        index = hit.call_index or 0
        return self.faults[index] if index < len(self.faults) else None


@pytest.fixture
def place(fake: FakeServer, tmp_path: Path) -> Place:
    return Place(tmp_path, fake)


@pytest.mark.slow
def test_a_whole_live_run_shows_its_keys_nowhere(place: Place, fake: FakeServer) -> None:
    faults = (status(429), Fault("drop"), Fault("invalid_json"), Fault("refusal"), Fault("error_body"), status(400))
    watch = Processes(faults)
    fake.reset(watch, simulated_responder(read_property, seed=7), settings=Settings(keys=frozenset(KEYS.values())))
    done = place.run(*RUN, keys=KEYS)
    assert done.returncode == 0, done.stderr.decode()
    assert {hit.model for hit in fake.calls()} == {"claude-sonnet-5-5", "gpt-6.1-sol"}
    assert [hit.leaked_key for hit in fake.hits if hit.leaked_key] == []
    assert (watch.looked_at > 0, watch.shown) == (True, [])
    (run,) = (place.folder / "results" / "runs").iterdir()
    before = len(fake.hits)
    for words in (("replay", run.name), (*RUN, "--json")):
        again = place.run(*words, keys=KEYS)
        assert again.returncode == 0, again.stderr.decode()
    assert len(fake.hits) == before
    assert len(list(place.folder.rglob("*.jsonl"))) > 0
    assert place.showing() == []


def test_a_refused_key_stops_the_run_with_advice_and_is_not_shown(place: Place, fake: FakeServer) -> None:
    watch = Processes()
    fake.reset(watch, settings=Settings(keys=frozenset({"sk-another-key-0001"})))
    done = place.run(*RUN, "--model", "gpt-6.1-sol", keys=KEYS)
    said = done.stderr.decode()
    assert (done.returncode, "Traceback" in said) == (1, False)
    assert "with status 401" in said
    assert "Set OPENAI_API_KEY to a valid key" in said
    assert {hit.status for hit in fake.calls()} == {401}
    assert place.showing() == []


@pytest.mark.parametrize(
    ("words", "keys", "variable"),
    [
        ((), {}, "ANTHROPIC_API_KEY"),
        (("--model", "gpt-6-luna"), {"ANTHROPIC_API_KEY": OURS}, "OPENAI_API_KEY"),
        ((), {**KEYS, "OPENAI_API_KEY": f"“{THEIRS}”"}, "OPENAI_API_KEY"),
    ],
    ids=["none", "of the model asked", "no key"],
)
def test_live_without_a_key_fails_before_any_work_and_says_what_to_set(
    words: tuple[str, ...], keys: dict[str, str], variable: str, place: Place, fake: FakeServer
) -> None:
    done = place.run(*RUN, *words, keys=keys)
    said = done.stderr.decode()
    assert (done.returncode, done.stdout, "Traceback" in said) == (2, b"", False)
    assert variable in said
    assert f"Set {variable}" in " ".join(said.split())
    assert list(place.folder.iterdir()) == []
    assert (fake.hits, place.showing()) == ((), [])


@pytest.mark.slow
def test_a_servers_own_key_is_named_and_asked_for(place: Place, fake: FakeServer) -> None:
    config = place.folder / "consilience.yaml"
    config.write_text(SERVER.replace("BASE", fake.openai_base_url), encoding="utf-8")
    asked = ("run-arm", "--arm", "E_single", "--synthetic", "--n", "1", "--live", "--model", COMPATIBLE_MODEL)
    done = place.run(*asked, keys=KEYS)
    assert (done.returncode, "MY_SERVER_KEY" in done.stderr.decode()) == (2, True)
    assert list(place.folder.iterdir()) == [config]
    fake.reset(responder=simulated_responder(read_property, seed=7), settings=Settings(keys=frozenset({OURS})))
    done = place.run(*asked, keys={"MY_SERVER_KEY": THEIRS})
    said = " ".join(done.stderr.decode().split())
    assert (done.returncode, "Set MY_SERVER_KEY to a valid key" in said) == (1, True)
    env_file = place.folder / ".env"
    env_file.write_text(f"MY_SERVER_KEY={OURS}\n", encoding="utf-8")
    done = place.run(*asked)  # the same command resumes with the mended key
    assert done.returncode == 0, done.stderr.decode()
    assert [hit.status for hit in fake.calls()] == [401, 200, 200]
    env_file.unlink()
    assert place.showing() == []
