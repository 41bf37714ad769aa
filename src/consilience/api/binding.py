"""Where a server of ours may listen and by which names it is asked; what opens the socket is each server's own."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from consilience.errors import ConfigError

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
SHORTEST_TOKEN: Final = 16
_HTTP: Final = 80


@dataclass(frozen=True)
class Binding:
    """Where a server listens and by which names it is asked.

    Attributes:
        host: Address or name it listens on.
        port: Its port; 0 takes a free one.
        names: Further names it is asked by, such as that of a reverse proxy.
    """

    host: str
    port: int
    names: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def in_address(self) -> str:
        """The host as it stands in an address.

        Example:
            >>> Binding("::1", 80).in_address
            '[::1]'
        """
        return f"[{self.host}]" if ":" in self.host else self.host

    def hosts(self, port: int) -> tuple[str, ...]:
        """Return what a ``Host`` header may say, in lower case: any other name is one that was bound to us anew.

        Args:
            port: Where the server listens in the end.

        Example:
            >>> Binding("127.0.0.1", 0).hosts(8770)
            ('127.0.0.1:8770', 'localhost:8770', '[::1]:8770')
        """
        names = dict.fromkeys(name.lower() for name in (*LOOPBACK_NAMES, self.in_address, *self.names))
        # Browsers leave the port of a scheme away, and a proxy in front serves its name without ours.
        bare = names if port == _HTTP else dict.fromkeys(name.lower() for name in self.names)
        return (*(f"{name}:{port}" for name in names), *bare)


def token_of(binding: Binding, environment: Mapping[str, str], variable: str) -> str | None:
    """Return the token that every request must bring; None where none is set and only this machine can ask.

    Args:
        binding: Where the server listens.
        environment: Holds the token; it is not kept anywhere.
        variable: Its name.

    Raises:
        ConfigError: The token is not fit for one, or is missing where other machines could ask.
    """
    token = environment.get(variable) or None
    if token is None and not binding.is_loopback:
        raise ConfigError(
            f"{binding.host} can be reached from other machines, and no token is set",
            hint=f"Set {variable} in the environment or .env, or leave --host out.",
        )
    if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise ConfigError(
            f"{variable} is not fit for a token",
            hint=f"At least {SHORTEST_TOKEN} printable characters of ASCII, such as openssl rand -hex 32 prints.",
        )
    return token
