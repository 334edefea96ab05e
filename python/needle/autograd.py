"""Reverse-mode automatic differentiation: Op, Value, Tensor and `backward`.

A Tensor is a node of a graph: it knows its value (`cached_data`, an array of the backend), the operator that made it
(`op`) and that operator's inputs.  `backward` walks the graph in reverse topological order and leaves gradients on
the leaves.

The idea is short: Op, Value, find_topo_sort, compute_gradient_of_variables.  The file is long because Tensor answers to
all of Python's operators, and because what `backward` leaves can be differentiated again (Recipe, Gradient).
"""

from __future__ import annotations

import contextlib
import gc
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from . import execution, write_log
from .backend_selection import BACKEND, NDArray, array_api, as_device, default_device
from .errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    DTypeError,
    GraphError,
    NeedleError,
    ShapeError,
    describe,
    in_the_name_of,
)
from .execution import recording

LAZY_MODE = False  # True: values are computed when somebody asks for them
ops: Any = None  # the operators; ops/__init__.py plugs itself in, since ops need Tensor and Tensor needs ops

Shape = tuple[int, ...]

_blank = object.__new__  # looked up here once, since nodes are made all the time

_FLOATS = ("float32", "float64")


def __getattr__(name: str) -> Any:
    """TENSOR_COUNTER: how many Values are alive, counted when somebody asks, so that to make one costs nothing more."""
    if name == "TENSOR_COUNTER":
        return sum(issubclass(type(thing), Value) for thing in gc.get_objects())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# --------------------------------------------------------------------------------------------------------------------
# Operators
# --------------------------------------------------------------------------------------------------------------------


def _in_dtype_of(value: Value, grad: Value) -> Value:
    """grad in the float type of value, where an operator's other inputs have widened it."""
    if not (isinstance(value, Tensor) and isinstance(grad, Tensor)):
        return grad
    wanted = value.realize_cached_data().dtype
    if wanted == grad.realize_cached_data().dtype or wanted not in _FLOATS:
        return grad
    return grad.astype(wanted)


def _snake_case(name: str) -> str:
    """GetItem → get_item."""
    return "".join("_" + c.lower() if c.isupper() and i else c.lower() for i, c in enumerate(name))


