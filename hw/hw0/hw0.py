# %% [markdown]
# # Homework 0 · A classifier from nothing but arrays
#
# You will write a program that learns to read handwritten digits: first with one matrix, then
# with two, and the first one a second time in C++. There is no framework here, only NumPy and
# loops; at the end you will have written every derivative yourself and know what each number is
# for.
#
# Your code lives in two files, `hw/hw0/src/simple_ml.py` and `hw/hw0/src/simple_ml_ext.cpp`. The
# way of working is the same for every question: **read, run the experiment, fill the blank in the
# file with any editor, save it, run the check.** The check starts a process of its own on the
# saved file, so there is nothing to restart.

# %%
setup("hw0")

# %% [markdown]
# | question | you write | file | time |
# |---|---|---|---|
# | 1 | `add` | `simple_ml.py` | 5 min |
# | 2 | `parse_mnist` | `simple_ml.py` | 30 min |
# | 3 | `softmax_loss` | `simple_ml.py` | 30 min |
# | 4 | `softmax_regression_epoch` | `simple_ml.py` | 60 min |
# | 5 | `nn_epoch` | `simple_ml.py` | 60 min |
# | 6 | `softmax_regression_epoch_cpp` | `simple_ml_ext.cpp` | 90 min |
#
# ## Question 1 · `add`: one turn of the loop you will work in
#
# One line of code, to see that everything is in place.

# %%
here("hw0/simple_ml/add")

# %% [markdown]
# ### First, watch it happen
#
# The same `+` adds numbers, lists and arrays, and does something different each time. Of two
# arrays whose shapes differ it stretches what has extent 1, which is handy when you meant it:

# %%
import numpy as np

print([1, 2] + [3, 4])
print(np.array([1, 2]) + np.array([3, 4]))
print(np.array([1, 2, 3]) + np.array([[10], [20]]))

# %% [markdown]
# The last result has shape (2, 3) though neither input has. Keep it in mind: a bug in this
# homework is most often an array of shape (n,) that met one of shape (n, 1), and quietly became
# (n, n).
#
# ### The contract
#
# | | |
# |---|---|
# | in | `x`, `y`: numbers or NumPy arrays |
# | out | their sum, entry by entry |
# | changes | nothing: neither input is written to |
#
# ### A neighbour, complete


# %%
def multiply(x, y):
    """x * y, for numbers and arrays alike."""
    return x * y


multiply(3, np.array([1, 2]))

# %% [markdown]
# ### Yours
#
# Open the file, replace the line between the two markers, save. The markers stay: they are how
# the tools find your answer.

# %%
show_blank("hw0/add")

# %% [markdown]
# hints("hw0/add")

# %%
check("hw0/add")

# %% [markdown]
# ### Look at it
#
# `fresh` imports your file anew, as it is saved now. Python itself keeps the first version that
# it imported, so without `fresh` an edit would seem to have no effect.

# %%
simple_ml = fresh("simple_ml")
print(simple_ml.add(5, 6))
print(simple_ml.add(np.array([1, 2]), 0.5))

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. What is `add([1, 2], [3, 4])`, with lists, and what does that say about the word "add"?
# 2. Make two arrays of a million `float32`. How many nanoseconds does `add` need for each entry?
#    And the list comprehension `[a + b for a, b in zip(x, y)]`? (`best_of(lambda: …)` gives
#    seconds.)
#
# ## Question 2 · `parse_mnist`: from bytes to numbers
#
# MNIST is 70,000 images of handwritten digits, 28 × 28 pixels each, in a file format that is four
# numbers followed by raw bytes.

# %%
here("hw0/simple_ml/parse_mnist")

# %% [markdown]
# ### First, watch it happen
#
# Four bytes hold one whole number. Which end comes first is a convention, and reading with the
# wrong one does not fail: it gives another number.

# %%
import struct

