"""Learning on graphs: messages along edges, reductions over segments, renumbering and sampling of neighbours."""

from ..tensor.explained import explain
from .messages import segment_max, segment_mean, segment_min, segment_sum, send_u_recv, send_ue_recv, send_uv
from .reindex import reindex_graph, reindex_heter_graph
from .sampling import sample_neighbors, weighted_sample_neighbors

__all__ = [
    "reindex_graph",
    "reindex_heter_graph",
    "sample_neighbors",
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_sum",
    "send_u_recv",
    "send_ue_recv",
    "send_uv",
    "weighted_sample_neighbors",
]

explain(globals(), __all__)
