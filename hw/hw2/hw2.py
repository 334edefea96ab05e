# %% [markdown]
# # Homework 2 · Layers, optimizers, data: a library to train with
#
# You have tensors that differentiate themselves. Now you build what stands on them: weights with
# good first values, layers, losses, optimizers, loaders of data, and at the end a residual
# network that learns to read digits.
#
# For every question: **read, run the experiment, fill the blank in the file with any editor, save
# it, run the check.** Checks run in a process of their own on the saved files; `fresh()` imports
# your files anew for a cell that uses them.

# %%
setup("hw2")

# %% [markdown]
# | question | you write | file | time |
# |---|---|---|---|
# | 1 | four ways to draw first weights | `python/needle/init/init_initializers.py` | 45 min |
# | 2 | ten layers, a loss, and two operators under it | `nn/nn_basic.py`, `ops/ops_logarithmic.py` | 4 h |
# | 3 | SGD with momentum, Adam | `optim.py` | 90 min |
# | 4 | two transforms, a data set, the loader | `data/` | 90 min |
# | 5 | a residual network on digits | `apps/mlp_resnet.py` | 90 min |
#
# ## Question 1 · First values of weights

# %%
here("init/init_initializers")

# %% [markdown]
# ### First, watch it happen
#
# Thirty layers of 100 units, $x \mapsto \max(0, x W)$, with random weights. How large are the
# values after each layer? It depends on one number, the standard deviation of the weights.

# %%
import numpy as np


def norms_over_depth(draw, depth=30, width=100):
    """The root mean square of the activations after each relu layer; draw() makes weights."""
    np.random.seed(0)
    x, norms = np.random.randn(200, width), []
    for layer in range(depth):
        x = np.maximum(x @ draw(), 0)
        norms.append(np.sqrt((x**2).mean()))
    return norms


lines = {
    f"std {std}": norms_over_depth(lambda std=std: std * np.random.randn(100, 100))
    for std in (0.1, 0.1414, 0.2)
}
curves(lines, xlabel="layer", ylabel="size of the activations", log=True)

# %% [markdown]
# With 0.1 the signal is gone after thirty layers, with 0.2 it has grown by four powers of ten;
# the line between is flat. Gradients on their way back are multiplied by the same matrices, and
# suffer the same.
#
# ### Why $\sqrt{2/n}$
#
# One unit computes $s = \sum_{i=1}^{n} x_i w_i$. Let the weights be independent of each other and
# of $x$, with mean 0 and variance $\sigma^2$. Then the variances of the terms add up:
#
# $$\operatorname{Var}(s) = n\,\sigma^2\, \mathrm{E}[x_i^2].$$
#
# $s$ is as often positive as negative, so relu keeps half of its mean square: the next layer's
# inputs have $\mathrm{E}[x^2] = \tfrac12 n \sigma^2\, \mathrm{E}[x_i^2]$. They stay as large as
# they were if $\sigma = \sqrt{2/n}$, which is $0.1414$ for $n = 100$. The number of inputs $n$ is
# called *fan-in*, that of outputs *fan-out*. This is **Kaiming** initialisation (He et al. 2015).
#
# Without relu, forward wants $\sigma^2 = 1/\text{fan-in}$, and the way back, by the same sum over
# outputs, wants $1/\text{fan-out}$. **Xavier** initialisation (Glorot and Bengio 2010) takes the
# mean of the two denominators: $\sigma^2 = 2 / (\text{fan-in} + \text{fan-out})$.
#
# Both come in two shapes. A uniform distribution on $(-a, a)$ has the variance $a^2/3$:

# %%
(np.random.uniform(-1, 1, 100_000) ** 2).mean().round(3)

# %% [markdown]
# so the bound must be $a = \sqrt3\,\sigma$.
#
# ### The contract
#
# | function | distribution |
# |---|---|
# | `xavier_uniform(fan_in, fan_out, gain)` | uniform on (-a, a), $a = \text{gain} \sqrt{6/(\text{fan-in} + \text{fan-out})}$ |
# | `xavier_normal(fan_in, fan_out, gain)` | normal, $\sigma = \text{gain} \sqrt{2/(\text{fan-in} + \text{fan-out})}$ |
# | `kaiming_uniform(fan_in, fan_out)` | uniform on (-b, b), $b = \sqrt2 \cdot \sqrt{3/\text{fan-in}}$ |
# | `kaiming_normal(fan_in, fan_out)` | normal, $\sigma = \sqrt2 / \sqrt{\text{fan-in}}$ |
#
# All return a Tensor of shape (fan_in, fan_out). `**kwargs` (device, dtype, requires_grad) are
# handed on as they are. Draw with the given `rand(…, low=, high=)` or `randn(…, mean=, std=)`,
# **once**: a check seeds the generator and compares numbers.
#
# ### A neighbour, complete
#
# For units without relu there is a third rule, $\sigma = 1/\sqrt{\text{fan-in}}$ (LeCun et al.
# 1998):

# %%
ndl = fresh()


def lecun_normal(fan_in, fan_out, **kwargs):
    """Normal, with standard deviation 1 / √fan_in."""
    return ndl.init.randn(fan_in, fan_out, std=1 / np.sqrt(fan_in), **kwargs)


lecun_normal(100, 50).numpy().std().round(3)

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/xavier_uniform")

# %% [markdown]
# hints("hw2/xavier_uniform")

# %%
check("hw2/xavier_uniform")

# %%
show_blank("hw2/xavier_normal")

# %% [markdown]
# hints("hw2/xavier_normal")

# %%
check("hw2/xavier_normal")

# %%
show_blank("hw2/kaiming_uniform")

# %% [markdown]
# hints("hw2/kaiming_uniform")

# %%
check("hw2/kaiming_uniform")

# %%
show_blank("hw2/kaiming_normal")

# %% [markdown]
# hints("hw2/kaiming_normal")

# %%
check("hw2/kaiming_normal")

# %% [markdown]
# ### Look at it

# %%
ndl = fresh()
rules = [
    ndl.init.xavier_uniform,
    ndl.init.xavier_normal,
    ndl.init.kaiming_uniform,
    ndl.init.kaiming_normal,
]
lines = {
    rule.__name__: norms_over_depth(lambda rule=rule: rule(100, 100).numpy()) for rule in rules
}
curves(lines, xlabel="layer", ylabel="size of the activations", log=True)

# %% [markdown]
# The two Kaiming lines are flat; Xavier's fall by $\sqrt2$ a layer, since they were not made for
# relu.
#
# ### Two questions that want a measurement
#
# 1. Which `gain` makes the lines of Xavier flat, too?
# 2. Replace relu by `np.tanh` in `norms_over_depth`. Which rule keeps the signal now? What
#    happens with a standard deviation ten times too large, and why does it not explode?
#
# ## Question 2a · `Linear`: a module has parameters

# %%
here("nn/Linear")

# %% [markdown]
# ### First, watch it happen
#
# A `Module` is an object with a `forward` method that knows its parameters. It finds them by
# looking at its own attributes: whatever is a `Parameter`, and whatever is a module and has some.

# %%
ndl = fresh()
nn = ndl.nn


class Scale(nn.Module):
    """Every column of its input times a number that is learned.  (N, C) → (N, C)"""

    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(ndl.init.ones(columns))

    def forward(self, x):
        row = ndl.reshape(self.weight, (1, x.shape[1]))
        return x * ndl.broadcast_to(row, x.shape)


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Scale(3)
        self.others = [Scale(3)]


scale, twice = Scale(3), Twice()
print(scale(ndl.Tensor(np.array([[1.0, 2.0, 3.0]]))))
print([name for name, parameter in twice.named_parameters()])