four_bytes = struct.pack(">I", 2051)  # > : the big end first;  I : unsigned, four bytes
print(list(four_bytes))
print(struct.unpack(">I", four_bytes), struct.unpack("<I", four_bytes))

# %% [markdown]
# 2051 became 50,855,936. That is what a *magic number* at the start of a file is for: whoever
# reads anything else there knows that the file, or the reading, is wrong. Here is a whole label
# file, made in memory and taken apart again:

# %%
label_file = struct.pack(">II", 2049, 3) + bytes([7, 2, 1])  # magic, count, then one byte a label
magic, count = struct.unpack(">II", label_file[:8])
labels = np.frombuffer(label_file[8:], dtype=np.uint8)
magic, count, labels, labels.dtype

# %% [markdown]
# An image file is the same with two more numbers in the header:
#
# | bytes | image file | label file |
# |---|---|---|
# | 0–3 | 2051 | 2049 |
# | 4–7 | how many images | how many labels |
# | 8–11 | rows, 28 | first label, second label, … |
# | 12–15 | columns, 28 | |
# | 16– | pixels, one byte each, row after row, image after image | |
#
# Both files are compressed; `gzip.open(name)` reads them as if they were not.
#
# ### The contract
#
# | | |
# |---|---|
# | in | the names of an image file and of a label file, both gzipped |
# | out | `X`, float32 of shape (count, rows · columns), every pixel divided by 255, so within [0, 1] |
# | | `y`, uint8 of shape (count,) |
# | raises | `ValueError` if a magic number is wrong or the two files do not fit each other |
# | cost | one pass over the bytes: a loop over pixels would take minutes |
#
# The type matters: 60,000 × 784 numbers are 188 MB as float32 and twice that as float64, and
# dividing a uint8 array by 255 gives float64 unless you convert first.

# %%
pixels = np.array([0, 128, 255], dtype=np.uint8)
print((pixels / 255).dtype, (pixels.astype(np.float32) / np.float32(255)).dtype)

# %% [markdown]
# ### A neighbour, complete
#
# The function below reads a format with one header number and pairs of bytes. Yours has two
# files and longer headers, and nothing else is different.

# %%
import gzip
import tempfile
from pathlib import Path


def parse_points(filename):
    """Points with whole coordinates: a count (big-endian uint32), then two bytes for each."""
    with gzip.open(filename) as file:
        (count,) = struct.unpack(">I", file.read(4))
        coordinates = np.frombuffer(file.read(), dtype=np.uint8)
    if len(coordinates) != 2 * count:
        raise ValueError(f"parse_points: {len(coordinates)} bytes, wanted {2 * count}")
    return coordinates.reshape(count, 2).astype(np.float32)


folder = Path(tempfile.mkdtemp())
with gzip.open(folder / "points.gz", "wb") as file:
    file.write(struct.pack(">I", 2) + bytes([1, 2, 30, 40]))
parse_points(folder / "points.gz")

# %% [markdown]
# ### Yours

# %%
show_blank("hw0/parse_mnist")

# %% [markdown]
# hints("hw0/parse_mnist")

# %%
check("hw0/parse_mnist")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *dtype float64, wanted float32*: you divided before you converted;
# - *values off by a factor of 255*: not divided, or divided twice;
# - *16 pixels too many*: the header is still in the array.
#
# ### Look at it
#
# The full data set need not be on this machine. A smaller one comes with the course: 1,797 digits
# of 8 × 8 pixels. We write some in MNIST's format, and your function reads them back.

# %%
train_images, train_labels, test_images, test_labels = digits()

with gzip.open(folder / "images.gz", "wb") as file:
    body = (train_images[:20] * 255).astype(np.uint8)
    file.write(struct.pack(">IIII", 2051, 20, 8, 8) + body.tobytes())
with gzip.open(folder / "labels.gz", "wb") as file:
    file.write(struct.pack(">II", 2049, 20) + train_labels[:20].tobytes())

