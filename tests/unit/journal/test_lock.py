from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from consilience.errors import JournalError
from consilience.journal.lock import RunLock, is_held

HOLD = """
import sys
from pathlib import Path
from consilience.journal.lock import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lock_names_its_holder(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("the note of an earlier holder, longer than the next one will be" * 2)
    with RunLock(tmp_path):
        holder = json.loads((tmp_path / "lock").read_bytes())
        assert holder["pid"] == os.getpid()
        with pytest.raises(JournalError, match=f"pid {os.getpid()} on host {holder['host']}"), RunLock(tmp_path):
            pass
    with RunLock(tmp_path) as again:
        assert again.path.exists()


def test_a_second_process_is_refused_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert is_held(tmp_path)
        with pytest.raises(JournalError, match=f"pid {other.pid} "), RunLock(tmp_path):
            pass
        other.kill()
        other.wait()
        assert not is_held(tmp_path)
        with RunLock(tmp_path) as lock:
            assert json.loads(lock.path.read_bytes())["pid"] == os.getpid()


def test_a_note_that_cannot_be_read_still_refuses(tmp_path: Path) -> None:
    with RunLock(tmp_path) as lock:
        lock.path.write_bytes(b"")
        assert is_held(tmp_path)
        with pytest.raises(JournalError, match="not noted yet"), RunLock(tmp_path):
            pass


def test_looking_whether_a_run_is_held_never_hinders_its_start(tmp_path: Path) -> None:
    assert not is_held(tmp_path)
    with RunLock(tmp_path) as lock:
        noted = json.loads(lock.path.read_bytes())
    assert not is_held(tmp_path)
    lock.path.write_text(json.dumps({**noted, "host": "another"}))
    assert not is_held(tmp_path)


def test_a_folder_that_cannot_be_locked_is_said(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot be locked"), RunLock(tmp_path / "absent"):
        pass