# %% [markdown]
# `scale(x)` calls `forward`. `Scale` is also your worked neighbour: parameters are made in
# `__init__`, and a vector that belongs to every row is reshaped and **stretched explicitly**,
# because `+` and `*` want equal shapes here.
#
# ### The contract
#
# $y = x W + b$.
#
# | | |
# |---|---|
# | `weight` | Parameter (in_features, out_features), from `kaiming_uniform(in_features, out_features)` |
# | `bias` | Parameter (1, out_features), from `kaiming_uniform(out_features, 1)`, reshaped; `None` if `bias=False` |
# | order | the weight is drawn first, then the bias |
# | `forward` | (…, in_features) → (…, out_features); the usual case is (N, in_features) |
# | raises | an error that names both shapes if the last extent does not fit |
#
# A subtle point: reshaping a Tensor makes a *node*. `nn.Parameter(tensor)` makes a leaf of its
# values, so wrap last.
#
# ### Yours

# %%
show_blank("hw2/linear_init")

# %% [markdown]
# hints("hw2/linear_init")

# %%
check("hw2/linear_init")

# %%
show_blank("hw2/linear_forward")

# %% [markdown]
# hints("hw2/linear_forward")

# %%
check("hw2/linear_forward")

# %% [markdown]
# ### Look at it
#
# The bias is used once for each row, so its gradient is a sum over the rows. The graph shows who
# pays into it.

# %%
ndl = fresh()
layer = ndl.nn.Linear(4, 3)
x = ndl.Tensor(np.ones((5, 4), dtype=np.float32), requires_grad=False)
out = ndl.summation(layer(x))
out.backward()
print(layer.bias.grad)
show_graph(out, names={"x": x, "weight": layer.weight, "bias": layer.bias})

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Double the batch to 10 rows. What happens to `bias.grad`, and what would that mean for the
#    step size? (This is why losses are usually means.)
# 2. Feed ten thousand rows of standard normal numbers through `Linear(100, 100)`. What are the
#    mean squares of input and output? Which of them does the initialisation promise?
#
# ## Question 2b · `ReLU` and `Sequential`: modules in modules

# %%
here("nn/Sequential")

# %% [markdown]
# ### First, watch it happen
#
# Without something bent between them, two linear layers are one:

# %%
A, B = np.random.randn(4, 5), np.random.randn(5, 3)
x = np.random.randn(2, 4)
print(np.abs((x @ A) @ B - x @ (A @ B)).max())
print(np.abs(np.maximum(x @ A, 0) @ B - x @ (A @ B)).max().round(2))

# %% [markdown]
# ### The contract
#
# | | |
# |---|---|
# | `ReLU.forward(x)` | `max(x, 0)`, entry by entry; there is an operator for it |
# | `Sequential(*modules)` | `self.modules` holds them; `forward` feeds each the output of the one before |
#
# ### A neighbour, complete
#
# The sum of what several modules say, in place of one after the other:


# %%
class Parallel(ndl.nn.Module):
    """The sum of the outputs of several modules, which all see the same input."""

    def __init__(self, *modules):
        super().__init__()
        self.modules = modules

    def forward(self, x):
        total = self.modules[0](x)
        for module in self.modules[1:]:
            total = total + module(x)
        return total


both = Parallel(ndl.nn.Linear(4, 3), ndl.nn.Linear(4, 3))
both(ndl.Tensor(np.ones((2, 4), dtype=np.float32))).shape, len(both.parameters())

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/relu")

# %% [markdown]
# hints("hw2/relu")

# %%
check("hw2/nn_relu")

# %%
show_blank("hw2/sequential")

# %% [markdown]
# hints("hw2/sequential")

# %%
check("hw2/nn_sequential")

# %% [markdown]
# ### Look at it

# %%
ndl = fresh()
nn = ndl.nn
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
for name, parameter in net.named_parameters():
    print(f"{name:20} {parameter.shape}  {parameter.numpy().size:5} numbers")
out = net(ndl.Tensor(np.ones((1, 64), dtype=np.float32), requires_grad=False))
show_graph(out)

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Twenty `Linear(100, 100)` and `ReLU` in a `Sequential`: what is the mean square of the output
#    for standard normal input? Compare with the picture of Question 1, and say what the biases
#    do.
# 2. Put the *same* `Linear` into a `Sequential` twice. How many parameters does it have, and what
#    is the gradient of the weight, compared with two layers of equal weights?
#
# ## Question 2c · `LogSumExp`: an operator that does not overflow

# %%
here("ops/ops_logarithmic.LogSumExp")

# %% [markdown]
# ### First, watch it happen

# %%
z = np.array([[1000.0, 999.0, 0.0], [-1000.0, -1001.0, -5000.0]])
with np.errstate(over="ignore", divide="ignore"):
    print("as it stands:", np.log(np.exp(z).sum(axis=1)))
largest = z.max(axis=1, keepdims=True)
print("shifted:     ", np.log(np.exp(z - largest).sum(axis=1)) + largest[:, 0])

# %% [markdown]
# Too large: infinity. Too small: the logarithm of 0. With the largest number $m$ taken off first,
# the largest power is $e^0 = 1$, so the sum can neither overflow nor vanish:
#
# $$\operatorname{lse}(z) = \log \sum_j e^{z_j} = m + \log \sum_j e^{z_j - m}, \qquad m = \max_j z_j.$$
#
# Its slope is the softmax, and it does not depend on $m$:
#
# $$\frac{\partial \operatorname{lse}}{\partial z_i} = \frac{e^{z_i}}{\sum_j e^{z_j}} = e^{z_i - \operatorname{lse}(z)}.$$
#
# The last form is worth a second look: it needs no division, cannot overflow, and `node` *is*
# $\operatorname{lse}(z)$.
#
# ### The contract
#
# | | |
# |---|---|
# | in | any shape; `self.axes`: an int, a tuple, or `None` for all |
# | out | log of the sum of exponentials over these axes, which disappear |
# | finite | for all finite inputs |
# | `gradient` | made of operators; `out_grad` has lost the axes, the input still has them |
#
# ### A neighbour, complete
#
# The same two worries, which axes and how to bring them back, in `Summation`:

# %%
show_source("ops/Summation")

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/logsumexp_forward")

# %% [markdown]
# hints("hw2/logsumexp_forward")

# %%
check("hw2/logsumexp_forward")

# %%
show_blank("hw2/logsumexp_backward")

# %% [markdown]
# hints("hw2/logsumexp_backward")

# %%
check("hw2/logsumexp_backward")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *inf or nan*: a maximum over the whole array, or none;
# - *right over one axis, wrong over two*: the shape with ones was made for one;
# - *the second derivative fails*: `gradient` was made of arrays.
#
# ### Look at it
#
# It is a smooth maximum: how far is it above the true one, for two numbers, as they move apart?

# %%
ndl = fresh()
gaps = np.linspace(0, 8, 33)
pairs = np.stack([np.zeros_like(gaps), gaps], axis=1)
smooth = ndl.logsumexp(ndl.Tensor(pairs), axes=(1,)).numpy()
curves({"logsumexp(0, gap) − gap": smooth - gaps}, x=gaps, xlabel="gap", ylabel="above")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Of $n$ equal numbers it is how far above the maximum? Measure for 2, 10, 1000, and guess the
#    formula.
# 2. How many nodes has `logsumexp(x)` against `log(summation(exp(x)))` in the graph, and which
#    keeps more arrays alive?
#
# ## Question 2d · `LogSoftmax`

# %%
here("ops/ops_logarithmic.LogSoftmax")

# %% [markdown]
# ### First, watch it happen
#
# The logarithms of the probabilities: $\ell_i = z_i - \operatorname{lse}(z)$, row by row.
# Computed as the logarithm of a softmax, small ones are lost:

# %%
z = np.array([[0.0, -800.0]])
softmax = np.exp(z) / np.exp(z).sum()
with np.errstate(divide="ignore"):
    print("log of softmax:", np.log(softmax))
print("z - lse(z):    ", z - np.log(np.exp(z).sum()))

# %% [markdown]
# ### The gradient by hand
#
# $\partial \ell_i / \partial z_j = [i = j] - p_j$, with $[i = j]$ 1 if the two are equal, else 0,
# and $p_j = e^{\ell_j}$ the probabilities. With `out_grad` $\bar\ell$:
#
# $$\bar z_j = \sum_i \bar\ell_i ([i = j] - p_j) = \bar\ell_j - p_j \sum_i \bar\ell_i.$$
#
# ### The contract
#
# | | |
# |---|---|
# | in | (N, C); an error that names the shape otherwise |
# | out | (N, C): each row minus its logsumexp |
# | `gradient` | as above; `node` holds $\ell$, so $p$ is `exp(node)` |
#
# ### A neighbour, complete
#
# `Log` and `Exp` read what they need from `node` or its inputs in the same way:

# %%
show_source("ops/Exp")

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/logsoftmax_forward")

# %% [markdown]
# hints("hw2/logsoftmax_forward")

# %%
check("hw2/logsoftmax_forward")

# %%
show_blank("hw2/logsoftmax_backward")

# %% [markdown]
# hints("hw2/logsoftmax_backward")

# %%
check("hw2/logsoftmax_backward")

# %% [markdown]
# ### Look at it

# %%
ndl = fresh()
z = ndl.Tensor(np.array([[2.0, 1.0, -1.0]]))
out = ndl.logsoftmax(z)
picked = ndl.summation(out * ndl.Tensor(np.array([[1.0, 0.0, 0.0]]), requires_grad=False))
picked.backward()
print("exp sums to ", np.exp(out.numpy()).sum())
print("slopes      ", z.grad.numpy().round(4), " they sum to", z.grad.numpy().sum().round(12))

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Why do the slopes sum to 0? Which direction in $z$ changes nothing? Check it with numbers.
# 2. Compare `exp(logsoftmax(z))` with a softmax written out, in float32, for logits of size 1, 10
#    and 100. Which is nearer to the float64 result?
#
# ## Question 2e · `SoftmaxLoss`

# %%
here("nn/SoftmaxLoss")

# %% [markdown]
# ### First, watch it happen
#
# The loss of a row is $\operatorname{lse}(z) - z_y$ with $y$ the right class. Our operators
# cannot pick an entry, but they can multiply with a *one-hot* row, a 1 among zeros, and sum:

# %%
print(ndl.init.one_hot(4, ndl.Tensor(np.array([2, 0]))).numpy())
loss = np.log(10)
print(f"a model that knows nothing about ten classes has the loss {loss:.4f}")

# %% [markdown]
# ### The contract
#
# | | |
# |---|---|
# | in | `logits`, a Tensor (N, C); `y`, a Tensor (N,) of class numbers |
# | out | one number, the mean over the rows of $\operatorname{lse}(z) - z_y$ |
# | raises | an error that names both shapes if they do not fit |
#
# ### A neighbour, complete


# %%
class MeanSquaredError(ndl.nn.Module):
    """The mean squared difference of two tensors of one shape."""

    def forward(self, prediction, target):
        if prediction.shape != target.shape:
            raise ValueError(f"got {prediction.shape} and {target.shape}, wanted one shape")
        difference = prediction - target
        return ndl.summation(difference * difference) / difference.numpy().size


MeanSquaredError()(ndl.Tensor(np.array([1.0, 2.0])), ndl.Tensor(np.array([0.0, 0.0])))

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/softmax_loss")

# %% [markdown]
# hints("hw2/softmax_loss")

# %%
check("hw2/nn_softmax_loss")

# %% [markdown]
# ### Look at it
#
# The slope with respect to the logits, for three classes: what the model said, minus what it
# should have said, divided by the number of rows.

# %%
ndl = fresh()
logits = ndl.Tensor(np.array([[2.0, 1.0, -1.0], [0.0, 0.0, 0.0]]))
loss = ndl.nn.SoftmaxLoss()(logits, ndl.Tensor(np.array([0, 2])))
loss.backward()
print(logits.grad.numpy().round(3))
show_graph(loss, names={"logits": logits, "loss": loss})

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. An untrained net on ten classes: how near to $\log 10$ is its loss, with Kaiming
#    initialisation, and with weights ten times as large?
# 2. Let the mean become a sum (in a copy, here). For which step size does training with batches
#    of 50 stay the same?
#
# ## Question 2f · `LayerNorm1d`

# %%
here("nn/LayerNorm1d")

# %% [markdown]
# ### First, watch it happen
#
# In Question 1 the size of the signal depended on the weights' first values, and once training
# has moved them, nobody watches any more. So watch all the time: bring every row to mean 0 and
# variance 1.

# %%
rows = np.array([[1.0, 2.0, 3.0, 6.0], [100.0, 200.0, 300.0, 600.0]])
centred = rows - rows.mean(axis=1, keepdims=True)
print((centred / rows.std(axis=1, keepdims=True)).round(3))

# %% [markdown]
# The second row was 100 times the first, and is the same afterwards. That is the point: with
# normalisation after every layer, the size of a weight matrix does not matter any more, only its
# direction.


# %%
def normalized(x):
    return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)


def norms_with_layernorm(std, depth=30):
    np.random.seed(0)
    x, norms = np.random.randn(200, 100), []
    for layer in range(depth):
        x = np.maximum(normalized(x @ (std * np.random.randn(100, 100))), 0)
        norms.append(np.sqrt((x**2).mean()))
    return norms


lines = {f"std {std}": norms_with_layernorm(std) for std in (0.1, 0.1414, 0.2)}
curves(lines, xlabel="layer", ylabel="size of the activations", log=True)

# %% [markdown]
# ### The contract
#
# With $\mu$ and $v$ the mean and the variance of one row, and two learned vectors $w$ (`weight`)
# and $b$ (`bias`):
#
# $$y = w \odot \frac{x - \mu}{\sqrt{v + \varepsilon}} + b$$
#
# ($\odot$: entry by entry).
#
# | | |
# |---|---|
# | parameters | `weight` (dim,), ones; `bias` (dim,), zeros |
# | `forward` | (N, dim) → (N, dim) |
# | variance | divided by dim, not by dim − 1 |
# | $\varepsilon$ | `eps`, inside the root |
# | shapes | a sum over axis 1 is (N,); it must become (N, 1), then (N, dim), by hand |
#
# ### A neighbour, complete
#
# Rows brought to length 1 have the same shape of problem, a number per row:


# %%
def unit_rows(x):
    """Each row divided by its length.  (N, C) → (N, C)"""
    squares = ndl.reshape(ndl.summation(x * x, axes=(1,)), (x.shape[0], 1))
    return x / ndl.broadcast_to(squares**0.5, x.shape)


unit_rows(ndl.Tensor(np.array([[3.0, 4.0], [0.0, 2.0]])))

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/layernorm_init")

# %% [markdown]
# hints("hw2/layernorm_init")

# %%
show_blank("hw2/layernorm_forward")

# %% [markdown]
# hints("hw2/layernorm_forward")

# %%
check("hw2/nn_layernorm")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *off by a factor near $\sqrt{dim/(dim-1)}$*: the variance was divided by dim − 1;
# - *right in value, wrong gradient*: mean or variance were made of arrays, so that nothing flows
#   through them.
#
# ### Look at it
#
# What flows back through a normalisation cannot change the mean of a row, nor its size: the
# gradient is orthogonal to both.

