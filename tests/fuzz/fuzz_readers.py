"""Fuzz one reader by coverage: ``python fuzz_readers.py NAME SECONDS SEED``; exits with 0 when nothing was found."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

with atheris.instrument_imports(include=["consilience", "ruamel"]):
    from reader_cases import READERS

PATIENCE_S = 1


def main() -> None:
    name, seconds, seed = sys.argv[1:4]
    reader = READERS[name]
    with tempfile.TemporaryDirectory() as corpus:
        (Path(corpus) / "seed").write_bytes(reader.seed)
        limits = [f"-max_total_time={seconds}", f"-seed={seed}", f"-timeout={PATIENCE_S}", "-max_len=4096"]
        atheris.Setup([sys.argv[0], *limits, "-verbosity=1", "-print_final_stats=1", corpus], reader.accepts)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
