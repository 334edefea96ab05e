# %% [markdown]
# # Homework 4 · Networks that look and networks that read
#
# Everything you have built comes together: your automatic differentiation now runs on your own
# arrays, through your own kernels. On top of it you write the two ideas that made deep learning
# useful. *Convolution* looks for the same small pattern everywhere in an image. *Recurrence* reads
# a text word by word and keeps a memory of what it has read.
#
# | part | what you write | points | time |
# |---|---|---|---|
# | 1 | the operators on your own arrays | 10 | 90 min |
# | 2 | CIFAR-10, a data set of small pictures | 10 | 45 min |
# | 3 | convolution, from padding to a residual network | 40 | 6 – 8 h |
# | 4, 5 | recurrent networks and LSTM | 20 | 3 h |
# | 6, 7 | a text as data, and a language model | 20 | 3 – 4 h |

# %%
setup("hw4")

# %% [markdown]
# ## Part 1 · The operators on your own arrays
#
# File: `python/needle/ops/ops_mathematic.py` and `ops_logarithmic.py`. Your operators of the first
# homeworks called NumPy. The very same classes now get `NDArray`s.

# %%
here("ops")

# %% [markdown]
# ### First, watch it happen
#
# Where does an `NDArray` answer differently from NumPy? Put the same three requests to both:

# %%
import numpy as np
from needle import backend_ndarray as nd

A = np.arange(6, dtype=np.float32).reshape(2, 3)
a = nd.array(A)
print("sum over everything:", A.sum().shape, a.sum().shape)
print("one row:            ", A[1].shape, a[1].shape)
try:
    a + nd.array([[1.0], [2.0]])
except ValueError as error:
    print("a + a column:       ", error)

# %% [markdown]
# Three rules explain it. A full sum has shape (1,), because an array always lives on a device and
# has no way to be a bare number. An integer index keeps its axis. And arrays never stretch
# themselves: with `+`, shapes must be equal, and you say `broadcast_to` if you mean it.
#
# The module `array_api`, which your operators already use, is NumPy in the first homeworks and our
# own array library from here on. It has NumPy's names: `array_api.sum(a, axis=…, keepdims=…)`,
# `array_api.max`, `exp`, `log`, `tanh`, `maximum`, `reshape`, `broadcast_to`, `swapaxes`, `stack`.
# What you wrote with NumPy's *functions* still works. What does not: methods and attributes that
# only NumPy's arrays have, functions that `array_api` lacks, and arithmetic that relied on silent
# broadcasting.
#
# ### The contract
#
# | | |
# |---|---|
# | in, out | `NDArray`s of float32 on any device, in any layout: also transposed ones and slices |
# | result | on the device of the inputs |
# | batches | `MatMul` takes (…, m, n) @ (…, n, p), and axes in front broadcast as in the first homework |
# | new | `Tanh`, `Stack`, `Split`; `LogSumExp` on our arrays |
#
# The checks give each operator arrays in two layouts. If an old answer of yours is right on one of
# them and wrong on the other, look for something that took memory order for granted.

# %%
show_blank("hw4/nd_matmul")

# %% [markdown]
# If your answers came with you from the first homework, they stand in these places already; the
# check at the end of this part says which of them still hold something that only NumPy can do.
# While you work, `check("hw4/nd_matmul")` in a cell of your own checks one operator alone.
#
# <details><summary>Hints for the operators that you know already</summary>
#
# `ewise_div`
#
# hints("hw4/nd_ewise_div")
#
# `negate`
#
# hints("hw4/nd_negate")
#
# `divide_scalar`
#
# hints("hw4/nd_divide_scalar")
#
# `power_scalar`
#
# hints("hw4/nd_power_scalar")
#
# `matmul`
#
# hints("hw4/nd_matmul")
#
# `summation`
#
# hints("hw4/nd_summation")
#
# `broadcast_to`
#
# hints("hw4/nd_broadcast_to")
#
# `reshape`
#
# hints("hw4/nd_reshape")
#
# `transpose`
#
# hints("hw4/nd_transpose")
#
# `log`
#
# hints("hw4/nd_log")
#
# `exp`
#
# hints("hw4/nd_exp")
#
# `relu`
#
# hints("hw4/nd_relu")
#
# `logsumexp`
#
# hints("hw4/nd_logsumexp")
#
# </details>

# %% [markdown]
# ### `Tanh`, and a derivative that does not overflow
#
# The hyperbolic tangent squeezes every number into (−1, 1):
#
# $$\tanh x = \frac{e^{x} - e^{-x}}{e^{x} + e^{-x}}, \qquad \frac{d}{dx}\tanh x = \frac{4}{(e^{x} + e^{-x})^2} = 1 - \tanh^2 x .$$
#
# Both forms of the derivative are the same number on paper. Try them in float32:

# %%
x = np.array([0.0, 1.0, 10.0, 100.0], np.float32)
with np.errstate(over="ignore", invalid="ignore"):
    print("from exponentials:", 4 / (np.exp(x) + np.exp(-x)) ** 2)
    print("tanh itself       ", (np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x)))
print("1 - tanh²:        ", 1 - np.tanh(x) ** 2)

# %% [markdown]
# The quotient of exponentials is inf / inf at 100, the second form is right everywhere. There is a
# second reason to like it: $\tanh x$ is the *output* of the node, and has been computed already.

# %%
show_blank("hw4/tanh_backward")

# %% [markdown]
# hints("hw4/tanh_forward")
#
# hints("hw4/tanh_backward")

# %% [markdown]
# ### `Stack` and `Split`: each is the other's gradient
#
# A recurrent network makes one output for every word and wants them as one tensor: that is `stack`,
# which joins tensors of one shape along a *new* axis. `split` takes them apart again, into a
# `TensorTuple`.

# %%
rows = [np.full(3, value) for value in (1.0, 2.0)]
np.stack(rows, axis=0).shape, np.stack(rows, axis=1).shape, np.stack(rows, axis=1)

# %% [markdown]
# What flows back? Every number of the stack came from exactly one number of one input, and counts
# once. So the gradient of the stack, cut into the same slices, *is* the list of gradients of the
# inputs: split it. And the other way round.
#
# | | in | out |
# |---|---|---|
# | `stack(args, axis)` | n tensors (3, 4) | (n, 3, 4), (3, n, 4) or (3, 4, n) for axis 0, 1, 2 |
# | `split(a, axis)` | (3, n, 4) with axis 1 | a `TensorTuple` of n tensors (3, 4) |
#
# In `Stack.compute` you get a Python tuple of arrays; in `Split.compute` you return one. Mind that
# an integer index keeps its axis, so a slice has to be reshaped to lose it. A neighbour, complete:
# an operator that makes two arrays of one.

# %%
show_source("ops/FusedAddScalars")

# %%
show_blank("hw4/split_forward")

# %% [markdown]
# hints("hw4/stack_forward")
#
# hints("hw4/stack_backward")
#
# hints("hw4/split_forward")
#
# hints("hw4/split_backward")

# %%
check("hw4/nd_backend")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *shapes (4, 5) and (4, 1) differ*: somewhere you relied on broadcasting;
# - *right for one layout only*: a reshape of something that was not compact and was treated as if
#   it were;
# - *KeyError or AttributeError from `array_api`*: a NumPy name that our library does not have.
#
# ### Look at it
#
# The graph of a small loss, on your own arrays this time:

# %%
ndl = fresh()
x = ndl.Tensor([[0.5, -1.0, 2.0]])
halves = ndl.split(ndl.tanh(x), 1)
loss = (ndl.stack([halves[0], halves[2]], 1) ** 2).sum()
loss.backward()
print(x.grad)
show_graph(loss, names={"x": x})

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. What is the gradient of the middle number of `x` above, and how does the graph show why?
# 2. Time `ndl.matmul` of two (256, 256) tensors, and of one with `ndl.transpose` of the other. What
#    does the second pay for, and where did you write that code?

# %% [markdown]
# ## Part 2 · CIFAR-10: pictures as data
#
# File: `python/needle/data/datasets/cifar10_dataset.py`. CIFAR-10 is 60,000 colour pictures of 32 ×
# 32 pixels, each of one of ten things.

# %%
here("data/CIFAR10Dataset")

