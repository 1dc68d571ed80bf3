"""What a profiler watches and when: targets, states, schedules."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from ..base.errors import ArgumentError, ArgumentTypeError, describe, message


class ProfilerState(Enum):
    """What a profiler does during a step."""

    CLOSED = 0  #: nothing
    READY = 1  #: nothing yet; it records soon
    RECORD = 2  #: records
    RECORD_AND_RETURN = 3  #: records, and hands out what it has when the step ends


class ProfilerTarget(Enum):
    """Whose work is recorded; this build runs on the CPU."""

    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM_DEVICE = 3


def make_scheduler(
    *, closed: int, ready: int, record: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerState]:
    """A schedule: after ``skip_first`` steps, rounds of ``closed`` + ``ready`` + ``record`` steps.

    Args:
        closed: steps of a round that nothing is recorded in.
        ready: steps before recording begins.
        record: recorded steps, at least one; the last one hands the recording out.
        repeat: how many rounds; 0: without end.
        skip_first: steps before the first round.

    Returns:
        Gives the state of a step by its number.

    Raises:
        ArgumentError: a number is negative, or ``record`` is 0.
        ArgumentTypeError: a number is no int.

    Example:
        >>> import sampan as paddle
        >>> schedule = paddle.profiler.make_scheduler(closed=1, ready=1, record=2, repeat=1)
        >>> [schedule(step).name for step in range(5)]
        ['CLOSED', 'READY', 'RECORD', 'RECORD_AND_RETURN', 'CLOSED']
    """
    given = {"closed": closed, "ready": ready, "record": record, "repeat": repeat, "skip_first": skip_first}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentTypeError(message(f"make_scheduler(): {name} is {describe(value)}", "it must be an int"))
        least = 1 if name == "record" else 0
        if value < least:
            raise ArgumentError(message(f"make_scheduler(): {name} is {value}", f"it must be at least {least}"))
    length = closed + ready + record

    def schedule(step: int) -> ProfilerState:
        if step < 0:
            raise ArgumentError(message(f"a profiler's schedule was asked for step {step}", "steps count from 0"))
        if step < skip_first:
            return ProfilerState.CLOSED
        round_, place = divmod(step - skip_first, length)
        if (repeat and round_ >= repeat) or place < closed:
            return ProfilerState.CLOSED
        if place < closed + ready:
            return ProfilerState.READY
        return ProfilerState.RECORD_AND_RETURN if place == length - 1 else ProfilerState.RECORD

    return schedule


def schedule_of(scheduler: object) -> Callable[[int], ProfilerState]:
    """The schedule that a Profiler's ``scheduler`` stands for."""
    if scheduler is None:
        return lambda step: ProfilerState.RECORD
    if callable(scheduler):
        return scheduler
    if not isinstance(scheduler, (list, tuple)) or len(scheduler) != 2 or not all(isinstance(n, int) for n in scheduler):
        raise ArgumentTypeError(
            message(
                f"Profiler(): scheduler is {describe(scheduler)}",
                "it must be a pair (first step, step after the last) or a function of the step's number",
                "pass (10, 15), or what make_scheduler() gives",
            )
        )
    start, end = scheduler
    if end <= max(start, 0):
        raise ArgumentError(
            message(f"Profiler(): scheduler is ({start}, {end})", "no step is recorded: the end must come after the start")
        )
    start = max(start, 0)
    return make_scheduler(closed=max(start - 1, 0), ready=min(start, 1), record=end - start, repeat=1)
