"""Chat Completions for any OpenAI-compatible server: vLLM, Ollama, llama.cpp, LM Studio, OpenRouter."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from consilience.core.canonical import canonical_json, tagged_hash
from consilience.models.base import Identity
from consilience.models.hosted import Hosted, told
from consilience.models.request import Block, Completion, Contract, Message, Request, StopReason, Usage
from consilience.models.vendor import (
    Vendor,
    bill,
    check_sendable,
    counts,
    fields,
    host_of,
    json_body,
    objects,
)

API_VERSION = "v1"
ADAPTER_VERSION = "1"
NO_VARIABLE = "the key_variable of this model in consilience.yaml"
PROBE_WORD = "basalt"
PROBE_TOKENS = 1_024
"""Room for models that reason before they answer."""
PROBE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": [PROBE_WORD]}},
    "required": ["word"],
    "additionalProperties": False,
}
_STOPS: dict[str, StopReason] = {"stop": "end", "length": "max_tokens", "content_filter": "refusal"}


@dataclass
class Compatible(Hosted):
    """A model behind a Chat Completions server.

    Some servers accept a schema and ignore it, so a run first asks a probe (`probe_request`) whose answer shows which
    form to use (`learn`): the schema as ``response_format``, or written into the prompt.

    Attributes:
        id: Model id on the server.
        base_url: The server, with ``/v1``.
        api_key: Sent with every call; servers without keys ignore it.
        key_variable: Environment variable that holds the key; None where the server takes none.
        takes_schema: Whether the server enforces schemas; None until learnt.
        served_as: What the server calls the model; None until learnt.
        min_cacheable_tokens: None: what the server caches is its own business.
    """

    id: str
    base_url: str
    api_key: str = field(default="none", repr=False)
    key_variable: str | None = None
    takes_schema: bool | None = None
    served_as: str | None = None
    min_cacheable_tokens: int | None = None
    _client: Any = field(default=None, repr=False)

    @property
    def identity(self) -> Identity:
        """Return who is called."""
        return Identity("compatible", host_of(self.base_url), API_VERSION, ADAPTER_VERSION, simulated=False)

    def probe_request(self) -> Request:
        """Return a call whose schema contradicts its prompt, so that the answer shows which one the server follows."""
        contract = Contract(
            "probe", PROBE_SCHEMA, tagged_hash("schema", PROBE_SCHEMA), len(canonical_json(PROBE_SCHEMA))
        )
        return Request(
            model=self.id,
            system=(Block("You answer in plain words.", cache=False),),
            messages=(Message("user", (Block("Say hello.", cache=False),)),),
            tools=(),
            contract=contract,
            max_output_tokens=PROBE_TOKENS,
            effort="low",
            sampling=None,
            replicate=0,
        )

    def learn(self, completion: Completion) -> None:
        """Note from the answer to the probe whether schemas are enforced, and what the server calls the model."""
        self.served_as = completion.raw.get("model")
        try:
            self.takes_schema = json.loads(completion.text) == {"word": PROBE_WORD}
        except (ValueError, RecursionError):
            self.takes_schema = False

    def wire_body(self, request: Request) -> dict[str, Any]:
        """Return the exact body.

        Raises:
            PlanError: A text cannot be sent.
        """
        check_sendable(request)
        system = "\n\n".join(block.text for block in request.system)
        body: dict[str, Any] = {
            "model": self.id,
            "messages": [
                {"role": "system", "content": system + self._written_schema(request.contract)},
                *(
                    {"role": message.role, "content": "\n".join(block.text for block in message.blocks)}
                    for message in request.messages
                ),
            ],
            "max_tokens": request.max_output_tokens,
            **self._format(request.contract),
        }
        if request.sampling is not None:
            body |= dict(request.sampling)
        return body

    def _format(self, contract: Contract) -> Mapping[str, Any]:
        if self.takes_schema is False:
            return {}
        schema = {"name": contract.name, "schema": dict(contract.schema), "strict": True}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}

    def _written_schema(self, contract: Contract) -> str:
        if self.takes_schema is not False:
            return ""
        return f"\n\nThe JSON object must fit this JSON schema:\n{canonical_json(contract.schema).decode()}\n"

    def _open(self) -> Any:
        import openai  # noqa: PLC0415 - heavy, only for live calls

        return openai.AsyncOpenAI(api_key=self.api_key, base_url=self.base_url, max_retries=0, timeout=None)

    def _vendor(self) -> Vendor:
        return Vendor(f"the server {host_of(self.base_url)}", self.key_variable or NO_VARIABLE, self.api_key)

    def _told(self) -> AbstractContextManager[None]:
        import openai  # noqa: PLC0415 - heavy, only for live calls

        return told(openai, self._vendor(), self.id)

    async def complete(self, request: Request) -> Completion:
        """Call the model once.

        Raises:
            TransientModelError: The failure may heal.
            FinalModelError: It will not.
        """
        body = self.wire_body(request)
        with self._told():
            response = await self.client().chat.completions.with_raw_response.create(
                model=body.pop("model"), messages=body.pop("messages"), extra_body=body
            )
            text = response.text
        answered = json_body(text, self._vendor(), self.id)
        return completion_of(
            answered,
            model=self._named(answered.get("model")),
            request_id=response.request_id,
            latency_s=response.elapsed.total_seconds(),
        )

    def _named(self, said: Any) -> str:
        """Return our id for the model that answered: servers name theirs as they like, but each always alike."""
        ours = said is None or said == self.id or self.served_as in {None, said}
        return self.id if ours else str(said)


def completion_of(body: dict[str, Any], *, model: str, request_id: str | None, latency_s: float) -> Completion:
    """Return a Chat Completions response in our terms; what the server calls the model is in ``raw``."""
    choice = next(iter(objects(body.get("choices"))), {})
    message = fields(choice.get("message"))
    refusal = message.get("refusal")
    return Completion(
        text=str(message.get("content") or refusal or ""),
        stop_reason="refusal" if refusal else _STOPS.get(str(choice.get("finish_reason")), "other"),
        usage=usage_of(body.get("usage")),
        request_id=request_id,
        latency_s=latency_s,
        model=model,
        raw={"id": body.get("id"), "finish_reason": choice.get("finish_reason"), "model": body.get("model")},
    )


def usage_of(usage: Any) -> Usage | None:
    """Return disjoint buckets, or None where a count is missing; a server that names no cache is charged in full.

    Example:
        >>> usage_of({"prompt_tokens": 10, "completion_tokens": 2}).input
        10
    """
    if not isinstance(usage, dict):
        return None
    known = counts(usage.get("prompt_tokens"), usage.get("completion_tokens"))
    if known is None:
        return None
    total, output = known
    inner, outer = fields(usage.get("prompt_tokens_details")), fields(usage.get("completion_tokens_details"))
    details = counts(inner.get("cached_tokens") or 0, outer.get("reasoning_tokens") or 0)
    if details is None:
        return None
    read, thought = details
    return bill(total - read, read, 0, 0, output - thought, thought)