X, y = fresh("simple_ml").parse_mnist(folder / "images.gz", folder / "labels.gz")
images(X.reshape(20, 8, 8), [str(label) for label in y])

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. How large is `images.gz` against the bytes in it, and against `X.nbytes`? Where does the
#    factor four in the second comparison come from?
# 2. Read the header with `"<IIII"` instead. Which of the four numbers is still right, and why
#    that one?
#
# ## Question 3 · `softmax_loss`: one number for "how wrong"
#
# A classifier gives each of ten digits a score, its *logit*; the largest one is its answer. To
# make it better we need a number that falls as the answers get better, and changes smoothly.

# %%
here("hw0/simple_ml/softmax_loss")

# %% [markdown]
# ### First, watch it happen
#
# Three scores become three probabilities: `exp` makes them positive, dividing by the sum makes
# them add up to 1. Adding 5 to every score changes nothing: only differences count.

# %%
scores = np.array([2.0, 1.0, -1.0])


def softmax(z):
    return np.exp(z) / np.exp(z).sum()


print(softmax(scores).round(3))
print(softmax(scores + 5).round(3))

# %% [markdown]
# The loss is minus the logarithm of the probability that the *right* class got. Sure and right
# costs almost nothing; sure and wrong costs a lot:

# %%
for right in range(3):
    probability = softmax(scores)[right]
    print(f"right class {right}: probability {probability:.3f}, loss {-np.log(probability):.3f}")

# %% [markdown]
# A network that knows nothing gives each of ten classes a tenth, which costs $\log 10 \approx
# 2.303$. If your training ever starts far above that, something is wrong before the first step.
#
# ### Why it breaks if you write it as it stands

# %%
large = np.array([1000.0, 0.0])
with np.errstate(over="ignore", invalid="ignore"):
    print(np.exp(large), softmax(large))
print(softmax(large - large.max()))

# %% [markdown]
# $e^{1000}$ has 435 digits and floats end at $10^{308}$. But only differences count, so we may
# take off the largest score first: then the largest power is $e^0 = 1$.
#
# Call the logits of one sample $z_1, \dots, z_k$ and its right class $y$. The loss is
#
# $$\ell(z, y) = -\log \frac{e^{z_y}}{\sum_j e^{z_j}} = \log \sum_j e^{z_j} - z_y.$$
#
# With $m = \max_j z_j$, the first term is $m + \log \sum_j e^{z_j - m}$: same number, no
# overflow. The loss of a batch is the *mean* over its samples, so that it does not depend on
# their number.
#
# ### The contract
#
# | | |
# |---|---|
# | in | `Z`, logits, shape (batch, classes); `y`, the right classes, whole numbers, shape (batch,) |
# | out | one number, the mean loss over the batch |
# | finite | for every finite logit, however large |
# | cost | a few passes over `Z`, no Python loop |
#
# ### A neighbour, complete
#
# The *hinge loss* wants the right logit to lead every other by 1 and charges what is missing. It
# takes the right logit of each row by *pairs* of indices, which is the one trick that you need,
# too: row 0 with `y[0]`, row 1 with `y[1]`, and so on.


# %%
def hinge_loss(Z, y):
    """The mean over rows of sum over wrong classes j of max(0, 1 + Z_j - Z_right)."""
    rows = np.arange(len(y))
    right = Z[rows, y]
    missing = np.maximum(0, 1 + Z - right[:, np.newaxis])
    missing[rows, y] = 0
    return missing.sum(axis=1).mean()


hinge_loss(np.array([[2.0, 1.0, -1.0], [0.0, 0.5, 3.0]]), np.array([0, 1]))

# %% [markdown]
# `right[:, np.newaxis]` is the column (2, 1) of the right logits. Without it, shape (2,) would
# meet (2, 3) and NumPy would refuse; with three samples and three classes it would *not* refuse,
# and subtract the wrong numbers.
#
# ### Yours

