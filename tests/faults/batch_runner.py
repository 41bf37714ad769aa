"""The process that `test_batches` kills while its batches are with the vendor."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from batch_cases import HASTY, run_live
from consilience.experiments.orders import Orders

if __name__ == "__main__":
    run_live(Path(sys.argv[1]), sys.argv[2], orders=Orders(limits=replace(HASTY, batch_quiet_s=0.5, batch_poll_s=0.2)))
