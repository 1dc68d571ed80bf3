"""Names that Paddle keeps under ``incubate``: most are those of other modules by an older name."""

from ..geometric import segment_max, segment_mean, segment_min, segment_sum
from ..tensor.explained import explain
from . import autograd, optimizer
from .graph import graph_khop_sampler, graph_reindex, graph_sample_neighbors, graph_send_recv
from .losses import identity_loss, softmax_mask_fuse, softmax_mask_fuse_upper_triangle
from .optimizer import LookAhead, ModelAverage

__all__ = [
    "LookAhead",
    "ModelAverage",
    "autograd",
    "graph_khop_sampler",
    "graph_reindex",
    "graph_sample_neighbors",
    "graph_send_recv",
    "identity_loss",
    "optimizer",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "softmax_mask_fuse",
    "softmax_mask_fuse_upper_triangle",
]

explain(globals(), __all__)
