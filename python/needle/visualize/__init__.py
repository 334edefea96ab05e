"""Looking: the graph of a tensor, the tensors that are alive, learning curves, weights and feature maps.

The graph and the report of live tensors need nothing but needle; curves and grids are drawn by matplotlib, which is
imported when the first of them is asked for.
"""

from .figures import Picture, feature_map_grid, image_grid, learning_curves, weight_grid
from .graph import GraphPicture, graph
from .live import LiveReport, LiveTensor, live_tensors

__all__ = [
    "GraphPicture",
    "LiveReport",
    "LiveTensor",
    "Picture",
    "feature_map_grid",
    "graph",
    "image_grid",
    "learning_curves",
    "live_tensors",
    "weight_grid",
]
