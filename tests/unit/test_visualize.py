"""Looking: pictures of graphs are drawn right and can be read, the report of live tensors tells the truth."""

from __future__ import annotations

import gc
import random
import re
import sys
import xml.etree.ElementTree as ET
from collections import deque
from itertools import combinations

import needle as ndl
import numpy as np
import pytest
from needle import visualize
from needle.visualize.layout import layered

SVG = "{http://www.w3.org/2000/svg}"


def tensor(*shape: int, requires_grad: bool = True) -> ndl.Tensor:
    return ndl.Tensor(np.ones(shape), dtype="float32", requires_grad=requires_grad)


def small_graph() -> tuple[ndl.Tensor, dict[str, ndl.Tensor]]:
    x, w, b = tensor(4, 8, requires_grad=False), tensor(8, 3), tensor(4, 3)
    return ndl.relu(x @ w + b).sum(), {"input": x, "weight": w, "bias": b}


# ---- layout ----------------------------------------------------------------------------------------------------------


def random_dag(seed: int, count: int = 30) -> tuple[dict, list]:
    rng = random.Random(seed)
    sizes = {i: (rng.uniform(20, 120), rng.uniform(15, 60)) for i in range(count)}
    edges = [(rng.randrange(i), i) for i in range(1, count) for _ in range(rng.randint(1, 2))]
    return sizes, edges


@pytest.mark.parametrize("seed", range(5))
def test_layout_boxes_never_overlap(seed: int) -> None:
    sizes, edges = random_dag(seed)
    centres = layered(sizes, edges).centres
    for a, b in combinations(sizes, 2):
        (ax, ay), (bx, by) = centres[a], centres[b]
        apart = abs(ax - bx) >= (sizes[a][0] + sizes[b][0]) / 2 or abs(ay - by) >= (sizes[a][1] + sizes[b][1]) / 2
        assert apart, (a, b)


@pytest.mark.parametrize("seed", range(5))
def test_layout_edges_run_down_and_inside_the_picture(seed: int) -> None:
    sizes, edges = random_dag(seed)
    plan = layered(sizes, edges)
    for (source, target), route in zip(edges, plan.routes, strict=True):
        heights = [y for _, y in route]
        assert heights == sorted(heights)
        assert route[0][1] >= plan.centres[source][1] and route[-1][1] <= plan.centres[target][1]
        assert all(0 <= x <= plan.width and 0 <= y <= plan.height for x, y in route)


def test_layout_untangles_two_crossed_chains() -> None:
    sizes = dict.fromkeys("abcd", (20.0, 20.0))
    centres = layered(sizes, [("a", "d"), ("b", "c")]).centres
    assert (centres["a"][0] < centres["b"][0]) == (centres["d"][0] < centres["c"][0])


def test_layout_a_chain_is_straight() -> None:
    centres = layered({i: (10.0 + i, 10.0) for i in range(6)}, [(i, i + 1) for i in range(5)]).centres
    assert max(x for x, _ in centres.values()) - min(x for x, _ in centres.values()) < 1e-6


def test_layout_inputs_arrive_in_their_order() -> None:
    routes = layered({"a": (40.0, 20.0), "b": (40.0, 20.0), "c": (40.0, 20.0)}, [("a", "c"), ("b", "c")]).routes
    assert routes[0][-1][0] < routes[1][-1][0]


def test_layout_of_nothing_and_of_one() -> None:
    assert layered({}, []).centres == {}
    assert layered({"a": (10.0, 4.0)}, []).centres == {"a": (5.0, 2.0)}


# ---- graph -----------------------------------------------------------------------------------------------------------


def test_graph_shows_ops_shapes_dtypes_and_names() -> None:
    out, names = small_graph()
    text = visualize.graph(out, names=names).dot()
    for wanted in ("matmul", "relu", "weight", "bias", "input", "(8, 3) float32", "axes=None"):
        assert wanted in text
    assert text.count(" -> ") == 6


def test_graph_tells_variables_constants_and_operators_apart() -> None:
    out, _ = small_graph()
    kinds = [box.kind for box in visualize.graph(out).boxes.values()]
    assert (kinds.count("variable"), kinds.count("constant"), kinds.count("operator")) == (2, 1, 4)


def test_graph_draws_a_value_used_twice_once_with_two_edges() -> None:
    x = tensor(3)
    picture = visualize.graph(x * x)
    assert len(picture.boxes) == 2
    assert picture.edges == [(0, 1), (0, 1)]


