from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import anyio
import pytest

from consilience.errors import FinalModelError
from consilience.models.local_server import Engine, EngineSettings, child_environment

SETTINGS = EngineSettings("/nowhere/model.gguf")
GREET = """
    import json, os, sys
    settings = json.loads(sys.stdin.readline())
    open({heard!r}, "w").write(json.dumps([settings, sys.argv, dict(os.environ)]))
    print(json.dumps({{"address": "http://127.0.0.1:9"}}), flush=True)
    sys.stdin.read()
"""


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", textwrap.dedent(text))


def running(engine: Engine) -> subprocess.Popen[str]:
    assert engine._process is not None
    return engine._process


def test_it_serves_until_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    heard = tmp_path / "heard"

    async def run() -> None:
        engine = Engine(SETTINGS, command=script(GREET.format(heard=str(heard))))
        await engine.start()
        assert engine.base_url == "http://127.0.0.1:9/v1"
        assert engine.ended(within_s=0) is None
        settings, arguments, environment = json.loads(heard.read_text(encoding="utf-8"))
        assert settings["api_key"] == engine.api_key
        assert settings["path"] == "/nowhere/model.gguf"
        assert engine.api_key not in json.dumps([arguments, environment])
        assert "sk-canary" not in json.dumps(environment)
        assert environment["OMP_WAIT_POLICY"] == "passive"
        process = running(engine)
        await engine.stop()
        assert process.returncode == 0
        await engine.stop()

    anyio.run(run)


def test_a_process_that_ends_at_once_is_told_with_its_last_words() -> None:
    failing = script("import sys; sys.stdin.readline(); sys.exit('cannot read the model')")
    with pytest.raises(FinalModelError, match=r"did not start: ended with exit code 1 \(cannot read the model\)"):
        anyio.run(Engine(SETTINGS, command=failing).start)


def test_a_process_that_does_not_listen_is_told() -> None:
    with pytest.raises(FinalModelError, match="did not start: ended with exit code 3"):
        anyio.run(Engine(SETTINGS, command=script("import sys; sys.exit(3)")).start)


@pytest.mark.parametrize("said", ["hello", "{}", '{"address": "http://192.0.2.1:80"}', '["address"]'])
def test_another_greeting_is_refused(said: str) -> None:
    odd = script(f"import sys; sys.stdin.readline(); print({said!r}, flush=True); sys.stdin.read()")
    engine = Engine(SETTINGS, command=odd)
    with pytest.raises(FinalModelError, match="did not start"):
        anyio.run(engine.start)
    assert running(engine).returncode is not None


def test_a_start_that_takes_too_long_is_ended() -> None:
    silent = script("import sys; sys.stdin.read()")
    engine = Engine(SETTINGS, command=silent, start_s=0.05)
    with pytest.raises(FinalModelError, match="did not start within 0 s"):
        anyio.run(engine.start)
    assert running(engine).returncode is not None


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_end_by_signal_is_told(tmp_path: Path) -> None:
    async def run() -> str | None:
        engine = Engine(SETTINGS, command=script(GREET.format(heard=str(tmp_path / "heard"))))
        await engine.start()
        running(engine).send_signal(signal.SIGKILL)
        ended = await anyio.to_thread.run_sync(partial(engine.ended, within_s=10))
        await engine.stop()
        return ended

    assert anyio.run(run) == "ended by signal 9"


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waiting for another's child takes Linux")
def test_it_ends_with_whoever_started_it_even_when_that_is_killed(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    parent = f"""
        import anyio, os
        from consilience.models.local_server import Engine, EngineSettings
        async def run():
            engine = Engine(EngineSettings("x"), command={script(GREET.format(heard=str(heard)))!r})
            await engine.start()
            print(engine._process.pid, flush=True)
            os.kill(os.getpid(), 9)
        anyio.run(run)
    """
    done = subprocess.run(script(parent), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -9
    try:
        handle = os.pidfd_open(int(done.stdout))
    except ProcessLookupError:
        return  # it has ended already
    with os.fdopen(handle):
        assert select.select([handle], [], [], 30)[0], "the engine outlived its parent"


def test_an_engine_that_was_never_started_has_nothing_to_stop() -> None:
    engine = Engine(SETTINGS)
    anyio.run(engine.stop)
    assert engine.ended() == "was never started"


def test_keys_are_kept_from_the_engine() -> None:
    given = {"A_TOKEN": "1", "MY_SECRET": "2", "X_API_KEY": "3", "DB_PASSWORD": "4", "LANG": "C"}
    assert child_environment(given) == {"LANG": "C", "OMP_WAIT_POLICY": "passive"}