# %%
show_blank("hw0/softmax_loss")

# %% [markdown]
# hints("hw0/softmax_loss")

# %%
check("hw0/softmax_loss")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *off by a factor of the batch size*: the sum where the mean was wanted;
# - *nan or inf*: no shift by the maximum, or a maximum over the whole batch instead of each row;
# - *right for one row, wrong for several*: `Z[:, y]` instead of pairs of indices.
#
# ### Look at it
#
# How does the loss of one sample move while its right logit grows and the other nine stay at 0?

# %%
simple_ml = fresh("simple_ml")
leads = np.linspace(-10, 10, 41)
Z = np.zeros((1, 10))
losses = []
for lead in leads:
    Z[0, 3] = lead
    losses.append(simple_ml.softmax_loss(Z, np.array([3])))
curves({"softmax loss": losses}, x=leads, xlabel="lead of the right logit")

# %% [markdown]
# A straight line on the left, nearly zero on the right: a wrong answer pulls with constant force,
# a right one lets go. That is what makes it good to train with.
#
# ### Two questions that want a measurement
#
# 1. What is the slope of that curve at −10, at 0 and at 10? Guess its formula from the three
#    numbers.
# 2. Compute the loss for logits `[0, 1e8]` and right class 0, in float32 and in float64, with
#    your function and without the shift.
#
# ## Question 4 · `softmax_regression_epoch`: learning by going downhill
#
# One matrix $\Theta$ turns 64 pixels into ten logits. We start from zeros and change it, a little
# at a time, in the direction in which the loss falls.

# %%
here("hw0/simple_ml/softmax_regression_epoch")

# %% [markdown]
# ### First, watch it happen
#
# What is "the direction in which the loss falls"? Nudge one weight and see:

# %%
X, y = train_images[:100], train_labels[:100]
theta = np.zeros((64, 10))


def loss(theta):
    return simple_ml.softmax_loss(X @ theta, y)


def numerical_slope(f, weights, index, nudge=1e-5):
    """How much f changes per unit of one weight: nudged up and down, divided by the distance."""
    up, down = weights.copy(), weights.copy()
    up[index] += nudge
    down[index] -= nudge
    return (f(up) - f(down)) / (2 * nudge)


numerical_slope(loss, theta, (20, 3))

# %% [markdown]
# Doing that for all 640 weights gives the *gradient*: a matrix of the shape of $\Theta$, holding
# the slope for every weight. It takes 1,280 evaluations of the loss for one step. And how far
# should one nudge? Take a slope that we know, that of $e^x$ at 1, which is $e$:

# %%
nudges = [10.0**-k for k in range(1, 14)]
errors = [abs(numerical_slope(np.exp, np.ones(1), 0, n)[0] - np.e) for n in nudges]
curves({"slope": errors}, x=nudges, xlabel="nudge", ylabel="error", log=True, logx=True)