# %%
ndl = fresh()
x = ndl.Tensor(np.random.RandomState(0).randn(3, 6))
norm = ndl.nn.LayerNorm1d(6, dtype="float64")
weights = ndl.Tensor(np.random.RandomState(1).randn(3, 6), requires_grad=False)
ndl.summation(norm(x) * weights).backward()
grad = x.grad.numpy()
print("sum of each row of the gradient", grad.sum(axis=1).round(12))
centred = x.numpy() - x.numpy().mean(axis=1, keepdims=True)
print("product with the centred row   ", (grad * centred).sum(axis=1).round(4))

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. The second line is small, but not 0. Which number in the formula is the reason? Change it and
#    see.
# 2. Give it a row of equal numbers. What comes out, and what is the gradient? Without `eps`?
#
# ## Question 2g · `Flatten`

# %%
here("nn/Flatten")

# %% [markdown]
# ### First, watch it happen
#
# A batch of images is (N, rows, columns) or more; a linear layer wants (N, numbers).

# %%
batch = np.arange(12).reshape(2, 2, 3)
batch.reshape(2, 6), batch.reshape(2, -1).shape

# %% [markdown]
# ### The contract
#
# | | |
# |---|---|
# | `forward` | (N, …) → (N, product of the rest); the batch axis stays first, numbers keep their order |
# | edge | (N,) becomes (N, 1): an empty product is 1 |
#
# ### A neighbour, complete: an operator does the work, the module names the shape


# %%
class AsImages(ndl.nn.Module):
    """(N, side * side) → (N, side, side)"""

    def forward(self, x):
        side = round(x.shape[1] ** 0.5)
        return ndl.reshape(x, (x.shape[0], side, side))


AsImages()(ndl.Tensor(np.zeros((5, 64)))).shape

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/flatten")

# %% [markdown]
# hints("hw2/flatten")

# %%
check("hw2/nn_flatten")

# %% [markdown]
# ### Look at it

# %%
ndl = fresh()
x = ndl.Tensor(np.ones((2, 3, 4, 5)))
flat = ndl.nn.Flatten()(x)
flat.shape, ndl.nn.Flatten()(AsImages()(ndl.Tensor(np.zeros((5, 64))))).shape

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Does flattening copy the numbers? Compare `x.cached_data` and `flat.cached_data` with
#    `np.shares_memory`.
# 2. And of `ndl.transpose(x)`, whose array is a view with two axes exchanged? Time both for 10
#    million numbers of shape (100, 100, 1000).
#
# ## Question 2h · `BatchNorm1d`

# %%
here("nn/BatchNorm1d")

# %% [markdown]
# ### First, watch it happen
#
# The same formula, but every *column* is brought to mean 0 and variance 1, over the batch. That
# makes a sample's output depend on who else is in the batch:


# %%
def batch_normalized(x):
    return (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0) + 1e-5)


sample = np.array([[1.0, 2.0]])
small, large = np.array([[0.0, 0.0]]), np.array([[9.0, 9.0]])
print(batch_normalized(np.vstack([sample, small]))[0].round(3))
print(batch_normalized(np.vstack([sample, large]))[0].round(3))

# %% [markdown]
# The same sample, twice, with opposite signs. In training that is tolerable, even useful noise.
# When the model is used, it is not: an answer must not depend on the other questions. So the
# layer remembers *running* means and variances while it trains, and uses these afterwards. It
# remembers by a moving average:

# %%
running, momentum = 0.0, 0.1
seen = []
for step in range(40):
    running = (1 - momentum) * running + momentum * 5.0  # every batch has the mean 5
    seen.append(running)
curves({"running mean": seen}, xlabel="batch", ylabel="running mean")

# %% [markdown]
# ### The contract
#
# | | |
# |---|---|
# | parameters | `weight` (dim,), ones; `bias` (dim,), zeros |
# | remembered | `running_mean` (dim,), zeros; `running_var` (dim,), ones: Tensors, but **not** Parameters |
# | training | mean and variance of the batch's columns; running = (1 − momentum) · running + momentum · observed |
# | evaluation | running mean and variance, which stay as they are |
# | variance | divided by N, for both uses |
# | which one | `self.training`, which `model.train()` and `model.eval()` switch |
# | no graph | what is remembered must not hang on the batch's graph: use `.data` |
#
# ### A neighbour, complete
#
# A module that remembers the largest size it has seen, in the same way. Note `.data` on both
# sides.


