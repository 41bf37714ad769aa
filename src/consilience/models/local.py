"""The embedded model: a small open model on this machine, offline, for demonstrations and tests of the whole path.

It speaks Chat Completions through the same code as every compatible server, under a grammar, in the short form of
`consilience.models.local_profile`. It is tiny: claim nothing for its answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import anyio
import anyio.to_thread

from consilience.errors import FinalModelError, IntegrityError, TransientModelError
from consilience.models.base import Identity
from consilience.models.compatible import Compatible
from consilience.models.local_profile import PROFILE, wire
from consilience.models.local_server import Engine, EngineSettings, grammar_of
from consilience.models.local_weights import WEIGHTS_FILE, Weights, engine_version, find_weights
from consilience.models.prices import LOCAL, LOCAL_PREFIX
from consilience.models.request import Completion, Request
from consilience.models.vendor import check_sendable

ADAPTER_VERSION = "1"
TEMPERATURE = 0.2
MOST_STARTS = 3


class Local:
    """A model file that is run here.

    Args:
        id: ``local``, or ``local:/path/to/model.gguf``.
        weights: The file.
        engine: Version of the engine.

    Attributes:
        starts: How often the engine was started; more than once only after it had ended by itself.
    """

    min_cacheable_tokens: ClassVar[None] = None

    def __init__(self, id: str, weights: Weights, engine: str) -> None:  # noqa: A002 - a model's id
        self.id = id
        self.weights = weights
        self.starts = 0
        self._version = engine
        self._engine: Engine | None = None
        self._speaker: _Speaker | None = None
        self._starting = anyio.Lock()

    @classmethod
    def found(cls, id: str = "local") -> Local:  # noqa: A002 - a model's id
        """Return the model of an id with the installed engine and weights.

        Raises:
            ConfigError: Engine or weights are missing; the message says how to install them.
            DataError: The weights are not the ones this version knows.
        """
        version = engine_version()
        return cls(id, find_weights(id), version)

    @classmethod
    def recorded(cls, id: str, identity: Mapping[str, str]) -> Local:  # noqa: A002 - a model's id
        """Return the model a run was made with, for its wire form and keys; it need not be installed here.

        Args:
            id: The model's id.
            identity: As the run recorded it.

        Raises:
            IntegrityError: The identity is none of this adapter's.
        """
        version, _, sha256 = identity["adapter_version"].rpartition("/")
        if version != f"{ADAPTER_VERSION}/{PROFILE}":
            raise IntegrityError(
                f"the run asked {id} in the form {version}, this version of consilience in {ADAPTER_VERSION}/{PROFILE}",
                hint="Replay it with the version of consilience that made it.",
            )
        path = Path(id.removeprefix(LOCAL_PREFIX) if id != LOCAL else WEIGHTS_FILE)
        return cls(id, Weights(path, sha256, path.stem), identity["api_version"])

    @property
    def identity(self) -> Identity:
        """Return engine, adapter, profile and the digest of the weights: all that decides what is answered."""
        adapter = f"{ADAPTER_VERSION}/{PROFILE}/{self.weights.sha256}"
        return Identity("local", "local", self._version, adapter, simulated=False)

    def describe(self) -> str:
        """Return what every artefact says of the model that spoke."""
        return self.weights.describe()

    def wire_body(self, request: Request) -> dict[str, Any]:
        """Return the exact body.

        Raises:
            PlanError: A text cannot be sent.
        """
        check_sendable(request)
        asked = wire(request)
        return {
            "model": self.weights.name,
            "messages": [{"role": "system", "content": asked.system}, {"role": "user", "content": asked.user}],
            "max_tokens": request.max_output_tokens,
            "grammar": grammar_of(asked.schema),
            "cache_prompt": True,
            "temperature": TEMPERATURE,
            "seed": request.replicate,
            **(request.sampling or {}),
        }

    async def complete(self, request: Request) -> Completion:
        """Call the model once, starting its engine first where it does not run.

        The completion's text is the answer as read; ``raw["said"]`` is what the model wrote.

        Raises:
            TransientModelError: The engine ended during the call; the next call starts it anew.
            FinalModelError: The engine cannot be started, ended too often, or refuses the call.
        """
        speaker, engine = await self._running()
        try:
            said = await speaker.complete(request)
        except TransientModelError as error:
            ended = None if error.status else await anyio.to_thread.run_sync(engine.ended)
            if ended is None:
                raise
            raise TransientModelError(
                f"the engine of {self.id} {ended} during a call",
                hint=f"It is started anew for the next call, at most {MOST_STARTS} times in all.",
            ) from None
        raw = {**said.raw, "said": said.text, "profile": PROFILE, "engine_start": self.starts}
        return replace(said, text=wire(request).answer(said.text), raw=raw)

    async def start(self) -> None:
        """Start the engine unless it runs; calls do so by themselves.

        Raises:
            FinalModelError: It cannot be started, or ended too often.
        """
        await self._running()

    async def _running(self) -> tuple[_Speaker, Engine]:
        async with self._starting:
            if self._speaker and self._engine and self._engine.ended(within_s=0) is None:
                return self._speaker, self._engine
            if self._engine is not None:
                ended = self._engine.ended(within_s=0)
                await self._stop()
                if self.starts >= MOST_STARTS:
                    raise FinalModelError(
                        f"the engine of {self.id} {ended}, after {MOST_STARTS} starts",
                        hint="Run the same command again to resume; if it goes on, use another model.",
                    )
            engine = Engine(EngineSettings(str(self.weights.path)))
            await engine.start()
            self.starts += 1
            self._engine, self._speaker = engine, _Speaker(self.id, engine.base_url, engine.api_key, adapter=self)
            return self._speaker, engine

    async def close(self) -> None:
        """End the engine; the next call starts it again."""
        async with self._starting:
            await self._stop()
            self.starts = 0

    async def _stop(self) -> None:
        speaker, engine, self._speaker, self._engine = self._speaker, self._engine, None, None
        if speaker is not None:
            await speaker.close()
        if engine is not None:
            await engine.stop()


@dataclass
class _Speaker(Compatible):
    """The compatible adapter with the local model's wire form."""

    adapter: Local | None = None

    def wire_body(self, request: Request) -> dict[str, Any]:
        return super().wire_body(request) if self.adapter is None else self.adapter.wire_body(request)