class Op:
    """One operator: `compute` on arrays, `gradient` on graph values."""

    name = "op"  # as the function that users call; subclasses get theirs from the class name unless they say so
    reads_inputs = True  # does the gradient look at the values of the inputs ...
    reads_output = True  # ... or of the output?  If not, they may change before `backward`.

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = _snake_case(cls.__name__)

    def __call__(self, *args: Value) -> Value:
        raise NotImplementedError(f"{type(self).__name__}.__call__ is not implemented")

    def compute(self, *args: Any) -> Any:
        """The forward pass, from raw arrays to a raw array (a tuple of them for a TensorTupleOp)."""
        raise NotImplementedError(f"{type(self).__name__}.compute is not implemented")

    def gradient(self, out_grad: Value, node: Value) -> Any:
        """The gradient of each input, given the gradient of the output; made of operators, so differentiable again."""
        raise NotImplementedError(f"{type(self).__name__}.gradient is not implemented")

    def gradient_as_tuple(self, out_grad: Value, node: Value) -> tuple[Value, ...]:
        """What `gradient` returns, always as a tuple; a fast twin may stand in while nothing records."""
        if write_log.clock != node.made_at:
            write_log.check_unchanged(node)
        grads = execution.backward(self, out_grad, node)
        grads = tuple(grads) if isinstance(grads, (tuple, list)) else (grads,)
        if len(grads) != len(node.inputs):
            raise GraphError(f"{self.name}: gradient returned {len(grads)} values for {len(node.inputs)} inputs")
        if execution.state.forgetting and not node.retains_grad:
            node.grad = None
        return tuple(map(_in_dtype_of, node.inputs, grads))

    def __repr__(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({settings})"


class TensorOp(Op):
    """An operator whose result is a Tensor."""

    def __call__(self, *args: Value) -> Tensor:
        return Tensor.make_from_op(self, args)


class TensorTupleOp(Op):
    """An operator whose result is a TensorTuple."""

    def __call__(self, *args: Value) -> TensorTuple:
        return TensorTuple.make_from_op(self, args)


class ElementwiseOp(TensorOp):
    """An operator on tensors of one shape, entry by entry."""

    def __call__(self, *args: Value) -> Tensor:
        if not _of_one_shape(args):
            check_tensors(self.name, *args)
            args = _stretched(self.name, args)
        return Tensor.make_from_op(self, args)


def _of_one_shape(values: Sequence[Any]) -> bool:
    """Are these Tensors whose shapes agree, as they mostly are?"""
    common = None
    for x in values:
        if not isinstance(x, Tensor):
            return False
        array = x.cached_data if x.cached_data is not None else x.realize_cached_data()
        if common is None:
            common = array.shape
        elif array.shape != common:
            return False
    return common is not None


def _stretched(name: str, tensors: Sequence[Any]) -> tuple[Tensor, ...]:
    """The tensors stretched to their common shape by broadcast_to."""
    shapes = [t.shape for t in tensors]
    # >>> never
    with contextlib.suppress(ValueError):
        shape = np.broadcast_shapes(*shapes)
        return tuple(t if t.shape == shape else ops.BroadcastTo(shape)(t) for t in tensors)
    # <<< never
    raise ShapeError(f"{name}: shapes {' and '.join(map(str, shapes))} differ; stretch one with broadcast_to")


def check_tensors(name: str, *args: object, kind: type | None = None) -> None:
    """ArgumentTypeError, in the name of an operator, unless all args are Tensors (or of another kind of Value)."""
    if not args:
        raise ArgumentTypeError(f"{name}: got nothing, wanted a Tensor")
    for arg in args:
        if not isinstance(arg, kind or Tensor):
            raise ArgumentTypeError(f"{name}: got {describe(arg)}, wanted a Tensor")


# --------------------------------------------------------------------------------------------------------------------
# Values
# --------------------------------------------------------------------------------------------------------------------


class Value:
    """A node of the graph."""

    op: Any  # the operator that made it; None for a leaf
    inputs: Sequence[Any]  # the Values that it was made from
    cached_data: Any
    requires_grad: bool
    grad: Any = None
    retains_grad: bool = False
    changed_at: int = 0  # write_log time of the last `.data =`
    rewired_at: int = 0  # write_log time of the last `x[...] =` that made this node another node

    def _init(self, op: Op | None, inputs: Sequence[Value], cached_data: Any, requires_grad: bool) -> None:
        self.op = op
        self.inputs = inputs
        self.cached_data = cached_data
        self.requires_grad = requires_grad
        self.made_at = write_log.clock

    def realize_cached_data(self) -> Any:
        """The array behind this node, computed now if it has not been yet."""
        if self.cached_data is None:
            for node in find_topo_sort([self]):  # in order, so that a long lazy chain needs no deep recursion
                if node.cached_data is None:
                    node.cached_data = execution.forward(node.op, node.inputs)
        return self.cached_data

    @property
    def num_outputs(self) -> int:
        """How many tensors this value holds."""
        return 1

    def is_leaf(self) -> bool:
        """True if no operator made this value."""
        return self.op is None

    @classmethod
    def make_const(cls, data: Any, *, requires_grad: bool = False) -> Any:
        """A leaf that holds data itself, not a copy."""
        value = _blank(cls)
        value._init(None, (), data, requires_grad)
        return value

    @classmethod
    def make_from_op(cls, op: Op, inputs: Sequence[Value]) -> Any:
        """The result of op on inputs: a node, or a constant if nothing that it depends on requires a gradient."""
        requires_grad = False
        for x in inputs:
            if not isinstance(x, Value):
                check_tensors(op.name, *inputs, kind=Value)
            if x.requires_grad:
                requires_grad = execution.state.recording
        data = None if LAZY_MODE else execution.forward(op, inputs)
        value = _blank(cls)
        if requires_grad or LAZY_MODE:
            value._init(op, inputs, data, requires_grad)
        else:
            value._init(None, (), data, False)
        return value


class TensorTuple(Value):
    """Several tensors that travel through the graph as one value."""

    def __len__(self) -> int:
        return len(self.realize_cached_data())

    def __getitem__(self, index: int) -> Tensor:
        return ops.tuple_get_item(self, index)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    @property
    def num_outputs(self) -> int:
        return len(self)

    def tuple(self) -> tuple[Tensor, ...]:
        """The tensors, as a Python tuple."""
        return tuple(self)

    def __add__(self, other: TensorTuple) -> TensorTuple:
        if not isinstance(other, TensorTuple) or len(self) != len(other):
            raise ShapeError(f"add: TensorTuple of {len(self)} and {describe(other)}, wanted two of one length")
        return ops.ops_tuple.sum_tuples([self, other])

    def detach(self) -> TensorTuple:
        """The same values, cut off from the graph."""
        return TensorTuple.make_const(self.realize_cached_data())

    def __repr__(self) -> str:
        return f"needle.TensorTuple{self.tuple()}"


class Tensor(Value):
    """An array of numbers that remembers how it was computed."""

    __array_ufunc__ = None  # a NumPy array on the left of an operator lets Tensor answer

    def __init__(
        self,
        array: Any,
        *,
        device: Any = None,
        dtype: Any = None,
        requires_grad: bool = True,
        **kwargs: Any,
    ) -> None:
        """A leaf from a Tensor, an array, numbers or nested lists of them.

        A Tensor of the same device and dtype shares its storage; everything else is copied.  In nd mode the result is
        float32 unless dtype says otherwise, and an integer that float32 cannot hold exactly is refused.
        """
        if kwargs:
            raise ArgumentTypeError(
                f"Tensor: no argument named {next(iter(kwargs))!r}; wanted device, dtype, requires_grad"
            )
        if isinstance(array, TensorTuple):
            raise ArgumentTypeError("Tensor: got a TensorTuple; take its parts, or ndl.stack them")
        if isinstance(array, Tensor):
            array = array.realize_cached_data()
            same = (device is None or as_device(device) == device_of(array)) and (dtype is None or array.dtype == dtype)
            data = array if same else _make_array(array, device or device_of(array), dtype or array.dtype)
        else:
            data = _make_array(array, device, dtype)
        self._init(None, (), data, requires_grad)

    # ---- what it holds ---------------------------------------------------------------------------------------------

    @property
    def data(self) -> Tensor:
        """The same storage as a tensor outside the graph; assign a Tensor to replace the value."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor) or value.dtype != self.dtype:
            raise DTypeError(f"data: got {describe(value)}, wanted a Tensor of dtype {self.dtype}")
        if value.device != self.device:
            raise DeviceError(f"data: got a Tensor on {value.device}, wanted one on {self.device}")
        self.cached_data = value.realize_cached_data()
        self.changed_at = write_log.tick()

    def detach(self) -> Tensor:
        """The same storage as a constant, cut off from the graph."""
        return Tensor.make_const(self.realize_cached_data())

    @property
    def shape(self) -> Shape:
        return self.realize_cached_data().shape

    @property
    def dtype(self) -> Any:
        return self.realize_cached_data().dtype

    @property
    def device(self) -> Any:
        return device_of(self.realize_cached_data())

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self.realize_cached_data().size)

    def numel(self) -> int:
        """Number of elements."""
        return self.size

    def numpy(self) -> np.ndarray:
        """A copy of the value as a NumPy array."""
        array = self.realize_cached_data()
        return np.array(array) if BACKEND == "np" else array.numpy().copy() if _aliases(array) else array.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ArgumentError("asarray: of a Tensor NumPy gets a copy; np.from_dlpack shares the memory")
        return np.asarray(self.numpy(), dtype=dtype)

    def __dlpack__(self, **kwargs: Any) -> Any:
        """The memory itself, for np.from_dlpack and the like; a write through it is not seen by `backward`."""
        return self._exported().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._exported().__dlpack_device__()

    def _exported(self) -> Any:
        array = self.realize_cached_data()
        return np.asarray(array) if BACKEND == "np" else array  # a sum over all axes is a scalar of NumPy's

    def item(self) -> Any:
        """The only element, as a Python number."""
        if self.size != 1:
            raise ShapeError(f"item: a tensor of shape {self.shape}, wanted one element")
        return self.numpy().reshape(-1)[0].item()

    def tolist(self) -> Any:
        """The value as nested lists."""
        return self.numpy().tolist()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __bool__(self) -> bool:
        if str(self.dtype) != "bool":  # code tests tensors for "was one given?"; only comparisons have a truth
            return True
        if self.size != 1:
            raise ShapeError(f"bool: the truth of a tensor of shape {self.shape} is not one value")
        return bool(self.item())

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentTypeError("len: a tensor of shape () has no length")
        return self.shape[0]

    # >>> hw2
    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    # <<< hw2
    def __repr__(self) -> str:
        return f"needle.Tensor({self.realize_cached_data()})"

    def __str__(self) -> str:
        return str(self.realize_cached_data())

    # ---- where and as what -----------------------------------------------------------------------------------------

    def to(self, target: Any) -> Tensor:
        """This tensor on another device ("cpu", ndl.cuda(), …) or in another dtype ("float64", …)."""
        if isinstance(target, str) and target.split(":")[0] not in ("cpu", "cuda", "cpu_numpy", "cuda_emu"):
            return self.astype(target)
        if isinstance(target, (np.dtype, type)):
            return self.astype(target)
        device = as_device(target)
        return self if device == self.device else ops.ToDevice(device)(self)

    def cpu(self) -> Tensor:
        """This tensor on the CPU."""
        return self.to("cpu")

    def cuda(self) -> Tensor:
        """This tensor on the GPU."""
        return self.to("cuda")

    def astype(self, dtype: Any) -> Tensor:
        """This tensor in another element type; the gradient comes back in the old one."""
        dtype = dtype_name("astype", dtype)
        return self if str(self.dtype) == dtype else ops.Cast(dtype)(self)

    def float(self) -> Tensor:
        """This tensor as float32."""
        return self.astype("float32")

    def double(self) -> Tensor:
        """This tensor as float64."""
        return self.astype("float64")

    # ---- differentiation -------------------------------------------------------------------------------------------

    def backward(self, out_grad: Any = None, *, gradient: Any = None, retain_graph: bool | None = None) -> None:
        """Leave in `.grad` of every leaf below how much this tensor moves with it.

        out_grad (or gradient) weighs the entries of this tensor and has its shape; left out, all weigh 1.  `.grad` is
        overwritten, never added to.  retain_graph is accepted and changes nothing: a graph lives as long as somebody
        refers to its output, and can be walked again.
        """
        if not self.requires_grad:
            raise GraphError("backward: this tensor depends on nothing that requires a gradient")
        _backward(self, seed_for(self, out_grad if out_grad is not None else gradient))

    def retain_grad(self) -> Tensor:
        """Ask `backward` to keep `.grad` here too, although this is no leaf."""
        self.retains_grad = True
        return self

    # ---- arithmetic ------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Tensor:
        if isinstance(other, Tensor):
            return ops.EWiseAdd()(self, other)
        return self._with(other, operator.add, ops.AddScalar)

    def __mul__(self, other: Any) -> Tensor:
        if isinstance(other, Tensor):
            return ops.EWiseMul()(self, other)
        return self._with(other, operator.mul, ops.MulScalar)

    def __pow__(self, other: Any) -> Tensor:
        if isinstance(other, Tensor):
            return ops.EWisePow()(self, other)
        return self._with(other, operator.pow, ops.PowerScalar)

    def __sub__(self, other: Any) -> Tensor:
        if isinstance(other, Tensor):
            # >>> hw2
            if other.dtype not in _FLOATS and other.dtype != self.dtype:  # other types wrap at other numbers
                return ops.Subtract()(self, other)
            # <<< hw2
            return ops.EWiseAdd()(self, ops.Negate()(other))
        # >>> hw2
        if _is_scalar(other) and self.dtype in ("uint8", "bool"):  # which hold no -other
            return -(other - self)
        # <<< hw2
        return self._with(other, operator.sub, lambda scalar: ops.AddScalar(-scalar))

    def __truediv__(self, other: Any) -> Tensor:
        if isinstance(other, Tensor):
            return ops.EWiseDiv()(self, other)
        return self._with(other, operator.truediv, ops.DivScalar)

    def __matmul__(self, other: Any) -> Tensor:
        if isinstance(other, Tensor):
            return ops.MatMul()(self, other)
        return self._with(other, operator.matmul)

    def __neg__(self) -> Tensor:
        return ops.Negate()(self)

    __radd__ = __add__
    __rmul__ = __mul__

    def _with(self, other: Any, as_tensor: Callable, as_scalar: Callable | None = None) -> Tensor:
        """self and a number by as_scalar, self and an array by as_tensor; NotImplemented for what is neither."""
        if as_scalar is not None and _is_scalar(other):
            return as_scalar(_plain(other))(self)
        if isinstance(other, (np.ndarray, NDArray, list, tuple)):
            return as_tensor(self, Tensor(other, device=self.device, requires_grad=False))
        return NotImplemented

    # >>> hw2
    def __abs__(self) -> Tensor:
        return ops.Abs()(self)

    def __rsub__(self, other: Any) -> Tensor:
        return self._with(other, lambda x, y: y - x, ops.ScalarSub)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._with(other, lambda x, y: y / x, ops.ScalarDiv)

    def __rpow__(self, other: Any) -> Tensor:
        return self._with(other, lambda x, y: y**x, ops.ScalarPower)

    def __rmatmul__(self, other: Any) -> Tensor:
        return self._with(other, lambda x, y: y @ x)

    def __floordiv__(self, other: Any) -> Tensor:
        return ops.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return ops.floor_divide(other, self)

    def __mod__(self, other: Any) -> Tensor:
        return ops.remainder(self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return ops.remainder(other, self)

    # ---- comparisons: constants of dtype bool; == and != stay identity ----------------------------------------------

    def __lt__(self, other: Any) -> Tensor:
        return ops.less(self, other)

    def __le__(self, other: Any) -> Tensor:
        return ops.less_equal(self, other)

    def __gt__(self, other: Any) -> Tensor:
        return ops.greater(self, other)

    def __ge__(self, other: Any) -> Tensor:
        return ops.greater_equal(self, other)

    # <<< hw2
    # ---- shape and reduction ---------------------------------------------------------------------------------------

    def matmul(self, other: Any) -> Tensor:
        """self @ other, the matrix product."""
        return self @ other

    def sum(self, axes: Any = None) -> Tensor:
        """The sum over the axes, all by default, which disappear."""
        return ops.Summation(axes)(self)

    def broadcast_to(self, shape: Shape) -> Tensor:
        """Repeated along axes of extent 1, and along new axes in front, to the shape."""
        return ops.BroadcastTo(shape)(self)

    def reshape(self, *shape: Any) -> Tensor:
        """The same entries in the same order in another shape, in which one extent may be -1."""
        return ops.Reshape(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)(self)

    def transpose(self, axes: Any = None) -> Tensor:
        """Two axes swapped; the last two unless axes names others."""
        return ops.Transpose(axes)(self)

    # >>> hw2
    @property
    def T(self) -> Tensor:
        """All axes in reverse order."""
        return ops.Permute(tuple(reversed(range(self.ndim))))(self)

    def __getitem__(self, index: Any) -> Tensor:
        """A part, by NumPy's rules: an int drops its axis."""
        return ops.GetItem(index)(self)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Write into a part.

        A leaf is written in place.  A tensor that an operator made becomes the result of one more operator, through
        which gradients flow to the old value's other entries and to `value`.
        """
        ops.set_item(self, index, value)

    # <<< hw2
    # ---- the rest of the operators that need nothing but the tensor are methods, too: x.exp(), x.mean(1), … ---------

    if TYPE_CHECKING:  # ops/__init__.py adds them; a real __getattr__ would slow down the look-up of every attribute

        def __getattr__(self, name: str) -> Any: ...


def _is_scalar(value: Any) -> bool:
    """A real number, or a NumPy array of one element: what the scalar operators take."""
    if type(value) in (float, int):  # as it mostly is
        return True
    if isinstance(value, (np.generic, np.ndarray)):
        return value.size == 1 and value.dtype.kind in "biuf"
    return isinstance(value, Real)


def _plain(scalar: Any) -> Any:
    """A scalar as Python's number, but in np mode as NumPy's, whose type counts there, if it can be negated."""
    if isinstance(scalar, (np.generic, np.ndarray)) and (BACKEND == "nd" or scalar.dtype.kind in "bu"):
        return scalar.item()
    return scalar


def dtype_name(op: str, dtype: Any) -> str:
    """The name of an element type.  DTypeError, in the name of an operator, for what is none or not of real numbers."""
    with contextlib.suppress(TypeError, ValueError):
        if dtype is not None and np.dtype(dtype).kind in "biuf":
            return np.dtype(dtype).name
    came = repr(dtype) if isinstance(dtype, str) else describe(dtype)
    raise DTypeError(f"{op}: got {came}, wanted a dtype such as 'float32' or 'int64'")


def device_of(array: Any) -> Any:
    """The device that holds an array of the backend."""
    return array.device if BACKEND == "nd" else default_device()


def _aliases(array: Any) -> bool:
    """Does array.numpy() show the storage itself?  (On the NumPy-backed device it does.)"""
    return array.device.name == "cpu_numpy"


def _make_array(source: Any, device: Any, dtype: Any) -> Any:
    """A new array of the backend, with the numbers of source."""
    if source is None:
        raise ArgumentTypeError("Tensor: got None, wanted numbers")
    if isinstance(source, (list, tuple)):
        source = [x.numpy() if isinstance(x, Tensor) else x for x in source]
    if BACKEND == "np":
        if device is not None and not as_device(device).enabled():
            as_device(device).refuse()
        if not isinstance(source, np.ndarray) and hasattr(source, "numpy"):
            source = source.numpy()
        try:
            array = np.array(source, dtype=dtype)
        except (ValueError, TypeError) as error:
            raise DTypeError(f"Tensor: {describe(source)}, dtype {dtype}: {error}") from error
        if array.dtype.kind not in "biuf":
            raise DTypeError(f"Tensor: {describe(source)} has dtype {array.dtype}, wanted numbers")
        return array
    try:
        return array_api.array(source, dtype=dtype, device=None if device is None else as_device(device))
    except NeedleError as error:
        raise in_the_name_of("Tensor", [], error) from error


# --------------------------------------------------------------------------------------------------------------------
# Differentiation
# --------------------------------------------------------------------------------------------------------------------


def find_topo_sort(node_list: Sequence[Value]) -> list[Value]:
    """The nodes below node_list in topological order: every node after its inputs, each once.

    Post-order depth-first search, inputs from left to right.
    """
    ### BEGIN YOUR SOLUTION hw1/topo_sort
    visited: set[Value] = set()
    topo_order: list[Value] = []
    for node in node_list:
        topo_sort_dfs(node, visited, topo_order)
    return topo_order


def topo_sort_dfs(node: Value, visited: set[Value], topo_order: list[Value]) -> None:
    """Append what lies below node, and then node, to topo_order; a stack of our own, so that no graph is too deep."""
    if node in visited:
        return
    visited.add(node)
    stack = [(node, iter(node.inputs))]
    while stack:
        current, inputs = stack[-1]
        for child in inputs:
            if child not in visited:
                visited.add(child)
                stack.append((child, iter(child.inputs)))
                break
        else:
            topo_order.append(current)
            stack.pop()
    ### STARTER
    #     raise NotImplementedError("hw1/topo_sort is not implemented yet")
    #
    #
    # def topo_sort_dfs(node: Value, visited: set[Value], topo_order: list[Value]) -> None:
    #     """Append what lies below node, and then node, to topo_order."""
    #     raise NotImplementedError("hw1/topo_sort is not implemented yet")
    ### END YOUR SOLUTION hw1/topo_sort


def compute_gradient_of_variables(output_tensor: Tensor, out_grad: Tensor) -> None:
    """Set `.grad` of every node below output_tensor: the reverse walk of automatic differentiation.

    A node's gradient is the sum of what its consumers pay into it; it is complete when all of them have been visited,
    which the reverse topological order guarantees.
    """
    ### BEGIN YOUR SOLUTION hw1/compute_gradient
    contributions: dict[Value, list[Value]] = {output_tensor: [out_grad]}
    for node in reversed(find_topo_sort([output_tensor])):
        if node not in contributions:
            continue  # nothing that requires a gradient leads here
        node.grad = sum_node_list(contributions.pop(node))
        if node.is_leaf():
            continue
        for child, grad in zip(node.inputs, node.op.gradient_as_tuple(node.grad, node)):
            if child.requires_grad:
                contributions.setdefault(child, []).append(grad)
    ### END YOUR SOLUTION hw1/compute_gradient


def sum_node_list(node_list: Sequence[Any]) -> Any:
    """The sum, from the left; one node alone is passed on as it is, so that no needless node comes about."""
    total = node_list[0]
    if isinstance(total, TensorTuple) and len(node_list) > 1:
        return ops.ops_tuple.sum_tuples(node_list)  # all at once: most parts of most of them are 0
    for node in node_list[1:]:
        total = total + node
    return total


def seed_for(output: Tensor, out_grad: Any) -> Tensor:
    """out_grad as a tensor that fits output: ones where none is given."""
    if out_grad is None:
        return Tensor.make_const(array_api.ones_like(output.realize_cached_data()))
    if not isinstance(out_grad, Value):
        out_grad = Tensor(out_grad, device=output.device, dtype=output.dtype, requires_grad=False)
    if isinstance(output, Tensor) and out_grad.shape != output.shape:
        if out_grad.size != output.size or output.size != 1:
            raise ShapeError(f"backward: out_grad of shape {out_grad.shape}, wanted {output.shape}")
        out_grad = out_grad.reshape(output.shape)
    return out_grad


def _backward(output: Tensor, seed: Tensor) -> None:
    """The walk without recording; afterwards leaves hold a Gradient, other nodes nothing."""
    nodes = find_topo_sort([output])
    try:
        with recording(False), execution.forgetting(True):
            compute_gradient_of_variables(output, seed)
        recipe = Recipe(output, seed)
        for node in nodes:
            keeps = node.requires_grad and (node.is_leaf() or node.retains_grad) and node.grad is not None
            node.grad = Gradient(node, recipe) if keeps else None
    except BaseException:
        for node in nodes:
            node.grad = None  # nothing half done
        raise
    finally:
        _close_recipes()


def gradients_below(output: Tensor, seed: Tensor) -> dict[Value, Any]:
    """{node: its gradient} for every node below output that requires one; each node's `.grad` stays as it was."""
    nodes = find_topo_sort([output])
    before = [node.grad for node in nodes]
    try:
        for node in nodes:
            node.grad = None
        with execution.forgetting(False):
            compute_gradient_of_variables(output, seed)
        return {node: node.grad for node in nodes if node.requires_grad and node.grad is not None}
    finally:
        for node, grad in zip(nodes, before):
            node.grad = grad


class Recipe:
    """How one backward call can be run again, recording: from its output, which it does not keep alive."""

    def __init__(self, output: Tensor, seed: Tensor) -> None:
        # of a gradient keep how it came about: itself it may die
        self.output = weakref.ref(output)
        self.inner = (output.recipe, output.owner) if isinstance(output, Gradient) else None
        self.seed = seed
        self.grads: dict[Value, Value] | None = None

    def differentiable(self) -> dict[Value, Value]:
        """{leaf: its gradient as a recorded graph}; one walk for all leaves of the call."""
        if self.grads is None:
            output: Any = self.inner[0].differentiable()[self.inner[1]()] if self.inner else self.output()
            if output is None:
                raise GraphError(
                    "backward: the graph behind this gradient is gone; keep its output, or use needle.grad"
                )
            with recording(True):
                self.grads = gradients_below(output, self.seed)
            _open_recipes.append(self)
        return self.grads


_open_recipes: list[Recipe] = []  # whose graphs are held for the walk that asked for them


def _close_recipes() -> None:
    """Let the graphs go, or gradient → graph → leaf → gradient would be a cycle."""
    while _open_recipes:
        _open_recipes.pop().grads = None


class Gradient(Tensor):
    """What `backward` leaves on a leaf: a value, and the recipe of its graph, followed only if it is differentiated."""

    def __init__(self, owner: Value, recipe: Recipe) -> None:
        self.owner: Any = weakref.ref(owner)
        self.recipe = recipe
        self._init(None, (), owner.grad.realize_cached_data(), requires_grad=True)

    @property
    def op(self) -> Op:
        """A step of its own, since the gradient may itself be a leaf: that of x + 1 is the seed."""
        return ops.Identity()

    @op.setter
    def op(self, value: Any) -> None:
        """Assigned by `_init`, and not kept: the recipe knows better.  So it is with inputs."""

    @property
    def inputs(self) -> Sequence[Value]:
        return (self.recipe.differentiable()[self.owner()],)

    @inputs.setter
    def inputs(self, value: Sequence[Value]) -> None: ...

    def is_leaf(self) -> bool:
        return False