# %%
class Meter(ndl.nn.Module):
    """Hands its input on; in training it keeps a moving average of its columns' mean squares."""

    def __init__(self, dim, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.size = ndl.init.zeros(dim, dtype="float64")

    def forward(self, x):
        if self.training:
            observed = ndl.summation(x * x, axes=(0,)) / x.shape[0]
            mixed = (1 - self.momentum) * self.size.data + self.momentum * observed.data
            self.size.data = mixed
        return x


meter = Meter(2)
meter(ndl.Tensor(np.array([[1.0, 2.0], [3.0, 4.0]])))
meter.eval()
meter(ndl.Tensor(np.array([[100.0, 100.0]])))
meter.size, len(meter.parameters())

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/batchnorm_init")

# %% [markdown]
# hints("hw2/batchnorm_init")

# %%
show_blank("hw2/batchnorm_forward")

# %% [markdown]
# hints("hw2/batchnorm_forward")

# %%
check("hw2/nn_batchnorm")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *right in training, wrong in evaluation*: the batch's own values were used, or the running
#   ones changed;
# - *running values off by a factor*: `momentum` and 1 − `momentum` exchanged;
# - *memory grows*: the running values are nodes of a graph.
#
# ### Look at it

# %%
ndl = fresh()
np.random.seed(0)
norm = ndl.nn.BatchNorm1d(2)
for step in range(50):
    norm(ndl.Tensor((np.random.randn(100, 2) * [1, 3] + [5, -2]).astype(np.float32)))
print(
    "remembered mean",
    norm.running_mean.numpy().round(2),
    "variance",
    norm.running_var.numpy().round(2),
)
norm.eval()
x = ndl.Tensor(np.array([[5.0, -2.0]], dtype=np.float32))
norm(x), norm(x)

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Train mode, a batch of one row: what comes out, whatever the row? And which gradient reaches
#    the row?
# 2. How many batches does it take until `running_mean` is within 1 % of a constant mean, for
#    momentum 0.1 and 0.01?
#
# ## Question 2i · `Dropout`

# %%
here("nn/Dropout")

# %% [markdown]
# ### First, watch it happen
#
# In training, each entry is set to 0 with probability $p$, so that no unit can rely on a single
# other one. What stays is divided by $1 - p$. Why divide? Look at the mean:

# %%
np.random.seed(0)
x, p = np.ones(100_000), 0.3
kept = np.random.rand(100_000) < 1 - p
(x * kept).mean().round(3), (x * kept / (1 - p)).mean().round(3)

# %% [markdown]
# Without it the next layer would get 0.7 of the signal in training and all of it afterwards, when
# nothing is dropped.
#
# ### The contract
#
# | | |
# |---|---|
# | training | each entry kept with probability $1 - p$ and divided by $1 - p$, else 0 |
# | evaluation | the input, unchanged |
# | mask | `init.randb(*x.shape, p=1 - self.p)`: ones with that probability, drawn once a call |
# | edge | $p = 1$ gives zeros, not 0 / 0 |
#
# ### A neighbour, complete
#
# Noise that is added instead of multiplied, in training only:


# %%
class Noise(ndl.nn.Module):
    """Adds normal noise of a given size in training."""

    def __init__(self, std):
        super().__init__()
        self.std = std

    def forward(self, x):
        if not self.training:
            return x
        return x + ndl.init.randn(*x.shape, std=self.std, dtype=x.dtype)


np.random.seed(0)
Noise(0.1)(ndl.Tensor(np.zeros((1, 3))))

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/dropout")

# %% [markdown]
# hints("hw2/dropout")

# %%
check("hw2/nn_dropout")

# %% [markdown]
# ### Look at it

# %%
ndl = fresh()
np.random.seed(0)
drop = ndl.nn.Dropout(0.5)
x = ndl.Tensor(np.ones((2, 6), dtype=np.float32))
out = drop(x)
ndl.summation(out).backward()
print(out.numpy(), "\n", x.grad.numpy())
drop.eval()
print(drop(x).numpy())

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. The gradient equals the output here. Why? For which input would it not?
# 2. How does the *variance* of a sum of 100 dropped ones depend on p? Measure for 0.1, 0.5, 0.9.
#
# ## Question 2j · `Residual`

# %%
here("nn/Residual")

# %% [markdown]
# ### First, watch it happen
#
# What flows back through a deep stack is multiplied by a slope at each layer. Thirty slopes of
# size 0.1 and of either sign, alone, and with a bypass: $f(x) + x$ has the slope $f'(x) + 1$.

# %%
slopes = 0.1 * np.random.RandomState(0).randn(30)
print(
    f"product of the slopes alone: {np.prod(slopes):.1e}, with a bypass: {np.prod(1 + slopes):.2f}"
)

# %% [markdown]
# The bypass hands the gradient on as it is; the layer only has to add what it knows better.
#
# ### The contract
#
# | | |
# |---|---|
# | `Residual(fn)` | `forward(x)` is `fn(x) + x` |
# | shapes | `fn` must keep the shape of its input |
#
# The neighbour is `Parallel` from above: one more module with an empty path.
#
# ### Yours

# %%
show_blank("hw2/residual")

# %% [markdown]
# hints("hw2/residual")

# %%
check("hw2/nn_residual")

# %% [markdown]
# ### Look at it
#
# The size of the gradient that reaches the input, through more and more layers with weights that
# are a little too small:

# %%
ndl = fresh()
nn = ndl.nn


def gradient_at_the_input(depth, bypass):
    np.random.seed(0)
    layers = []
    for _ in range(depth):
        linear = nn.Linear(30, 30)
        linear.weight.data = ndl.Tensor(0.5 * linear.weight.numpy())
        step = nn.Sequential(linear, nn.ReLU())
        layers.append(nn.Residual(step) if bypass else step)
    x = ndl.Tensor(np.random.randn(20, 30).astype(np.float32))
    out = nn.Sequential(*layers)(x)
    ndl.summation(out * out).backward()
    return np.abs(x.grad.numpy()).mean() / np.abs(out.numpy()).mean()


depths = [1, 2, 4, 8, 16]
lines = {
    "plain": [gradient_at_the_input(d, False) for d in depths],
    "with a bypass": [gradient_at_the_input(d, True) for d in depths],
}
curves(lines, x=depths, xlabel="layers", ylabel="slope at the input", log=True)

# %% [markdown]
# Alone, five powers of ten are lost in sixteen layers. With a bypass nothing is lost; it even
# grows.
#
# ### Two questions that want a measurement
#
# 1. Plain layers with weights twice too *large*: what does the picture look like then? What does
#    a bypass change?
# 2. How does the size of the *output* grow with depth, with a bypass? What could be put into each
#    layer against it?
#
# ## Question 3a · `SGD`, with momentum

# %%
here("optim/SGD.step")

# %% [markdown]
# ### First, watch it happen
#
# A valley that is twenty times as steep across as along: $f(x, y) = \tfrac12 (x^2 + 20 y^2)$,
# with the gradient $(x, 20 y)$. Gradient descent with three step sizes:


# %%
def valley(x, y):
    return 0.5 * (x**2 + 20 * y**2)


def slope(point):
    return point * np.array([1.0, 20.0])


start = np.array([-4.0, 1.0])


def descend(lr, steps=20):
    path = [start]
    for _ in range(steps):
        path.append(path[-1] - lr * slope(path[-1]))
    return np.array(path)


paths = {f"lr {lr}": descend(lr) for lr in (0.01, 0.05, 0.095)}
paths_on(valley, paths, span=(-4.5, 1.5, -1.3, 1.3), title="gradient descent in a narrow valley")

# %% [markdown]
# Small steps crawl along the valley; large ones bounce across it. Across, one step multiplies $y$
# by $1 - 20\,lr$, along, $x$ by $1 - lr$: beyond $lr = 0.1$ the first is below $-1$ and
# everything explodes, so the second can never be better than 0.9. **Newton's method** divides
# each direction by its curvature and is there in one step:

# %%
start - slope(start) / np.array([1.0, 20.0])

# %% [markdown]
# but for a million weights that "division" would be a system of a million equations. **Momentum**
# is cheap and helps: average the gradient over the last steps. Across the valley the signs
# alternate and cancel; along it they agree.
#
# ### The contract
#
# For each parameter $\theta$ with gradient $g$, decay $\lambda$ (`weight_decay`), momentum
# $\beta$:
#
# $$g \leftarrow g + \lambda\,\theta, \qquad u \leftarrow \beta\,u + (1 - \beta)\,g, \qquad \theta \leftarrow \theta - lr\; u,$$
#
# with $u = 0$ at the start. Weight decay is the gradient of $\tfrac{\lambda}{2}|\theta|^2$: it
# pulls every weight towards 0.
#
# | | |
# |---|---|
# | `self.params`, `self.u` | the parameters; a dictionary {parameter: its u} |
# | parameters without a gradient | stay as they are |
# | in place | `p.data = …`: same object, same shape, same dtype |
# | no graph | work with `.data` and `.grad.data`: a step that records would keep every earlier one alive |
# | `nesterov`, `unbiased` | settings beyond the question; `t` counts steps |
#
# ### A neighbour, complete
#
# Steps that look only at the signs:


# %%
class SignSGD(ndl.optim.Optimizer):
    """Each weight moves by lr, against the sign of its gradient."""

    def __init__(self, params, lr=0.01):
        super().__init__(params)
        self.lr = lr

    def step(self):
        for p in self.params:
            if p.grad is None:
                continue
            sign = ndl.Tensor(np.sign(p.grad.numpy()), requires_grad=False)
            p.data = ndl.Tensor(p.data - self.lr * sign.data, dtype=p.dtype)


w = nn.Parameter(ndl.Tensor(np.array([1.0, -1.0])))
optimizer = SignSGD([w], lr=0.1)
ndl.summation(w * w).backward()
optimizer.step()
w

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/sgd")

# %% [markdown]
# hints("hw2/sgd")

# %%
check("hw2/optim_sgd")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *right without momentum, off with it*: the factor $1 - \beta$ is missing, or the step is taken
#   along $g$;
# - *dtype changed*: a Python float widened float32; make the new Tensor with `dtype=p.dtype`;
# - *the memory check*: Tensors with a graph are kept in `u`.
#
# ### Look at it
#
# Your optimizer in the valley, beside *Nesterov's* variant, which takes the gradient where
# momentum is about to carry it.

# %%
ndl = fresh()
nn = ndl.nn
steepness = ndl.Tensor(np.array([1.0, 20.0]), requires_grad=False)


def follow(make_optimizer, steps):
    point = nn.Parameter(ndl.Tensor(start))
    optimizer, path = make_optimizer([point]), [point.numpy()]
    for _ in range(steps):
        optimizer.reset_grad()
        (ndl.summation(point * point * steepness) / 2).backward()
        optimizer.step()
        path.append(point.numpy())
    return np.array(path)


def nesterov(lr, beta, steps):
    point, velocity, path = start, np.zeros(2), [start]
    for _ in range(steps):
        velocity = beta * velocity - lr * (1 - beta) * slope(point + beta * velocity)
        point = point + velocity
        path.append(point)
    return np.array(path)


steps = 40
paths = {
    "plain": follow(lambda p: ndl.optim.SGD(p, lr=0.09), steps),
    "momentum 0.75": follow(lambda p: ndl.optim.SGD(p, lr=0.25, momentum=0.75), steps),
    "Nesterov 0.75": nesterov(0.25, 0.75, steps),
}
paths_on(valley, paths, span=(-4.5, 1.5, -1.3, 1.3))

# %%
distances = {name: np.sqrt((path**2).sum(axis=1)) for name, path in paths.items()}
curves(distances, xlabel="step", ylabel="distance from the minimum", log=True)

# %% [markdown]
# Now weight decay, and dropout beside it, at what they are for: a net with far more weights than
# training images. To make it worse, a fifth of the training labels is replaced by random ones. A
# net that learns these by heart has learnt nonsense.

# %%
train_images, train_labels, test_images, test_labels = digits()
random = np.random.RandomState(1)
few, few_labels = train_images[:200], train_labels[:200].copy()
wrong = random.rand(200) < 0.2
few_labels[wrong] = random.randint(0, 10, wrong.sum())


def train(decay, drop, epochs):
    np.random.seed(0)
    layers = [nn.Linear(64, 200), nn.ReLU(), nn.Dropout(drop), nn.Linear(200, 10)]
    model, loss_fn = nn.Sequential(*layers), nn.SoftmaxLoss()
    optimizer = ndl.optim.SGD(model.parameters(), lr=0.5, momentum=0.9, weight_decay=decay)
    X = ndl.Tensor(few, requires_grad=False)
    y = ndl.Tensor(few_labels, requires_grad=False)
    for epoch in range(epochs):
        optimizer.reset_grad()
        loss_fn(model(X), y).backward()
        optimizer.step()
    model.eval()
    guesses = [model(ndl.Tensor(part)).numpy().argmax(axis=1) for part in (few, test_images)]
    return np.mean(guesses[0] != few_labels), np.mean(guesses[1] != test_labels)


settings = {"nothing": (0, 0), "decay": (0.03, 0), "dropout": (0, 0.5), "both": (0.02, 0.5)}
for name, (decay, drop) in settings.items():
    errors = train(decay, drop, epochs=size(400, 100))
    print(f"{name:8} error on the training labels {errors[0]:.3f}, on test images {errors[1]:.3f}")

# %% [markdown]
# Left alone, the net fits nearly every wrong label, and is wrong on four of ten test images. With
# weight decay it cannot: its error on the training labels stays near the share of wrong ones, and
# that on test images is less than half.
#
# ### Two questions that want a measurement
#
# 1. In the valley, which pair of `lr` and `momentum` is nearest to the minimum after 40 steps?
#    How does the best `lr` move when `momentum` grows, and what has the factor $1 - \beta$ to do
#    with it?
# 2. Which weight decay gives the lowest test error on the 200 images? What does a far too large
#    one do to the training error?
#
# ## Question 3b · `Adam`

# %%
here("optim/Adam.step")

# %% [markdown]
# ### First, watch it happen
#
# Newton divided each direction by its curvature. Adam divides each *weight's* gradient by its own
# usual size: the root of a moving average of its square. Both averages start at 0, and that has
# to be corrected. Suppose every gradient is 1:

# %%
beta1, beta2 = 0.9, 0.999
mean = square = 0.0
for t in range(1, 1001):
    mean = beta1 * mean + (1 - beta1) * 1.0
    square = beta2 * square + (1 - beta2) * 1.0
    if t in (1, 2, 10, 100, 1000):
        corrected = (mean / (1 - beta1**t)) / np.sqrt(square / (1 - beta2**t))
        print(f"step {t:4}: uncorrected {mean / np.sqrt(square):.2f}, corrected {corrected:.2f}")

# %% [markdown]
# Every step should have size 1, the gradient over its usual size. Uncorrected the first is 3.2
# and the tenth 6.5 times too long: the mean has filled up within ten steps, the square needs a
# thousand.
#
# ### Why exactly this correction
#
# Unroll the average $m_t = \beta m_{t-1} + (1 - \beta) g_t$ from $m_0 = 0$:
#
# $$m_t = (1 - \beta) \sum_{i=1}^{t} \beta^{t-i} g_i.$$
#
# If all $g_i$ have the mean $\bar g$, then $m_t$ has the mean $\bar g\,(1 - \beta) \sum_{i=1}^t
# \beta^{t-i} = \bar g\,(1 - \beta^t)$. The weights of the average do not sum to 1 but to $1 -
# \beta^t$; dividing by that mends it.
#
# ### The contract
#
# For each parameter $\theta$, with $t$ the number of this step, starting at 1:
#
# | | |
# |---|---|
# | gradient | $g \leftarrow g + \lambda\theta$ (`weight_decay`) |
# | mean | $m \leftarrow \beta_1 m + (1 - \beta_1)\, g$ |
# | square | $v \leftarrow \beta_2 v + (1 - \beta_2)\, g^2$, entry by entry |
# | corrected | $\hat m = m / (1 - \beta_1^t)$, $\hat v = v / (1 - \beta_2^t)$; `m` and `v` themselves stay uncorrected |
# | step | $\theta \leftarrow \theta - lr\; \hat m / (\sqrt{\hat v} + \varepsilon)$ |
#
# As in `SGD`: `.data` throughout, dtype and identity of the parameter stay, parameters without a
# gradient are left alone. $t$ counts steps, not parameters. (Kingma and Ba 2015.)
#
# ### A neighbour, complete
#
# Only the square, uncorrected and without a mean of the gradient, is an older optimizer's idea:


# %%
class ScaledSGD(ndl.optim.Optimizer):
    """Each gradient over the root of a moving average of its square."""

    def __init__(self, params, lr=0.01, rho=0.9):
        super().__init__(params)
        self.lr, self.rho, self.square = lr, rho, {}

    def step(self):
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad.numpy()
            self.square[p] = self.rho * self.square.get(p, 0) + (1 - self.rho) * g**2
            p.data = ndl.Tensor(
                p.numpy() - self.lr * g / (np.sqrt(self.square[p]) + 1e-8), dtype=p.dtype
            )


follow(lambda p: ScaledSGD(p, lr=0.3), 10)[-1].round(3)

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/adam")

# %% [markdown]
# hints("hw2/adam")

# %%
check("hw2/optim_adam")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *right in the first step, drifting afterwards*: the corrected values were stored;
# - *off from the first step on*: `t` was still 0;
# - *only with several parameters wrong*: `t` was counted once for each.
#
# ### Look at it

# %%
ndl = fresh()
nn = ndl.nn
steepness = ndl.Tensor(np.array([1.0, 20.0]), requires_grad=False)
paths = {
    "SGD, momentum 0.8": follow(lambda p: ndl.optim.SGD(p, lr=0.4, momentum=0.8), 40),
    "Adam": follow(lambda p: ndl.optim.Adam(p, lr=0.3), 40),
}
paths_on(valley, paths, span=(-4.5, 1.5, -1.3, 1.3))

# %% [markdown]
# Adam's first step goes straight at 45 degrees: both gradients divided by their own size are ±1.
# It hardly sees a difference between the steep and the flat direction, as Newton does. Now take
# the valley and turn it by 45 degrees.
#
# ### Two questions that want a measurement
#
# 1. In the turned valley, `(x + y)**2 + 20 * (x - y)**2` over 4, is Adam still as good? Why is
#    that not so for SGD?
# 2. Multiply the loss by 1000. What happens to Adam's path, what to that of SGD?
#
# ## Question 4a · Transforms: new images from old ones

# %%
here("data/data_transforms")

# %% [markdown]
# ### First, watch it happen
#
# A cat is a cat in the mirror, and two pixels to the left. Showing a network such variants is
# like having more data. An image here is an array (height, width, channels).

# %%
image = train_images[5].reshape(8, 8, 1)
shown = [image[..., 0], image[:, ::-1, 0], image[::-1, :, 0]]
images(shown, ["as it is", "axis 1 turned", "axis 0 turned"])

# %% [markdown]
# (A mirrored digit is *not* a digit, mind: which variants make sense depends on the data.) A
# shifted image is a window cut out of a larger one with a margin of zeros:

# %%
padded = np.zeros((12, 12))
padded[2:10, 2:10] = image[..., 0]
images([np.pad(image[..., 0], 2), np.pad(padded[0:8, 3:11], 2)], ["margin of 2", "a window"])

# %% [markdown]
# ### The contract
#
# | | |
# |---|---|
# | `RandomFlipHorizontal(p)(img)` | turned along the width if the drawn number is below p; drawn once, by the given line |
# | `RandomCrop(padding)(img)` | the window that starts `shift_x` rows and `shift_y` columns from the middle position |
# | shifts | −padding … padding, drawn by the given line |
# | shape, dtype | as those of the input; what comes in from outside is 0 |
#
# ### A neighbour, complete


# %%
class RandomBrightness:
    """Multiplies an image by a random number from 1 - by to 1 + by."""

    def __init__(self, by=0.3):
        self.by = by

    def __call__(self, img):
        factor = np.random.uniform(1 - self.by, 1 + self.by)
        return (img * factor).astype(img.dtype)


np.random.seed(0)
RandomBrightness()(np.ones((1, 2, 1), dtype=np.float32)).ravel()

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/flip_horizontal")

# %% [markdown]
# hints("hw2/flip_horizontal")

# %%
check("hw2/flip_horizontal")

# %%
show_blank("hw2/random_crop")

# %% [markdown]
# hints("hw2/random_crop")

# %%
check("hw2/random_crop")

# %% [markdown]
# ### Look at it

# %%
ndl = fresh()
np.random.seed(0)
crop = ndl.data.RandomCrop(padding=2)
images([crop(image)[..., 0] for _ in range(10)])

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. How often does `RandomCrop(3)` return the image as it is? Count in 10,000 draws, and compute.
# 2. `img[:, ::-1]` is a view. Time it against a copy for a 1000 × 1000 image, and then sum both.
#    Who pays?
#
# ## Question 4b · `MNISTDataset`

# %%
here("data/datasets.MNISTDataset")

# %% [markdown]
# ### First, watch it happen
#
# A data set is anything with a length and samples by number: `len(d)` and `d[i]`. The given
# `NDArrayDataset` wraps arrays:

# %%
dataset = ndl.data.NDArrayDataset(train_images[:4], train_labels[:4])
pixels, label = dataset[2]
len(dataset), pixels.shape, label

# %% [markdown]
# ### The contract
#
# | | |
# |---|---|
# | `MNISTDataset(image_filename, label_filename, transforms)` | reads both files (`read_mnist` is given) |
# | `len(d)` | the number of images |
# | `d[i]` | (image, label): float32 (28, 28, 1) in [0, 1], after the transforms; the label as stored |
# | `d[indices]`, `d[a:b]` | the same for several at once, (n, 28, 28, 1) and (n,) |
#
# `transform_images` of the base class applies the transforms to one image or to each of a batch.
#
# ### A neighbour, complete


# %%
class Squares(ndl.data.Dataset):
    """The numbers 0 … n - 1 as images of one pixel, with their squares as labels."""

    def __init__(self, n, transforms=None):
        super().__init__(transforms)
        self.numbers = np.arange(n, dtype=np.float32).reshape(n, 1, 1, 1)

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, index):
        return self.transform_images(self.numbers[index]), self.numbers[index].reshape(-1) ** 2


