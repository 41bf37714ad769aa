"""The viewer over one run of more than 100,000 events: first look and later looks at a page, and memory."""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil

ITEMS: Final = 2_150
WARM: Final = 21
GOAL_COLD_S, GOAL_WARM_S, GOAL_MIB = 2.0, 1.0, 300
CONSILIENCE: Final = [sys.executable, "-m", "consilience"]


def _questions(path: Path) -> None:
    """Write questions of a few hundred bytes of evidence each."""
    with path.open("w") as file:
        for number in range(ITEMS):
            item_id = f"item-{number:05d}"
            rows = [
                {"id": f"C{row:02d}", "content": {"price": 300_000 + 997 * row + number, "floor_area_m2": 90 + row}}
                for row in range(5)
            ]
            packet = {
                "item_id": item_id,
                "cutoff": "2026-01-01",
                "cutoff_rule": "last_admissible",
                "sections": {"C": {"code": "C", "title": "Sales", "items": rows}},
            }
            question = {"id": item_id, "text": "How much?", "kind": "estimate", "scale": "log", "unit": "EUR"}
            file.write(f"{json.dumps({'question': question, 'packet': packet})}\n")


def _make(root: Path) -> tuple[str, int]:
    """Carry out the run; return its id and number of events."""
    _questions(root / "questions.jsonl")
    command = [*CONSILIENCE, "--project", str(root), "run-arm", "--arm", "G_debate", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--questions", str(root / "questions.jsonl"), "--json"], check=True, capture_output=True, text=True
    )
    run_id = str(json.loads(done.stdout)["run_id"])
    journal = (root / "results" / "runs" / run_id).glob("events-*.jsonl")
    return run_id, sum(path.read_bytes().count(b"\n") for path in journal)


@contextmanager
def _viewer(root: Path) -> Iterator[tuple[psutil.Process, int]]:
    """Run ``consilience view`` as a process of its own."""
    command = [*CONSILIENCE, "view", str(root), "--port", "0", "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            port = int(process.stderr.readline().rpartition(":")[2].strip().rstrip("/"))
            process.stderr.readline()
            yield psutil.Process(process.pid), port
        finally:
            process.terminate()


def _get(port: int, path: str) -> float:
    """Return the seconds that a page takes."""
    begun = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert response.status == 200, (path, body[:300])
    return time.perf_counter() - begun


def run() -> list[dict[str, object]]:
    """Return what every page takes when it is the first of a new process, and later; and the server's memory."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        run_id, events = _make(root)
        item = f"/runs/{run_id}/items/item-01234"
        pages = {
            "runs page": "/",
            "run page": f"/runs/{run_id}",
            "item page": item,
            "turn page": f"{item}/turn?round=0&seat=analyst_03&kind=estimate&sample=0",
        }
        rows: list[dict[str, object]] = []
        note = f"{events:,} events, {ITEMS:,} items; the first page of a new process"
        assert events > 100_000
        for name, path in pages.items():
            cold = []
            for _ in range(5):
                with _viewer(root) as (_, port):
                    cold.append(_get(port, path))
            goal = GOAL_COLD_S
            rows.append(
                {"name": f"{name}, cold", "value": statistics.median(cold), "unit": "s", "goal": goal, "note": note}
            )
        with _viewer(root) as (process, port):
            for path in pages.values():
                _get(port, path)
            for name, path in pages.items():
                warm = statistics.median(_get(port, path) for _ in range(WARM))
                rows.append({"name": f"{name}, warm", "value": warm, "unit": "s", "goal": GOAL_WARM_S, "note": ""})
            memory = process.memory_info().rss / 2**20
            told = "resident after all pages"
            rows.append({"name": "server memory", "value": memory, "unit": "MiB", "goal": GOAL_MIB, "note": told})
        (root / "results" / "runs" / run_id / "manifest.json").unlink()
        with _viewer(root) as (process, port):
            first = _get(port, "/")
            later = statistics.median(_get(port, "/") for _ in range(WARM))
        told = "without a manifest, as while it runs: from the index alone; one start"
        rows.append({"name": "runs page, of a run going on", "value": first, "unit": "s", "goal": 2.0, "note": told})
        rows.append({"name": "its row anew", "value": later, "unit": "s", "goal": 1.0, "note": f"median of {WARM}"})
    return rows