def test_graph_svg_is_wellformed_and_names_each_node() -> None:
    out, names = small_graph()
    picture = visualize.graph(out, names={"a <b> & 'c'": names["weight"]})
    root = ET.fromstring(picture.svg())
    assert root.tag == SVG + "svg" and root.get("role") == "img" and root.get("aria-label")
    titles = [title.text for title in root.iter(SVG + "title")]
    assert any("a <b> & 'c'" in title for title in titles)
    assert picture._repr_svg_() == picture.svg()


def test_graph_svg_boxes_lie_inside_the_picture() -> None:
    out, _ = small_graph()
    root = ET.fromstring(visualize.graph(out).svg())
    left, top, width, height = map(float, root.get("viewBox").split())
    shift = float(re.search(r"translate\(([-\d.]+)", root.find(SVG + "g").get("transform"))[1])
    for box in root.find(SVG + "g").iter(SVG + "rect"):
        x, y, w, h = (float(box.get(key)) for key in ("x", "y", "width", "height"))
        assert left <= x + shift and x + shift + w <= left + width
        assert top <= y and y + h <= top + height


def test_graph_dot_escapes_quotes_and_backslashes() -> None:
    text = visualize.graph(tensor(2), names={'a "b" \\ c': tensor(2)}).dot()
    assert '"a' not in text  # a name of another tensor does not appear
    x = tensor(2)
    assert r"a \"b\" \\ c" in visualize.graph(x, names={'a "b" \\ c': x}).dot()


def test_graph_keeps_the_end_of_a_long_name() -> None:
    x = tensor(2)
    text = visualize.graph(x, names={"encoder.layers.11.attention.q_projection.weight": x}).dot()
    assert "q_projection.weight" in text and "encoder" not in text


def test_graph_too_big_is_cut_near_the_output_and_says_so() -> None:
    x = y = tensor(2)
    for _ in range(500):
        y = y + 1
    picture = visualize.graph(y, max_nodes=20)
    assert (picture.shown, picture.total) == (20, 501)
    assert "20 of 501" in picture.caption and picture.caption in picture.svg() and "…" in picture.dot()
    assert visualize.graph(y, max_nodes=501).caption == ""
    assert visualize.graph(x).caption == ""


def test_graph_of_a_very_long_chain_needs_no_recursion() -> None:
    y = tensor(1)
    for _ in range(20_000):
        y = y + 1
    assert visualize.graph(y).total == 20_001


def test_graph_of_a_gradient_left_by_backward_is_one_box() -> None:
    x = tensor(3)
    loss = (x * x).sum()
    loss.backward()
    assert len(visualize.graph(x.grad).boxes) == 1


def test_graph_of_several_outputs_and_of_tuples() -> None:
    x = tensor(2, 3)
    parts = ndl.split(x, axis=0)
    picture = visualize.graph([parts[0], parts[1].sum()])
    assert sum(box.output for box in picture.boxes.values()) == 2
    assert "2 tensors" in picture.dot()


def test_graph_save_writes_by_ending(tmp_path) -> None:
    picture = visualize.graph(tensor(2) + 1)
    assert ET.parse(picture.save(tmp_path / "g.svg"))
    assert picture.save(str(tmp_path / "g.dot")).read_text(encoding="utf-8") == picture.dot()
    with pytest.raises(ndl.errors.ArgumentError, match=r"visualize\.graph.*g\.png"):
        picture.save(tmp_path / "g.png")


@pytest.mark.parametrize("wrong", [3, None, "loss", [1, 2]])
def test_graph_refuses_what_is_no_tensor(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"visualize\.graph: got"):
        visualize.graph(wrong)


def test_graph_refuses_max_nodes_of_zero() -> None:
    with pytest.raises(ValueError, match="max_nodes=0"):
        visualize.graph(tensor(1), max_nodes=0)


# ---- live tensors ----------------------------------------------------------------------------------------------------


class Layer:
    """Holds a tensor as an attribute."""

    def __init__(self, weight: ndl.Tensor) -> None:
        self.weight = weight


def find(report: visualize.LiveReport, shape: tuple[int, ...]) -> list[visualize.LiveTensor]:
    return [tensor for tensor in report.tensors if tensor.shape == shape]


