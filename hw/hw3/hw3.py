# %% [markdown]
# # Homework 3 · An array library of your own
#
# Until now NumPy held your numbers, and your operators asked NumPy for everything. Here you take
# NumPy's place. First you write, in four short Python methods, what makes an array more than a row
# of numbers. Then you write the loops that do the arithmetic: in C++ for the processor, and in CUDA
# for a graphics card. No graphics card is needed: an emulator runs the very same file, and is
# better at explaining mistakes than a card is.
#
# | question | what you write | where | time |
# |---|---|---|---|
# | 1 | `reshape`, `permute`, `broadcast_to`, `__getitem__` | `python/needle/backend_ndarray/ndarray.py` | 2 h |
# | 2 | compact and setitem | `src/ndarray_backend_cpu.cc` | 90 min |
# | 3, 4 | element by element, reductions | the same file | 60 min |
# | 5 | matrix products | the same file | 90 min |
# | 6 – 9 | the same four for a graphics card | `src/ndarray_backend_cuda.cu` | 4 – 5 h |
#
# Run the next cell first. It finds this tree, builds what has to be built, and may be run as often
# as you like.

# %%
setup("hw3")

# %% [markdown]
# ## Before you start: an array is a row of numbers and a little arithmetic
#
# Memory has one axis. A matrix of three rows and four columns is therefore stored as a row of
# twelve numbers, and something has to say where the number at row $i$, column $j$ lies. Ask NumPy
# what that something is:

# %%
import numpy as np

A = np.arange(12, dtype=np.float32).reshape(3, 4)
A, A.strides, A.itemsize

# %% [markdown]
# NumPy calls the two numbers *strides* and counts them in bytes; a float32 takes 4 bytes, so in
# *elements*, which is how we count from here on, they are 4 and 1. They say how far to walk in
# memory for one step along each axis: from a number to the one below it is 4 places, to the one on
# its right 1 place.
#
# The number at $(i, j)$ lies at place
#
# $$\text{offset} + i \cdot \text{strides}_0 + j \cdot \text{strides}_1 ,$$
#
# where *offset* is the place of the first number of all, here 0. Try it by hand on the flat memory:

# %%
memory = A.ravel()                      # the twelve numbers as they lie in memory
offset, strides = 0, (4, 1)
i, j = 2, 1
memory[offset + i * strides[0] + j * strides[1]], A[i, j]

# %% [markdown]
# Now the surprise, on which this homework stands: **if you change the three small things (shape,
# strides, offset) and leave the memory alone, you get another array, for nothing.** Each picture
# below is a different array over the same twelve numbers. The number in a cell is the place in
# memory at which the cell is stored.

# %%
from needle_course.figures import arrays as draw

draw.memory(shape=(3, 4), strides=(4, 1))

# %%
draw.memory(shape=(4, 3), strides=(1, 4), size=12)      # the transpose

# %%
draw.memory(shape=(2, 2), strides=(8, 2), offset=1, size=12)      # rows 0 and 2, columns 1 and 3

# %% [markdown]
# Such an array that shares its memory with another one is called a *view*. Two things follow, a
# good one and a dangerous one. A view of a gigabyte costs as much as a view of ten numbers. And who
# writes into a view writes into all the others:

# %%
import timeit

large = np.zeros((3000, 3000), np.float32)
for name, turn in (("view", lambda: large.T), ("copy", lambda: large.T.copy())):
    print(f"transpose as a {name}: {min(timeit.repeat(turn, number=1, repeat=3)) * 1e6:12,.1f} µs")

turned = A.T
turned[0, 0] = 100.0
A[0, 0]

# %% [markdown]
# ## Question 1 · Views, part 1 of 4: `reshape`
#
# File: `python/needle/backend_ndarray/ndarray.py`, method `NDArray.reshape`.

# %%
here("backend_ndarray/NDArray.reshape")

# %% [markdown]
# ### First, watch it happen
#
# Our array class is called `NDArray`. It keeps exactly the things you have just met: `_shape`,
# `_strides`, `_offset`, and `_handle`, which stands for the flat memory on some *device*
# (`_device`). Its method `as_strided` is given: it looks at the same memory with a shape and
# strides of your choice. Play with it. The device `cpu_numpy()` keeps its memory in NumPy and is
# complete, so all of this works before you have written a line.

# %%
from needle import backend_ndarray as nd

a = nd.array(np.arange(12), device=nd.cpu_numpy())
print(a.shape, a.strides)
print(a.as_strided((3, 4), (4, 1)))
print(a.as_strided((2, 6), (6, 1)))
print(a.as_strided((2, 2, 3), (6, 3, 1)))

# %% [markdown]
# Look at the strides that worked: $(4, 1)$ for three by four, $(6, 1)$ for two by six, $(6, 3, 1)$
# for two by two by three. Each stride is the product of all extents to the right of it, because
# that many numbers have to be skipped before the index of that axis moves on by one. An array whose
# strides are these, and which fills its memory from the first element to the last, is called
# *compact*. (*Row-major* and *C order* are other names for this layout.)
#
# So a compact array can take any shape with the same number of elements, and only the strides have
# to be worked out.

# %% [markdown]
# ### What can go wrong: an array that is not compact
#
# Reshaping keeps the *order* of the elements, and order means row after row of the array *as you
# see it*, not of the memory. Flatten the transpose of a matrix and try to say with one stride how
# to walk:

# %%
turned = np.arange(6).reshape(2, 3).T          # shape (3, 2), strides (1, 3) in elements
print("in order:", turned.reshape(6), "  steps in memory:", np.diff(turned.reshape(6)))

# %% [markdown]
# +3, −2, +3, −2, +3: no single stride does that, so the numbers have to be copied into a compact
# array first. The method `compact()`, which is given, does it (and returns the array itself if
# there is nothing to do).
#
# ### The contract
#
# | | |
# |---|---|
# | in | `new_shape`, a tuple; one of its entries may be −1, which stands for whatever number fits |
# | out | an NDArray of that shape with the same elements in the same order |
# | a view? | yes, if the array is compact: same `_handle`, nothing copied |
# | given | `infer_shape`, above the blank, has filled in a −1, and refused a shape with another number of elements |
# | a view with other strides | `self._view(shape, strides, offset)`; or `as_strided`, which keeps the offset |
# | cost | none for a compact array; one pass over the elements otherwise |
#
# ### A neighbour, complete
#
# Sliding windows: out of $n$ numbers, all runs of $w$ neighbours. The row index and the column
# index both move one place in memory, so both strides are the same. It is the whole trade of this
# question in two lines: *think about the strides, call `as_strided`.*

# %%
def windows(a, width):
    """(n,) → (n - width + 1, width), a view: row i holds elements i to i + width - 1."""
    (step,) = a.strides
    return a.as_strided((a.shape[0] - width + 1, width), (step, step))


print(windows(a, 3))

# %%
draw.memory(shape=(10, 3), strides=(1, 1), size=12)

# %% [markdown]
# ### Yours

# %%
show_blank("hw3/reshape")

# %% [markdown]
# hints("hw3/reshape")

# %%
check("hw3/reshape")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *a view must not copy*: you called `compact()` and then copied, or went through NumPy;
# - *the values are right, the strides are not*: you kept the old strides;
# - *the view shows other elements than it should*: its offset got lost (`self._offset`).
#
# ### Look at it
#
# A fresh process sees what you have just written. Two arrays, one memory:

# %%
run_fresh("""
import numpy as np
from needle import backend_ndarray as nd
a = nd.array(np.arange(12), device=nd.cpu_numpy())
b = a.reshape((3, 4))
print(b.strides, "same memory:", a._handle.ptr() == b._handle.ptr())
b._handle.array[0] = 100          # write through the flat memory
print(a.numpy()[0], b.numpy()[0, 0])
""")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. With NumPy, time `x.reshape(-1)` and `x.T.reshape(-1)` for a matrix of 3000 × 3000. By what
#    factor do they differ, and what is the slower one doing?
# 2. An array of shape (2, 3, 4) is transposed to (3, 2, 4) by swapping its first two axes. Can it
#    be reshaped to (3, 8) without a copy? And to (3, 2, 2, 2)? Ask NumPy (`np.shares_memory`), then
#    explain both answers with strides.