squares = Squares(5, transforms=[lambda pixel: pixel + 100])
squares[3], squares[[1, 2]][1]

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/mnist_init")

# %% [markdown]
# hints("hw2/mnist_init")

# %%
show_blank("hw2/mnist_len")

# %% [markdown]
# hints("hw2/mnist_len")

# %%
show_blank("hw2/mnist_getitem")

# %% [markdown]
# hints("hw2/mnist_getitem")

# %%
check("hw2/mnist_dataset")

# %% [markdown]
# ### Look at it
#
# MNIST itself need not be on this machine: we write the digits that come with the course in its
# format, enlarged to 28 × 28, and read them with your class.

# %%
import gzip
import struct
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())


def write_as_mnist(part, images_8x8, labels):
    large = np.kron(images_8x8.reshape(-1, 8, 8), np.ones((1, 3, 3)))  # every pixel becomes 3 x 3
    pixels = (np.pad(large, ((0, 0), (2, 2), (2, 2))) * 255).astype(np.uint8)
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4I", 2051, *pixels.shape) + pixels.tobytes())
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">2I", 2049, len(labels)) + labels.tobytes())


write_as_mnist("train", train_images, train_labels)
write_as_mnist("t10k", test_images, test_labels)

ndl = fresh()
dataset = ndl.data.MNISTDataset(
    str(folder / "train-images-idx3-ubyte.gz"),
    str(folder / "train-labels-idx1-ubyte.gz"),
    transforms=[ndl.data.RandomCrop(3)],
)
images([dataset[i][0][..., 0] for i in range(10)], [str(dataset[i][1]) for i in range(10)])

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Ask for the same sample twice. Is it the same array? Why is that right, and when would it be
#    wrong?
# 2. Time 100 single samples against one index array of 100, with and without a transform.
#
# ## Question 4c · `DataLoader`