def test_live_tensors_pass_over_a_tensor_whose_making_failed() -> None:
    unmade = ndl.Tensor.__new__(ndl.Tensor)
    assert isinstance(str(visualize.live_tensors()), str)  # it says what it knows and does not stop
    del unmade


class MakesUpAttributes:
    """An object of slots that claims to have any attribute, `__dict__` too."""

    __slots__ = ("held",)

    def __getattr__(self, name: str) -> str:
        return name


def test_live_tensors_pass_over_objects_that_make_up_attributes() -> None:
    holder = MakesUpAttributes()
    holder.held = [tensor(41, 3), holder]  # seen by two steps: the list, then the object
    assert find(visualize.live_tensors(), (41, 3))
    holder.held = None


def test_live_tensors_are_seen_until_the_last_reference_goes() -> None:
    x = tensor(17, 3)
    assert len(find(visualize.live_tensors(), (17, 3))) == 1
    del x
    assert not find(visualize.live_tensors(), (17, 3))


def test_live_tensors_need_no_collector() -> None:
    gc.disable()
    try:
        y = tensor(19, 3) * 2
        assert sorted(t.kind for t in find(visualize.live_tensors(holders=False), (19, 3))) == [
            "mul_scalar",
            "variable",
        ]
    finally:
        gc.enable()
    del y


def test_live_tensors_count_shared_storage_once() -> None:
    before = visualize.live_tensors(holders=False).nbytes
    x = tensor(64, 16)
    views = [x.detach(), x.data]
    report = visualize.live_tensors(holders=False)
    assert report.nbytes - before == 64 * 16 * 4
    assert [len(group) for group in report.shared().values() if group[0].shape == (64, 16)] == [3]
    assert all(view.shape == (64, 16) for view in views)


def test_live_tensors_by_shape_adds_up() -> None:
    keep = [tensor(5, 7), tensor(5, 7), tensor(7)]
    report = visualize.live_tensors(holders=False)
    rows = report.by_shape()
    assert sum(row[3] for row in rows) == report.nbytes
    assert ((5, 7), "float32", 2, 2 * 5 * 7 * 4) in rows
    del keep


def test_live_tensors_name_local_variables() -> None:
    mine = tensor(23, 3)
    (found,) = find(visualize.live_tensors(), (23, 3))
    assert any("test_live_tensors_name_local_variables(): mine" in holder for holder in found.held_by)
    del mine


def test_live_tensors_name_the_path_through_containers() -> None:
    model = {"layers": [Layer(tensor(29, 3)), Layer(tensor(31, 3))]}
    (found,) = find(visualize.live_tensors(), (31, 3))
    assert any(holder.endswith("model['layers'][1].weight") for holder in found.held_by), found.held_by
    del model


def test_live_tensors_go_through_what_has_no_attributes() -> None:
    waiting = [deque([tensor(61, 3)])]
    (found,) = find(visualize.live_tensors(), (61, 3))
    assert any(holder.endswith("waiting[0] …") for holder in found.held_by), found.held_by
    del waiting


def test_live_tensors_tell_that_the_graph_holds_an_input() -> None:
    x = tensor(37, 3)
    y = ndl.exp(x)
    loss = y.sum()
    del y
    (found,) = [t for t in find(visualize.live_tensors(), (37, 3)) if t.kind == "exp"]
    assert any("input of summation" in holder for holder in found.held_by)
    loss.backward()
    (grad,) = [t for t in find(visualize.live_tensors(), (37, 3)) if t.kind == "gradient"]
    assert any(".grad of variable (37, 3)" in holder for holder in grad.held_by)


def test_live_tensors_name_a_closure() -> None:
    def make():
        hidden = tensor(41, 3)
        return lambda: hidden

    function = make()
    (found,) = find(visualize.live_tensors(), (41, 3))
    assert any("function" in holder for holder in found.held_by), found.held_by
    assert function().shape == (41, 3)


def test_live_report_reads_as_tables() -> None:
    x = tensor(43, 3)
    text = str(visualize.live_tensors())
    assert re.match(r"\d+ live tensors, [\d.]+ (B|KiB|MiB|GiB) in \d+ storages", text)
    assert "(43, 3)" in text and "kept alive by" in text
    del x


# ---- curves and grids ------------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n"


