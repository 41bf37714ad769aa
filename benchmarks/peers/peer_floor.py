"""The floor by itself: what a process of the same load holds in memory without any orchestration."""

from __future__ import annotations

from load import floor, measured

if __name__ == "__main__":
    measured({"gather": floor}, packages=["pydantic"])
