"""What the adapters on a vendor's SDK share: one client, made once and closed, and errors told in our terms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType
from typing import Any

from consilience.models.vendor import Vendor, broken, status_error


@contextmanager
def told(sdk: ModuleType, vendor: Vendor, model: str) -> Iterator[None]:
    """Turn an SDK's errors into ours: a status with its advice, anything else into a call whose outcome is unknown.

    Args:
        sdk: ``anthropic`` or ``openai``; both name their errors alike.
        vendor: Whom the advice is about.
        model: What was called.

    Raises:
        TransientModelError: The failure may heal.
        FinalModelError: It will not.
    """
    try:
        yield
    except sdk.APIStatusError as error:
        raise status_error(vendor, model, error.status_code, error.body, error.response.headers) from None
    except sdk.APIError as error:
        raise broken(vendor, model, error) from None


class Hosted(ABC):
    """A model behind an SDK's asynchronous client."""

    id: str
    _client: Any

    @abstractmethod
    def _open(self) -> Any:
        """Return a new client; its own retries are off, so that every try is recorded."""

    @abstractmethod
    def _told(self) -> AbstractContextManager[None]:
        """Return the context in which the SDK's errors become ours."""

    async def is_listed(self) -> bool:
        """Return whether the vendor lists the model for this key.

        Raises:
            TransientModelError: The failure may heal.
            FinalModelError: It will not.
        """
        with self._told():
            return any([listed.id == self.id async for listed in self.client().models.list()])

    def client(self) -> Any:
        """Return the client, made once: a new one per call would cost more than the call."""
        if self._client is None:
            self._client = self._open()
        return self._client

    async def close(self) -> None:
        """Close the connections; the next call opens others."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()