# %% [markdown]
# From the right, the error falls with the square of the nudge; from the left it *rises* as the
# nudge gets smaller, since the difference of two nearly equal numbers keeps few of their digits.
# So numerical slopes are slow and never quite right; they are good for one thing, **checking a
# formula**. Let us get the formula.
#
# ### The gradient by hand
#
# Take one sample with input $x$ (64 numbers), logits $z = \Theta^\top x$ and right class $y$. How
# does $\ell = \log \sum_j e^{z_j} - z_y$ depend on one logit $z_i$? The first term gives
#
# $$\frac{\partial}{\partial z_i} \log \sum_j e^{z_j} = \frac{e^{z_i}}{\sum_j e^{z_j}} = p_i,$$
#
# the probability of class $i$. The second gives $-1$ if $i = y$ and 0 otherwise. Together:
#
# $$\frac{\partial \ell}{\partial z_i} = p_i - [i = y]$$
#
# where $[i = y]$ is 1 if the two are equal, else 0. **What the model said minus what it should
# have said.** The logit $z_i = \sum_l x_l\, \Theta_{li}$ moves by $x_l$ per unit of
# $\Theta_{li}$, so
#
# $$\frac{\partial \ell}{\partial \Theta_{li}} = x_l\,(p_i - [i = y]).$$
#
# For a batch of $B$ samples, let $X$ (B × 64) hold the inputs as rows, $P$ (B × 10) the
# probabilities and $Y$ (B × 10) a 1 at the right class of each row and 0 elsewhere. The mean over
# the batch is one matrix product:
#
# $$G = \frac{1}{B}\, X^\top (P - Y).$$
#
# The shapes alone nearly force it: (64 × B)(B × 10) is the only product of these two that gives
# 64 × 10.
#
# ### The contract
#
# | | |
# |---|---|
# | in | `X` (m, n) float32, `y` (m,) uint8, `theta` (n, k), the step size `lr`, the batch size `batch` |
# | does | for each batch, in order: `theta -= lr * gradient`, **in place**; the last batch may be shorter |
# | out | `None`: the caller's `theta` has changed |
# | cost | two matrix products a batch |
#
# In place means: the array that came in is written to. `theta = theta - …` would make a new array
# under the same name, and the caller would never see it.


# %%
def rebinds(a):
    a = a - 1


def writes(a):
    a -= 1


numbers = np.zeros(2)
rebinds(numbers)
print(numbers)
writes(numbers)
print(numbers)

# %% [markdown]
# ### A neighbour, complete
#
# The same loop for another model: *linear regression* predicts numbers, $\hat t = X w$, and its
# loss is half the mean square of the error $\hat t - t$, whose gradient is $X^\top (\hat t - t) /
# B$. Only the error is computed differently in yours.


# %%
def linear_regression_epoch(X, t, w, lr=0.1, batch=100):
    """One epoch of stochastic gradient descent on half the mean squared error; changes w."""
    for start in range(0, len(X), batch):
        X_b, t_b = X[start : start + batch], t[start : start + batch]
        error = X_b @ w - t_b
        w -= lr / len(X_b) * (X_b.T @ error)


random = np.random.RandomState(0)
inputs = random.randn(200, 3)
targets = inputs @ np.array([1.0, -2.0, 0.5])
w = np.zeros(3)
for epoch in range(20):
    linear_regression_epoch(inputs, targets, w, batch=30)
w.round(4)

# %% [markdown]
# ### Yours

# %%
show_blank("hw0/softmax_regression_epoch")

# %% [markdown]
# hints("hw0/softmax_regression_epoch")

# %%
check("hw0/softmax_regression_epoch")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *theta did not change*: a new array instead of the one that came in;
# - *off by a constant factor*: not divided by the rows of the batch, or by `batch` where the last
#   one is shorter;
# - *the sign is wrong*: uphill.
#
# ### Look at it
#
# First, the formula against the nudges. Then what it learns.

# %%
simple_ml = fresh("simple_ml")
step = np.zeros((64, 10))
simple_ml.softmax_regression_epoch(X, y, step, lr=1.0, batch=100)
print("yours   ", -step[20, 3])
print("nudged  ", numerical_slope(loss, theta, (20, 3)))

# %%
theta = np.zeros((64, 10), dtype=np.float32)
history = {"train": [], "test": []}
for epoch in range(size(20, 5)):
    simple_ml.softmax_regression_epoch(train_images, train_labels, theta, lr=0.5, batch=50)
    history["train"].append(simple_ml.loss_err(train_images @ theta, train_labels)[1])
    history["test"].append(simple_ml.loss_err(test_images @ theta, test_labels)[1])
curves(history, xlabel="epoch", ylabel="share of wrong answers")

# %% [markdown]
# Each column of $\Theta$ has a weight for every pixel, so it can be drawn as an image: purple
# counts for the digit, orange against it. Can you read what the model looks for?

