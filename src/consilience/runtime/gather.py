"""Ask many at once: everyone is heard to the end, results keep their order, one error comes out unwrapped."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from consilience.errors import ConsilienceError

T = TypeVar("T")


async def gather(jobs: Sequence[Callable[[], Awaitable[T]]]) -> list[T]:
    """Run all jobs concurrently and return their results in order.

    An error of ours in one job does not cancel the others, because a cancelled call in flight is paid and lost; when
    all have ended, the first error in order is raised.

    Example:
        >>> async def two() -> int:
        ...     return 2
        >>> anyio.run(gather, [two, two])
        [2, 2]
    """
    results: dict[int, T] = {}
    errors: dict[int, ConsilienceError] = {}

    async def one(index: int, job: Callable[[], Awaitable[T]]) -> None:
        try:
            results[index] = await job()
        except ConsilienceError as error:
            errors[index] = error

    async with anyio.create_task_group() as group:
        for index, job in enumerate(jobs):
            group.start_soon(one, index, job)
    if errors:
        raise errors[min(errors)]
    return [results[index] for index in range(len(jobs))]