# %% [markdown]
# ### First, watch it happen
#
# Six files hold 10,000 pictures each: a Python dictionary with the keys `b"data"` and `b"labels"`
# (bytes, not text: mind the `b`). A row of the data is one picture, 3072 bytes. Are they 1024
# pixels of three colours each, or three planes of 1024 pixels? Make a picture whose answer you know
# and read it both ways:

# %%
picture = np.zeros((3, 32, 32), np.uint8)              # three planes: red, green, blue
picture[0, :, :16] = 255                               # the left half is red,
picture[2, 16:, :] = 200                               # the lower half is blue
row = picture.reshape(3072)

right = row.reshape(3, 32, 32).transpose(1, 2, 0)
wrong = row.reshape(32, 32, 3)
figure, [left_axes, right_axes] = panels(2, width=2.6, height=2.6)
left_axes.imshow(right)
left_axes.set_title("three planes")
right_axes.imshow(wrong)
right_axes.set_title("pixels of three")
Plot(figure, "The same bytes read as three planes, a clean picture, and as pixels, a striped mess")

# %% [markdown]
# The files hold planes. Our images are therefore (3, 32, 32): colours first. That order is called
# *CHW*, channels, height, width; with the number of pictures in front, *NCHW*.
#
# ### The contract
#
# | | |
# |---|---|
# | `CIFAR10Dataset(base_folder, train, p=0.5, transforms=None)` | reads `data_batch_1` … `data_batch_5` in this order, or `test_batch` |
# | `X`, `y` | float32 (n, 3, 32, 32), bytes / 255; the labels, (n,) |
# | `len(dataset)` | n |
# | `dataset[i]` | a tuple (image, label); with an array of indices, a tuple of arrays |
# | transforms | functions of an image (32, 32, 3), in the order in which the transforms of the second homework want it |
#
# `read_cifar_batches(paths)` is given. It reads the files and returns all rows (n, 3072) and labels
# (n,). It does not use Python's `pickle` to do so, because a pickle may run any code when it is
# opened, and these files come from the network.
#
# ### A neighbour, complete

# %%
show_source("data/NDArrayDataset")

# %% [markdown]
# ### Yours

# %%
show_blank("hw4/cifar10_init")

# %% [markdown]
# hints("hw4/cifar10_init")
#
# hints("hw4/cifar10_len")
#
# hints("hw4/cifar10_getitem")

# %%
check("hw4/cifar10")

# %% [markdown]
# ### Look at it
#
# The real files are 170 MB and no check needs them. If they are on this machine (`NEEDLE_DATA_DIR`
# names the folder that holds `cifar-10-batches-py`), here are eight of them; if not, the cell says
# so. `ndl.data.fetch("cifar10")` would download them.

# %%
ndl = fresh()
folder = ndl.data.data_dir() / "cifar-10-batches-py"
if folder.is_dir():
    dataset = ndl.data.CIFAR10Dataset(folder, train=False)
    figure, all_axes = panels(8, width=1.2, height=1.5)
    for axes, (image, label) in zip(all_axes, (dataset[i] for i in range(8))):
        axes.imshow(np.moveaxis(image, 0, -1))
        axes.set_title(dataset.classes[label], fontsize=8)
        axes.axis("off")
    shown = Plot(figure, "Eight test pictures of CIFAR-10 with their labels")
else:
    shown = f"no CIFAR-10 at {folder}"
shown

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. How much memory does `X` of the training set take, and how much did the bytes take? What would
#    it cost to divide by 255 only when a picture is asked for?
# 2. With a `DataLoader` over any data set of 5000 pictures, time one epoch where the loader asks
#    `dataset[i]` for one index at a time, and one where it asks with an array of indices. What is
#    the difference made of?

# %% [markdown]
# ## Part 3 · Convolution
#
# ### Why not a linear layer?
#
# A linear layer from a picture to a picture of the same size has one weight for every pair of
# pixels. Count them, beside a layer that uses the same 3 × 3 weights everywhere:

# %%
for side, channels_in, channels_out in ((32, 3, 16), (224, 3, 64)):
    linear = (side * side * channels_in) * (side * side * channels_out)
    convolution = 3 * 3 * channels_in * channels_out
    print(f"{side} × {side}: linear {linear:18,} weights ({4 * linear / 1e9:10.2f} GB), "
          f"convolution {convolution:6,}")

# %% [markdown]
# Two assumptions about pictures make the difference. *Neighbours matter*: whether there is an edge
# here can be seen from the pixels around here. *A pattern means the same everywhere*: a cat in the
# corner is a cat. A convolution looks through a small window of K × K pixels, the *kernel's* size,
# and slides the same weights over all windows.
#
# Put that to numbers, in one dimension first. The kernel (−1, 1) asks of each pair of neighbours
# how much the second is larger:

# %%
signal = np.array([0, 0, 0, 5, 5, 5, 2, 2.0])
kernel = np.array([-1, 1.0])
np.array([signal[i] * kernel[0] + signal[i + 1] * kernel[1] for i in range(len(signal) - 1)])

# %% [markdown]
# It answers +5 where the signal steps up, −3 where it steps down, 0 where nothing happens: an *edge
# detector*. In a network the numbers in the kernel are weights, and are learned.
#
# For images, write $x_{n,i,j,c}$ for picture $n$, row $i$, column $j$, channel $c$, and
# $w_{u,v,c,d}$ for the weight at row $u$, column $v$ of the window, from channel $c$ to output
# channel $d$. Then the output is
#
# $$y_{n,i,j,d} = \sum_{u=0}^{K-1} \sum_{v=0}^{K-1} \sum_{c} \; x_{n,\; i+u,\; j+v,\; c} \; w_{u,v,c,d} .$$
#
# So images here are *NHWC*, channels last, shape (N, H, W, C), and kernels are (K, K, C, D). With H
# rows there are H − K + 1 places for the window.
#
# Three small operators come first; convolution and its gradient are made with them.

# %% [markdown]
# ## Part 3.1 · `NDArray.pad`
#
# File: `python/needle/backend_ndarray/ndarray.py`, method `NDArray.pad`.

# %%
here("backend_ndarray/NDArray.pad")

# %% [markdown]
# ### First, watch it happen
#
# A 3 × 3 window has 30 places on 32 pixels, so every layer shrinks the picture. A margin of zeros,
# one pixel wide, keeps its size, and lets the window see the corners as often as the middle. How
# often is each pixel of a row of 6 seen by a window of 3, without and with the margin?

# %%
for margin in (0, 1):
    seen = np.zeros(6 + 2 * margin, int)
    for place in range(6 + 2 * margin - 2):
        seen[place : place + 3] += 1
    counts = seen[margin : margin + 6]
    print(f"margin {margin}: {4 + 2 * margin} places, each pixel is seen", counts, "times")

# %% [markdown]
# ### The contract
#
# | | |
# |---|---|
# | in | `axes`: for each axis a pair (how many before, how many after) |
# | out | a new, compact array; the old one stands in it, zeros around it |
# | cost | one pass over the new array |
#
# A neighbour, complete: two arrays joined along the first axis. Make room, then write into views of
# it.

# %%
def below_each_other(a, b):
    """(m, k) and (n, k) → (m + n, k)."""
    out = a.device.empty((a.shape[0] + b.shape[0], a.shape[1]))
    out[: a.shape[0], :] = a
    out[a.shape[0] :, :] = b
    return out


print(below_each_other(nd.array([[1, 2]]), nd.array([[3, 4], [5, 6]])))

# %%
show_blank("hw4/pad")

# %% [markdown]
# hints("hw4/pad")

# %%
check("hw4/pad")

# %%
run_fresh("""
from needle import backend_ndarray as nd
print(nd.array([[1, 2], [3, 4]]).pad(((1, 0), (2, 1))))
""")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. By how much does padding by 1 enlarge a batch of shape (64, 32, 32, 16), in percent? And one of
#    (64, 4, 4, 128)?
# 2. Zeros are not neutral: take a picture that is 0.5 everywhere and an edge detector, and compute
#    the output near the border with and without a margin. What does the network see there?

# %% [markdown]
# ## Part 3.2 · `flip`
#
# File: `NDArray.flip` in `python/needle/backend_ndarray/ndarray.py`, and the operator `Flip` in
# `python/needle/ops/ops_mathematic.py`.

# %%
here("backend_ndarray/NDArray.flip")