# %%
images(theta.T.reshape(10, 8, 8), [str(d) for d in range(10)], symmetric=True)

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Train once with `batch=1`, once with `batch=50` and once with `batch=1438`, five epochs each.
#    Which gets the lowest training loss, and how long does an epoch take?
# 2. Double `lr` until training breaks. What does the loss do just before?
#
# ## Question 5 · `nn_epoch`: two layers, and the chain rule
#
# One matrix can only weigh pixels. To notice that *two* things are there at once, a second layer
# must look at what the first one found.

# %%
here("hw0/simple_ml/nn_epoch")

# %% [markdown]
# ### First, watch it happen
#
# Four points: the class is 1 exactly if *one* of the two inputs is 1. Softmax regression, with a
# constant third input so that it may shift, cannot do better than guess. We train it for long, to
# be fair:

# %%
corners = np.array([[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 1]], dtype=np.float32)
exclusive = np.array([0, 1, 1, 0], dtype=np.uint8)

theta = np.zeros((3, 2), dtype=np.float32)
for epoch in range(1000):
    simple_ml.softmax_regression_epoch(corners, exclusive, theta, lr=1.0, batch=4)
simple_ml.loss_err(corners @ theta, exclusive), np.log(2)

# %% [markdown]
# The loss is stuck at $\log 2$, a coin toss, and every answer is a tie. Now put a layer in
# between that computes $\max(0, a + b - 1)$, which is 1 only where both inputs are 1:

# %%
both = np.maximum(corners @ np.array([1.0, 1.0, -1.0]), 0)
features = np.column_stack([corners, both]).astype(np.float32)
theta = np.zeros((4, 2), dtype=np.float32)
for epoch in range(1000):
    simple_ml.softmax_regression_epoch(features, exclusive, theta, lr=1.0, batch=4)
simple_ml.loss_err(features @ theta, exclusive)

# %% [markdown]
# One feature more, and it is solved. A network with two layers finds such features by itself:
#
# $$Z = \max(0,\ X W_1), \qquad \text{logits} = Z\, W_2.$$
#
# $X$ is (B, n), $W_1$ (n, h) with $h$ *hidden units*, $Z$ (B, h), $W_2$ (h, k). The maximum is
# called *relu*; without it, $X W_1 W_2$ would be one matrix again.
#
# ### The gradients, from back to front
#
# From the last question, the error at the logits is $E = P - Y$ (B × k), and $W_2$ sees $Z$ as
# its input:
#
# $$G_2 = \frac1B\, Z^\top E.$$
#
# How much does the loss move per unit of $Z_{ih}$, hidden unit $h$ of sample $i$? It reaches
# every logit $j$ through $W_{2,hj}$, and the effects add up: $\sum_j E_{ij} W_{2,hj}$, as
# matrices $E\, W_2^\top$ (B × h). And per unit of what went *into* the maximum? The same where
# the unit is on, nothing where it is off, since there the output stays 0:
#
# $$D = [Z > 0] \odot (E\, W_2^\top), \qquad G_1 = \frac1B\, X^\top D,$$
#
# where $\odot$ multiplies entry by entry, and $[Z > 0]$ is 1 where $Z$ is positive and else 0.
#
# ### The contract
#
# | | |
# |---|---|
# | in | `X` (m, n), `y` (m,), `W1` (n, h), `W2` (h, k), `lr`, `batch` |
# | does | for each batch: both gradients **from the old weights**, then both updates, in place |
# | out | `None` |
# | cost | five matrix products a batch |
#
# ### A neighbour, complete
#
# The same walk, forward and then backward, for the smallest net that has one: two weights and no
# matrix, $f = w_2 \max(0, w_1 x)$, with half the squared distance to a target $t$ as loss.


