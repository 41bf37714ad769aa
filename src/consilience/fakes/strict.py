"""Request bodies read strictly: a field nobody knows, or of the wrong type, is an error."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError


class Shape(BaseModel):
    """A JSON object with known fields only."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


ShapeT = TypeVar("ShapeT", bound=Shape)


def place_of(error: ValidationError) -> tuple[str, str]:
    """Return where the first problem of a body stands, and what it is."""
    problem = error.errors(include_url=False)[0]
    return ".".join(str(part) for part in problem["loc"]) or "body", problem["msg"]
