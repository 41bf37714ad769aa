"""Consilience: panels of language-model agents under typed contracts, with a record that can be replayed."""

from __future__ import annotations

__version__: str

__all__ = ["Choice", "Distribution", "Estimate", "Panel", "Probability", "Result", "Role", "aask", "ask"]

# What type checkers are told stands in __init__.pyi.
_ROOMS = {
    **dict.fromkeys(("Result", "aask", "ask"), "consilience.api"),
    **dict.fromkeys(("Choice", "Distribution", "Estimate", "Probability"), "consilience.core.answers"),
    "Panel": "consilience.experiments.panels",
    "Role": "consilience.core.role",
}


def __getattr__(name: str) -> object:
    """Return a public name, or ``__version__``, when it is asked for: few are, and a start must be quick."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - only where it is asked for

        return version("consilience")
    if name in _ROOMS:
        from importlib import import_module  # noqa: PLC0415 - the same

        return getattr(import_module(_ROOMS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