# %% [markdown]
# ## Question 1 · part 2 of 4: `permute`
#
# File: `python/needle/backend_ndarray/ndarray.py`, method `NDArray.permute`.

# %%
here("backend_ndarray/NDArray.permute")

# %% [markdown]
# ### First, watch it happen
#
# NumPy calls it `transpose` and takes the new order of the axes. Look at shape and strides before
# and after:

# %%
x = np.zeros((2, 3, 4), np.float32)
for axes in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
    y = x.transpose(axes)
    print(axes, "→ shape", y.shape, " strides", tuple(s // 4 for s in y.strides))

# %% [markdown]
# The strides travel with their axes, and that is all. New axis number $k$ is the old axis number
# `axes[k]`: it keeps the extent and the stride that it had. Nothing is copied, and the result is
# hardly ever compact.
#
# The trap is the direction. `axes[k]` says *where new axis k comes from*, not where old axis $k$
# goes. For the swap of two axes it makes no difference, which is how the mistake survives the first
# try; for $(2, 0, 1)$ it does.
#
# ### The contract
#
# | | |
# |---|---|
# | in | `new_axes`, each axis of the array exactly once; the lines above the blank have seen to that, and made negative numbers positive |
# | out | a view whose element at $(i_0, i_1, …)$ is the old element with $i_k$ at axis `new_axes[k]` |
# | cost | none; the memory is shared |
#
# ### A neighbour, complete
#
# The diagonal of a square matrix. One step along it is one step down *and* one step to the right,
# so its stride is the sum of the two:

# %%
def diagonal(a):
    """(n, n) → (n,), a view."""
    down, right = a.strides
    return a.as_strided((a.shape[0],), (down + right,))


square = nd.array(np.arange(16).reshape(4, 4), device=nd.cpu_numpy())
print(diagonal(square))

# %% [markdown]
# ### Yours

# %%
show_blank("hw3/permute")

# %% [markdown]
# hints("hw3/permute")

# %%
check("hw3/permute")

# %% [markdown]
# ### Look at it
#
# A batch of small pictures is stored with the colours last; many kernels want them first. One line,
# no copy:

# %%
run_fresh("""
import numpy as np
from needle import backend_ndarray as nd
pictures = nd.array(np.random.rand(10, 28, 28, 3), device=nd.cpu_numpy())
channels_first = pictures.permute((0, 3, 1, 2))
print(pictures.shape, pictures.strides)
print(channels_first.shape, channels_first.strides, "compact:", channels_first.is_compact())
""")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Permute twice with (2, 0, 1) and print the strides. What would you have to permute with to get
#    back at once?
# 2. In NumPy, time `x.sum()` and `x.transpose(2, 0, 1).sum()`, then `np.ascontiguousarray(...)` of
#    both, for x of shape (300, 300, 300). Where is the price of a permutation paid?

# %% [markdown]
# ## Question 1 · part 3 of 4: `broadcast_to`
#
# File: `python/needle/backend_ndarray/ndarray.py`, method `NDArray.broadcast_to`.

# %%
here("backend_ndarray/NDArray.broadcast_to")

# %% [markdown]
# ### First, watch it happen
#
# In the first homework a column of three numbers was stretched to three rows of four. How much
# memory do the twelve numbers take?

# %%
column = np.array([[10], [20], [30]], np.float32)
stretched = np.broadcast_to(column, (3, 4))
print(stretched)
print("strides in elements:", tuple(s // 4 for s in stretched.strides))

# %% [markdown]
# None that the column did not have already. **A stride of 0** means: a step along this axis goes
# nowhere. The four columns are the same three places in memory, seen four times each:

# %%
draw.memory(shape=(3, 4), strides=(1, 0))

# %% [markdown]
# Which axes may be stretched? Those of extent 1, and new axes put *in front*, as in NumPy. Line the
# two shapes up at their right ends; every old extent must then equal the new one, or be 1.
#
# ### The contract
#
# | | |
# |---|---|
# | in | `new_shape`, at least as long as the array's shape |
# | out | a view of that shape; stretched and new axes have stride 0, the others keep theirs |
# | given | an extent that is neither equal nor 1 has been refused above the blank |
# | cost | none |
#
# ### A neighbour, complete
#
# `np.repeat` says every number $r$ times in a row. Its answer is one-dimensional, but seen as $(n,
# r)$ it is a view; the second axis goes nowhere:

# %%
def repeated(a, times):
    """(n,) → (n, times): row i holds element i, `times` times; a view."""
    return a.as_strided((a.shape[0], times), (a.strides[0], 0))


print(repeated(nd.array([7, 8, 9], device=nd.cpu_numpy()), 4))

# %% [markdown]
# ### Yours

# %%
show_blank("hw3/broadcast_to")

# %% [markdown]
# hints("hw3/broadcast_to")

# %%
check("hw3/broadcast_to")

# %% [markdown]
# ### Look at it
#
# A bias of 100 numbers, broadcast to a batch of a million rows, would be 400 MB as a copy. As a
# view it is 400 bytes and a few integers:

# %%
run_fresh("""
import numpy as np
from needle import backend_ndarray as nd
bias = nd.array(np.random.rand(1, 100), device=nd.cpu_numpy())
batch = bias.broadcast_to((1000000, 100))
print(batch.shape, batch.strides, "elements in memory:", batch._handle.size)
""")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. What does `nd.array(...).broadcast_to((3, 4))` print as `is_compact()`, and why must a kernel
#    that walks memory from front to back not be given this array as it is?
# 2. Write into `np.broadcast_to(column, (3, 4))` in NumPy, and (with `as_strided`) into our own
#    stretched array: `b[0:1, 0:1] = 5.0` once part 4 is done. What do you see in row 0? Why does
#    NumPy refuse?

# %% [markdown]
# ## Question 1 · part 4 of 4: `__getitem__`
#
# File: `python/needle/backend_ndarray/ndarray.py`, method `NDArray.__getitem__`.

# %%
here("backend_ndarray/NDArray.__getitem__")

# %% [markdown]
# ### First, watch it happen
#
# A slice `start:stop:step` picks the indices start, start + step, … before stop. Python itself can
# tell you which:

# %%
B = np.arange(30, dtype=np.float32).reshape(5, 6)
for index in (np.s_[1:4, 0:6:2], np.s_[4:0:-1, 5:6], np.s_[0:5:2, 1:6:3]):
    view = B[index]
    first = view.ravel()[0]
    strides = tuple(s // 4 for s in view.strides)
    print(f"{str(index):52} shape {view.shape}  strides {strides}  first at {first:.0f}")

# %% [markdown]
# Read the three lines against the strides (6, 1) of `B`, and the three rules are there:
#
# - **shape**: the number of indices that the slice picks, `len(range(start, stop, step))`;
# - **strides**: the old stride times the step, because one step in the view is `step` steps in the
#   array;
# - **offset**: the old offset plus, for every axis, start times the old stride: that is where the
#   first element lies.
#
# Draw the last one. Its offset is $0 \cdot 6 + 1 \cdot 1 = 1$:

# %%
draw.memory(shape=(3, 2), strides=(12, 3), offset=1, size=30)

# %% [markdown]
# Negative steps need nothing extra: in `4:0:-1` the stride becomes −6, the view starts at the last
# row and walks backwards.
#
# ### The contract
#
# | | |
# |---|---|
# | in | `idxs`, an integer or a slice for each axis: `...` and missing indices have been filled in above the blank |
# | out | a view. **An integer keeps its axis**, with extent 1: `a[2, 1:3]` of a (5, 6) array has shape (1, 2) |
# | error | `IndexError` for an integer that is out of bounds; a slice is cut to what is there, as in Python |
# | cost | none |
#
# That an integer keeps its axis is different from NumPy; it makes every index a slice, and your
# method a single rule. Two helpers are given: `self.process_slice(slice, axis)` fills in what a
# slice leaves open (`[:]`, negative and missing numbers), `indexing.as_slice(integer, extent,
# axis)` makes a slice of an integer, or raises the IndexError.
#
# ### A neighbour, complete
#
# The last `k` elements of an array of one axis. Only the offset and the extent change.
# `NDArray.make` builds an array from all its parts; you will want it because `as_strided` has no
# way to say an offset.

# %%
def tail(a, k):
    """(n,) → (k,), a view of the last k elements."""
    offset = a._offset + (a.shape[0] - k) * a.strides[0]
    return nd.NDArray.make((k,), a.strides, device=a.device, handle=a._handle, offset=offset)


print(tail(nd.array(np.arange(12), device=nd.cpu_numpy()), 3))

# %% [markdown]
# ### Yours

# %%
show_blank("hw3/getitem")

# %% [markdown]
# hints("hw3/getitem")

# %%
check("hw3/getitem")

# %% [markdown]
# ### Look at it
#
# Views of views of views, and still the same memory:

# %%
run_fresh("""
import numpy as np
from needle import backend_ndarray as nd
a = nd.array(np.arange(100).reshape(10, 10), device=nd.cpu_numpy())
b = a[1:9, ::2].permute((1, 0))[::-1, 2:5]
print(b.numpy().astype(int))
print("shape", b.shape, " strides", b.strides, " offset", b._offset)
print("same memory:", a._handle.ptr() == b._handle.ptr())
""")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. `a[::-1]` has a negative stride. At which place of the memory of `a` does its first element
#    lie, and what does the formula for the offset give? Check with `_offset`.
# 2. Keep a view of the first row of an array of 100 MB and delete the array (`del a`). How much
#    memory does the process still hold? (`resource.getrusage(resource.RUSAGE_SELF).ru_maxrss`
#    before and after making a second one tells you whether the first was given back.) What would
#    have freed it?

# %% [markdown]
# ## Question 2 · From views back to rows: `compact`, and writing through views
#
# File: `src/ndarray_backend_cpu.cc`, functions `Compact`, `EwiseSetitem`, `ScalarSetitem`.

# %%
here("src/cpu/Compact")

# %% [markdown]
# ### First, watch it happen
#
# Views are free to make; somebody has to pay when the numbers are *used*. Sum a matrix of four
# million numbers, once along its memory and once across it. Both times the same numbers are added
# the same number of times:

# %%
n = size(4000, smoke=500)
rows = np.ones((n, n), np.float32)
seconds_along = best_of(lambda: [rows[i].sum() for i in range(n)])
seconds_across = best_of(lambda: [rows[:, i].sum() for i in range(n)])
print(f"row by row {1e3 * seconds_along:.1f} ms, column by column {1e3 * seconds_across:.1f} ms, "
      f"{seconds_across / seconds_along:.1f} times as long")

# %% [markdown]
# Memory does not hand out single numbers. It hands out *cache lines*, 64 bytes or sixteen float32
# at a time, and the processor keeps the latest of them close by, in its *caches*. Who walks along
# memory uses all sixteen; who jumps uses one and pays for sixteen.
#
# This is why our kernels work on compact arrays only. A kernel gets flat memory and walks it from
# front to back: no shapes, no strides, simple loops. Before it is called, `NDArray` calls
# `compact()`, which copies a view into row-major order if need be. The one kernel that has to
# understand strides is this copy, and its two mirror images, which write *into* a view.
#
# ### Walking a view: the odometer
#
# In Python one would write one `for` per axis. But how many axes are there? The kernel finds out
# when it runs. Count instead as the mileage counter of a car does: the last wheel turns; when it
# has gone full circle it goes back to 0 and the wheel on its left moves by one. Watch one run over
# a view of shape (2, 3):

# %%
shape, strides, offset = (2, 3), (1, 2), 10          # a transposed view that starts at place 10
index = [0, 0]
for element in range(6):
    place = offset + sum(i * stride for i, stride in zip(index, strides))
    print(f"element {element}: index {tuple(index)}, place {place}")
    for axis in (1, 0):                              # the last wheel first
        index[axis] += 1
        if index[axis] < shape[axis]:
            break                                    # no carry: the wheels on the left stand still
        index[axis] = 0

# %% [markdown]
# ### The contract
#
# | function | does | in Python |
# |---|---|---|
# | `Compact(a, out, shape, strides, offset)` | `out[0], out[1], …` = the elements of the view **of `a`**, in row-major order | `view.compact()` |
# | `EwiseSetitem(a, out, shape, strides, offset)` | the elements of the view **of `out`** = `a[0], a[1], …` | `view[...] = array` |
# | `ScalarSetitem(size, val, out, shape, strides, offset)` | every element of the view of `out` = `val` | `view[...] = 2.0` |
#
# `shape` and `strides` are `Dims` (a vector of int64), as long as each other, and possibly empty:
# an array without axes has one element. Strides may be negative or 0. `a.ptr[i]` is the number at
# place $i$ of the memory of `a`. There is at least one element, and every place that the view names
# lies inside the memory: the caller has checked. Cost: one pass over the elements.
#
# All three walk the same way. **Write the walk once** and let each of the three say only what
# happens at an element: the blank suggests a function `ForEachElement(shape, strides, offset,
# visit)`, which calls `visit(i, position)` for every element. What is to happen there is handed
# over as a *lambda*, a function without a name that may use the variables around it. Printing a
# view, for example, would be
#
# ```cpp
# ForEachElement(shape, strides, offset, [&](int64_t i, int64_t position) {
#   std::printf("element %ld is %g\n", i, a.ptr[position]);
# });
# ```
#
# ### A neighbour, complete
#
# `Fill` and `EwiseAdd` are given: this is what a kernel on flat memory looks like.

# %%
show_source("src/ndarray_backend_cpu.cc/Fill")

# %% [markdown]
# ### Yours
#
# After an edit of a C++ file the check builds it again; that takes a second or two.

# %%
show_blank("hw3/compact")

# %% [markdown]
# hints("hw3/compact")

# %%
check("hw3/compact")

# %%
show_blank("hw3/ewise_setitem")

# %% [markdown]
# hints("hw3/ewise_setitem")

# %%
check("hw3/ewise_setitem")

# %%
show_blank("hw3/scalar_setitem")

# %% [markdown]
# hints("hw3/scalar_setitem")

# %%
check("hw3/scalar_setitem")

# %% [markdown]
# If one is red, it is usually one of these:
#
# - *right for two axes, wrong for three*: the carry stops one wheel too early;
# - *the last row is missing*: `<` where `<=` was meant, or the walk ends when the first wheel
#   moves;
# - *wrong for `reversed`*: something is unsigned (`size_t`) that has to be able to go down.
#
# ### Look at it
#
# What does a copy cost in which order? The same 16 MB, from four different views:

# %%
run_fresh("""
import numpy as np, os
from needle import backend_ndarray as nd
from needle_course.experiments import best_of
n = 400 if os.environ.get("NEEDLE_SMOKE") else 2000
a = nd.array(np.random.rand(n, n), device=nd.cpu())
whole = slice(None)
for name, view in (("as it lies, but for one column", a[:, 1:]), ("transposed", a.permute((1, 0))),
                   ("rows from the back", a[::-1]), ("broadcast", a[0].broadcast_to((n, n)))):
    seconds = best_of(lambda: view.compact(), 3)
    speed = 2 * 4 * view.size / seconds / 1e9
    print(f"{name:32} {1e3 * seconds:7.2f} ms   {speed:5.1f} GB/s read and written")
""")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. By what factor is the transposed copy slower than the first one? Compare with 64 bytes a cache
#    line and 4 bytes a number: why is it not sixteen times as slow?
# 2. Instead of keeping the place up to date as the odometer turns, one can compute it anew from all
#    indices for every element. Try it: how much slower is a view with six axes?

# %% [markdown]
# ## Question 3 · Element by element
#
# File: `src/ndarray_backend_cpu.cc`, one line for each operation.

# %%
here("src/cpu/Ewise")

# %% [markdown]
# ### First, watch it happen
#
# A processor core has *vector* instructions that do the same thing to 4, 8 or 16 numbers at once,
# and a machine has several *cores* that can each do their own work. This little C++ program
# multiplies and adds numbers that all fit into the cache. It is compiled three times: vector
# instructions forbidden, allowed, and allowed in the widest form that this processor has. Each is
# then run by 1 and 2 *threads*, which are strands of work that go on side by side.

# %%
program = r"""
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

void MulAdd(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out,
            int n) {
  for (int i = 0; i < n; i++) out[i] += a[i] * b[i];
}

void Work(int times) {
  std::vector<float> a(2048, 1), b(2048, 1), out(2048);
  for (int t = 0; t < times; t++) MulAdd(a.data(), b.data(), out.data(), 2048);
}

int main() {
  for (int threads : {1, 2}) {
    auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> team;
    for (int t = 0; t < threads; t++) team.emplace_back(Work, TIMES / threads);
    for (auto& thread : team) thread.join();
    std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    double speed = 2.0 * 2048 * TIMES / passed.count() / 1e9;
    std::printf("   %d thread(s): %5.1f GFLOP/s\n", threads, speed);
  }
}
"""
times = f"-DTIMES={size(400_000, smoke=20_000)}"
flags = {"one by one": "-fno-tree-vectorize", "vectors": "-O3", "wide": "-march=native"}
for name, flag in flags.items():
    print(name)
    run_cpp(program, flag, times, "-pthread")

# %% [markdown]
# (GFLOP/s: thousand million additions and multiplications in a second. If two threads are no faster
# than one here, your machine was busy, or has one core.)
#
# Nobody wrote a vector instruction. The compiler made them out of the plain loop, because the loop
# makes it easy: neighbouring elements, no branch, and a promise (`__restrict__`) that the arrays do
# not overlap. **A loop that a compiler understands is the first optimisation**, which is one more
# reason to keep the kernels on flat memory.
#
# ### The contract
#
# An operation is one statement. The macro writes the loop around your formula, and enters the
# kernel under its Python name, from where `NDArray` calls it. Here are the two that are given:
#
# ```cpp
# //                  name   Python name    out[i] from a[i] and b[i]
# NEEDLE_EWISE_BINARY(Add,   "ewise_add",   a + b);
# //                  name   Python name    out[i] from a[i] and val
# NEEDLE_EWISE_SCALAR(Add,   "scalar_add",  a + val);
# ```
#
# In the formula `a` is one number of the first array, `b` one of the second, `val` the single
# number. You write the others; each is a formula in `a` and `b`, in `a` and `val`, or in `a` alone:
#
# | two arrays | array and number | one array |
# |---|---|---|
# | `ewise_mul`, `ewise_div` | `scalar_mul`, `scalar_div`, `scalar_power` | `ewise_log`, `ewise_exp`, `ewise_tanh` |
# | `ewise_maximum` | `scalar_maximum` | |
# | `ewise_eq`, `ewise_ge`: 1 where it holds, else 0 | `scalar_eq`, `scalar_ge` | |
#
# Everything is float32. `<cmath>` has `std::pow`, `std::log`, `std::exp`, `std::tanh`. The trap is
# the maximum: what should it be if one of the two numbers is NaN, *not a number*? Ask NumPy, and
# ask the obvious formula:

# %%
nan = np.float32("nan")
larger = lambda a, b: a if a > b else b
print("numpy:          ", np.maximum(nan, 1), np.maximum(1, nan))
print("a > b ? a : b:  ", larger(nan, 1), larger(1, nan))

# %% [markdown]
# Every comparison with NaN is false, so the obvious formula loses a NaN, or keeps it, depending on
# which side it stands. Losing it is worse than it looks: a NaN in a loss is a message that
# something went wrong, and a maximum in the middle of the network would swallow it. In our library
# **a NaN wins**: the function `Max(a, b)`, given in the file, sees to it. Read how.
#
# ### Yours

# %%
show_blank("hw3/ewise_mul")

# %% [markdown]
# The others stand below it in the file, each with its own tag. Fill them all, then check the whole
# question.
#
# <details><summary>Hints for each operation</summary>
#
# `ewise_mul`
#
# hints("hw3/ewise_mul")
#
# `ewise_div`
#
# hints("hw3/ewise_div")
#
# `ewise_maximum`
#
# hints("hw3/ewise_maximum")
#
# `ewise_eq`
#
# hints("hw3/ewise_eq")
#
# `ewise_ge`
#
# hints("hw3/ewise_ge")
#
# `scalar_mul`
#
# hints("hw3/scalar_mul")
#
# `scalar_div`
#
# hints("hw3/scalar_div")
#
# `scalar_power`
#
# hints("hw3/scalar_power")
#
# `scalar_maximum`
#
# hints("hw3/scalar_maximum")
#
# `scalar_eq`
#
# hints("hw3/scalar_eq")
#
# `scalar_ge`
#
# hints("hw3/scalar_ge")
#
# `ewise_log`
#
# hints("hw3/ewise_log")
#
# `ewise_exp`
#
# hints("hw3/ewise_exp")
#
# `ewise_tanh`
#
# hints("hw3/ewise_tanh")
#
# </details>

# %%
check("hw3/cpu_elementwise")

# %% [markdown]
# ### Look at it
#
# Some operations move numbers and some compute. Which of yours is which?

# %%
run_fresh("""
import numpy as np, os
from needle import backend_ndarray as nd
from needle_course.experiments import best_of
n = 10_000 if os.environ.get("NEEDLE_SMOKE") else 1_000_000
a = nd.array(np.random.rand(n) + 0.5, device=nd.cpu())
b = nd.array(np.random.rand(n) + 0.5, device=nd.cpu())
operations = {
    "a + b": lambda: a + b, "a * b": lambda: a * b, "a / b": lambda: a / b,
    "maximum": lambda: a.maximum(b), "exp": a.exp, "log": a.log, "tanh": a.tanh,
    "a ** 2": lambda: a ** 2.0,
}
for name, f in operations.items():
    print(f"{name:8} {n / best_of(f) / 1e6:8.0f} million elements a second")
""")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Run the cell above with ten times as many elements, and with a hundred times fewer. Which
#    operations change, in which direction, and why? (Three arrays of $10^6$ float32 are 12 MB. How
#    large are the caches of your machine? `lscpu` knows.)
# 2. `a ** 2.0` and `a * a` give the same numbers. How far apart are they in time? Where would you
#    put a shortcut: in the kernel, in `NDArray`, or nowhere?

# %% [markdown]
# ## Question 4 · Reductions
#
# File: `src/ndarray_backend_cpu.cc`, functions `ReduceMax` and `ReduceSum`.

# %%
here("src/cpu/ReduceSum")

# %% [markdown]
# ### First, watch it happen
#
# To sum a (2, 3, 4) array over its middle axis, move that axis to the end. Now every sum runs over
# numbers that are neighbours, and the flat memory is a row of *runs*:

# %%
C = np.arange(24).reshape(2, 3, 4)
moved = np.ascontiguousarray(C.transpose(0, 2, 1))   # (2, 4, 3): the axis to be summed is last
runs = moved.reshape(-1, 3)
print("flat memory:", moved.ravel())
print("sums of runs of three:", runs.sum(axis=1))
print("numpy's answer:       ", C.sum(axis=1).ravel())

# %% [markdown]
# `NDArray` does the moving (`permute`, then `compact`: you wrote both). What is left for the kernel
# is one sum for each run.
#
# ### The contract
#
# | | |
# |---|---|
# | in | `a`, flat and compact; `reduce_size`, the length of a run, at least 1 |
# | out | `out[i]` from `a[i * reduce_size]` to `a[i * reduce_size + reduce_size - 1]`; `out->size` runs in all |
# | maximum | a NaN anywhere in the run wins, as in question 3 |
# | cost | one pass |
#
# The trap of the maximum is where to start. 0 is wrong: a run may hold only negative numbers. Start
# from the first element of the run.
#
# ### A neighbour, complete
#
# How many numbers of each run are positive? It starts from nothing, walks one run, and writes one
# number:
#
# ```cpp
# void CountPositive(const AlignedArray& a, AlignedArray* out, size_t reduce_size) {
#   for (size_t run = 0; run < out->size; run++) {
#     const scalar_t* first = a.ptr + run * reduce_size;
#     out->ptr[run] = std::count_if(first, first + reduce_size, [](scalar_t x) { return x > 0; });
#   }
# }
# ```
#
# ### Yours

# %%
show_blank("hw3/reduce_max")

# %% [markdown]
# hints("hw3/reduce_max")

# %%
check("hw3/reduce_max")

# %%
show_blank("hw3/reduce_sum")

# %% [markdown]
# hints("hw3/reduce_sum")

# %%
check("hw3/reduce_sum")

# %% [markdown]
# ### Look at it: a sum is not a sum
#
# A float32 keeps about seven decimal digits. Add ten million times 0.1 and see what becomes of
# them:

# %%
run_fresh("""
import numpy as np, os
from needle import backend_ndarray as nd
for n in (10_000, 100_000) if os.environ.get("NEEDLE_SMOKE") else (10_000, 1_000_000, 10_000_000):
    x = np.full(n, 0.1, np.float32)
    ours, exact = nd.array(x, device=nd.cpu()).sum().numpy()[0], x.astype(np.float64).sum()
    print(f"{n:10,} terms: our sum {ours:14.3f}   numpy {x.sum():14.3f}   exact {exact:14.3f}")
""")

# %% [markdown]
# One running sum grows until 0.1 is small against its last digit, and from then on every addition
# is rounded the same way. NumPy sums halves of halves: no partial sum is much larger than what is
# added to it, and the error grows with the logarithm of the number of terms.
#
# ### Two questions that want a measurement
#
# 1. From how many terms on is our sum off by more than one in a thousand? What happens to a running
#    sum of *ones* at $2^{24}$ terms, and why exactly there? (`np.float32(2**24) + np.float32(1)`)
# 2. Keep the running sum in a `double` inside the kernel. What does it cost in time, and what does
#    it buy?

# %% [markdown]
# ## Question 5 · Matrix products, and the memory under them
#
# File: `src/ndarray_backend_cpu.cc`, functions `Matmul`, `MatmulTiled` and `AlignedDot`.

# %%
here("src/cpu/Matmul")

# %% [markdown]
# ### First, watch it happen
#
# Write $a_{ik}$ for the number in row $i$, column $k$ of a matrix $a$. The product of $a$ ($m
# \times n$) and $b$ ($n \times p$) is
#
# $$\text{out}_{ij} = \sum_{k=1}^{n} a_{ik}\, b_{kj} .$$
#
# Three loops, over $i$, $j$ and $k$, and the order is yours: every order does the same $m n p$
# multiplications. Here are three of the six orders in C++. Guess the factor between the slowest and
# the fastest before you run it.

# %%
program = r"""
#include <chrono>
#include <cstdio>
#include <vector>

template <class Loops> void Measure(const char* name, Loops loops) {
  double best = 1e9;
  for (int run = 0; run < 3; run++) {
    auto start = std::chrono::steady_clock::now();
    loops();
    std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    best = passed.count() < best ? passed.count() : best;
  }
  std::printf("%s   %8.1f ms   %6.2f GFLOP/s\n", name, 1e3 * best, 2.0 * N * N * N / best / 1e9);
}

#define LOOP(i) for (int i = 0; i < N; i++)

int main() {
  std::vector<float> a(N * N, 1), b(N * N, 1), out(N * N);
  Measure("j k i", [&] { LOOP(j) LOOP(k) LOOP(i) out[i * N + j] += a[i * N + k] * b[k * N + j]; });
  Measure("i j k", [&] { LOOP(i) LOOP(j) LOOP(k) out[i * N + j] += a[i * N + k] * b[k * N + j]; });
  Measure("i k j", [&] { LOOP(i) LOOP(k) LOOP(j) out[i * N + j] += a[i * N + k] * b[k * N + j]; });
}
"""
run_cpp(program, f"-DN={size(512, smoke=64)}")

# %% [markdown]
# Look at the innermost loop of each, and at how far it jumps in memory for one step:
#
# | order | steps of the innermost loop in `out`, `a`, `b` | so |
# |---|---|---|
# | j k i | N, N, 0 | two new cache lines for every multiplication |
# | i j k | 0, 1, N | one new cache line for every multiplication |
# | i k j | 1, 0, 1 | neighbours only: every line is used up, and vector instructions apply |
#
# ### The memory hierarchy
#
# Between the arithmetic and the main memory stand caches, each about ten times larger and a few
# times slower than the one before. A typical core:
#
# | | size | time until a number is there |
# |---|---|---|
# | registers | some hundred bytes | at once |
# | first cache | 32 – 64 KB | about 1 ns |
# | second cache | 0.5 – 2 MB | about 4 ns |
# | third cache, shared | some 10 MB | about 15 ns |
# | main memory | GBs | about 80 ns |
#
# In the time of one trip to main memory, a core could have done a thousand multiplications. A
# product of two matrices of $N \times N$ has $N^3$ multiplications on only $2 N^2$ numbers, so each
# number is needed $N$ times. The question is only whether it is still in a near cache when it is
# needed again. In the loops above, for large $N$, it is not: between two uses of a number of $b$
# all the rest of $b$ passes through.
#
# ### Tiles
#
# Cut the matrices into square *tiles* of $T \times T$ numbers, small enough that three of them fit
# into the first cache together. A product of matrices is a product of tiles: tile $(i, j)$ of the
# result is the sum, over $k$, of the *matrix products* of tile $(i, k)$ of $a$ and tile $(k, j)$ of
# $b$.

# %%
draw.blocks(rows=4, inner=5, columns=4, tile=8, at=(1, 2))

# %% [markdown]
# Once loaded, each number of a tile is used $T$ times before the tile leaves the cache. Instead of
# $2 N^3$ numbers, main memory has to deliver $2 N^3 / T$. Count it, with a cache that holds exactly
# three tiles:

# %%
N = 1024
for T in (1, 8, 32, 64):
    loads = 2 * (N // T) ** 3 * T * T
    print(f"T = {T:2}: {loads / 1e6:8.1f} million numbers from memory "
          f"for {N**3 / 1e6:.0f} million multiplications; "
          f"three tiles take {3 * T * T * 4 / 1024:5.1f} KB")

# %% [markdown]
# One more thing has to be right. In a large row-major matrix the rows of a tile lie far apart, one
# cache line here and one there. So `NDArray` stores the operands *tile after tile* before it calls
# the tiled kernel: with a reshape and a permute, both of which you have written. An (m, n) matrix
# becomes (m / T, n / T, T, T), and each tile is T · T neighbours.

# %%
small = np.arange(16).reshape(4, 4)
tiles = small.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3)
print(small)
print("tile after tile:", tiles.ravel())

# %% [markdown]
# ### The contract
#
# | function | does |
# |---|---|
# | `Matmul(a, b, out, m, n, p)` | out = a b for row-major matrices (m, n), (n, p), of any sizes |
# | `AlignedDot(a, b, out)` | **out += a b** for three tiles of `kTile` × `kTile` numbers |
# | `MatmulTiled(a, b, out, m, n, p)` | out = a b, all three stored tile after tile; the sizes are multiples of `kTile` |
#
# `out` comes with whatever was in its memory before: clear it (`Fill`) if you are going to add into
# it. `AlignedDot` tells the compiler three things with which it can make vector instructions:
# `__restrict__` (the tiles do not overlap), `__builtin_assume_aligned` (they start at a cache
# line), and a number of rounds that it knows.
#
# ### A neighbour, complete
#
# A matrix times a vector, out[i] = Σₖ a[i, k] · x[k]:
#
# ```cpp
# void Matvec(const AlignedArray& a, const AlignedArray& x, AlignedArray* out, int64_t m, int64_t n) {
#   for (int64_t i = 0; i < m; i++) {
#     float dot = 0;
#     for (int64_t k = 0; k < n; k++) dot += a.ptr[i * n + k] * x.ptr[k];
#     out->ptr[i] = dot;
#   }
# }
# ```
#
# ### Yours

# %%
show_blank("hw3/matmul")

# %% [markdown]
# hints("hw3/matmul")
#
# When you have it, `check("hw3/matmul")` in a cell of your own checks it alone. The other two are
# checked together: `AlignedDot` shows only through `MatmulTiled`.

# %%
show_blank("hw3/aligned_dot")

# %% [markdown]
# hints("hw3/aligned_dot")

# %%
show_blank("hw3/matmul_tiled")

# %% [markdown]
# hints("hw3/matmul_tiled")

# %%
check("hw3/cpu_products")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *right the first time, too large the second*: `out` was not cleared;
# - *right for square matrices only*: the number of columns of `b` is p, not n;
# - *the tiled product is a permutation of the right one*: tile (i, k) of `a` starts at (i · (n / T)
#   + k) · T · T.
#
# ### Look at it
#
# Your two kernels and NumPy's, which is decades of work on the same three loops:

# %%
run_fresh("""
import numpy as np, os
from needle import backend_ndarray as nd
from needle_course.experiments import best_of
device, T = nd.cpu(), nd.cpu().__tile_size__
for n in (64, 128) if os.environ.get("NEEDLE_SMOKE") else (128, 256, 512, 1024):
    A = np.random.rand(n, n).astype(np.float32)
    a = nd.array(A, device=device)
    out = nd.NDArray.make((n, n), device=device)
    plain = lambda: device.matmul(a._handle, a._handle, out._handle, n, n, n)
    tiled = lambda: device.matmul_tiled(a._handle, a._handle, out._handle, n, n, n)
    speeds = [2 * n**3 / best_of(f, 3) / 1e9 for f in (plain, tiled, lambda: A @ A)]
    print("n = {:5}   plain {:6.1f}   tiled {:6.1f}   numpy {:6.1f} GFLOP/s".format(n, *speeds))
""")

# %% [markdown]
# Do not be surprised if your tiled kernel is the slower one. Tiles of 8 × 8 save trips to memory,
# but their innermost loop has only 8 rounds, and it costs something to start a loop. How large
# should a tile be? Here is a program with the loops of your kernel, for tiles of several sizes; the
# last "tile" is the whole matrix.

# %%
program = r"""
#include <chrono>
#include <cstdio>
#include <vector>

template <int T> void Product(const float* a, const float* b, float* out) {
  constexpr int tiles = N / T, block = T * T;
  for (int i = 0; i < tiles; i++)
    for (int j = 0; j < tiles; j++)
      for (int k = 0; k < tiles; k++) {
        const float* __restrict__ x = a + (i * tiles + k) * block;
        const float* __restrict__ y = b + (k * tiles + j) * block;
        float* __restrict__ z = out + (i * tiles + j) * block;
        for (int r = 0; r < T; r++)
          for (int s = 0; s < T; s++)
            for (int c = 0; c < T; c++) z[r * T + c] += x[r * T + s] * y[s * T + c];
      }
}

template <int T> void Measure() {
  std::vector<float> a(N * N, 1), b(N * N, 1), out(N * N);
  auto start = std::chrono::steady_clock::now();
  Product<T>(a.data(), b.data(), out.data());
  std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  double speed = 2.0 * N * N * N / passed.count() / 1e9;
  std::printf("T = %4d   three tiles %6.1f KB   %6.1f GFLOP/s\n", T, 12.0 * T * T / 1024, speed);
}

int main() {
  Measure<8>();
  Measure<32>();
  Measure<128>();
  Measure<N>();
}
"""
run_cpp(program, f"-DN={size(2048, smoke=256)}")

# %% [markdown]
# Too small, and the loops cost more than they save; too large, and the tiles fall out of the near
# caches. NumPy's library cuts tiles within tiles, one size for each cache and one for the
# registers, and writes the innermost loop for each kind of processor by hand. That is the factor
# which is left.
#
# ### Two questions that want a measurement
#
# 1. Change `kTile` in `src/aligned_array.h` to 16 and to 32, and measure your three kernels again.
#    (The other files are built anew, too; it takes a moment. Put 8 back when you are done.) Which
#    is best, and does the table of caches say why?
# 2. In `Matmul`, exchange the loops over $j$ and $k$ and measure again. Does the factor agree with
#    what the little program above said?

# %% [markdown]
# ## Before questions 6 to 9: how a graphics card works
#
# A core of a processor runs one thread fast. A graphics card runs tens of thousands of threads at
# once, each of them slowly. You do not write a loop over a million elements; you write *what one
# thread does for one element*, and ask for a million threads. Such a function is called a *kernel*
# and is marked `__global__`.
#
# Threads come in *blocks* of equal size, and all blocks together are the *grid*. A thread can ask
# where it is:
#
# | in the kernel | means |
# |---|---|
# | `threadIdx.x` | the number of the thread in its block, from 0 |
# | `blockDim.x` | how many threads a block has |
# | `blockIdx.x` | the number of the block |
# | `gridDim.x` | how many blocks there are |
#
# So the number of a thread among all of them is `blockIdx.x * blockDim.x + threadIdx.x`, and that
# is the element it looks after. Ten elements, blocks of four threads:

# %%
draw.grid(size=10, block=4)

# %% [markdown]
# The last two threads have no element. They must find that out themselves: **every kernel starts
# with a look at whether there is something to do.** Forgetting it writes behind the end of the
# array, and a card does not say so.
#
# Kernels run in the card's own memory. An array that lives there (`CudaArray`) cannot be read by
# ordinary C++ code, and the other way round; `cudaMemcpy` carries numbers across. A kernel is
# started, *launched*, like this, with the number of blocks and the number of threads per block
# between the angle brackets:
#
# ```cpp
# EwiseAddKernel<<<blocks, threads>>>(a.ptr, b.ptr, out->ptr, out->size);
# ```
#
# You need no card for this. An *emulator* runs the same source on the processor: the threads of
# every block, one after the other. It is not fast, but it is exact, and it can watch every access
# to memory. Here is a whole program: a kernel, and a function that asks for memory on the card,
# carries numbers there, launches the kernel and carries the result back.

# %%
doubling = r"""
#include <cuda_runtime.h>
#include <cstdio>

__global__ void DoubleKernel(const float* in, float* out, int size) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) out[i] = 2 * in[i];
}

void Experiment() {
  float numbers[10], *in, *out;
  for (int i = 0; i < 10; i++) numbers[i] = i;
  cudaMalloc(&in, sizeof numbers);
  cudaMalloc(&out, sizeof numbers);
  cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  DoubleKernel<<<3, 4>>>(in, out, 10);
  cudaMemcpy(numbers, out, sizeof numbers, cudaMemcpyDeviceToHost);
  for (float number : numbers) std::printf("%g ", number);
  std::printf("\n");
  cudaFree(in);
  cudaFree(out);
}
"""
run_cuda(doubling)

# %% [markdown]
# Now take the look away. On a card this would write eight bytes behind the array, into whatever
# lies there, and print the same ten numbers. The emulator says which thread of which block did it,
# on which line:

# %%
run_cuda(doubling.replace("if (i < size) ", ""), check=True)

# %% [markdown]
# ## Question 6 · CUDA: compact and setitem
#
# File: `src/ndarray_backend_cuda.cu`, functions `Compact`, `EwiseSetitem`, `ScalarSetitem` and
# their kernels.

# %%
here("src/cuda/Compact")

# %% [markdown]
# ### First, watch it happen
#
# On the processor an odometer turned from element to element. A thread has no element before it: it
# knows only its own number and must find its place from that alone. Numbers are taken apart into
# indices as seconds are into hours, minutes and seconds, by division with remainder, the last axis
# first:

# %%
def place(number, shape, strides, offset):
    """Where element `number` of a view, counted in row-major order, lies in memory."""
    position = offset
    for extent, stride in zip(reversed(shape), reversed(strides)):
        number, index = divmod(number, extent)
        position += index * stride
    return position


[place(number, (2, 3), (1, 2), 10) for number in range(6)]

# %% [markdown]
# The same six places as the odometer's in question 2, and now each of them can be found without the
# others. That is what makes work *parallel*: no step waits for another one.
#
# ### The contract
#
# The same three functions as in question 2, in two halves each: a kernel (`__global__`), which is
# what one thread does, and a *launcher*, an ordinary function that is called from Python and starts
# the kernel. `src/cuda_launch.h`, which is given, has what both need:
#
# | | |
# |---|---|
# | `GlobalIndex()` | the number of this thread among all, as 64-bit integer (`__device__`: for kernels) |
# | `Blocks(size, block)` | how many blocks of `block` threads cover `size` elements |
# | `Grid(blocks)`, `kBlockThreads` | what stands between the angle brackets; 256 threads to a block |
# | `View(name, shape, strides, offset)` | these three as one value that travels to the card; up to eight axes |
# | `CUDA_CHECK(call)` | turns an error of CUDA into an exception; use it after each launch |
#
# Strides may be negative, so compute places with signed 64-bit numbers.
#
# ### A neighbour, complete
#
# `Fill` in its two halves:

# %%
show_source("src/ndarray_backend_cuda.cu/FillKernel")

# %%
show_source("src/ndarray_backend_cuda.cu/Fill")

# %% [markdown]
# ### Yours

# %%
show_blank("hw3/cuda_compact")

# %% [markdown]
# hints("hw3/cuda_compact")

# %%
check("hw3/cuda_compact")

# %%
show_blank("hw3/cuda_ewise_setitem")

# %% [markdown]
# hints("hw3/cuda_ewise_setitem")

# %%
check("hw3/cuda_ewise_setitem")

# %%
show_blank("hw3/cuda_scalar_setitem")

# %% [markdown]
# hints("hw3/cuda_scalar_setitem")

# %%
check("hw3/cuda_scalar_setitem")

# %% [markdown]
# ### Look at it: what a wild index looks like
#
# Your kernel runs on the device `cuda()`, which `NEEDLE_CUDA_EMU=1` makes the emulated one. Compact
# a transposed view with it; then make a view whose strides lead out of its memory, and see who
# notices:

# %%
run_fresh("""
import os
os.environ["NEEDLE_CUDA_EMU"] = "1"
from needle import backend_ndarray as nd
import numpy as np
a = nd.array(np.arange(12), device=nd.cuda())
print(repr(a.device), a.reshape((3, 4)).permute((1, 0)).compact())
try:
    print(a.as_strided((3, 4), (400, 1)).compact())
except Exception as error:
    print(type(error).__name__ + ":", error)
""")

# %% [markdown]
# The bindings, which are given, looked before the kernel ran: no place outside the memory ever
# reaches a kernel of yours. What they cannot see is an index that your *kernel* gets wrong; that is
# what the emulator is for, as with `doubling` above. `NEEDLE_CUDA_EMU=check` makes it watch the
# kernels of this file, too.
#
# ### Two questions that want a measurement
#
# 1. A card hands out memory in *sectors* of 32 bytes, and threads ask for it in groups of 32,
#    called *warps*. Copy the `doubling` program, let thread $i$ read `in[i * step]`, with arrays
#    large enough and `size` 1024, and run it with `run_cuda(..., profile=True)` for steps 1, 2, 8
#    and 32. How many of the bytes that are fetched are used?
# 2. Which of reading and writing is scattered in `Compact` of a transposed matrix? And in
#    `EwiseSetitem` into one?

# %% [markdown]
# ## Question 7 · CUDA: element by element
#
# File: `src/ndarray_backend_cuda.cu`, one line for each operation.

# %%
here("src/cuda/Ewise")

# %% [markdown]
# ### First, watch it happen
#
# On the processor the macro wrote a loop around your formula. On the card there is no loop: the
# macro makes a kernel, in which one thread computes one element, and the launcher that starts
# enough of them. How many blocks are enough?

# %%
for elements in (1, 255, 256, 257, 1_000_000):
    blocks = (elements + 255) // 256
    idle = blocks * 256 - elements
    print(f"{elements:9,} elements: {blocks:5,} blocks of 256, {idle:3} threads idle")

# %% [markdown]
# 256 threads to a block is a habit with reasons. A block should be a whole number of warps (32
# threads that move in step), large enough that the card can work on some warps while others wait
# for memory, and small enough that several blocks fit on one of its processors.
#
# ### The contract
#
# The same formulas as in question 3. They run on the card, where the functions for float32 are
# called `powf`, `logf`, `expf`, `tanhf`; `std::pow` and its relatives belong to the processor. Mind
# the maximum of a NaN here, too.
#
# ### A neighbour, complete
#
# Addition, which is given. The formula is what the thread of that element computes:
#
# ```cpp
# NEEDLE_EWISE_BINARY(Add, "ewise_add", a + b);
# NEEDLE_EWISE_SCALAR(Add, "scalar_add", a + val);
# ```
#
# ### Yours

# %%
show_blank("hw3/cuda_ewise_mul")

# %% [markdown]
# The others stand below it in the file.
#
# <details><summary>Hints for each operation</summary>
#
# `ewise_mul`
#
# hints("hw3/cuda_ewise_mul")
#
# `ewise_div`
#
# hints("hw3/cuda_ewise_div")
#
# `ewise_maximum`
#
# hints("hw3/cuda_ewise_maximum")
#
# `ewise_eq`
#
# hints("hw3/cuda_ewise_eq")
#
# `ewise_ge`
#
# hints("hw3/cuda_ewise_ge")
#
# `scalar_mul`
#
# hints("hw3/cuda_scalar_mul")
#
# `scalar_div`
#
# hints("hw3/cuda_scalar_div")
#
# `scalar_power`
#
# hints("hw3/cuda_scalar_power")
#
# `scalar_maximum`
#
# hints("hw3/cuda_scalar_maximum")
#
# `scalar_eq`
#
# hints("hw3/cuda_scalar_eq")
#
# `scalar_ge`
#
# hints("hw3/cuda_scalar_ge")
#
# `ewise_log`
#
# hints("hw3/cuda_ewise_log")
#
# `ewise_exp`
#
# hints("hw3/cuda_ewise_exp")
#
# `ewise_tanh`
#
# hints("hw3/cuda_ewise_tanh")
#
# </details>

# %%
check("hw3/cuda_elementwise")

# %% [markdown]
# ### Look at it
#
# How much work is one element? The emulator's times say nothing about a card, so count instead:
# bytes that have to move, and operations that are done with them. A large card moves about 3000 GB
# and does about 60,000 GFLOP in a second.

# %%
n = 100_000_000
for name, arrays, operations in (("a + b", 3, 1), ("a * 2.0", 2, 1), ("tanh(a)", 2, 20)):
    moving, computing = arrays * 4 * n / 3000e9, operations * n / 60_000e9
    print(f"{name:8} moving {1e6 * moving:6.0f} µs, computing {1e6 * computing:6.1f} µs")

# %% [markdown]
# Every one of them waits for memory. That is why people join several element-wise operations into
# one kernel: the arithmetic is free, the trips are not.
#
# ### Two questions that want a measurement
#
# 1. `x.exp().log()` on an array of $10^8$ numbers: how many bytes move, and how many would move if
#    one kernel did both?
# 2. Take the line `if (i >= size) return;` out of the macro for one array, set
#    `NEEDLE_CUDA_EMU=check` and take the tanh of 300 numbers on `nd.cuda()`. Which thread is named,
#    and why that one? (Put the line back.)

# %% [markdown]
# ## Question 8 · CUDA: reductions
#
# File: `src/ndarray_backend_cuda.cu`, functions `ReduceMax` and `ReduceSum` and their kernels.

# %%
here("src/cuda/ReduceSum")

# %% [markdown]
# ### First, watch it happen
#
# A sum looks like the opposite of parallel work: every addition waits for the one before. But sums
# may be taken in another order. Let the first half of the threads add what the second half holds,
# then halve again:

# %%
draw.tree([3, 1, 7, 0, 4, 1, 6, 3])

# %% [markdown]
# Eight numbers, three rounds instead of seven additions one after the other; a million numbers take
# twenty rounds. Threads of one block can pass numbers to each other in *shared memory*
# (`__shared__`), a small and fast memory that belongs to the block. But there is no telling which
# thread is faster, so there must be a place where they wait for each other: `__syncthreads()`, the
# *barrier*, which no thread of the block passes before all have arrived.

# %%
halving = r"""
#include <cuda_runtime.h>
#include <cstdio>

__global__ void SumKernel(const float* in, float* out) {
  __shared__ float part[8];
  int t = threadIdx.x;
  part[t] = in[blockIdx.x * 8 + t];
  __syncthreads();
  for (int half = 4; half > 0; half /= 2) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

void Experiment() {
  float numbers[16] = {3, 1, 7, 0, 4, 1, 6, 3, 1, 1, 1, 1, 1, 1, 1, 1}, sums[2], *in, *out;
  cudaMalloc(&in, sizeof numbers);
  cudaMalloc(&out, sizeof sums);
  cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  SumKernel<<<2, 8>>>(in, out);
  cudaMemcpy(sums, out, sizeof sums, cudaMemcpyDeviceToHost);
  std::printf("sums of two blocks: %g and %g\n", sums[0], sums[1]);
}
"""
run_cuda(halving)

# %% [markdown]
# Now forget the barrier inside the loop, as everybody does once. On a card the answer may well be
# right, today. The emulator runs the threads in any order you ask for, and then it may be wrong; or
# it watches, and then it *knows*:

# %%
forgotten = halving.replace("    __syncthreads();\n", "")
run_cuda(forgotten, order="forward")
run_cuda(forgotten, order="reverse")
run_cuda(forgotten, check=True)

# %% [markdown]
# Read the last message slowly; you will meet its kind again. A *data race*: one thread writes a
# word and another one reads it, and nothing says which comes first. Both lines are named.
#
# ### The contract
#
# | | |
# |---|---|
# | in | `a`, flat and compact; `reduce_size`, the length of a run, at least 1 |
# | out | `out[i]` from run $i$, as in question 4; a NaN wins the maximum |
# | enough | one thread for each *run*, which walks its run alone, with no barrier and no shared memory |
# | better | one block for each run, which halves it as above. Runs of any length must come out right |
#
# Start with the first. It is the loop of question 4 in a kernel.
#
# ### A neighbour, complete
#
# How many numbers of each run are positive? One thread for each run:
#
# ```cpp
# __global__ void CountPositiveKernel(const float* a, float* out, int64_t runs, int64_t length) {
#   const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
#   if (i >= runs) return;
#   float count = 0;
#   for (int64_t k = 0; k < length; k++) count += a[i * length + k] > 0;
#   out[i] = count;
# }
# ```
#
# ### Yours

# %%
show_blank("hw3/cuda_reduce_max")

# %% [markdown]
# hints("hw3/cuda_reduce_max")

# %%
check("hw3/cuda_reduce_max")

# %%
show_blank("hw3/cuda_reduce_sum")

# %% [markdown]
# hints("hw3/cuda_reduce_sum")

# %%
check("hw3/cuda_reduce_sum")

# %% [markdown]
# ### Look at it
#
# One thread for each run is fine for many short runs. What if there is one long run? Count the
# additions that have to wait for each other:

# %%
for runs, length in ((100_000, 10), (1000, 1000), (1, 1_000_000)):
    together = -(-length // 256) + 8      # 256 threads share a run, then halve eight times
    print(f"{runs:7,} runs of {length:9,}: {length:9,} steps with a thread for each run, "
          f"{together:5,} with a block for each")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Run `forgotten` with each of the three orders. In which of them is the sum wrong? Take the
#    *first* barrier out instead of the second: in which is it wrong then? What does that say about
#    "it worked when I tried it"?
# 2. In the halving loop, thread $t$ adds element $t + \text{half}$. One could also let thread $t$
#    add element $2 t \cdot \text{step} + \text{step}$ into $2 t \cdot \text{step}$, for step 1, 2,
#    4. Write it for a block of 256 and compare the two with `profile=True`: in the rows for shared
#       memory, the column `factor` says how many times longer a warp queues than it would have to.

# %% [markdown]
# ## Question 9 · CUDA: matrix products in shared tiles
#
# File: `src/ndarray_backend_cuda.cu`, function `Matmul` and its kernel.

# %%
here("src/cuda/Matmul")

# %% [markdown]
# ### First, watch it happen
#
# The simplest kernel gives each element of the result a thread, which reads a row of $a$ and a
# column of $b$. Count how many numbers that takes from the card's memory, and how many it takes if
# a block of $T \times T$ threads first loads a tile of each matrix into shared memory, *together*,
# each thread one number:

# %%
N = 4096
for T in (1, 16, 32):
    bytes_read = 2 * N**3 / T * 4
    print(f"T = {T:2}: {bytes_read / 1e9:7.1f} GB from memory, "
          f"{1e3 * bytes_read / 3000e9:6.1f} ms at 3000 GB/s; "
          f"the arithmetic takes {1e3 * 2 * N**3 / 60e12:.1f} ms")

# %% [markdown]
# The same sum as in question 5, one memory further away. There the cache decided what stays near;
# here **you** decide it, with `__shared__`. The hierarchy of a card:
#
# | | who sees it | size | cycles until a number is there |
# |---|---|---|---|
# | registers | one thread | 255 numbers | 1 |
# | shared memory | one block | 48 – 228 KB | about 25 |
# | second cache | all | some 10 MB | about 200 |
# | memory of the card | all | some 10 GB | about 500 |
#
# ### The plan of the kernel
#
# Thread (row, column) of a block looks after one element of the tile of the result. For every pair
# of tiles:
#
# 1. load one number of the tile of $a$ and one of the tile of $b$ into shared memory, or 0 beyond
#    the edge;
# 2. barrier: all are loaded;
# 3. add up `kTile` products from shared memory, in a register;
# 4. barrier: all have read. Only now may the next tiles overwrite these.
#
# In the end write the sum, if the element exists. Two barriers, and both are needed.
#
# ### The contract
#
# | | |
# |---|---|
# | in | `a` (m, n) and `b` (n, p), row-major, of any sizes, also smaller than a tile |
# | out | `out` (m, p), every element written once |
# | grid | enough blocks for all tiles of the result |
# | trap | a thread without an element must still help loading and must reach *every* barrier: no early `return` |
#
# ### A neighbour, complete
#
# A tile of a matrix is turned over in shared memory: load along rows, barrier, store along rows of
# the result. In neither direction do neighbouring threads touch memory far apart.

# %%
turning = r"""
#include <cuda_runtime.h>
#include <cstdio>

constexpr int T = 32;

__global__ void TransposeKernel(const float* in, float* out, int m, int n) {
  __shared__ float tile[T][T];
  int i = blockIdx.y * T + threadIdx.y, j = blockIdx.x * T + threadIdx.x;
  tile[threadIdx.y][threadIdx.x] = i < m && j < n ? in[i * n + j] : 0;
  __syncthreads();
  int row = blockIdx.x * T + threadIdx.y, column = blockIdx.y * T + threadIdx.x;
  if (row < n && column < m) out[row * m + column] = tile[threadIdx.x][threadIdx.y];
}

void Experiment() {
  static float numbers[20 * 50];
  float *in, *out;
  for (int i = 0; i < 1000; i++) numbers[i] = i;
  cudaMalloc(&in, sizeof numbers);
  cudaMalloc(&out, sizeof numbers);
  cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  TransposeKernel<<<dim3(2, 1), dim3(T, T)>>>(in, out, 20, 50);
  cudaMemcpy(numbers, out, sizeof numbers, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 5; i++) std::printf("%g ", numbers[i]);
  std::printf("... and the second row starts with %g\n", numbers[20]);
}
"""
run_cuda(turning, check=True)

# %% [markdown]
# ### Yours

# %%
show_blank("hw3/cuda_matmul")

# %% [markdown]
# hints("hw3/cuda_matmul")

# %%
check("hw3/cuda_matmul")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *right for 64, wrong for 73*: the last tile of a row is not full; beyond the edge a tile must
#   hold 0;
# - *it stops with a message about a barrier*: some threads returned early;
# - *now and then wrong*: the second barrier is missing. Run it with `NEEDLE_CUDA_EMU=check`.
#
# ### Look at it: the profile
#
# The neighbour above reads and writes memory in whole sectors. What about its shared memory? It is
# served in 32 *banks*: word $w$ lies in bank $w \bmod 32$, and threads of a warp that want
# different words of one bank must queue.

# %%
run_cuda(turning, profile=True)

# %% [markdown]
# `tile[threadIdx.x][threadIdx.y]` walks down a column: the words 0, 32, 64, … all lie in bank 0,
# and 32 threads stand in one queue. Make the rows one word longer than they need to be, and
# neighbours in a column move to neighbouring banks:

# %%
run_cuda(turning.replace("tile[T][T]", "tile[T][T + 1]"), profile=True)

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Take the second barrier out of your kernel and run your check with `NEEDLE_CUDA_EMU=check` set.
#    Which two lines are named? Then take out the first instead.
# 2. With $T = 32$ instead of 16, a block has 1024 threads and twice as much is saved. What limits
#    $T$? Try 64 on the emulator and read what it says about the launch.
#
# ## That was it
#
# Everything above these arrays, from `Tensor` on, asks an array for nothing but what you have
# written: views, compact, element-wise operations, reductions, products. `make check HW=hw3` in a
# terminal runs every check once more, `needle-course status` counts your points.
