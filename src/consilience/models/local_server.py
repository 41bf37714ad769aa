"""The embedded model's engine: llama.cpp's OpenAI-compatible server in a process of its own, on loopback only.

A crash in the engine's C++ ends that process and one call, not the run. The process ends when its standard input does,
so it cannot outlive whoever started it, even after SIGKILL. Its key is new at every start and on no command line.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import anyio
import anyio.to_thread

from consilience.errors import FinalModelError

HOST = "127.0.0.1"
START_S = 120.0
"""Longest time a start may take: reading a large model's weights from a slow disk."""
STOP_S = 5.0
TAIL_BYTES = 2_000
COMMAND = (sys.executable, "-P", "-m", "consilience.models.local_server")
SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD")

PROBE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}},
    "x-guidance": {"whitespace_flexible": False},
}


@dataclass(frozen=True)
class EngineSettings:
    """How the engine is set up.

    Attributes:
        path: The model's file.
        slots: Sequences that are decoded in parallel; each keeps the state of its last prompt.
        context_tokens: Longest prompt and reply of one sequence.
        threads: Processor threads.
        cache_mib: Memory for the states of earlier prompts.
    """

    path: str
    slots: int = 2
    context_tokens: int = 8_192
    threads: int = 2
    cache_mib: int = 512


def grammar_of(schema: dict[str, Any]) -> str:
    r"""Return the grammar that allows exactly the compact JSON of a schema, as the engine's own function writes it.

    The text is written here, so that a call's key needs no engine; at every start the engine's own
    ``json_schema_to_grammar`` is asked for the same and must agree.

    Example:
        >>> grammar_of({"type": "null"})
        '%llguidance {}\nstart: %json {"type":"null","x-guidance":{"whitespace_flexible":false}}'
    """
    strict = {**schema, "x-guidance": {"whitespace_flexible": False}}
    return "%llguidance {}\nstart: %json " + json.dumps(strict, separators=(",", ":"), ensure_ascii=False)


class Engine:
    """One process of the engine, started at most once.

    Args:
        settings: How it is set up.
        command: What is started; it reads its settings from the first line of standard input and answers with its
            address.
        start_s: Longest time a start may take.

    Attributes:
        api_key: What calls must carry.
        base_url: Where the server is, with ``/v1``; empty before the start.
    """

    def __init__(self, settings: EngineSettings, *, command: Sequence[str] = COMMAND, start_s: float = START_S) -> None:
        self.api_key = secrets.token_hex(16)
        self.base_url = ""
        self._settings = settings
        self._command = tuple(command)
        self._start_s = start_s
        self._process: subprocess.Popen[str] | None = None
        self._errors: IO[bytes] | None = None

    async def start(self) -> None:
        """Start the process and wait until it serves.

        Raises:
            FinalModelError: It ended instead, said something else, or took too long.
        """
        errors = self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - returns at once; our own command
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=child_environment(os.environ),
        )
        self._process = process
        self._finish = weakref.finalize(self, _end, process, errors)
        line = None
        with anyio.move_on_after(self._start_s):
            line = await anyio.to_thread.run_sync(self._greet, process, abandon_on_cancel=True)
        address = _address(line)
        if address is None:
            waited = f"did not start within {self._start_s:.0f} s" if line is None else f"did not start: {self.ended()}"
            await self.stop()
            raise FinalModelError(
                f"the engine with {self._settings.path} {waited}",
                hint="Check that the file is a model the engine can read and that memory suffices.",
            )
        self.base_url = f"{address}/v1"

    def _greet(self, process: subprocess.Popen[str]) -> str:
        settings = {**asdict(self._settings), "api_key": self.api_key}
        try:
            _pipe(process.stdin).write(json.dumps(settings) + "\n")
            _pipe(process.stdin).flush()
        except BrokenPipeError:
            return ""
        return _pipe(process.stdout).readline()

    def ended(self, *, within_s: float = 1.0) -> str | None:
        """Return how the process ended, in words, or None when it still runs after so many seconds."""
        if self._process is None:
            return "was never started"
        try:
            code = self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return None
        how = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        said = _tail(self._errors)
        return f"{how} ({said})" if said else how

    async def stop(self) -> None:
        """End the process; a second time does nothing."""
        if self._process is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._finish)


def child_environment(environment: os._Environ[str] | dict[str, str]) -> dict[str, str]:
    """Return what the engine's process may know: no keys, and threads that do not spin while they wait.

    Example:
        >>> child_environment({"PATH": "/bin", "OPENAI_API_KEY": "sk"})
        {'PATH': '/bin', 'OMP_WAIT_POLICY': 'passive'}
    """
    kept = {name: value for name, value in environment.items() if not any(word in name for word in SECRET_WORDS)}
    return {**kept, "OMP_WAIT_POLICY": "passive"}


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise TypeError("the process was started without pipes")
    return stream


def _address(line: str | None) -> str | None:
    try:
        greeting = json.loads(line or "")
    except (ValueError, RecursionError):
        return None
    address = greeting.get("address") if isinstance(greeting, dict) else None
    return address if isinstance(address, str) and address.startswith(f"http://{HOST}:") else None


def _tail(errors: IO[bytes] | None) -> str:
    if errors is None or errors.closed:
        return ""
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - TAIL_BYTES))
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return " ".join(lines[-1].split()) if lines else ""


def _end(process: subprocess.Popen[str], errors: IO[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError):  # it has ended already
        _pipe(process.stdin).close()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    _pipe(process.stdout).close()
    errors.close()


def serve() -> None:
    """Be the engine's process: read settings, load the model, say where it serves, end with standard input."""
    import signal  # noqa: PLC0415 - only in the engine's process
    import urllib.request  # noqa: PLC0415 - the same

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the run's business: calls in flight are finished first
    settings = json.loads(sys.stdin.readline())

    engine: Any = importlib.import_module("xllamacpp")  # heavy, without types, and only in the engine's process
    made = engine.json_schema_to_grammar(PROBE_SCHEMA)
    if made != grammar_of({key: value for key, value in PROBE_SCHEMA.items() if key != "x-guidance"}):
        sys.exit(f"this build of the engine writes grammars differently: {made[:80]!r}")
    server = engine.Server(_parameters(engine, settings))
    with urllib.request.urlopen(f"{server.listening_address}/health", timeout=START_S) as health:  # noqa: S310 - ours
        if health.status != 200:
            sys.exit(f"the server is not healthy: {health.status}")
    sys.stdout.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdout.flush()
    os.dup2(2, 1)  # whatever the engine prints later must not fill a pipe that nobody reads
    sys.stdin.read()
    os._exit(0)


def _parameters(engine: Any, settings: dict[str, Any]) -> Any:
    made = engine.CommonParams()
    made.model.path = str(Path(settings["path"]))
    made.n_parallel = settings["slots"]
    made.n_ctx = settings["context_tokens"] * settings["slots"]
    made.kv_unified = False
    made.cache_ram_mib = settings["cache_mib"]
    made.cpuparams.n_threads = made.cpuparams_batch.n_threads = settings["threads"]
    made.n_threads_http = settings["slots"] + 2
    made.hostnames = [HOST]
    made.port = 0
    made.api_keys = [settings["api_key"]]
    made.ui = made.endpoint_slots = made.fit_params = made.warmup = False
    made.verbosity = 1
    return made


if __name__ == "__main__":
    serve()