def test_learning_curves_share_a_panel_by_what_they_measure() -> None:
    pytest.importorskip("matplotlib")
    picture = visualize.learning_curves({"train_loss": [2, 1], "test_loss": [3, 2], "test_accuracy": [0.5, 0.6]})
    panels = picture.figure.axes
    assert [axes.get_ylabel() for axes in panels] == ["loss", "accuracy"]
    assert [len(axes.lines) for axes in panels] == [2, 1]
    assert list(panels[0].lines[1].get_ydata()) == [3, 2]
    assert picture._repr_png_().startswith(PNG)


def test_learning_curves_take_rows_and_leave_gaps(tmp_path) -> None:
    pytest.importorskip("matplotlib")
    rows = [{"epoch": 3, "loss": 1.0, "note": "warm"}, {"epoch": 4}, {"epoch": 5, "loss": 0.5}]
    picture = visualize.learning_curves(rows, x="epoch", log=True)
    (line,) = picture.figure.axes[0].lines
    assert list(line.get_xdata()) == [3, 4, 5]
    assert np.isnan(line.get_ydata()[1])
    assert picture.save(tmp_path / "curve.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("history", [{}, [], [{"note": "text"}], {"loss": []}])
def test_learning_curves_of_nothing_is_an_error(history: object) -> None:
    with pytest.raises(ValueError, match="learning_curves"):
        visualize.learning_curves(history)


def test_learning_curves_of_an_unknown_axis_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"learning_curves.*'step'"):
        visualize.learning_curves({"loss": [1.0]}, x="step")


def test_weight_grid_has_a_tile_per_kernel_and_one_scale() -> None:
    pytest.importorskip("matplotlib")
    weight = np.arange(3 * 3 * 2 * 4, dtype="float32").reshape(3, 3, 2, 4)
    images = [axes.images[0] for axes in visualize.weight_grid(weight).figure.axes if axes.images]
    assert len(images) == 8
    np.testing.assert_array_equal(images[1].get_array(), weight[:, :, 1, 0])
    assert {image.get_clim() for image in images} == {(-71.0, 71.0)}


def test_weight_grid_of_a_linear_layer_takes_the_shape_of_its_input() -> None:
    pytest.importorskip("matplotlib")
    layer = ndl.nn.Linear(6, 5)
    images = [a.images[0] for a in visualize.weight_grid(layer.weight, image_shape=(2, 3)).figure.axes if a.images]
    assert len(images) == 5
    np.testing.assert_allclose(images[4].get_array(), layer.weight.numpy()[:, 4].reshape(2, 3))
    with pytest.raises(ValueError, match=r"weight_grid.*\(6, 5\)"):
        visualize.weight_grid(layer.weight, image_shape=(4, 4))


def test_weight_grid_of_very_many_kernels_shows_the_first() -> None:
    pytest.importorskip("matplotlib")
    picture = visualize.weight_grid(np.ones((1, 1, 30, 30)), columns=16)
    assert sum(bool(axes.images) for axes in picture.figure.axes) == 256
    assert "256 of 900" in picture.figure.get_suptitle()


def test_feature_map_grid_shows_the_channels_of_one_sample() -> None:
    pytest.importorskip("matplotlib")
    maps = np.arange(2 * 3 * 4 * 4, dtype="float32").reshape(2, 3, 4, 4)
    images = [axes.images[0] for axes in visualize.feature_map_grid(maps, sample=1).figure.axes if axes.images]
    assert len(images) == 3
    np.testing.assert_array_equal(images[2].get_array(), maps[1, 2])
    with pytest.raises(ValueError, match=r"feature_map_grid.*sample 2"):
        visualize.feature_map_grid(maps, sample=2)


@pytest.mark.parametrize("shape", [(3, 8, 8), (3, 1, 8, 8), (3, 3, 8, 8), (3, 8, 8, 3)])
def test_image_grid_takes_every_layout(shape: tuple[int, ...]) -> None:
    pytest.importorskip("matplotlib")
    figure = visualize.image_grid(np.random.default_rng(0).random(shape), titles=["a", "b", "c"]).figure
    images = [axes.images[0] for axes in figure.axes if axes.images]
    assert len(images) == 3 and images[0].get_array().shape[:2] == (8, 8)


@pytest.mark.parametrize("shape", [(8, 8), (2, 5, 8, 8), (0, 8, 8)])
def test_image_grid_refuses_what_is_no_image(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="image_grid"):
        visualize.image_grid(np.zeros(shape))


def test_without_matplotlib_one_line_says_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        visualize.learning_curves({"loss": [1.0]})