# %%
def small_net_gradients(x, t, w1, w2):
    z = max(0.0, w1 * x)  # forward, keeping what the way back needs
    error = w2 * z - t  # slope of the loss with respect to the output
    grad_2 = z * error
    d = (z > 0) * (w2 * error)  # what reaches the inside of the maximum
    grad_1 = x * d
    return grad_1, grad_2


def small_loss(w):
    return 0.5 * (w[1] * max(0.0, w[0] * 3.0) - 1.0) ** 2


weights = np.array([0.5, 0.8])
by_nudging = [numerical_slope(small_loss, weights, i) for i in (0, 1)]
small_net_gradients(3.0, 1.0, *weights), by_nudging

# %% [markdown]
# ### Yours

# %%
show_blank("hw0/nn_epoch")

# %% [markdown]
# hints("hw0/nn_epoch")

# %%
check("hw0/nn_epoch")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *`W1` is a little off, `W2` is right*: `W2` was updated before the gradient of `W1` read it;
# - *`W1` far off*: the mask `Z > 0` is missing;
# - *numbers of order 1 where weights were small*: probabilities without the shift by the maximum.
#
# ### Look at it
#
# Does it find by itself the feature that we built by hand, and does it read digits better than
# one layer?

# %%
simple_ml = fresh("simple_ml")
random = np.random.RandomState(1)
W1, W2 = random.randn(3, 8), random.randn(8, 2)
for epoch in range(2000):
    simple_ml.nn_epoch(corners, exclusive, W1, W2, lr=0.2, batch=4)
simple_ml.loss_err(np.maximum(corners @ W1, 0) @ W2, exclusive)


# %%
def train_two_layers(hidden, epochs, lr=0.5):
    random = np.random.RandomState(0)
    W1 = (random.randn(64, hidden) / np.sqrt(hidden)).astype(np.float32)
    W2 = (random.randn(hidden, 10) / np.sqrt(10)).astype(np.float32)
    errors = []
    for epoch in range(epochs):
        simple_ml.nn_epoch(train_images, train_labels, W1, W2, lr=lr, batch=50)
        hidden_values = np.maximum(test_images @ W1, 0)
        errors.append(simple_ml.loss_err(hidden_values @ W2, test_labels)[1])
    return W1, errors


W1, errors = train_two_layers(hidden=100, epochs=size(30, 5))
curves(
    {"one layer": history["test"], "two layers": errors},
    xlabel="epoch",
    ylabel="share of wrong test answers",
)

# %%
images(W1.T[:20].reshape(20, 8, 8), symmetric=True, alt="what 20 hidden units look for")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Train with 2, 4, 8, … 128 hidden units. From where on does the test error stop falling?
# 2. Start with `W1` and `W2` all zero. What do the two gradients say, and for how many epochs
#    does the loss not move? Then try both full of ones. What is still missing?
#
# ## Question 6 · `softmax_regression_epoch_cpp`: the loops that NumPy hides
#
# `X_b.T @ error` is three nested loops that somebody wrote in a compiled language. Here it is
# you.

# %%
here("hw0/simple_ml_ext/softmax_regression_epoch_cpp")

# %% [markdown]
# ### First, watch it happen
#
# The same sum of a million products, once with the loop in Python and once with the loop in C:

# %%
a, b = np.random.rand(1_000_000), np.random.rand(1_000_000)


def loop():
    total = 0.0
    for i in range(100_000):  # a tenth of it, or we would wait
        total += a[i] * b[i]
    return total


per_product = best_of(loop, 3) / 100_000, best_of(lambda: a @ b) / 1_000_000
print(f"Python {per_product[0] * 1e9:.1f} ns, compiled {per_product[1] * 1e9:.2f} ns a product")

# %% [markdown]
# Python looks up types and makes an object for every number; the compiled loop does neither. In
# C++ an array is just a place in memory: **a matrix is its rows, one after the other**, and you
# compute where an entry lies. The memory of a NumPy array can be looked at in the same way:

