"""Decoding step by step: the decoders' interface, beam search, and the loop that runs a decoder."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import nest
from ..base.kinds import Count
from ..tensor import OPS, Tensor, share_array
from ..tensor.explained import Explained
from . import functional as F


class Decoder(Explained):
    """What ``dynamic_decode`` runs: ``initialize`` and ``step``, and ``finalize`` where wanted."""

    def initialize(self, inits: Any) -> tuple[Any, Any, Any]:
        """(the first inputs, the first states, whether each sequence is finished) of what ``dynamic_decode`` was given."""
        raise NotImplementedError(f"{type(self).__name__} defines no initialize()")

    def step(self, time: Tensor, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
        """(outputs, next states, next inputs, whether each sequence is finished) of one step."""
        raise NotImplementedError(f"{type(self).__name__} defines no step()")

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """(outputs, states) after the last step, from outputs with time first; as they are, by default."""
        return outputs, final_states

    @property
    def tracks_own_finished(self) -> bool:
        """Whether ``step`` itself keeps what was finished, as when beams change places."""
        return False


class BeamSearchDecoder(Decoder):
    """Beam search over a recurrent cell.

    Args:
        cell: gives (outputs, next states) of (inputs, states).
        start_token: the first input's id.
        end_token: the id that ends a sequence.
        beam_size: how many sequences are kept.
        embedding_fn: ids to inputs; by default the ids themselves.
        output_fn: outputs to logits over the vocabulary; by default the outputs themselves.
    """

    OutputWrapper = namedtuple("OutputWrapper", ("scores", "predicted_ids", "parent_ids"))
    StateWrapper = namedtuple("StateWrapper", ("cell_states", "log_probs", "finished", "lengths"))

    def __init__(
        self,
        cell: Any,
        start_token: int,
        end_token: int,
        beam_size: Count,
        embedding_fn: Callable[..., Any] | None = None,
        output_fn: Callable[..., Any] | None = None,
    ) -> None:
        self.cell, self.embedding_fn, self.output_fn = cell, embedding_fn, output_fn
        self.start_token, self.end_token, self.beam_size = int(start_token), int(end_token), beam_size

    @staticmethod
    def tile_beam_merge_with_batch(x: Tensor, beam_size: int) -> Tensor:
        """[N * beams, ...] of [N, ...]: every instance once for each beam."""
        spread = OPS["expand"](OPS["unsqueeze"](x, 1), [x.shape[0], beam_size, *x.shape[1:]])
        return OPS["reshape"](spread, [x.shape[0] * beam_size, *x.shape[1:]])

    def _split(self, x: Tensor) -> Tensor:
        return OPS["reshape"](x, [-1, self.beam_size, *x.shape[1:]])

    def _merge(self, x: Tensor) -> Tensor:
        return OPS["reshape"](x, [x.shape[0] * x.shape[1], *x.shape[2:]])

    def _expand(self, x: Tensor) -> Tensor:
        return OPS["expand"](OPS["unsqueeze"](x, 1), [x.shape[0], self.beam_size, *x.shape[1:]])

    @staticmethod
    def _picked(x: Tensor, beams: Tensor) -> Tensor:
        """x [N, beams, ...] at the beams [N, beams]."""
        rows = OPS["expand"](OPS["unsqueeze"](OPS["arange"](0, x.shape[0], 1, "int64"), 1), list(beams.shape))
        return OPS["take_indices"](x, [rows, beams], (0, 1), True)

    def initialize(self, initial_cell_states: Any) -> tuple[Any, Any, Any]:
        """(embedded start tokens [N, beams, ...], states, finished); only the first beam starts with a chance."""
        states = nest.map_structure(self._expand, initial_cell_states)
        batch = nest.flatten(states)[0].shape[0]
        tokens = OPS["full"]([batch, self.beam_size], self.start_token, "int64")
        chances = np.full((batch, self.beam_size), -1e9, np.float32)
        chances[:, 0] = 0.0
        finished = OPS["full"]([batch, self.beam_size], False, "bool")
        lengths = OPS["full"]([batch, self.beam_size], 0, "int64")
        inputs = self.embedding_fn(tokens) if self.embedding_fn else tokens
        return inputs, self.StateWrapper(states, share_array(chances), finished, lengths), finished

    def step(self, time: Tensor, inputs: Any, states: Any, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
        merged = nest.map_structure(self._merge, inputs)
        cell_states = nest.map_structure(self._merge, states.cell_states)
        outputs, next_states = self.cell(merged, cell_states, **kwargs)
        if self.output_fn is not None:
            outputs = self.output_fn(outputs)
        logits = nest.map_structure(self._split, outputs)
        next_states = nest.map_structure(self._split, next_states)
        found, state = self._search(logits, next_states, states)
        next_inputs = self.embedding_fn(found.predicted_ids) if self.embedding_fn else found.predicted_ids
        return found, state, next_inputs, state.finished

    def _search(self, logits: Tensor, cell_states: Any, states: Any) -> tuple[Any, Any]:
        """The best ``beam_size`` continuations: a finished beam continues with its end token alone, at no cost."""
        batch, beams, vocabulary = logits.shape
        only_end = np.full(vocabulary, -1e9, np.float32)
        only_end[self.end_token] = 0.0
        finished = OPS["unsqueeze"](states.finished, -1)
        step_chances = OPS["where"](finished, share_array(only_end), OPS["log_softmax"](logits, -1))
        chances = OPS["unsqueeze"](states.log_probs, -1) + step_chances
        best, place = OPS["topk"](OPS["reshape"](chances, [batch, beams * vocabulary]), beams)
        parents, tokens = place // vocabulary, place % vocabulary
        was_finished = self._picked(states.finished, parents)
        lengths = self._picked(states.lengths, parents) + OPS["cast"](OPS["logical_not"](was_finished), "int64")
        now_finished = OPS["logical_or"](was_finished, tokens == self.end_token)
        cell_states = nest.map_structure(lambda x: self._picked(x, parents), cell_states)
        return self.OutputWrapper(best, tokens, parents), self.StateWrapper(cell_states, best, now_finished, lengths)

    def finalize(self, outputs: Any, final_states: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """(the beams' token sequences [T, N, beams], the states)."""
        return F.gather_tree(outputs.predicted_ids, outputs.parent_ids), final_states

    @property
    def tracks_own_finished(self) -> bool:
        return True


def dynamic_decode(
    decoder: Any,
    inits: Any = None,
    max_step_num: int | None = None,
    output_time_major: bool = False,
    impute_finished: bool = False,
    is_test: bool = False,
    return_length: bool = False,
    **kwargs: Any,
) -> Any:
    """Run a decoder until all sequences are finished.

    Args:
        decoder: a Decoder.
        inits: what its ``initialize`` takes.
        max_step_num: stop after this many steps more than one at the latest; None: only when all are finished.
        output_time_major: outputs are [T, N, ...], not [N, T, ...].
        impute_finished: a finished sequence keeps its states, and its outputs are zeros.
        is_test: accepted for compatibility.
        return_length: also give the sequences' lengths.
        **kwargs: passed to ``decoder.step``.

    Returns:
        (outputs, final states), and the lengths where wanted.
    """
    inputs, states, finished = decoder.initialize(inits)
    lengths = OPS["full"](list(finished.shape), 0, "int64")
    collected: list[Any] = []
    time = 0
    while not bool(OPS["all"](finished)):
        outputs, next_states, next_inputs, next_finished = decoder.step(OPS["full"]([1], time, "int64"), inputs, states, **kwargs)
        if not decoder.tracks_own_finished:
            next_finished = OPS["logical_or"](next_finished, finished)
            lengths = lengths + OPS["cast"](OPS["logical_not"](finished), "int64")
            if impute_finished:
                is_done = finished
                next_states = nest.map_structure(lambda new, old, d=is_done: _kept(new, old, d), next_states, states)
                outputs = nest.map_structure(lambda x, d=is_done: _kept(x, OPS["zeros_like"](x), d), outputs)
        else:
            lengths = getattr(next_states, "lengths", lengths)
        collected.append(outputs)
        inputs, states, finished = next_inputs, next_states, next_finished
        time += 1
        if max_step_num is not None and time > max_step_num:
            break
    outputs = nest.map_structure(lambda *steps: OPS["stack"](list(steps), 0), *collected)
    if type(decoder).finalize is not Decoder.finalize:
        outputs, states = decoder.finalize(outputs, states, lengths)
    if not output_time_major:
        outputs = nest.map_structure(lambda x: OPS["transpose"](x, [1, 0, *range(2, len(x.shape))]), outputs)
    return (outputs, states, lengths) if return_length else (outputs, states)


def _kept(new: Tensor, old: Tensor, is_done: Tensor) -> Tensor:
    """old where the sequence is done, else new."""
    return OPS["where"](OPS["reshape"](is_done, [*is_done.shape, *(1 for _ in new.shape[len(is_done.shape) :])]), old, new)


__all__ = ["BeamSearchDecoder", "Decoder", "dynamic_decode"]
