"""YAML → strict pydantic model → values; role files; texts that ship with the package.

Every configuration file is read here, so an unknown key always names the nearest valid one, and a duplicate key,
a tag or an over-long file is always refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from consilience.core.role import Role
from consilience.errors import ConfigError, reason
from consilience.registry import nearest

M = TypeVar("M", bound=BaseModel)

MAX_BYTES = 1_000_000
MAX_ALIASES = 100
MAX_VALUES = 10_000
MAX_NESTED = 100
# The scanner looks ahead for every bracket that is open on a line: its time is quadratic in their number.
_NESTED = re.compile(r"(?:[\[{][^\[\]{}\n]{0,8}){100}[\[{]")


def package_text(relative: str) -> str:
    r"""Return a text file of this package, line ends normalised to ``\n``.

    Raises:
        ConfigError: No such file ships with the package.

    Example:
        >>> package_text("configs/models.yaml").startswith("#")
        True
    """
    resource = files("consilience").joinpath(relative)
    try:
        return resource.read_text(encoding="utf-8").replace("\r\n", "\n")
    except (FileNotFoundError, IsADirectoryError):
        raise ConfigError(f"{relative} does not ship with the package", hint="Check the name.") from None


def read_text(path: Path) -> str:
    r"""Return a user's text file, line ends normalised to ``\n``.

    Raises:
        ConfigError: The file is missing, is no UTF-8, or is longer than 1 MB.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", hint="Check the path and its permissions."
        ) from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path} has {len(data)} bytes", hint=f"Configuration files hold at most {MAX_BYTES}.")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start})", hint="Save it as UTF-8.") from error


def parse_yaml(text: str, *, where: str) -> Any:
    """Return the value of a YAML 1.2 text (``no`` and ``on`` are words, not booleans).

    Raises:
        ConfigError: Bad syntax, duplicate keys, tags, more than 100 aliases, or more values or deeper nesting than
            anybody writes by hand.

    Example:
        >>> parse_yaml("a: [1, no]", where="example")
        {'a': [1, 'no']}
    """
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415 - heavy, only where a file is read

    if text.count("*") > MAX_ALIASES and text.count("&") > 1:
        raise ConfigError(f"{where} uses more than {MAX_ALIASES} YAML aliases", hint="Write the values out.")
    if _NESTED.search(text):
        raise ConfigError(f"{where} is nested more than {MAX_NESTED} levels deep", hint="Write it flatter.")
    try:
        return _loader(where).load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not valid YAML: {reason(error)}", hint="Mend the line named.") from error


def _loader(where: str) -> Any:
    """Return a YAML loader that gives up on texts which would keep it busy for long."""
    from ruamel.yaml import YAML  # noqa: PLC0415 - heavy, only where a file is read
    from ruamel.yaml.composer import Composer  # noqa: PLC0415 - the same

    class Bounded(Composer):
        """A composer of at most so many values."""

        values = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.values += 1
            if self.values > MAX_VALUES:
                raise ConfigError(f"{where} holds more than {MAX_VALUES:,} values", hint="Split the file.")
            return super().compose_node(parent, index)

    loader = YAML(typ="safe", pure=True)
    loader.Composer = Bounded
    return loader


def validate(value: Any, model: type[M], *, where: str) -> M:
    """Return ``value`` as ``model``; messages name the place, and for an unknown key the nearest valid one.

    Raises:
        ConfigError: The value does not fit the model.
    """
    if not isinstance(value, (Mapping, model)):
        raise ConfigError(
            f"{where} is {_sort(value)} where keys with values belong",
            hint=f"Known keys: {', '.join(model.model_fields)}.",
        )
    try:
        return model.model_validate(value)
    except ValidationError as error:
        # A mistyped key is told before the key that is missing because of it.
        problem = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        if problem["type"] == "extra_forbidden":
            place = ".".join(str(part) for part in problem["loc"])
            key = str(problem["loc"][-1])
            raise ConfigError(
                f'{where}: unknown key "{place}"', hint=nearest(key, _fields_at(model, problem["loc"]))
            ) from error
        if problem["type"] in {"model_type", "model_attributes_type"}:
            place = ".".join(str(part) for part in problem["loc"])
            raise ConfigError(
                f"{where}: {place} is {_sort(problem['input'])} where keys with values belong",
                hint="Write such as {key: value}.",
            ) from error
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise ConfigError(f"{where}: {reason(error)}{more}", hint="Mend the value.") from error


def _sort(value: Any) -> str:
    """Return in words what stands where a mapping belongs."""
    if value is None:
        return "empty"
    return "a list" if isinstance(value, list | tuple) else "a single value"


def _fields_at(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the valid keys beside the unknown key at ``location``."""
    current: Any = model
    for part in location[:-1]:
        if isinstance(current, type) and issubclass(current, BaseModel) and part in current.model_fields:
            current = current.model_fields[part].annotation
        for argument in getattr(current, "__args__", ()):
            if isinstance(argument, type) and issubclass(argument, BaseModel):
                current = argument
    if isinstance(current, type) and issubclass(current, BaseModel):
        return list(current.model_fields)
    return list(model.model_fields)


def load_yaml(path: Path, model: type[M]) -> M:
    """Read a user's YAML file into a strict model.

    Raises:
        ConfigError: The file cannot be read or does not fit; an unknown key names the nearest valid one.
    """
    return validate(parse_yaml(read_text(path), where=str(path)), model, where=str(path))


def load_packaged(relative: str, model: type[M]) -> M:
    """Read a YAML file of the package into a strict model."""
    return validate(parse_yaml(package_text(relative), where=relative), model, where=relative)


def parse_role(text: str, *, where: str) -> Role:
    r"""Return the role of a Markdown text with YAML front matter (``id``, ``view``, optional ``framing``).

    Raises:
        ConfigError: Front matter is missing or wrong, or the text is empty.

    Example:
        >>> parse_role("---\nid: doubter\nview: [P]\n---\nDoubt it.\n", where="example").id
        'doubter'
    """
    if not text.startswith("---\n") or "\n---\n" not in text[4:]:
        raise ConfigError(f"{where} has no front matter", hint="Begin with --- / id: … / view: [P, C] / ---.")
    head, body = text[4:].split("\n---\n", 1)
    fields = parse_yaml(head, where=where)
    return _role(fields, body.strip(), where=where)


def _role(fields: Any, text: str | None, *, where: str) -> Role:
    if not isinstance(fields, dict):
        raise ConfigError(f"{where}: a role is a mapping", hint="Give at least id, view and text.")
    values = dict(fields)
    if text is not None:
        values["text"] = text
    if isinstance(values.get("view"), list):
        values["view"] = tuple(values["view"])
    return validate(values, Role, where=where)


def load_role(path: Path) -> Role:
    """Read a role from a Markdown file with front matter, or from a YAML mapping with a ``text`` key.

    Raises:
        ConfigError: The file cannot be read or is no role.
    """
    text = read_text(path)
    if path.suffix in {".yaml", ".yml"}:
        return _role(parse_yaml(text, where=str(path)), None, where=str(path))
    return parse_role(text, where=str(path))


def load_packaged_role(relative: str) -> Role:
    """Read a role file of the package."""
    return parse_role(package_text(relative), where=relative)
