"""Where assistants may look: names inside one folder, never out of it, whatever they are called or link to."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from consilience.errors import ConfigError


def inside(folder: Path, said: str, *, what: str) -> Path:
    """Return the path of what is there under a folder by a relative name.

    Absolute names, names with ``..`` and whatever a symbolic link leads to are refused alike, even where the link stays
    inside: what is read is where it seems to be.

    Args:
        folder: The folder; it may itself be reached by a link, since whoever runs the server chose it.
        said: The name, with ``/`` between its parts.
        what: What it names, for messages.

    Raises:
        ConfigError: The name leads out, or nothing is there.
    """
    parts = PurePosixPath(said).parts
    plain = said == "/".join(parts) and not any(mark in said for mark in ("\\", "\0", ":"))
    if not parts or not plain or said.startswith("/") or {"..", "."} & set(parts):
        raise ConfigError(
            f'{what}: "{said}" is no relative path inside the folder', hint="Name it from there, without .. or links."
        )
    base = folder.resolve()
    path = base.joinpath(*parts)
    if path.resolve() != path:
        raise ConfigError(f'{what}: "{said}" leads over a symbolic link', hint="Name the thing itself.")
    if not path.exists():
        raise ConfigError(f'{what}: there is no "{said}"', hint="Check the name; it begins inside the folder.")
    return path