# %% [markdown]
# ### First, watch it happen
#
# The gradient of a convolution will need the kernel turned around. Reversing an axis is a matter of
# strides:

# %%
B = np.arange(12, dtype=np.float32).reshape(3, 4)
reversed_rows = B[::-1]
first = (reversed_rows.ctypes.data - B.ctypes.data) // 4
print("strides", tuple(s // 4 for s in reversed_rows.strides), " first element at place", first)

# %% [markdown]
# The stride of the axis changes its sign, and the view starts at the last element along that axis:
# at $(\text{extent} - 1) \cdot \text{stride}$ behind the old start. With several axes, do both for
# each. Turning twice changes nothing, and every number is used once; so what flows back through a
# flip is the gradient, flipped the same way.
#
# ### The contract
#
# | | in | out |
# |---|---|---|
# | `NDArray.flip(axes)` | a tuple of axes, negative ones count from the end | a compact *copy*, reversed along them |
# | `Flip.compute` | an array | the same, by `array_api.flip` |
# | `Flip.gradient` | `out_grad` | a Tensor |

# %%
show_blank("hw4/flip_array")

# %% [markdown]
# hints("hw4/flip_array")
#
# hints("hw4/flip_forward")
#
# hints("hw4/flip_backward")

# %%
check("hw4/flip")

# %%
run_fresh("""
import needle as ndl
x = ndl.Tensor([[1, 2, 3], [4, 5, 6]])
y = ndl.flip(x, (0, 1))
(y * ndl.Tensor([[10, 0, 0], [0, 0, 1]])).sum().backward()
print(y.numpy())
print("who asked for y[0, 0] pays into x[1, 2]:")
print(x.grad.numpy())
""")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Is flipping along both axes of a square matrix the same as transposing it twice, rotating it by
#    180°, or neither? Try a matrix of different numbers.
# 2. `flip` copies. Would a view be right, too? Find an operation of your own kernels that would be
#    given memory it cannot walk, and how `NDArray` saves it.

# %% [markdown]
# ## Part 3.3 · `dilate`
#
# File: `python/needle/ops/ops_mathematic.py`, classes `Dilate` and `UnDilate`.

# %%
here("ops/Dilate")

# %% [markdown]
# ### First, watch it happen
#
# A window may move by more than one pixel at a time; the size of its step is the *stride*. With
# stride 2, half of the places are left out. On the way back they have to be put in again, as places
# that had no say:

# %%
gradient = np.array([7.0, 8.0, 9.0])         # of the three places that a stride of 2 has kept
spread = np.zeros(6)
spread[::2] = gradient
spread

# %% [markdown]
# That is dilation by 1: one zero *behind every* element, the last one included. Dilation by $d$
# puts $d$ zeros. `undilate` takes every $(d + 1)$-th element and so undoes it. Each is the other's
# gradient, again because every number goes to one place only.
#
# ### The contract
#
# | | in | out |
# |---|---|---|
# | `dilate(a, axes, dilation)` | (…, s, …), `dilation` ≥ 0 | (…, s · (dilation + 1), …) for each of the axes |
# | `undilate(a, axes, dilation)` | | every (dilation + 1)-th element along the axes |
# | axes that are not there | are ignored | |
#
# A neighbour, complete: a checkerboard, written with one slice for each axis.

# %%
board = nd.array(np.zeros((4, 6)))
for start in (0, 1):
    board[tuple(slice(start, None, 2) for _ in range(2))] = 1.0
print(board)

# %%
show_blank("hw4/dilate_forward")

# %% [markdown]
# hints("hw4/dilate_forward")
#
# hints("hw4/dilate_backward")
#
# hints("hw4/undilate_forward")
#
# hints("hw4/undilate_backward")

# %%
check("hw4/dilate")

# %%
run_fresh("""
import needle as ndl
x = ndl.Tensor([[1, 2], [3, 4]])
print(ndl.dilate(x, (0, 1), 1).numpy())
print(ndl.undilate(ndl.dilate(x, (0, 1), 1), (0, 1), 1).numpy())
""")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. An axis of 7 elements is undilated by 1 and dilated by 1 again. What is its length? Which of
#    your two gradients has to be careful because of this?
# 2. Dilating a *kernel* makes a window with gaps. How many pixels wide is a 3 × 3 kernel with one
#    gap between neighbours, and how many weights has it?

# %% [markdown]
# ## Part 3.4 · The convolution operator
#
# File: `python/needle/ops/ops_mathematic.py`, class `Conv`.

# %%
here("ops/Conv")

# %% [markdown]
# ### First, watch it happen
#
# The formula has seven sums and loops. Written as Python loops it takes forever; written with one
# matrix product for each place in the *window* it is quick already. A neighbour, complete:

# %%
def conv_by_offsets(x, w):
    """(N, H, W, C), (K, K, C, D) → (N, H - K + 1, W - K + 1, D), by one product for each offset."""
    n, height, width, _ = x.shape
    k = w.shape[0]
    rows, columns = height - k + 1, width - k + 1
    out = np.zeros((n, rows, columns, w.shape[3]), x.dtype)
    for u in range(k):
        for v in range(k):
            out += x[:, u : u + rows, v : v + columns, :] @ w[u, v]
    return out


images_4 = digits()[0][:4].reshape(4, 8, 8, 1)
edges = np.zeros((3, 3, 1, 2), np.float32)
edges[:, :, 0, 0] = [[-1, -1, -1], [0, 0, 0], [1, 1, 1]]        # brighter below than above
edges[:, :, 0, 1] = edges[:, :, 0, 0].T                         # brighter right than left
found = conv_by_offsets(images_4, edges)
found.shape

# %%
tiles = [t for n in range(4) for t in (np.pad(found[n, :, :, 0], 1), np.pad(found[n, :, :, 1], 1))]
images(np.stack(tiles), ["upward edges", "sideways"] * 4, columns=8, symmetric=True)

# %% [markdown]
# ### One product instead of nine: im2col
#
# Nine products of thin matrices, each a new pass over the output, are often slower than a single
# one. So write every window as a *row*: (N · H' · W') rows of K · K · C numbers, where H' and W'
# are the rows and columns of the output. Then the whole convolution is a single product with the
# kernel, reshaped to (K · K · C, D). This is called *im2col*, image to columns.

# %%
from needle_course.figures import networks as draw

draw.windows(height=4, width=5, kernel=3)

# %% [markdown]
# Read the picture row by row: neighbouring windows overlap, so most pixels appear several times.
# And yet all windows exist already, as a *view*. Walk through the picture: from one window to the
# next on the right, each of its pixels moves by one column; from one entry of a window to the next
# on the right, the pixel moves by one column, too. The two axes have the same stride!
#
# In one dimension, complete: all windows of a signal with channels. You can check every stride by
# hand.

# %%
def windows_1d(x, k):
    """(N, L, C) → (N, L - k + 1, k, C), a view: entry (n, i, u, c) is x[n, i + u, c]."""
    n, length, c = x.shape
    per_signal, per_place, per_channel = length * c, c, 1
    return x.compact().as_strided(
        (n, length - k + 1, k, c), (per_signal, per_place, per_place, per_channel)
    )


signals = nd.array(np.arange(10).reshape(1, 5, 2))
print(windows_1d(signals, 3).numpy().reshape(3, 6))

# %% [markdown]
# For images there are six axes: (N, H', W', K, K, C). Which stride has each, and how does a stride
# of the convolution change two of them? The reshape to a matrix afterwards copies, which is the
# price: memory grows by about K².

# %%
n, height, width, colours, kernels = 16, 32, 32, 3, 16
image_bytes, row_bytes = 4 * n * height * width * colours, 4 * n * 30 * 30 * 9 * colours
print(f"images {image_bytes / 1e6:.1f} MB, rows {row_bytes / 1e6:.1f} MB")

x = np.ones((n, height, width, colours), np.float32)
w = np.ones((3, 3, colours, kernels), np.float32)
rows_of_windows = np.ones((n * 30 * 30, 9 * colours), np.float32)
nine = best_of(lambda: conv_by_offsets(x, w))
one = best_of(lambda: rows_of_windows @ w.reshape(9 * colours, kernels))
flop = 2 * n * 30 * 30 * 9 * colours * kernels
print(f"nine products {flop / nine / 1e9:.1f} GFLOP/s, one product {flop / one / 1e9:.1f} GFLOP/s")

# %% [markdown]
# ### The contract
#
# | | |
# |---|---|
# | in | `a` (N, H, W, C), `b` (K, K, C, D); `stride` $s$ ≥ 1; `padding` $p$ ≥ 0 zeros on all four sides |
# | out | (N, H', W', D), H' = ⌊(H + 2p − K) / s⌋ + 1, and W' likewise |
# | error | a ShapeError if the channels differ, or the kernel is larger than the padded image |
# | cost | one matrix product of N H' W' · K² C · D multiplications |

# %%
show_blank("hw4/conv_forward")

# %% [markdown]
# hints("hw4/conv_forward")

# %%
check("hw4/conv_forward")

# %% [markdown]
# ### Backward: a convolution again
#
# In one dimension, by hand. A signal of five, a kernel of three, so three outputs:
#
# $$y_0 = x_0 w_0 + x_1 w_1 + x_2 w_2, \qquad y_1 = x_1 w_0 + x_2 w_1 + x_3 w_2, \qquad y_2 = x_2 w_0 + x_3 w_1 + x_4 w_2 .$$
#
# Write $\bar y_i$ for what flows back into $y_i$ (that is `out_grad`), and $\bar x_j$, $\bar w_u$
# for what we want. Collect, for each $x_j$, the outputs in which it occurs:
#
# $$\bar x_0 = \bar y_0 w_0, \quad \bar x_1 = \bar y_0 w_1 + \bar y_1 w_0, \quad \bar x_2 = \bar y_0 w_2 + \bar y_1 w_1 + \bar y_2 w_0, \quad \bar x_3 = \bar y_1 w_2 + \bar y_2 w_1, \quad \bar x_4 = \bar y_2 w_2 .$$
#
# A window of three slides over $\bar y$ with two zeros of margin at each end, and the weights in it
# run *backwards*. So $\bar x$ is a convolution of the padded $\bar y$ with the flipped kernel. Now
# for each weight:
#
# $$\bar w_u = \sum_i \bar y_i\, x_{i+u},$$
#
# which is the convolution formula once more: slide $\bar y$, as if it were a kernel, over $x$. Try
# both claims:

# %%
x, w, y_bar = np.array([3.0, 1, 4, 1, 5]), np.array([2.0, 7, 1]), np.array([1.0, -2, 3])


def slide(signal, kernel):
    width = len(kernel)
    return np.array([signal[i : i + width] @ kernel for i in range(len(signal) - width + 1)])


def nudged(which, index, eps=1e-6):
    arrays = {"x": x.copy(), "w": w.copy()}
    arrays[which][index] += eps
    return (slide(arrays["x"], arrays["w"]) - slide(x, w)) @ y_bar / eps


print("by nudging  x:", np.round([nudged("x", i) for i in range(5)], 4))
print("as a conv   x:", slide(np.pad(y_bar, 2), w[::-1]))
print("by nudging  w:", np.round([nudged("w", i) for i in range(3)], 4))
print("as a conv   w:", slide(x, y_bar))

# %% [markdown]
# Now put the other axes back, one at a time.
#
# **Channels.** $\bar x$ gets a contribution from every output channel $d$: the kernel that leads
# from $\bar y$ to $\bar x$ has input channels D and output channels C, so its last two axes are
# swapped.
#
# **Padding** $p$. The forward pass added a margin of $p$, whose gradient nobody wants; so the
# margin of $\bar y$ is not K − 1 but K − 1 − p.
#
# **Stride** $s$. Of all the places of the window only every $s$-th was kept. Put zeros where the
# others were: dilate $\bar y$ by $s - 1$ along both axes, and go on as with stride 1. If the steps
# did not end exactly at the border, the sizes differ by some zeros at the end: pad or cut to the
# shape of the input.
#
# **The weights.** $\bar w$ is a sum over pictures *and* places, and for a fixed pair of channels.
# The convolution operator sums over its channel axis, so let the pictures play the channels: swap
# axes N and C of $x$, so that C is the "batch"; bring $\bar y$ to (H', W', N, D), so that it is a
# "kernel" with N input channels. What comes out is (C, K, K, D), and wants its axes in another
# order.
#
# All of this is made of operators: `flip`, `transpose`, `dilate`, `conv`. So convolution's gradient
# has a gradient too, and you never write it.
#
# Mind one thing: `transpose` swaps *two* axes. A rotation of three axes takes two swaps.

# %%
show_blank("hw4/conv_backward")

# %% [markdown]
# hints("hw4/conv_backward")

# %%
check("hw4/op_conv")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *right for stride 1 only*: the gradient was not dilated, or the zeros at the end were kept;
# - *shapes differ by 2p*: the margin is K − 1 − p, not K − 1;
# - *right for one picture, wrong for two*: batch and channels were not swapped.
#
# ### Look at it: gaps, groups, and making pictures smaller
#
# With `dilate` and `conv` you can have more than you were asked for; the library has it as
# `conv2d`. A *dilated* kernel has gaps: nine weights see 5 × 5 or 9 × 9 pixels. *Groups* cut the
# channels into parts that do not see each other, which divides the weights by their number.
# *Pooling* makes a picture smaller without any weights: the largest number, or the mean, of every
# window.

# %%
ndl = fresh()
x = ndl.Tensor(np.random.RandomState(0).rand(1, 32, 32, 16))
for dilation, groups in ((1, 1), (2, 1), (4, 1), (1, 4), (1, 16)):
    w = ndl.Tensor(np.random.RandomState(1).rand(3, 3, 16 // groups, 32))
    y = ndl.conv2d(x, w, dilation=dilation, groups=groups)
    extent = dilation * 2 + 1
    print(f"dilation {dilation}, {groups:2} groups: {np.prod(w.shape):5,} weights, "
          f"sees {extent} × {extent}, out {y.shape}")
planes = ndl.Tensor(digits()[0][:1].reshape(1, 1, 8, 8))
smaller = [ndl.max_pool2d(planes, 2), ndl.avg_pool2d(planes, 2)]
print("largest of 2 × 2:", smaller[0].shape, " mean:", smaller[1].shape)
images([np.kron(p.numpy()[0, 0], np.ones((2, 2))) for p in smaller], ["largest", "mean"])

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Three layers of 3 × 3, or one of 7 × 7: how many pixels does one output see, and how many
#    weights are there for 64 channels in and out of each layer?
# 2. Time forward and backward of a convolution of (16, 32, 32, 16) with (3, 3, 16, 16). How many of
#    the three products of equal size does backward do, and does the ratio agree?

# %% [markdown]
# ## Part 3.5 · `kaiming_uniform` for kernels
#
# File: `python/needle/init/init_initializers.py`, function `kaiming_uniform`.

# %%
here("init/kaiming_uniform")

# %% [markdown]
# ### First, watch it happen
#
# An output of a linear layer is a sum of *fan-in* many products, as many as it has inputs. To keep
# the size of the numbers from layer to layer, the weights of a ReLU network are drawn uniformly
# between −b and b with $b = \sqrt{2}\sqrt{3 / \text{fan-in}}$, as in the second homework. What is
# the fan-in of a convolution? Count what goes into one output: K · K · C. See what happens if one
# takes only C:

# %%
rng = np.random.default_rng(0)
for name, fan_in in (("C", 16), ("K · K · C", 9 * 16)):
    x = np.maximum(rng.standard_normal((2, 16, 16, 16)), 0)
    sizes = []
    for _ in range(6):
        bound = np.sqrt(2) * np.sqrt(3 / fan_in)
        x = np.maximum(conv_by_offsets(np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))),
                                       rng.uniform(-bound, bound, (3, 3, 16, 16))), 0)
        sizes.append(np.sqrt((x**2).mean()))
    print(f"fan-in {name:10} sizes after each of six layers:", np.round(sizes, 2))

# %% [markdown]
# ### The contract
#
# A new argument: `kaiming_uniform(fan_in, fan_out, shape=None, nonlinearity="relu", …)`. Without a
# shape the result is (fan_in, fan_out), as before. With one, it has that shape, and the bound is
# that of `fan_in`, which the caller counts.

# %%
show_blank("hw4/kaiming_uniform")

# %% [markdown]
# hints("hw4/kaiming_uniform")

# %%
check("hw4/kaiming")

# %% [markdown]
# ## Part 3.6 · The layer `nn.Conv`
#
# File: `python/needle/nn/nn_conv.py`, class `Conv`.

# %%
here("nn/Conv")

# %% [markdown]
# ### First, watch it happen
#
# The operator wants NHWC, the data are NCHW. `transpose` swaps two axes at a time; which two swaps
# lead from (N, C, H, W) to (N, H, W, C)? Try:

# %%
x = np.zeros((2, 3, 5, 7))                      # N C H W
print(x.swapaxes(1, 2).shape, x.swapaxes(1, 2).swapaxes(2, 3).shape, x.swapaxes(1, 3).shape)

# %% [markdown]
# The middle one is right. The last one looks right for square pictures, and turns each of them over
# its diagonal: the kind of mistake that no shape gives away.
#
# ### The contract
#
# | | |
# |---|---|
# | `Conv(in_channels, out_channels, kernel_size, stride=1, bias=True, …)` | square kernels; a tuple counts by its first entry |
# | `weight` | (K, K, C, D), drawn first: `kaiming_uniform` with fan-in K · K · C, fan-out K · K · D |
# | `bias` | (D,), drawn second: uniform between ±1 / √(K · K · C); None if `bias=False` |
# | padding | K // 2, so that stride 1 keeps the size of the picture; before rows and columns of an even K one less |
# | in, out | (N, C, H, W) → (N, D, ⌈H / s⌉, ⌈W / s⌉) |
#
# A neighbour, complete, which has a weight, a bias, and broadcasts the latter:

# %%
show_source("nn/Linear")

# %%
show_blank("hw4/nn_conv_init")

# %%
show_blank("hw4/nn_conv_forward")

# %% [markdown]
# hints("hw4/nn_conv_init")
#
# hints("hw4/nn_conv_forward")

# %%
check("hw4/nn_conv")

# %% [markdown]
# ### Look at it: learning an edge detector
#
# A picture went through some 3 × 3 kernel, and all we have is what went in and what came out.
# Gradient descent finds the kernel:

# %%
ndl = fresh()
np.random.seed(0)
x = ndl.Tensor(digits()[0][:64].reshape(64, 1, 8, 8))
padded = np.pad(x.numpy().transpose(0, 2, 3, 1), ((0, 0), (1, 1), (1, 1), (0, 0)))
wanted = ndl.Tensor(conv_by_offsets(padded, edges[..., :1]).transpose(0, 3, 1, 2))
layer = ndl.nn.Conv(1, 1, 3, bias=False)
optimizer = ndl.optim.Adam(layer.parameters(), lr=0.1)
losses = []
for step in range(size(100, smoke=10)):
    optimizer.reset_grad()
    loss = ((layer(x) - wanted) ** 2).sum() / wanted.numpy().size
    loss.backward()
    optimizer.step()
    losses.append(loss.numpy().item())
print(np.round(layer.weight.numpy()[:, :, 0, 0], 2))
curves({"mean squared error": losses}, log=True)

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Learn from outputs of stride 2 (`layer = Conv(1, 1, 3, stride=2)`): is the kernel still found?
#    How many equations are there for its nine unknowns?
# 2. Show the network only pictures that are constant in every row. Which entries of the kernel can
#    it not find, and why?

# %% [markdown]
# ## Part 3.7 · ResNet9
#
# File: `apps/models.py`: `ConvBN` and `ResNet9`; and the training loops in `apps/simple_ml.py`.

# %%
here("apps/ResNet9")

# %% [markdown]
# ### First, watch it happen
#
# The parts are layers that you know. Two of them meet convolution here.
#
# *Batch norm.* In the second homework each feature had its own mean and variance over the batch. In
# a picture a feature is a channel, and it is the same feature at every place. So `BatchNorm2d`,
# which is given, takes mean and variance over the batch *and all places*: C of each, whatever the
# size of the picture.

# %%
ndl = fresh()
np.random.seed(0)
maps = ndl.Tensor(np.random.randn(8, 3, 6, 6) * [[[[1.0]], [[5.0]], [[0.1]]]] + 2)
norm = ndl.nn.BatchNorm2d(3)
out = norm(maps)
print("parameters:   ", [p.shape for p in norm.parameters()])
print("std before:   ", maps.numpy().std(axis=(0, 2, 3)).round(2))
print("std after:    ", out.numpy().std(axis=(0, 2, 3)).round(2))
norm.eval()
print("std in eval():", norm(maps).numpy().std(axis=(0, 2, 3)).round(2))

# %% [markdown]
# Why the last line differs: after a single batch the running variance has moved only a tenth of the
# way from 1 to what was observed. A network that is evaluated too early looks worse than it is.
#
# *Residuals.* `Residual(f)` computes f(x) + x. Whatever the layers of f do to a gradient, a copy of
# it passes unchanged through the + x. Watch how much of the gradient arrives at the input of a
# stack of twelve thin layers:

# %%
def arriving(depth, residual):
    np.random.seed(0)
    layers = []
    for _ in range(depth):
        block = ndl.nn.Sequential(ndl.nn.Linear(16, 16), ndl.nn.ReLU())
        block.modules[0].weight.data = block.modules[0].weight.data * 0.3
        layers.append(ndl.nn.Residual(block) if residual else block)
    x = ndl.Tensor(np.random.randn(4, 16))
    ndl.nn.Sequential(*layers)(x).sum().backward()
    return float(np.linalg.norm(x.grad.numpy()))


depths = [1, 2, 4, 8, 12]
curves({"plain": [arriving(d, False) for d in depths],
        "residual": [arriving(d, True) for d in depths]},
       x=depths, xlabel="layers", ylabel="gradient at the input", log=True)

# %% [markdown]
# ### The contract
#
# `ConvBN(in_channels, out_channels, kernel_size, stride)` is a convolution (with bias), a
# `BatchNorm2d` and a ReLU, in this order. ResNet9 is, from a picture to ten scores:

# %%
blocks = [
    ("ConvBN(3, 16, 7, stride 4)", "(B, 16, 8, 8)"),
    ("ConvBN(16, 32, 3, stride 2)", "(B, 32, 4, 4)"),
    ("ConvBN(32, 32, 3), twice", "(B, 32, 4, 4)"),
    ("ConvBN(32, 64, 3, stride 2)", "(B, 64, 2, 2)"),
    ("ConvBN(64, 128, 3, stride 2)", "(B, 128, 1, 1)"),
    ("ConvBN(128, 128, 3), twice", "(B, 128, 1, 1)"),
    ("Flatten", "(B, 128)"),
    ("Linear(128, 128), ReLU", "(B, 128)"),
    ("Linear(128, 10)", "(B, 10)"),
]
draw.chain(blocks, shortcuts=[(1, 2), (4, 5)], alt="ResNet9.")

# %% [markdown]
# There is no ReLU after an addition. Make the layers in this order: the numbers they draw at the
# start are compared.
#
# The loops, on `(X, y)` batches of a `DataLoader`:
#
# | function | does |
# |---|---|
# | `epoch_general_cifar10(dataloader, model, loss_fn, opt)` | one pass: training if there is an optimizer, else evaluation (`model.train()`, `model.eval()`); returns accuracy and mean loss *over samples* |
# | `train_cifar10(model, dataloader, n_epochs, optimizer, lr, weight_decay, loss_fn)` | makes the optimizer, runs the passes; `loss_fn` is a *class* here |
# | `evaluate_cifar10(model, dataloader, loss_fn)` | one pass without learning |
#
# All three start with `np.random.seed(4)`, which is given. Batches may live on another device than
# the model: move them. A neighbour, complete: the loop of the second homework.

# %%
show_source("apps/epoch")

# %%
show_blank("hw4/resnet9_init")

# %% [markdown]
# hints("hw4/conv_bn")
#
# hints("hw4/resnet9_init")
#
# hints("hw4/resnet9_forward")

# %%
show_blank("hw4/epoch_cifar10")

# %% [markdown]
# hints("hw4/epoch_cifar10")
#
# hints("hw4/train_cifar10")
#
# hints("hw4/evaluate_cifar10")

# %%
check("hw4/resnet9")

# %% [markdown]
# ### Look at it: train it
#
# CIFAR-10 takes a while; the digits that come with the course, made four times as large and grey in
# three colours, take seconds. (`python apps/train_cifar10.py` trains on the real pictures, if they
# are there.)

# %%
ndl = fresh()
import models
import simple_ml


def as_pictures(flat):
    """(n, 64) → (n, 3, 32, 32)."""
    large = np.kron(flat.reshape(-1, 8, 8), np.ones((1, 4, 4), np.float32))
    return np.repeat(large[:, None], 3, axis=1)


train_x, train_y, test_x, test_y = digits()
some = size(600, smoke=64)
train = ndl.data.NDArrayDataset(as_pictures(train_x[:some]), train_y[:some])
test = ndl.data.NDArrayDataset(as_pictures(test_x[:some]), test_y[:some])
train_loader = ndl.data.DataLoader(train, batch_size=32, shuffle=True)
test_loader = ndl.data.DataLoader(test, batch_size=100)

np.random.seed(0)
model = models.ResNet9()
history = {"train": [], "test": []}
for epoch in range(size(4, smoke=1)):
    history["train"].append(simple_ml.train_cifar10(model, train_loader, 1, lr=0.003)[0])
    history["test"].append(simple_ml.evaluate_cifar10(model, test_loader)[0])
print(f"{sum(p.numpy().size for p in model.parameters()):,} parameters, "
      f"test accuracy {history['test'][-1]:.3f}")
curves(history, xlabel="epoch", ylabel="accuracy")

# %% [markdown]
# What has the first layer learned to look for? Its sixteen kernels of 7 × 7, one colour of each:

# %%
first = model.parameters()[0].numpy()
images(first[:, :, 0, :].transpose(2, 0, 1), columns=8, symmetric=True,
       alt="The sixteen kernels of the first layer: edges and spots in several directions")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Take the `+ x` out of both residuals (`Sequential` instead of `Residual`) and train again from
#    the same seed. What changes, at this depth? And with `BatchNorm2d` taken out as well?
# 2. Where is the time of a training step spent? `with ndl.profile.Profile() as p: …` around one
#    step and `print(p)` will tell you.

# %% [markdown]
# ## Part 4 · Recurrent networks
#
# File: `python/needle/nn/nn_sequence.py`, `RNNCell` and `RNN`.

# %%
here("nn/RNN")

# %% [markdown]
# ### First, watch it happen
#
# A text has no fixed length, so no layer has the right number of inputs. Read it word by word
# instead, with the same weights at every step, and keep what is worth remembering in a vector, the
# *hidden state* $h$:

# %%
draw.unrolled(4, "RNN cell")

# %% [markdown]
# With $x_t$ for the input at step $t$, a row of I numbers, and $h_t$ for the state after it, a row
# of H numbers, one step is
#
# $$h_t = \tanh(x_t W_{ih} + b_{ih} + h_{t-1} W_{hh} + b_{hh}) .$$
#
# $W_{ih}$ (I, H) leads from the input to the hidden state, $W_{hh}$ (H, H) from the old state to
# the new one. Two numbers of state suffice to remember something. Here is a cell, with weights set
# by hand, that is told "1" once and then hears nothing:

# %%
W_ih, W_hh = np.array([[2.0, 2.0]]), np.array([[1.5, 0.0], [0.0, 0.3]])
h = np.zeros((1, 2))
for t, x in enumerate([1.0, 0, 0, 0, 0, 0]):
    h = np.tanh(np.array([[x]]) @ W_ih + h @ W_hh)
    print(f"step {t}: input {x:.0f}, state {h.round(3)}")

# %% [markdown]
# The first number, whose weight to itself is 1.5, remembers for ever. The second, with 0.3, has
# forgotten after a few steps. The same happens to gradients, on the way back.
#
# ### Exploding and vanishing gradients
#
# How much does the state after $T$ steps depend on the state at the start? The chain rule
# multiplies one factor for each step, $\partial h_t / \partial h_{t-1} = W_{hh}^T$ with its columns
# scaled by $1 - h_t^2$. A product of many like factors grows or shrinks like a power. Give $W_{hh}$
# a *spectral radius* $\rho$ (the largest factor by which it stretches some direction again and
# again), and look:

# %%
rng = np.random.default_rng(0)
hidden, steps = 50, 60
random_weights = rng.standard_normal((hidden, hidden))
random_weights /= np.abs(np.linalg.eigvals(random_weights)).max()


def influence(radius, squash):
    """The size of the derivative of h_t by h_0, for t = 1, 2, …."""
    w, h = radius * random_weights, rng.standard_normal((1, hidden)) * 0.1
    derivative, sizes = np.eye(hidden), []
    for _ in range(steps):
        h = h @ w + rng.standard_normal((1, hidden)) * 0.1
        slope = np.ones_like(h)
        if squash:
            h = np.tanh(h)
            slope = 1 - h**2
        derivative = derivative @ w * slope
        sizes.append(np.linalg.norm(derivative) / np.sqrt(hidden))
    return sizes


lines = {f"ρ = {radius}": influence(radius, False) for radius in (0.7, 1.0, 1.3)}
lines["ρ = 1.3, with tanh"] = influence(1.3, True)
curves(lines, xlabel="steps", ylabel="influence of the first state", log=True)

# %% [markdown]
# Below 1 the past *vanishes*: after sixty steps nothing of the gradient is left, and nothing can be
# learned about what happened long ago. Above 1 it *explodes*: one step of gradient descent throws
# the weights out of the window. tanh tames the explosion, by slopes below 1. Two remedies are in
# use: gradients that are too long are cut (`clip_grad_norm`), and cells are built whose factor is
# close to 1, which is part 5.
#
# ### The contract
#
# | | |
# |---|---|
# | `RNNCell(input_size, hidden_size, bias=True, nonlinearity="tanh")` | parameters drawn in this order from ±1 / √H: `W_ih` (I, H), `W_hh` (H, H), `bias_ih` (H,), `bias_hh` (H,); the biases are None without bias |
# | cell: in, out | X (B, I), h (B, H) or None for zeros → (B, H); `nonlinearity` is "tanh" or "relu" |
# | `RNN(input_size, hidden_size, num_layers=1, …)` | a list `rnn_cells`; cell 0 reads the input, each other cell the state of the cell below |
# | RNN: in, out | X (T, B, I), h0 (L, B, H) or None → outputs of the top layer (T, B, H), last states of all layers (L, B, H) |
#
# T is the number of steps, B the batch, L the number of layers. Time comes first. `split` and
# `stack`, which you have written, take the time axis apart and put it together.
#
# A neighbour, complete: the running sum of a sequence, as a recurrent network without weights.

# %%
def running_sum(X):
    """(T, B, I) → (T, B, I): entry t is the sum of steps 0 to t."""
    state, outputs = None, []
    for x in ndl.split(X, 0):
        state = x if state is None else state + x
        outputs.append(state)
    return ndl.stack(outputs, 0)


print(running_sum(ndl.Tensor(np.ones((4, 1, 2)))).numpy()[:, 0])

# %%
show_blank("hw4/recurrent_parameters")

# %%
show_blank("hw4/rnn_cell")

# %% [markdown]
# hints("hw4/recurrent_parameters")
#
# hints("hw4/rnn_cell")

# %%
show_blank("hw4/rnn_forward")

# %% [markdown]
# hints("hw4/rnn_forward")

# %%
check("hw4/rnn")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *right for one layer, wrong for two*: layers must be inside the loop over time, or time inside
#   each layer; both work, but the states of the layers must not be mixed up;
# - *right without bias only*: the bias has shape (H,), the sum (B, H): reshape and broadcast;
# - *the last states are those of the top layer, L times*: collect one for each layer.
#
# ### Look at it: who can tell what came first?
#
# A game for a network with a memory: of a sequence of numbers, tell after the last whether the
# *first* was positive. The longer the sequence, the harder.

# %%
ndl = fresh()


def play(make, length, steps=size(120, smoke=5), seed=0):
    """Train a recurrent layer on the game; returns the share of right answers on new sequences."""
    np.random.seed(seed)
    layer, head = make(), ndl.nn.Linear(24, 2)
    optimizer = ndl.optim.Adam(layer.parameters() + head.parameters(), lr=0.01)
    for step in range(steps + 1):
        X = np.random.randn(length, 64, 1)
        answers = ndl.Tensor(X[0, :, 0] > 0)
        outputs, _ = layer(ndl.Tensor(X))
        scores = head(ndl.split(outputs, 0)[length - 1])
        if step == steps:
            return float((scores.numpy().argmax(axis=1) == answers.numpy()).mean())
        loss = ndl.nn.SoftmaxLoss()(scores, answers)
        optimizer.reset_grad()
        loss.backward()
        optimizer.clip_grad_norm(1.0)
        optimizer.step()


for length in (2, 6, 18):
    share = play(lambda: ndl.nn.RNN(1, 24), length)
    print(f"{length:2} steps: {share:.2f} right")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. In the picture above, where does the influence fall below one millionth for ρ = 0.7? Predict it
#    from 0.7 alone, then read it off.
# 2. Set the weight from the state to itself, in the cell by hand, to exactly 1. Does it remember
#    for ever? What does tanh do to it?

# %% [markdown]
# ## Part 5 · LSTM
#
# File: `python/needle/nn/nn_sequence.py`, `Sigmoid`, `LSTMCell` and `LSTM`.

# %%
here("nn/LSTM")

# %% [markdown]
# ### First, watch it happen
#
# The *long short-term memory* keeps a second vector, the memory $c$, and treats it with care:
# nothing is multiplied into it but a number between 0 and 1, chosen anew for each entry at each
# step. Such a number is called a *gate*. It comes from the *logistic sigmoid*
#
# $$\sigma(x) = \frac{1}{1 + e^{-x}},$$
#
# which leads from all numbers into (0, 1). What can a gate do for a memory over a hundred steps?

# %%
sigmoid = lambda x: 1 / (1 + np.exp(-x))
for before_sigmoid in (-2.0, 0.0, 2.0, 5.0, 8.0):
    gate = sigmoid(before_sigmoid)
    print(f"gate {gate:.4f}: what is left of a memory after 10 steps {gate**10:.4f}, "
          f"after 100 {gate**100:.2e}")

# %% [markdown]
# A gate near 1 keeps a memory, and the gradient on its way back through it is multiplied by the
# very same number: near 1, too. That is the whole trick. And since the gate is computed from the
# input, the network can decide to keep for a hundred steps and to erase in one.

# %%
draw.lstm()

# %% [markdown]
# Four row vectors of H numbers each are computed from the input $x$ and the old state $h$, all with
# one pair of matrices: $x W_{ih} + b_{ih} + h W_{hh} + b_{hh}$ has 4H columns, in four blocks $i,
# f, g, o$. Then
#
# $$c' = \sigma(f)\, c + \sigma(i) \tanh(g), \qquad h' = \sigma(o) \tanh(c') .$$
#
# | block | name | says, for each entry |
# |---|---|---|
# | $i$ | input gate | how much of the new candidate is written |
# | $f$ | forget gate | how much of the old memory is kept |
# | $g$ | candidate | what would be written |
# | $o$ | output gate | how much of the memory is shown |
#
# The products are entry by entry. Play a cell by hand: it stores 0.8, keeps it, shows it on demand.

# %%
c = 0.0
for says, i, f, g, o in (("store", 9, -9, np.arctanh(0.8), -9), ("keep", -9, 9, 0, -9),
                         ("keep", -9, 9, 0, -9), ("show", -9, 9, 0, 9)):
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    print(f"{says:6} memory {c:.3f}   shown {sigmoid(o) * np.tanh(c):.3f}")

# %% [markdown]
# ### The contract
#
# | | |
# |---|---|
# | `Sigmoid()(x)` | entry by entry, built of operators that you have |
# | `LSTMCell(input_size, hidden_size, bias=True)` | `W_ih` (I, 4H), `W_hh` (H, 4H), `bias_ih` (4H,), `bias_hh` (4H,), drawn in this order from ±1 / √H; blocks in the order i, f, g, o |
# | cell: in, out | X (B, I), h = (h0, c0) or None for zeros → (h', c'), each (B, H) |
# | `LSTM(input_size, hidden_size, num_layers=1, bias=True)` | a list `lstm_cells` |
# | LSTM: in, out | X (T, B, I), (h0, c0), each (L, B, H), or None → outputs (T, B, H), (h, c), each (L, B, H) |
#
# The neighbour is your own `RNNCell`. How to cut a tensor (B, 4H) into four? Reshape it to (B, 4,
# H), and split.

# %%
show_blank("hw4/sigmoid")

# %%
show_blank("hw4/lstm_cell")

# %% [markdown]
# hints("hw4/sigmoid")
#
# hints("hw4/lstm_cell")

# %%
show_blank("hw4/lstm_forward")

# %% [markdown]
# hints("hw4/lstm_forward")

# %%
check("hw4/lstm")

# %% [markdown]
# ### Look at it
#
# The game of part 4 once more, now with a memory that can be kept. A new LSTM forgets half of it at
# every step, since σ(0) = 0.5; so start with forget gates that are open, by a bias of 2.

# %%
ndl = fresh()


def lstm_that_keeps():
    layer = ndl.nn.LSTM(1, 24)
    bias = layer.lstm_cells[0].bias_ih
    start = bias.numpy()
    start[24:48] += 2.0                     # the second block of four is f
    bias.data = ndl.Tensor(start)
    return layer


for length in (2, 6, 18):
    print(f"{length:2} steps: RNN {play(lambda: ndl.nn.RNN(1, 24), length):.2f}, "
          f"LSTM {play(lambda: ndl.nn.LSTM(1, 24), length):.2f}, "
          f"with open gates {play(lstm_that_keeps, length):.2f}")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. How many parameters has an LSTM of the same size as an RNN, and how much longer does a step
#    take?
# 2. With how many steps of training does each of the three reach 0.9 at 18 steps? What would you
#    change first to make the plain RNN better: its size, its start, or the clipping?

# %% [markdown]
# ## Part 6 · A text as data
#
# File: `python/needle/data/datasets/ptb_dataset.py`.

# %%
here("data/Corpus")

# %% [markdown]
# ### First, watch it happen
#
# Networks read numbers. Give each word a number, in order of first appearance, and mark the end of
# each line with a word of its own, `<eos>`:

# %%
lines, numbers = ["the fox sees the crow", "the crow sings"], {}
words = [word for line in lines for word in [*line.split(), "<eos>"]]
ids = [numbers.setdefault(word, len(numbers)) for word in words]
print(numbers)
print(ids)

# %% [markdown]
# A network learns faster from several texts at once, but we have one. So cut it into B stretches of
# equal length and read them side by side, as B columns:

# %%
text = np.arange(13)
stretches = text[:12].reshape(3, 4).T            # 3 columns; what does not fill a row is left out
print(stretches)

# %% [markdown]
# Column $j$ is the $j$-th stretch, read downwards. In each step the network gets some rows, and the
# *targets* are the words one row further down: the next word of each stretch.
#
# ### The contract
#
# | | |
# |---|---|
# | `Dictionary` | `add_word(word)` → its number, a new one if it is new; `word2idx`, `idx2word`, `len()` |
# | `Corpus(folder, max_lines=None)` | `train` and `test`: all words of `train.txt`, then of `test.txt`, as one list of numbers each, with one dictionary. `tokenize(path, max_lines)` reads a file |
# | `batchify(data, batch_size)` | (n // B, B), as above |
# | `get_batch(batches, i, bptt)` | rows i … i + s − 1 as data (s, B); the rows one further, flattened, as target (s · B,); s = min(bptt, rows − 1 − i) |
#
# *bptt* is the number of rows of a step. The last rows have no word after them, hence the −1. A
# neighbour, complete: the words of a text, counted.

# %%
counts = {}
for word in "the fox sees the crow".split():
    counts[word] = counts.get(word, 0) + 1
counts

# %%
show_blank("hw4/tokenize")

# %% [markdown]
# hints("hw4/add_word")
#
# hints("hw4/dictionary_len")
#
# hints("hw4/tokenize")

# %%
show_blank("hw4/batchify")

# %%
show_blank("hw4/get_batch")

# %% [markdown]
# hints("hw4/batchify")
#
# hints("hw4/get_batch")

# %%
check("hw4/ptb")

# %% [markdown]
# ### Look at it: a text whose best prediction we know
#
# The usual text is a million words of old newspaper, and nobody knows how well it *can* be
# predicted. So let us make a text by throwing dice. A sentence is a noun with "the", maybe an
# adjective before it, a verb that fits the noun, and then the same again:

# %%
import tempfile
from pathlib import Path

FITTING = {"fox": ["runs", "hides"], "crow": ["sings", "flies"], "cat": ["sleeps", "hides"],
           "river": ["shines", "runs"]}
ADJECTIVES, NOUNS = ["old", "small", "quiet", "red"], list(FITTING)


def sentence(random):
    """A sentence, and how surprising it is: minus the logarithm of its probability."""
    words, surprise = [], 0.0
    for joint in (["and"], []):
        words.append("the")
        surprise += np.log(2)                               # an adjective, or none
        if random.random() < 0.5:
            words.append(ADJECTIVES[random.integers(4)])
            surprise += np.log(4)
        noun = NOUNS[random.integers(4)]
        words += [noun, FITTING[noun][random.integers(2)], *joint]
        surprise += np.log(4) + np.log(2)
    return " ".join(words), surprise


def write_text(folder, lines, seed=0):
    """Files train.txt and test.txt; returns the mean surprise of a word of the latter."""
    random = np.random.default_rng(seed)
    for name, count in (("train", lines), ("test", lines // 5)):
        drawn = [sentence(random) for _ in range(count)]
        Path(folder, name + ".txt").write_text("\n".join(text for text, _ in drawn) + "\n")
    return sum(s for _, s in drawn) / sum(len(text.split()) + 1 for text, _ in drawn)


ndl = fresh()
folder = tempfile.mkdtemp()
best_possible = write_text(folder, size(2000, smoke=100))
corpus = ndl.data.Corpus(folder)
print(Path(folder, "train.txt").read_text().splitlines()[:3])
print(len(corpus.train), "words,", len(corpus.dictionary), "different")
print("the start as numbers:", corpus.train[:9])

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. What share of the words of the text is "the"? A prediction that knows nothing but such shares:
#    how surprised is it, on average (minus the mean of the logarithm of the share of each word)?
# 2. With `batchify(…, 20)`, between how many pairs of neighbouring words is the connection lost,
#    because a cut lies between them?

# %% [markdown]
# ## Part 7 · A language model
#
# Files: `Embedding` in `python/needle/nn/nn_sequence.py`, `LanguageModel` in `apps/models.py`, the
# loops in `apps/simple_ml.py`.

# %%
here("apps/LanguageModel")

# %% [markdown]
# ### First, watch it happen
#
# A language model gives a probability to every word that could come next. Its *loss* is the
# surprise, −log of the probability that it gave to the word which did come, on average over all
# words. Its exponential is called *perplexity*, and can be read as a number of words: a model of
# perplexity 8 is as undecided as if it had to guess among 8 equally likely ones.

# %%
vocabulary = len(corpus.dictionary)
shares = np.bincount(corpus.train, minlength=vocabulary) / len(corpus.train)
knows_shares = -np.log(shares[corpus.test]).mean()
losses = {"knows nothing": np.log(vocabulary), "knows how frequent words are": knows_shares,
          "knows how the text was made": best_possible}
for name, loss in losses.items():
    print(f"{name:28} loss {loss:.3f}   perplexity {np.exp(loss):6.2f}")

# %% [markdown]
# No model can be better than the last line, except by luck. Ours should come close to it.
#
# ### Truncated backpropagation through time
#
# The text is one long sequence of thousands of steps. Running backward through all of them would
# keep every state alive, and (part 4) most of it would have no effect. So the text is cut into
# pieces of *bptt* rows (*backpropagation through time*). The *state* is carried from piece to
# piece, as a value; the *graph* is not: `detach()` cuts it. How much does that save?

# %%
def states_alive(detach, pieces=20):
    cell, h = ndl.nn.RNNCell(4, 8), None
    before = ndl.autograd.TENSOR_COUNTER
    for _ in range(pieces):
        for _ in range(10):
            h = cell(ndl.Tensor(np.zeros((1, 4))), h)
        h = h.detach() if detach else h
    return ndl.autograd.TENSOR_COUNTER - before


print("tensors alive after 200 steps, in one graph:", states_alive(False))
print("cut every ten steps:                        ", states_alive(True))

# %% [markdown]
# The price: nothing is learned about what lies more than bptt words back, although the state may
# still hold it.
#
# ### The contract
#
# | | |
# |---|---|
# | `Embedding(num_embeddings, embedding_dim)` | `weight` (V, D) from `randn`; numbers (T, B) → their rows (T, B, D) |
# | `LanguageModel(embedding_size, output_size, hidden_size, num_layers=1, seq_model="rnn", …)` | an `Embedding`, an `RNN` or `LSTM`, a `Linear` to `output_size` scores, made in this order |
# | its forward | x (T, B), state or None → scores (T · B, output_size), state |
# | `epoch_general_ptb(data, model, seq_len, loss_fn, opt, clip, …)` | one pass over a batchified text, in pieces of `seq_len`, state carried and detached; returns accuracy and mean loss over *words* |
# | `train_ptb`, `evaluate_ptb` | as in part 3.7 |
#
# The row of a number in a table is, as a product, a one-hot vector times the table. Picking the row
# (`ops.take`) gives the same and is cheaper. What flows back into the table? Each row gets the sum
# of the gradients of all places where its word stands; the other rows get zeros:

# %%
table = ndl.Tensor(np.arange(8.0).reshape(4, 2))
rows = ndl.ops.take(table, np.array([1, 3, 1]), 0)
rows.sum().backward()
print(table.grad.numpy())

# %%
show_blank("hw4/embedding_forward")

# %% [markdown]
# hints("hw4/embedding_init")
#
# hints("hw4/embedding_forward")

# %%
show_blank("hw4/language_model_init")

# %%
show_blank("hw4/language_model_forward")

# %% [markdown]
# hints("hw4/language_model_init")
#
# hints("hw4/language_model_forward")

# %%
show_blank("hw4/epoch_ptb")

# %% [markdown]
# hints("hw4/epoch_ptb")
#
# hints("hw4/train_ptb")
#
# hints("hw4/evaluate_ptb")

# %%
check("hw4/language_model")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *the loss differs in the third digit*: the mean is taken over pieces, not over words, or the
#   state was not carried;
# - *memory grows with every piece*: the state was not detached, or only one of the two of an LSTM;
# - *ids out of range*: the numbers arrive as float32; make whole numbers of them before you look
#   up.
#
# ### Look at it: read, then write

# %%
ndl = fresh()
import models
import simple_ml
corpus = ndl.data.Corpus(folder)
train = ndl.data.batchify(corpus.train, 16, dtype="float32")
test = ndl.data.batchify(corpus.test, 16, dtype="float32")

history = {}
for kind in ("rnn", "lstm"):
    np.random.seed(0)
    model = models.LanguageModel(16, vocabulary, 32, seq_model=kind)
    history[kind] = []
    for epoch in range(size(5, smoke=1)):
        simple_ml.train_ptb(model, train, seq_len=16, lr=0.01, clip=1.0, optimizer=ndl.optim.Adam)
        history[kind].append(np.exp(simple_ml.evaluate_ptb(model, test, seq_len=16)[1]))
history["best possible"] = [np.exp(best_possible)] * len(history["lstm"])
curves(history, xlabel="epoch", ylabel="test perplexity")

# %%
def write_on(model, start, words, temperature=1.0, seed=0):
    """Words that the model finds likely after `start`; a low temperature makes it cautious."""
    random, state, said = np.random.default_rng(seed), None, list(start)
    for number in range(words):
        heard = said if number == 0 else said[-1:]
        ids = [[corpus.dictionary.word2idx[word]] for word in heard]
        scores, state = model(ndl.Tensor(ids), state)
        last = scores.numpy()[-1].astype(float) / temperature
        odds = np.exp(last - last.max())
        said.append(corpus.dictionary.idx2word[random.choice(vocabulary, p=odds / odds.sum())])
    return " ".join(said).replace("<eos>", "\n")


model.eval()
print(write_on(model, ["the"], 40))

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Train with `seq_len` 2 and 4 instead of 16. From which length on does the perplexity stop
#    getting better, and what in the grammar explains this length?
# 2. Compare `write_on` at temperatures 0.3, 1 and 3. At which of them do the sentences have the
#    right verbs? Which has the right *shares* of words?
#
# ## That was it
#
# Two kinds of networks, on a framework of which you have written every layer, down to the loops.
# `make check HW=hw4` in a terminal runs every check once more, `needle-course status` counts your
# points.
