"""What an optimizer keeps for its parameters, and the buckets of parameters that are updated alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from ..tensor import OPS, Tensor
from ..tensor.runs import LONGEST_RUN
from ..tensor.selected_rows import merged, rows_and_height, unpadded_count

#: Sizes of the runs of one shape that one call updates. Few sizes keep the number of compiled signatures small.
RUN_SIZES = (LONGEST_RUN, 4, 1)


@dataclass
class State:
    """What an optimizer keeps for one parameter: tensors and plain numbers by state name, and the float32 copy of a 16-bit parameter.

    Parameters of one bucket share the dict of numbers.
    """

    tensors: dict[str, Tensor] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    master: Tensor | None = None


@dataclass
class Run:
    """Parameters of one shape that one call updates, with their operands in lists; ``pick`` takes their gradients out of those of all parameters.

    is_of_rows: one parameter, whose gradient holds only some of its rows.
    """

    params: list[Tensor]
    states: list[list[Tensor]]
    masters: list[Tensor]
    pick: Callable[[Sequence[Any]], list[Any]]
    is_of_rows: bool = False


@dataclass
class Bucket:
    """Parameters that are updated alike. ``factor``: on the learning rate; ``options``: what else the method decides for each parameter."""

    group: Mapping[str, Any]
    factor: float
    l2: float
    l1: float
    options: tuple[Any, ...]
    numbers: dict[str, float]
    members: list[tuple[int, Tensor, State]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def arrange(self, state_names: Sequence[str], row_places: frozenset[int] = frozenset()) -> None:
        """Split the members into runs of equal dtype and shape; those at ``row_places`` are runs of their own."""
        kinds: dict[Any, list[tuple[int, Tensor, State]]] = {}
        for member in self.members:
            place, param, state = member
            state.numbers = self.numbers
            if place in row_places:
                continue
            kinds.setdefault((param.dtype.name, tuple(param.shape), state.master is None), []).append(member)
        self.runs = [_run(part, state_names) for members in kinds.values() for part in _split(members)]
        self.runs += [replace(_run([m], state_names), is_of_rows=True) for m in self.members if m[0] in row_places]


def _split(members: list[Any]) -> Iterator[list[Any]]:
    at = 0
    for size in RUN_SIZES:
        while len(members) - at >= size:
            yield members[at : at + size]
            at += size


def _run(members: list[tuple[int, Tensor, State]], state_names: Sequence[str]) -> Run:
    places = [k for k, _, _ in members]
    kept = [s for _, _, s in members]
    return Run(
        [p for _, p, _ in members],
        [[s.tensors[name] for s in kept] if name in kept[0].tensors else [] for name in state_names],
        [s.master for s in kept if s.master is not None],
        _picker(places),
    )


def _picker(places: list[int]) -> Callable[[Sequence[Any]], list[Any]]:
    first, last = places[0], places[-1]
    if places == list(range(first, last + 1)):
        return itemgetter(slice(first, last + 1))
    pick = itemgetter(*places)
    return lambda grads: list(pick(grads))


def update_rows(operator: Callable[..., Any], run: Run, grad: Tensor, rates: Sequence[Any]) -> None:
    """Update the rows that the gradient holds: they are taken out of the parameter and its states, updated as small parameters, and put back."""
    grad = merged(grad, is_padded=True)
    rows, _ = rows_and_height(grad)
    count = unpadded_count(rows.numpy_view())
    if count == 0:
        return
    values = grad.numpy_view()
    values[count:] = values[count - 1]  # a repeated row is updated alike each time

    def taken(tables: list[Tensor]) -> list[Tensor]:
        return [OPS["gather"](t, rows, 0) for t in tables]

    params, states, masters = taken(run.params), [taken(s) for s in run.states], taken(run.masters)
    operator(params, [grad], *states, masters, *rates)
    for tables, parts in zip([run.params, *run.states, run.masters], [params, *states, masters], strict=True):
        for table, part in zip(tables, parts, strict=True):
            OPS["put_indices_"](table, [rows], part, (0,), True)
