"""What is learnt once and applied unchanged: an artefact with its own hash, never edited and never written over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, Self, TypeVar

from pydantic import ValidationError

from consilience.core.canonical import tagged_hash
from consilience.core.question import Strict
from consilience.errors import ConfigError, DataError, IntegrityError, reason
from consilience.experiments.storage import write_json

CALIBRATION_FILE: Final = "calibration.json"
"""In the results folder; named here as the freeze, which knows of it, needs no polars to be read."""


class Artefact(Strict):
    """A frozen artefact.

    Attributes:
        noun: What it is, in messages; also the tag of its hash.
        verb: The command that makes one.
        sha256: Of all the rest; a file that was edited is refused.
    """

    noun: ClassVar[str]
    verb: ClassVar[str]

    sha256: str = ""

    def sealed(self) -> Self:
        """Return the artefact with its own hash."""
        return self.model_copy(update={"sha256": self.digest_of(self.model_dump(mode="json"))})

    @classmethod
    def digest_of(cls, content: Mapping[str, Any]) -> str:
        """Return the hash of an artefact's content, its own hash apart."""
        return tagged_hash(cls.noun, {name: value for name, value in content.items() if name != "sha256"})


A = TypeVar("A", bound=Artefact)


def write_artefact(made: Artefact, path: Path) -> str:
    """Write an artefact and return the SHA-256 of the file.

    Raises:
        DataError: Another one is frozen there already, or the folder cannot be written.
    """
    if path.exists():
        frozen = load_artefact(type(made), path)
        if frozen.sha256 != made.sha256:
            raise DataError(
                f"{path} holds other {made.noun} (sha256 {frozen.sha256[:12]}), and what is frozen is not written over",
                hint="Write this elsewhere with --out, or move the old file away if nothing was measured with it.",
            )
    return write_json(path, made.model_dump(mode="json"))


def load_artefact(kind: type[A], path: Path) -> A:
    """Return a frozen artefact.

    Raises:
        ConfigError: The file is missing or is no artefact of this version.
        IntegrityError: It was changed after it was frozen.
    """
    try:
        content = path.read_bytes()
        read = json.loads(content)
        made = kind.model_validate_json(content)
    except (OSError, ValueError, ValidationError, DataError, RecursionError) as error:
        raise ConfigError(
            f"{path} holds no {kind.noun}: {reason(error)}", hint=f"Make them with consilience {kind.verb}."
        ) from error
    if kind.digest_of(read) != made.sha256:
        raise IntegrityError(
            f"{path} is not what was frozen: its sha256 does not fit its content",
            hint=f"Restore it from a copy, or make it again from the same runs with consilience {kind.verb}.",
        )
    return made