# %%
M = np.array([[11, 12, 13], [21, 22, 23]], dtype=np.float32)
memory = M.ravel()  # the numbers in the order in which they lie there
i, l = 1, 2
print(memory, M[i, l], memory[i * 3 + l])

# %% [markdown]
# Entry (i, l) of a matrix with n columns lies at `i * n + l`. Nothing checks that you stay
# inside: one too far reads somebody else's memory, or ends the process.
#
# ### The contract
#
# | | |
# |---|---|
# | in | pointers to `X` (m × n), `y` (m), `theta` (n × k), all row after row; `m`, `n`, `k`, `lr`, `batch` |
# | does | what `softmax_regression_epoch` does, in place in `theta`; the last batch may be shorter |
# | out | nothing |
# | allowed | the C++ standard library; no linear-algebra library |
#
# The part below the blank, given, makes pointers of NumPy arrays and checks types and sizes.
#
# ### A neighbour, complete
#
# A matrix times a matrix with the loops in an order that walks along memory: the innermost loop
# runs over neighbours in `B` and `C`. It compiles here and prints what it finds.

# %%
run_cpp(r"""
#include <cstddef>
#include <cstdio>
#include <vector>

// C += A B, with A (m, n), B (n, k) and C (m, k), all row after row
void MatmulInto(const float *A, const float *B, float *C, size_t m, size_t n, size_t k) {
  for (size_t i = 0; i < m; i++)
    for (size_t l = 0; l < n; l++)
      for (size_t j = 0; j < k; j++) C[i * k + j] += A[i * n + l] * B[l * k + j];
}

int main() {
  std::vector<float> A = {1, 2, 3, 4}, B = {5, 6, 7, 8}, C(4);
  MatmulInto(A.data(), B.data(), C.data(), 2, 2, 2);
  for (float c : C) std::printf("%g ", c);
}
""")

# %% [markdown]
# ### Yours
#
# Work in steps: the logits of one batch into a buffer; each row of the buffer into probabilities;
# 1 off at the right class; then the update. The check compiles the file first, and shows what the
# compiler says if it says anything.

# %%
show_blank("hw0/softmax_regression_epoch_cpp")

# %% [markdown]
# hints("hw0/softmax_regression_epoch_cpp")

# %%
check("hw0/softmax_regression_epoch_cpp")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *right for full batches, wrong for a short last one*: the loop goes to `batch`, not to the
#   rows left;
# - *nan*: the buffer was not set to zero before sums were added to it, or `exp` overflowed;
# - *a crash*: an index with the wrong number of columns.
#
# ### Look at it
#
# Same numbers as NumPy's? And how fast, in a process of its own, since a compiled module that has
# been imported cannot be imported anew.

# %%
run_fresh("""
import sys, time
sys.path.insert(0, "hw/hw0/src")
import numpy as np
import simple_ml

random = np.random.RandomState(0)
X = random.rand(6000, 784).astype(np.float32)
y = random.randint(0, 10, 6000).astype(np.uint8)
thetas = [np.zeros((784, 10), np.float32) for _ in range(2)]
epochs = simple_ml.softmax_regression_epoch, simple_ml.softmax_regression_epoch_cpp
for name, epoch, theta in zip(("NumPy", "C++"), epochs, thetas):
    start = time.perf_counter()
    epoch(X, y, theta, lr=0.1, batch=100)
    print(f"{name:6} {1000 * (time.perf_counter() - start):6.1f} ms for 6,000 images")
print("largest difference", abs(thetas[0] - thetas[1]).max())
""")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Exchange the two inner loops of `MatmulInto`, so that `l` is innermost, and time both orders
#    for 512 × 512 matrices (`std::chrono`, or `best_of` around a `run_cpp`). Which memory does
#    the innermost loop now jump through?
# 2. `run_cpp(source, "-O0")` compiles without optimisation: the compiler's default level here is
#    `-O3`. How much of the speed is C++, and how much is the optimiser?
