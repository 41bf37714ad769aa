"""Consilience: panels of language-model agents under typed contracts, with a record that can be replayed."""

from __future__ import annotations

__version__: str


def __getattr__(name: str) -> str:
    """Return ``__version__``, read from the installed distribution when it is asked for."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - few ask, and a start must be quick

        return version("consilience")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
