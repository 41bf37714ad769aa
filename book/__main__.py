"""``python -m book FOLDER``: lay out in a folder what the book is built from, made of the documents and of the code."""

from __future__ import annotations

import sys
from pathlib import Path

from book.assemble import assemble

assemble(Path(sys.argv[1]))