# %%
here("data/DataLoader")

# %% [markdown]
# ### First, watch it happen
#
# Training wants batches, in another order in each epoch. An order is a permutation of the sample
# numbers, cut into pieces; the last may be short:

# %%
np.random.seed(0)
order = np.random.permutation(10)
[order[first : first + 4] for first in range(0, 10, 4)]

# %% [markdown]
# Does the order matter? Sorted by class, the last batches of an epoch all say the same, and the
# net forgets the rest:


# %%
def error_after_an_epoch(order):
    np.random.seed(0)
    model, loss_fn = nn.Linear(64, 10), nn.SoftmaxLoss()
    optimizer = ndl.optim.SGD(model.parameters(), lr=0.5)
    for first in range(0, len(order), 50):
        rows = order[first : first + 50]
        optimizer.reset_grad()
        X = ndl.Tensor(train_images[rows], requires_grad=False)
        y = ndl.Tensor(train_labels[rows], requires_grad=False)
        loss_fn(model(X), y).backward()
        optimizer.step()
    return np.mean(model(ndl.Tensor(test_images)).numpy().argmax(axis=1) != test_labels).round(3)


nn = ndl.nn
count = len(train_labels)
error_after_an_epoch(np.argsort(train_labels)), error_after_an_epoch(np.random.permutation(count))

# %% [markdown]
# ### The contract
#
# Python's `for` calls `iter(loader)` once and then `next(…)` until that raises `StopIteration`.
#
# | | |
# |---|---|
# | `__iter__` | starts an epoch: the order (`np.random.permutation` if `shuffle`, drawn anew each time, else 0, 1, …), cut into `len(self)` pieces; returns the loader |
# | `__next__` | the next batch: a tuple with a Tensor for each field, no gradient, on `self.device` |
# | dtype | as `self.field_dtypes(number of fields)` says |
# | end | `StopIteration`, which `next` of the batches below raises by itself |
#
# `read_batches(dataset, pieces, num_workers, prefetch)` is given: an iterator that yields, for
# each piece, the fields of its samples as arrays.
#
# ### A neighbour, complete


