"""A small dated corpus with resolved questions about Alder, a country that does not exist. All of it is synthetic.

What is planted in it, how it was made, and the counts stand in ``README.md`` beside the files.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from pathlib import Path

_HERE: Traversable = files(__name__)

DOCUMENTS: Traversable = _HERE / "documents.jsonl"
"""What can be searched: one document a line (url, title, text, published, retrieved_at). Some of it is hostile."""
QUESTIONS: Traversable = _HERE / "questions.jsonl"
"""What is asked, with outcomes: one `ForecastQuestion` a line. Never part of a search index."""
LABELS: Traversable = _HERE / "labels.json"
"""What each document was planted as, and each question's true probability. For tests alone: no agent may see it."""


def on_disk(resource: Traversable) -> AbstractContextManager[Path]:
    """Return a context in which one of the demonstration's files has a path, also where the package is zipped.

    Args:
        resource: One of `DOCUMENTS`, `QUESTIONS` and `LABELS`.

    Raises:
        FileNotFoundError: On entering, where the installation lost the file.

    Example:
        >>> with on_disk(QUESTIONS) as path:
        ...     path.name
        'questions.jsonl'
    """
    return as_file(resource)