# %%
class Countdown:
    """Counts down from n each time it is iterated over."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        self.numbers = iter(range(self.n, 0, -1))
        return self

    def __next__(self):
        return next(self.numbers)  # raises StopIteration at the end


three = Countdown(3)
list(three), list(three)

# %% [markdown]
# ### Yours

# %%
show_blank("hw2/dataloader_iter")

# %% [markdown]
# hints("hw2/dataloader_iter")

# %%
show_blank("hw2/dataloader_next")

# %% [markdown]
# hints("hw2/dataloader_next")

# %%
check("hw2/dataloader")

# %% [markdown]
# ### Look at it

# %%
ndl = fresh()
np.random.seed(0)
dataset = ndl.data.NDArrayDataset(train_images, train_labels)
loader = ndl.data.DataLoader(dataset, batch_size=500, shuffle=True)
for epoch in range(2):
    print([(X.shape, y.numpy()[:4].tolist()) for X, y in loader])

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. What does a loader add to the time of an epoch, without any training? Compare `batch_size` 1,
#    10 and 100.
# 2. Is a batch with `shuffle=True` random *across* epochs if you set the seed in front of each?
#    Why do the apps set it where they do?
#
# ## Question 5 · A residual network

# %%
here("apps/mlp_resnet")

# %% [markdown]
# ### First, watch it happen
#
# All pieces are there. How much does each of them bring? A net of eight layers, with and without
# bypass and normalisation, after the same few steps:

# %%
ndl = fresh()
nn = ndl.nn


def deep_net(bypass, norm):
    def step():
        parts = [nn.Linear(50, 50), *([nn.BatchNorm1d(50)] if norm else []), nn.ReLU()]
        return nn.Residual(nn.Sequential(*parts)) if bypass else nn.Sequential(*parts)

    return nn.Sequential(
        nn.Linear(64, 50), nn.ReLU(), *(step() for _ in range(8)), nn.Linear(50, 10)
    )


def loss_curve(model, steps=size(60, 20)):
    np.random.seed(1)
    loss_fn, losses = nn.SoftmaxLoss(), []
    optimizer = ndl.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        rows = np.random.permutation(len(train_labels))[:100]
        optimizer.reset_grad()
        X = ndl.Tensor(train_images[rows], requires_grad=False)
        loss = loss_fn(model(X), ndl.Tensor(train_labels[rows], requires_grad=False))
        loss.backward()
        optimizer.step()
        losses.append(float(loss.numpy()))
    return losses


lines = {}
for name, bypass, norm in (("plain", 0, 0), ("bypass", 1, 0), ("norm", 0, 1), ("both", 1, 1)):
    np.random.seed(0)
    lines[name] = loss_curve(deep_net(bypass, norm))
curves(lines, log=True)

# %% [markdown]
# A bypass alone makes it *worse*: each layer adds to the size of the signal, and the first loss
# is about 100. Normalisation alone helps. Both together are far ahead of either.
#
# ### The contract
#
# `ResidualBlock(dim, hidden_dim, norm, drop_prob)` is relu(x + f(x)), where f is
#
# | | | |
# |---|---|---|
# | 1 | `Linear` | dim → hidden_dim |
# | 2 | `norm(hidden_dim)` | |
# | 3 | `ReLU` | |
# | 4 | `Dropout(drop_prob)` | |
# | 5 | `Linear` | hidden_dim → dim |
# | 6 | `norm(dim)` | |
#
# `norm` is a class, `nn.BatchNorm1d` or `nn.LayerNorm1d`, or anything that is called with a size.
# `MLPResNet(dim, hidden_dim, num_blocks, num_classes, norm, drop_prob)` is
#
# | | |
# |---|---|
# | first | `Linear` dim → hidden_dim, `ReLU` |
# | then | `num_blocks` blocks of hidden_dim, each half as wide inside (`hidden_dim // 2`) |
# | last | `Linear` hidden_dim → num_classes |
#
# Layers are made in the order in which they stand: a check seeds the generator and compares
# numbers.
#
# ### A neighbour, complete
#
# `deep_net` above: a function that returns a `Sequential`, with its repeated part made by a
# smaller function.
#
# ### Yours

# %%
show_blank("hw2/residual_block")

# %% [markdown]
# hints("hw2/residual_block")

# %%
check("hw2/residual_block")

# %%
show_blank("hw2/mlp_resnet")

# %% [markdown]
# hints("hw2/mlp_resnet")

# %%
check("hw2/mlp_resnet")

# %% [markdown]
# ### One epoch, for training and for evaluation
#
# | | |
# |---|---|
# | `epoch(dataloader, model, opt)` | one pass; with an optimizer it trains, without one it only looks |
# | mode | `model.train()` or `model.eval()` accordingly: batch norm and dropout depend on it |
# | images | are flattened, whatever shape they come in |
# | out | (error rate, mean loss), both over all **samples**: the last batch may be shorter |
#
# Why over samples? The mean of the batches' means weighs a sample of a short batch more:

# %%
losses, sizes = np.array([1.0, 1.0, 4.0]), np.array([100, 100, 5])
losses.mean(), (losses * sizes).sum() / sizes.sum()

# %%
show_blank("hw2/epoch")

# %% [markdown]
# hints("hw2/epoch")

# %%
check("hw2/epoch")

# %% [markdown]
# ### All of it
#
# `train_mnist` makes the two data sets and loaders (`batch_size`; only the training data are
# shuffled), the model `MLPResNet(784, hidden_dim)` and the optimizer, runs the epochs, evaluates
# once, and returns four numbers: training error and loss of the last epoch, test error and loss.

# %%
show_blank("hw2/train_mnist")

# %% [markdown]
# hints("hw2/train_mnist")

# %%
check("hw2/mlp")

# %% [markdown]
# ### Look at it
#
# On the digits that we wrote in MNIST's format above, your network, loader and optimizer
# together:

# %%
mlp_resnet = fresh("mlp_resnet")
result = mlp_resnet.train_mnist(
    batch_size=50, epochs=size(6, 1), hidden_dim=64, data_dir=str(folder)
)
dict(zip(("train error", "train loss", "test error", "test loss"), np.round(result, 4)))

# %%
ndl = mlp_resnet.ndl
np.random.seed(0)
model = mlp_resnet.MLPResNet(64, hidden_dim=64, num_blocks=3)
optimizer = ndl.optim.Adam(model.parameters(), lr=0.003, weight_decay=0.001)
parts = [
    ndl.data.NDArrayDataset(train_images, train_labels),
    ndl.data.NDArrayDataset(test_images, test_labels),
]
loaders = [ndl.data.DataLoader(parts[0], 50, shuffle=True), ndl.data.DataLoader(parts[1], 100)]
history = {"train": [], "test": []}
for number in range(size(15, 2)):
    history["train"].append(mlp_resnet.epoch(loaders[0], model, optimizer)[0])
    history["test"].append(mlp_resnet.epoch(loaders[1], model)[0])
curves(history, xlabel="epoch", ylabel="share of wrong answers")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Train with `norm=nn.LayerNorm1d` and with `nn.BatchNorm1d`, for batches of 2, 10 and 100.
#    Which of the two minds small batches, and why?
# 2. Set `drop_prob` to 0, 0.1 and 0.5. How do training and test error move, and why can the
#    *training* error be above the test error?
#
# The points so far:

# %%
check("hw2")
