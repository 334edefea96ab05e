# %% [markdown]
# # Homework 1 · A program that differentiates programs
#
# You will write the heart of a deep-learning framework: operators that know their own derivative,
# a graph of who was computed from whom, and the walk that sends gradients back through it. At the
# end a two-layer network trains without a single gradient worked out by hand.
#
# For every question: **read, run the experiment, fill the blank in the file with any editor, save
# it, run the check.** Checks run in a process of their own on the saved files; nothing needs to
# be restarted. Graphs are drawn as they are in your tree.

# %%
setup("hw1")

# %% [markdown]
# | question | points | you write | file | time |
# |---|---|---|---|---|
# | 1 | 10 | what twelve operators compute | `python/needle/ops/ops_mathematic.py` | 60 min |
# | 2 | 25 | their gradients | the same | 3 h |
# | 3 | 20 | the order of the walk | `python/needle/autograd.py` | 60 min |
# | 4 | 25 | the walk | the same | 60 min |
# | 5 | 10 | a softmax loss made of operators | `apps/simple_ml.py` | 45 min |
# | 6 | 10 | `relu`, and an epoch of training | both | 60 min |
#
# ## Question 1 · Forward: operators that compute

# %%
here("ops")

# %% [markdown]
# ### First, watch it happen
#
# A `Tensor` holds an array, and remembers which operator made it from what. Addition and
# multiplication are given, so this already works:

# %%
import numpy as np

ndl = fresh()
x = ndl.Tensor([2.0])
y = ndl.Tensor([5.0])
v = (x + 1) * y + x
print("value   ", v.cached_data)
print("operator", v.op)
print("inputs  ", [t.cached_data for t in v.inputs])
show_graph(v, names={"x": x, "y": y, "v": v})

# %% [markdown]
# Every box is a node: `op` made it, `inputs` are the nodes it was made from, `cached_data` is the
# array. A node without an operator is a *leaf*. Nothing was differentiated yet; the graph is just
# the memory of a computation.
#
# An operator is a class. Its method `compute` makes an array from arrays: NumPy arrays here, and
# NumPy is reached under the name `array_api`. (Skip the other method, `gradient`, for now.)
#
# ### A neighbour, complete

# %%
show_source("ops/EWiseAdd")

# %%
show_source("ops/AddScalar")

# %% [markdown]
# What is not an array, such as the number to add, is given to the operator when it is made, and
# kept in `self`. `add(a, b)` just calls `EWiseAdd()(a, b)`, which makes the node and has
# `compute` fill in its value.
#
# ### Part by part: element by element
#
# These seven take arrays of one shape and work entry by entry.
#
# | operator | computes | settings |
# |---|---|---|
# | `Negate` | $-a$ | |
# | `Log`, `Exp` | $\log a$, $e^a$ | |
# | `DivScalar`, `PowerScalar` | $a / s$, $a^s$ | `self.scalar` is $s$ |
# | `EWiseDiv`, `EWisePow` | $a / b$, $a^b$ | |
#
# The result has the type of the input. Nothing is written into an input: other nodes hold it,
# too.

# %%
show_blank("hw1/negate_forward")

# %% [markdown]
# hints("hw1/negate_forward")

# %%
check("hw1/negate_forward")

# %% [markdown]
# That was the whole walk: open the file, fill the blank, save, check. The six others go the same
# way. `check("hw1/log_forward")` in a cell of your own checks one alone; the check at the end of the
# question lists them all.

# %%
show_blank(
    "hw1/log_forward",
    "hw1/exp_forward",
    "hw1/divide_scalar_forward",
    "hw1/power_scalar_forward",
    "hw1/ewise_div_forward",
    "hw1/ewise_pow_forward",
)

# %% [markdown]
# **`Log`**
#
# hints("hw1/log_forward")
#
# **`Exp`**
#
# hints("hw1/exp_forward")
#
# **`DivScalar`**
#
# hints("hw1/divide_scalar_forward")
#
# **`PowerScalar`**
#
# hints("hw1/power_scalar_forward")
#
# **`EWiseDiv`**
#
# hints("hw1/ewise_div_forward")
#
# **`EWisePow`**
#
# hints("hw1/ewise_pow_forward")

# %% [markdown]
# ### Part by part: shapes
#
# These change where numbers stand, or add some up.
#
# | operator | in | out | settings |
# |---|---|---|---|
# | `Reshape` | any shape | `self.shape`, same numbers in the same order | |
# | `Transpose` | (…, m, n) | two axes swapped: the last two, or the pair `self.axes` | `self.axes` may be `None` |
# | `BroadcastTo` | a shape that stretches | `self.shape` | |
# | `Summation` | any shape | without the axes `self.axes`; `None` means all | an int, a tuple or `None` |
#
# Do not confuse the first two. Watch where the 1 goes:

# %%
a = np.array([[0, 1, 2], [3, 4, 5]])
print(a.reshape(3, 2))
print(np.swapaxes(a, 0, 1))

# %% [markdown]
# And the name `transpose` has two meanings. NumPy's `np.transpose(a, axes)` wants a whole new
# order of axes; needle's `Transpose((i, j))` swaps axis i with axis j. For three axes they
# differ:

# %%
three = np.zeros((2, 3, 4))
print(np.swapaxes(three, 0, 2).shape, np.transpose(three, (2, 0, 1)).shape)

# %%
show_blank(
    "hw1/reshape_forward",
    "hw1/transpose_forward",
    "hw1/broadcast_to_forward",
    "hw1/summation_forward",
)

# %% [markdown]
# **`Reshape`**
#
# hints("hw1/reshape_forward")
#
# **`Transpose`**
#
# hints("hw1/transpose_forward")
#
# **`BroadcastTo`**
#
# hints("hw1/broadcast_to_forward")
#
# **`Summation`**
#
# hints("hw1/summation_forward")

# %% [markdown]
# ### Part by part: the matrix product
#
# `MatMul` multiplies matrices, (m, n) times (n, p). With more axes in front it multiplies a
# *stack* of matrices, pair by pair, and stretches the axes in front as broadcasting does:

# %%
stack, one = np.ones((5, 2, 3)), np.ones((3, 4))
(stack @ one).shape, (np.ones((5, 1, 2, 3)) @ np.ones((7, 3, 4))).shape

# %%
show_blank("hw1/matmul_forward")

# %% [markdown]
# hints("hw1/matmul_forward")

# %%
check("hw1/matmul_forward")

# %% [markdown]
# ### The whole question

# %%
check("hw1/forward")

# %% [markdown]
# ### Look at it
#
# The mean of the logarithms of a softmax, as a graph of your operators. Every box is one call of
# a `compute` that you wrote.

# %%
ndl = fresh()
scores = ndl.Tensor(np.array([[2.0, 1.0, -1.0]]))
powers = ndl.exp(scores)
total = ndl.broadcast_to(ndl.reshape(ndl.summation(powers, axes=(1,)), (1, 1)), (1, 3))
result = ndl.summation(ndl.log(powers / total)) / 3
show_graph(result, names={"scores": scores})

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. How long does `ndl.exp` of one number take, and how long `np.exp`? And of a million numbers?
#    What does a node of the graph cost?
# 2. Broadcast a (1, 1000) tensor to (1000, 1000) and look at `.cached_data.strides`. How much
#    memory did the stretched array take?
#
# ## Question 2 · Backward: each operator passes a gradient back

# %%
here("ops")

# %% [markdown]
# ### First, watch it happen: three ways to a derivative
#
# Take the product of ten numbers. Its derivative with respect to each number is the product of
# the nine others. The first way, **numerical**: nudge each input.


# %%
def product(numbers):
    result = 1.0
    for number in numbers:
        result = result * number
    return result


inputs = np.linspace(0.5, 1.5, 10)
nudge = 1e-6
numerical = [
    (product(inputs + nudge * unit) - product(inputs - nudge * unit)) / (2 * nudge)
    for unit in np.eye(10)
]
np.round(numerical, 6)

# %% [markdown]
# Twenty evaluations of the whole product for ten numbers, and right to some ten digits only. The
# second way, **symbolic**: the product rule, applied to the formula. We let Python do the algebra
# on text:


# %%
def derivative(factors, by):
    """The product rule on a list of names: the derivative of their product, as text."""
    terms = []
    for i, factor in enumerate(factors):
        rest = factors[:i] + ["1" if factor == by else "0"] + factors[i + 1 :]
        terms.append("*".join(rest))
    return " + ".join(terms)


names = [f"x{i}" for i in range(10)]
formula = derivative(names, "x3")
print(formula[:92], "…")
values = dict(zip(names, inputs))
print(eval(formula, values), "with", 10 * formula.count("*"), "multiplications for all ten")

# %% [markdown]
# Exact, but the formula grows: 900 multiplications for ten derivatives, most of them by 0 or 1,
# and the same partial products again and again. The third way, **automatic**: compute the value
# in steps, keep every intermediate number, then walk back through the *steps* and apply the chain
# rule to each.

# %%
partial = [1.0]
for number in inputs:  # forward: partial[i + 1] = partial[i] * inputs[i]
    partial.append(partial[-1] * number)

slope, automatic = 1.0, [0.0] * 10  # slope: of the result with respect to partial[i + 1]
for i in reversed(range(10)):  # backward: what reaches the two inputs of each step
    automatic[i] = slope * partial[i]
    slope = slope * inputs[i]
np.abs(np.array(automatic) - numerical).max()

# %% [markdown]
# Exact, 30 multiplications, and no formula was ever written down. Each step only had to know how
# to pass a slope on to *its own* two inputs. That is the whole idea of this homework, and this
# question is the part "each step knows".
#
# ### The contract
#
# Let $y = f(x)$ be one operator, and let the number $L$ be computed from $y$ somehow. Write $\bar
# y$ for the array of slopes $\partial L / \partial y_i$, one for each entry of $y$; the code
# calls it `out_grad`. Then
#
# $$\bar x_j = \sum_i \bar y_i\, \frac{\partial y_i}{\partial x_j}$$
#
# is what `gradient` returns: from the slope with respect to the output, the slope with respect to
# each input.
#
# | | |
# |---|---|
# | in | `out_grad`, a Tensor of the output's shape; `node`, the output; `node.inputs` are the inputs |
# | out | for each input a Tensor of **exactly that input's shape**; one alone, or a tuple |
# | made of | needle operators on Tensors, so that a gradient can be differentiated again |
# | cost | that of a few forward passes |
#
# ### A neighbour, complete

# %%
show_source("ops/EWiseMul")

# %% [markdown]
# $y = a \cdot b$ has $\partial y / \partial a = b$ and $\partial y / \partial b = a$: each input
# gets `out_grad` times the other one. We call it the way the checks do:

# %%
ndl = fresh()
a, b = ndl.Tensor([2.0, 3.0]), ndl.Tensor([10.0, 20.0])
y = a * b
y.op.gradient(ndl.Tensor([1.0, 100.0]), y)

# %% [markdown]
# A tool for what follows: the same by nudging, for any function of arrays. `out_grad` weighs the
# entries of the output, as above.


# %%
def nudged(f, x, out_grad, nudge=1e-6):
    """The slope of sum(out_grad * f(x)) with respect to each entry of x."""
    slopes = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += nudge
        down[index] -= nudge
        slopes[index] = ((f(up) - f(down)) * out_grad).sum() / (2 * nudge)
    return slopes


nudged(lambda a: a * np.array([10.0, 20.0]), np.array([2.0, 3.0]), np.array([1.0, 100.0]))

# %% [markdown]
# ### Parts 1 to 5: one input, entry by entry
#
# Here $y_i$ depends on $x_i$ alone, so the sum has one term: multiply `out_grad` by the
# derivative that you know from school. Two of them have a shortcut that is worth seeing before
# you write it down:

# %%
points = np.array([-2.0, 0.5, 3.0])
ones = np.ones(3)
print("slope of exp   ", nudged(np.exp, points, ones).round(4))
print("exp itself     ", np.exp(points).round(4))
print("slope of a**3  ", nudged(lambda a: a**3, points, ones).round(4))
print("3 * a**2       ", (3 * points**2).round(4))

# %% [markdown]
# The slope of `exp` is the *output*, and `node` is the output: nothing has to be computed a
# second time.
#
# Negation:

# %%
show_blank("hw1/negate_backward")

# %% [markdown]
# hints("hw1/negate_backward")

# %%
check("hw1/negate_backward")

# %% [markdown]
# Exponential:

# %%
show_blank("hw1/exp_backward")

# %% [markdown]
# hints("hw1/exp_backward")

# %%
check("hw1/exp_backward")

# %% [markdown]
# Logarithm:

# %%
show_blank("hw1/log_backward")

# %% [markdown]
# hints("hw1/log_backward")

# %%
check("hw1/log_backward")

# %% [markdown]
# Division by a number:

# %%
show_blank("hw1/divide_scalar_backward")

# %% [markdown]
# hints("hw1/divide_scalar_backward")

# %%
check("hw1/divide_scalar_backward")

# %% [markdown]
# Power with a fixed exponent. Mind the exponent 0: at $a = 0$ the formula $s\,a^{s-1}$ is $0
# \cdot \infty$, and the slope of the constant 1 is 0.

# %%
show_blank("hw1/power_scalar_backward")

# %% [markdown]
# hints("hw1/power_scalar_backward")

# %%
check("hw1/power_scalar_backward")

# %% [markdown]
# ### Parts 6 and 7: two inputs, entry by entry
#
# `EWiseDiv`: $y = a / b$. Differentiate by $a$ with $b$ fixed, then the other way round:
#
# $$\frac{\partial y}{\partial a} = \frac1b, \qquad
# \frac{\partial y}{\partial b} = -\frac{a}{b^2} = -\frac{y}{b}.$$
#
# The last form is the one to use: $b^2$ can overflow where $y/b$ does not. `EWisePow`: $y = a^b =
# e^{b \log a}$, so
#
# $$\frac{\partial y}{\partial a} = b\,a^{b-1}, \qquad \frac{\partial y}{\partial b} = y \log a.$$

# %%
base, exponent = np.array([2.0]), np.array([3.0])
print(nudged(lambda a: a**exponent, base, 1.0), exponent * base ** (exponent - 1))
print(nudged(lambda b: base**b, exponent, 1.0), base**exponent * np.log(base))

# %%
show_blank("hw1/ewise_div_backward")

# %% [markdown]
# hints("hw1/ewise_div_backward")

# %%
check("hw1/ewise_div_backward")

# %%
show_blank("hw1/ewise_pow_backward")

# %% [markdown]
# hints("hw1/ewise_pow_backward")

# %%
check("hw1/ewise_pow_backward")

# %% [markdown]
# ### Parts 8 and 9: numbers that only move
#
# `Reshape` and `Transpose` compute nothing: each entry of the output *is* one entry of the input.
# Its slope is carried back to where it came from.

# %%
weights = np.arange(6.0).reshape(3, 2)  # plays the part of out_grad
print(nudged(lambda a: a.reshape(3, 2), np.zeros((2, 3)), weights))
print(nudged(lambda a: a.T, np.zeros((2, 3)), weights))

# %% [markdown]
# Two different answers: 0 to 5 in order for the one, in columns for the other. What undoes a
# reshape? What undoes a swap?

# %%
show_blank("hw1/reshape_backward")

# %% [markdown]
# hints("hw1/reshape_backward")

# %%
check("hw1/reshape_backward")

# %%
show_blank("hw1/transpose_backward")

# %% [markdown]
# hints("hw1/transpose_backward")

# %%
check("hw1/transpose_backward")

# %% [markdown]
# ### Part 10: `broadcast_to`, and what flows back
#
# A column of three numbers is stretched to three rows of four. Nudge *one* of the three numbers
# and count how much the sum of the stretched array moves.

# %%
column = np.array([[1.0], [2.0], [3.0]])
stretched = np.broadcast_to(column, (3, 4))

moved_column = column.copy()
moved_column[1, 0] += 0.001
((np.broadcast_to(moved_column, (3, 4)) - stretched).sum() / 0.001).round(6)

# %% [markdown]
# It moves **four** times as much as the nudge: the number was used four times, once in each
# column, and every use pays into the same account. Weigh the columns differently and you can read
# the payments off:

# %%
weights = np.array([[10.0, 20.0, 30.0, 40.0]] * 3)
moved = np.broadcast_to(moved_column, (3, 4)) - stretched
((moved * weights).sum() / 0.001).round(6)  # 10 + 20 + 30 + 40

# %% [markdown]
# With $y_{ij} = x_i$ for every column $j$, the chain rule adds over all the places where $x_i$
# went:
#
# $$\bar x_i = \sum_j \bar y_{ij}\,\frac{\partial y_{ij}}{\partial x_i} = \sum_j \bar y_{ij}.$$
#
# **The adjoint of copying is adding.** Sum `out_grad` over the axes that were stretched, then
# give it the shape of the input. Two kinds of axes are stretched, and the second is the one
# people forget:
#
# | input shape | output shape | stretched axes | because |
# |---|---|---|---|
# | (3, 1) | (3, 4) | 1 | an extent of 1 became 4 |
# | (4,) | (3, 4) | 0 | a new axis appeared *in front* |
# | () | (3, 4) | 0, 1 | all are new |
# | (3, 4) | (3, 4) | none | nothing was copied, so nothing is added |
#
# The blank is a function of its own, `sum_to_shape`, which `BroadcastTo.gradient` calls.

# %%
show_source("ops/BroadcastTo")

# %%
show_blank("hw1/broadcast_to_backward")

# %% [markdown]
# hints("hw1/broadcast_to_backward")

# %%
check("hw1/broadcast_to_backward")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *got shape (3,), wanted (3, 1)*: you summed but did not reshape;
# - *off by a factor of 4*: you averaged, or stretched the sum again;
# - *right for (3, 1), wrong for (4,)*: the new axes in front.
#
# ### Part 11: `summation`, the other way round
#
# If the adjoint of copying is adding, what is the adjoint of adding? Each entry went into one
# sum, with weight 1:

# %%
nudged(lambda a: a.sum(axis=1), np.zeros((2, 3)), np.array([10.0, 20.0]))

# %% [markdown]
# **Copying.** The sum made an axis disappear; it has to come back, with extent 1, before it can
# be stretched. `shape_with_ones` is given for that:

# %%
shape_with_ones = ndl.ops.ops_mathematic.shape_with_ones
shape_with_ones((2, 3, 4), 1), shape_with_ones((2, 3, 4), (0, -1)), shape_with_ones((2, 3, 4), None)

# %%
show_blank("hw1/summation_backward")

# %% [markdown]
# hints("hw1/summation_backward")

# %%
check("hw1/summation_backward")

# %% [markdown]
# ### Part 12: the matrix product
#
# $Y = A B$ means $Y_{ij} = \sum_k A_{ik} B_{kj}$. Which outputs does $A_{ik}$ reach? The whole
# row $i$ of $Y$, and $Y_{ij}$ with weight $B_{kj}$. So
#
# $$\bar A_{ik} = \sum_j \bar Y_{ij} B_{kj} \quad\text{or}\quad \bar A = \bar Y B^\top,
# \qquad\text{and likewise}\qquad \bar B = A^\top \bar Y.$$
#
# The shapes are a good memory aid: $\bar A$ must be (m, n), and of an (m, p) and an (n, p) matrix
# there is one product that gives it. Numbers before belief:

# %%
random = np.random.RandomState(0)
A, B, out_grad = random.randn(2, 3), random.randn(3, 4), random.randn(2, 4)
print(np.abs(nudged(lambda a: a @ B, A, out_grad) - out_grad @ B.T).max())
print(np.abs(nudged(lambda b: A @ b, B, out_grad) - A.T @ out_grad).max())

# %% [markdown]
# And stacks? `(5, 2, 3) @ (3, 4)` uses the one right matrix five times, so its gradient is a sum
# over five. You have a function for exactly that.

# %%
show_blank("hw1/matmul_backward")

# %% [markdown]
# hints("hw1/matmul_backward")

# %%
check("hw1/matmul_backward")

# %%
check("hw1/backward")

# %% [markdown]
# ### Look at it
#
# What does the gradient of a product *look like*? It is a graph of its own, hanging below the
# inputs.

# %%
ndl = fresh()
a, b = ndl.Tensor(np.ones((2, 3))), ndl.Tensor(np.ones((3, 4)))
y = a @ b
seed = ndl.Tensor(np.ones((2, 4)))
grad_a, grad_b = y.op.gradient(seed, y)
show_graph(grad_a, grad_b, names={"a": a, "b": b, "out_grad": seed})

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Time `compute` of a 300 × 300 `MatMul` and then its `gradient`. What ratio do you expect from
#    counting multiplications, and what do you measure?
# 2. `BroadcastTo` from (1, 1000) to (1000, 1000): which is slower, forward or backward, and which
#    of the two has to touch a million numbers?
#
# ## Question 3 · In which order?
#
# A node's slope is known only when everything computed *from* it has paid in. So the walk must
# meet every node after all that use it.

# %%
here("autograd/find_topo_sort")

# %% [markdown]
# ### First, watch it happen
#
# Suppose we did without an order, and simply followed every path from the output back. Here is a
# chain in which every node is used twice by the next; we count the paths.


# %%
def paths_to_leaves(node):
    return 1 if node.is_leaf() else sum(paths_to_leaves(child) for child in node.inputs)


x = ndl.Tensor([1.0])
for length in (1, 2, 3, 10, 16):
    y = x
    for _ in range(length):
        y = y + y
    print(f"{length:3} additions: {paths_to_leaves(y):6} paths")

# %% [markdown]
# Twice as many with each addition: forty additions have more than $10^{12}$ paths, but forty-one
# *nodes*. The walk has to visit nodes, each once, not paths.
#
# ### The contract
#
# An order of the nodes in which every node stands after its inputs is a *topological order*. A
# graph has many; we fix one, so that everybody's is the same: **depth first, inputs from left to
# right, a node is written down when all below it are** (post-order).

# %%
a, b = ndl.Tensor([1.0]), ndl.Tensor([2.0])
product_node = a * b
top = (product_node + a) / ndl.log(product_node)
left, right = top.inputs
order = {a: 1, b: 2, product_node: 3, left: 4, right: 5, top: 6}
show_graph(top, names={"a": a, "b": b}, notes={node: f"no. {n}" for node, n in order.items()})

# %% [markdown]
# | | |
# |---|---|
# | `find_topo_sort(node_list)` | in: nodes; out: a list of all nodes below them and themselves, in that order, each once |
# | `topo_sort_dfs(node, visited, topo_order)` | appends what lies below `node` and is not in `visited`, then `node` |
# | depth | some hundred nodes in a row must work, some thousand should |
# | cost | each node and each input is looked at once |
#
# About depth: a Python function that calls itself is stopped after about a thousand calls. A loop
# with a list of its own as a stack has no such limit.


# %%
def depth(node):
    return 0 if node.is_leaf() else 1 + depth(node.inputs[0])


y = x
for _ in range(5000):
    y = y + 1
try:
    print(depth(y))
except RecursionError as error:
    print("RecursionError:", str(error)[:60])

# %% [markdown]
# ### A neighbour, complete
#
# All nodes below a node, found with a list in place of recursion. It visits each once. But look
# at the order in which it meets them: is every node after its inputs?


# %%
def below(node):
    """The nodes that `node` was computed from, and itself, in the order in which they are met."""
    met, waiting = [], [node]
    while waiting:
        current = waiting.pop()
        if current not in met:
            met.append(current)
            waiting.extend(current.inputs)
    return met


[order[node] for node in below(top)]

# %% [markdown]
# Nodes 6 and 5 come before what they were made from, and turning the list round does not help in
# general: number 3 is met before 4, which uses it. A node must be *left* after its inputs, not
# just met before them.
#
# ### Yours
#
# The blank holds both functions. A recursive `topo_sort_dfs` is the natural first version; the
# check's longest chain has 400 nodes.

# %%
show_blank("hw1/topo_sort")

# %% [markdown]
# hints("hw1/topo_sort")

# %%
check("hw1/topo_sort")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *a node comes twice*: it is put into `visited` too late, or never looked up;
# - *right nodes, wrong order*: inputs from right to left, or the node before its inputs;
# - *it never ends on sums of sums*: you walk paths.
#
# ### Look at it

# %%
ndl = fresh()
a, b = ndl.Tensor([1.0]), ndl.Tensor([2.0])
top = (a * b + a) / ndl.log(a * b)
order = ndl.autograd.find_topo_sort([top])
notes = {node: f"no. {n}" for n, node in enumerate(order, 1)}
show_graph(top, names={"a": a, "b": b}, notes=notes)

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. Time `find_topo_sort` for chains of 100, 200 and 400 nodes (`best_of` gives seconds). Does
#    the time grow with the number of nodes, or with its square? What if `visited` were a list?
# 2. Make the longest chain that your version takes. What stops it?
#
# ## Question 4 · The walk back
#
# Everything is there: operators that pass a slope to their inputs, and the order. What is left is
# the bookkeeping.

# %%
here("autograd/compute_gradient_of_variables")

# %% [markdown]
# ### First, watch it happen: which way to walk?
#
# The chain rule can be applied from the inputs on, too. A *dual number* carries a value and its
# slope with respect to one input, and every operation updates both:


# %%
class Dual:
    """A value and its slope with respect to one chosen input."""

    operations = 0

    def __init__(self, value, slope=0.0):
        self.value, self.slope = value, slope

    def __mul__(self, other):
        Dual.operations += 1
        slope = self.slope * other.value + self.value * other.slope
        return Dual(self.value * other.value, slope)


def all_slopes_forward(numbers):
    """The slopes of the product with respect to every number: one run for each."""
    slopes = []
    for chosen in range(len(numbers)):
        result = Dual(1.0)
        for i, number in enumerate(numbers):
            result = result * Dual(number, float(i == chosen))
        slopes.append(result.slope)
    return slopes


for count in (10, 100):
    Dual.operations = 0
    all_slopes_forward(np.linspace(0.5, 1.5, count))
    print(f"{count} inputs: {Dual.operations} operations in forward mode")

# %% [markdown]
# That is *forward mode*: exact, no graph to keep, but one run for each input, $n^2$ operations
# for $n$ numbers. Walking **back** from one output, as in the experiment of Question 2, needs one
# run for all inputs. A network has one loss and millions of weights, hence *reverse mode*; a
# function of one input and a million outputs would want forward mode.
#
# What has to be kept while walking back? Let us do it by hand for $y = x \cdot x + x$ at $x = 3$,
# where $x$ is used three times:

# %%
ndl = fresh()
x = ndl.Tensor([3.0])
square = x * x
y = square + x

seed = ndl.Tensor([1.0])
to_square, to_x_from_sum = y.op.gradient_as_tuple(seed, y)
to_x_left, to_x_right = square.op.gradient_as_tuple(to_square, square)
(
    [t.numpy()[0] for t in (to_x_from_sum, to_x_left, to_x_right)],
    (to_x_from_sum + to_x_left + to_x_right),
)

# %% [markdown]
# Three payments, 1 + 3 + 3 = 7, and indeed $2x + 1 = 7$. So for each node we collect a *list of
# contributions*, and when its turn comes, they are all there and are added up.
#
# ### The contract
#
# | | |
# |---|---|
# | in | `output_tensor`; `out_grad`, its slope, of the same shape (ones, if the caller of `backward` gave none) |
# | does | sets `.grad` of every node below that requires a gradient: the sum of its contributions |
# | again | a second call overwrites `.grad`; it is never added to what an earlier call left |
# | made of | Tensors and operators: `.grad` can be differentiated again |
# | cost | each node's `gradient` once |
#
# `node.op.gradient_as_tuple(out_grad, node)` is `gradient`, always as a tuple. `sum_node_list`
# adds the Tensors of a list; unlike Python's `sum` it does not start with a 0, which would be one
# node more. (Its middle lines are for values that hold several tensors; there are none here.)

# %%
show_source("autograd/sum_node_list")

# %% [markdown]
# ### A neighbour, complete
#
# The walk in the *other* direction, for another purpose: how deep does each node lie? It goes
# through the same order, keeps a dictionary by node, and combines what the neighbours have left
# there.


# %%
def depths(output):
    """{node: the length of the longest way from a leaf to it}."""
    depth_of = {}
    for node in ndl.autograd.find_topo_sort([output]):
        depth_of[node] = max((depth_of[child] + 1 for child in node.inputs), default=0)
    return depth_of


sorted(depths(y).values())

# %% [markdown]
# Yours goes through the order from its end, and a node *hands out* to its inputs instead of
# collecting from them.
#
# ### Yours

# %%
show_blank("hw1/compute_gradient")

# %% [markdown]
# hints("hw1/compute_gradient")

# %%
check("hw1/compute_gradient")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *right where every node is used once, wrong otherwise*: contributions overwritten instead of
#   collected;
# - *twice too much on the second call*: contributions kept from the first one;
# - *the second derivative fails*: a gradient was made of arrays and not of Tensors.
#
# ### Look at it: gradients of gradients
#
# The slope of $x^3$ at 2 is 12, the slope of the slope is 12, and its slope is 6. Since a
# gradient is made of operators, it is a function of `x` like any other:

# %%
ndl = fresh()
x = ndl.Tensor([2.0])
y = x * x * x
y.backward()
print("first ", x.grad.numpy())
x.grad.backward()
print("second", x.grad.numpy())
x.grad.backward()
print("third ", x.grad.numpy())

# %% [markdown]
# What is that good for? Newton's method walks to where the slope is zero by dividing it by its
# own slope. The minimum of $e^x - 2x$ is at $\log 2 = 0.693147…$:

# %%
point = 0.0
for step in range(5):
    x = ndl.Tensor([point])
    f = ndl.exp(x) - 2 * x
    f.backward()
    slope = x.grad
    slope_now = slope.numpy()[0]
    slope.backward()
    point = point - slope_now / x.grad.numpy()[0]
    print(f"{point:.10f}")

# %% [markdown]
# The number of right digits doubles with every step.
#
# ### Two questions that want a measurement
#
# 1. Compare the time of `y.backward()` with that of computing `y`, for a chain of 300 products of
#    200 × 200 matrices. What ratio does counting predict?
# 2. How many nodes has the graph of the third derivative of $x^5$, written as `x * x * x * x *
#    x`? (Walk it with `find_topo_sort` before each call of `backward`.) What grows, and how fast?
#
# ## Question 5 · The softmax loss, on tensors
#
# From here on you *use* what you built. The loss of a classifier, made of operators, gets its
# gradient for free.

# %%
here("apps/simple_ml.softmax_loss")

# %% [markdown]
# ### First, watch it happen
#
# A classifier gives each class a score, its *logit*. For logits $z_1, \dots, z_k$ and the right
# class $y$ the loss is
#
# $$\ell = \log \sum_j e^{z_j} - z_y,$$
#
# minus the logarithm of the probability $p_y = e^{z_y} / \sum_j e^{z_j}$. By hand its slope is
# $p_i - 1$ for the right class and $p_i$ for the others. What does *your* program say?

# %%
z = ndl.Tensor(np.array([2.0, 1.0, -1.0]))
picks_first = ndl.Tensor(np.array([1.0, 0.0, 0.0]))
loss = ndl.log(ndl.summation(ndl.exp(z))) - ndl.summation(z * picks_first)
loss.backward()
probabilities = np.exp(z.numpy()) / np.exp(z.numpy()).sum()
print("by your program", z.grad.numpy().round(6))
print("by hand        ", (probabilities - [1, 0, 0]).round(6))

# %% [markdown]
# The row `[1, 0, 0]` picks the right logit by a product and a sum, since our operators cannot
# index. Such rows of zeros and a one are called *one-hot*; `np.eye(k)[labels]` makes them for a
# whole batch.
#
# Before we come to the loss, the data: `apps/simple_ml.py` has a `parse_mnist`, the reader of
# MNIST's files that you may know from Homework 0. Bring it over, or write it again:
#
# | bytes | image file | label file |
# |---|---|---|
# | 0–3 | 2051 | 2049 |
# | 4–7 | how many images | how many labels |
# | 8–15 | rows, columns | first labels … |
# | 16– | pixels, one byte each | |
#
# All four header numbers are unsigned, the big end first (`struct.unpack(">4I", …)`). Wanted are
# float32 pixels within [0, 1], (count, rows · columns), and uint8 labels, (count,).

# %%
show_blank("hw1/parse_mnist")

# %% [markdown]
# hints("hw1/parse_mnist")

# %%
check("hw1/parse_mnist")

# %% [markdown]
# ### The contract
#
# | | |
# |---|---|
# | in | `Z`, logits, a Tensor (batch, k); `y_one_hot`, a Tensor (batch, k), a 1 in each row |
# | out | a Tensor with one element, shape (): the **mean** loss over the batch |
# | differentiable | made of operators only; `.backward()` must reach `Z` |
# | shapes | `+ - * /` want equal shapes here: stretch with `broadcast_to` where you mean to |
#
# That last line is deliberate. Arithmetic that stretches shapes by itself also stretches them
# when you did *not* mean it, (n,) with (n, 1) to (n, n), and trains something else in silence.
#
# Large logits: $e^{1000}$ overflows. Taking the largest logit of each row off first changes
# neither the loss nor its slopes. It may be a constant (from `Z.numpy()`), for exactly that
# reason.
#
# ### A neighbour, complete
#
# The mean squared error, with the same kinds of arguments:


# %%
def squared_error(prediction, target):
    """The mean over rows of the squared distance between two (batch, k) tensors."""
    difference = prediction - target
    return ndl.summation(difference * difference) / prediction.shape[0]


prediction = ndl.Tensor(np.array([[1.0, 2.0], [3.0, 4.0]]))
error = squared_error(prediction, ndl.Tensor(np.zeros((2, 2))))
error.backward()
error, prediction.grad

# %% [markdown]
# ### Yours

# %%
show_blank("hw1/softmax_loss")

# %% [markdown]
# hints("hw1/softmax_loss")

# %%
check("hw1/softmax_loss")

# %% [markdown]
# ### Look at it
#
# The graph of the loss for a batch of two. And then what happens to huge logits.

# %%
simple_ml = fresh("simple_ml")
ndl = simple_ml.ndl  # fresh, too
Z = ndl.Tensor(np.array([[2.0, 1.0, -1.0], [0.0, 3.0, 1.0]]))
loss = simple_ml.softmax_loss(Z, ndl.Tensor(np.eye(3)[[0, 2]]))
show_graph(loss, names={"Z": Z, "loss": loss})

# %%
Z = ndl.Tensor(np.array([[1000.0, 0.0]]))
for right in (0, 1):
    loss = simple_ml.softmax_loss(Z, ndl.Tensor(np.eye(2)[[right]]))
    loss.backward()
    print(f"right class {right}: loss {float(loss.numpy()):.1f}, slopes {Z.grad.numpy()[0]}")

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. How many nodes has the graph of your loss, and does the number depend on the batch size?
# 2. Leave the shift by the maximum out (in a copy of the function, here in the notebook). From
#    which logit on is the loss `inf` in float64, and from which in float32?
#
# ## Question 6 · Training a network, with no gradient by hand
#
# One operator more, and a loop.

# %%
here("apps/simple_ml.nn_epoch")

# %% [markdown]
# ### First, watch it happen
#
# `relu` is $\max(a, 0)$. Its slope is 1 to the right of 0 and 0 to the left. At 0 itself there is
# none: from the two sides come different answers, and nudging gives their mean. Everybody takes
# 0.

# %%
points = np.array([-1.0, -1e-9, 0.0, 1e-9, 2.0])
print(np.maximum(points, 0))
print(nudged(lambda a: np.maximum(a, 0), points, np.ones(5)))

# %% [markdown]
# ### The contract of `relu`
#
# | | |
# |---|---|
# | `compute` | the larger of each entry and 0, in the type of the input |
# | `gradient` | `out_grad` where the input is positive, 0 elsewhere |
# | mask | where the input is positive is a constant: `Tensor.make_const(array)` makes a leaf without gradient |

# %%
show_blank("hw1/relu_forward")

# %% [markdown]
# hints("hw1/relu_forward")

# %%
check("hw1/relu_forward")

# %%
show_blank("hw1/relu_backward")

# %% [markdown]
# hints("hw1/relu_backward")

# %%
check("hw1/relu_backward")

# %% [markdown]
# ### One step of training
#
# A step takes a batch, computes the loss, calls `backward`, and moves each weight a little
# against its slope. One thing needs care. Subtracting *Tensors* makes a node, and the next step
# would hang on it:

# %%
simple_ml = fresh("simple_ml")
ndl = simple_ml.ndl
w = ndl.Tensor([5.0])
loss = (w - 2) * (w - 2)
loss.backward()
w = w - 0.1 * w.grad  # looks right, and is not
print("a leaf:", w.is_leaf(), " nodes below it:", len(ndl.autograd.find_topo_sort([w])))

loss = (w - 2) * (w - 2)
loss.backward()
print("gradient in the second step:", w.grad)

# %% [markdown]
# `backward` leaves gradients on leaves, and this `w` is a node. The new weight must be a *leaf*:
# take the numbers out with `.numpy()`, subtract, and make a new Tensor.
#
# ### The contract of `nn_epoch`
#
# | | |
# |---|---|
# | in | `X` (m, n) float32 and `y` (m,) uint8, NumPy arrays; `W1` (n, h), `W2` (h, k), Tensors; `lr`, `batch` |
# | does | for each batch in order, the last may be shorter: loss of `relu(X_b W1) W2`, backward, a step of size `lr` |
# | out | the new `W1` and `W2`, leaves |
# | given | `softmax_loss`, `relu`, `@`, `.backward()` |
#
# ### A neighbour, complete
#
# The same loop for a model with one weight vector, fitted to numbers. Yours has two matrices and
# another loss.


# %%
def fit_line(X, t, w, lr=0.1, batch=50):
    """One epoch of gradient descent on the mean squared error of X w; returns the new w."""
    for start in range(0, len(X), batch):
        X_b = ndl.Tensor(X[start : start + batch], requires_grad=False)
        t_b = ndl.Tensor(t[start : start + batch], requires_grad=False)
        error = X_b @ w - t_b
        loss = ndl.summation(error * error) / error.shape[0]
        loss.backward()
        w = ndl.Tensor(w.numpy() - lr * w.grad.numpy())
    return w


random = np.random.RandomState(0)
inputs = random.randn(200, 3)
targets = inputs @ np.array([[1.0], [-2.0], [0.5]])
w = ndl.Tensor(np.zeros((3, 1)))
for epoch in range(5):
    w = fit_line(inputs, targets, w)
w.numpy().ravel().round(4)

# %% [markdown]
# ### Yours

# %%
show_blank("hw1/nn_epoch")

# %% [markdown]
# hints("hw1/nn_epoch")

# %%
check("hw1/nn_epoch")

# %% [markdown]
# ### Look at it
#
# 1,438 handwritten digits of 8 × 8 pixels come with the course. Watch your framework learn to
# read them.

# %%
simple_ml = fresh("simple_ml")
ndl = simple_ml.ndl
train_images, train_labels, test_images, test_labels = digits()

random = np.random.RandomState(0)
W1 = ndl.Tensor((random.randn(64, 100) / 10).astype(np.float32))
W2 = ndl.Tensor((random.randn(100, 10) / np.sqrt(10)).astype(np.float32))
history = {"train": [], "test": []}
for epoch in range(size(30, 4)):
    W1, W2 = simple_ml.nn_epoch(train_images, train_labels, W1, W2, lr=0.5, batch=50)
    for name, X, y in (("train", train_images, train_labels), ("test", test_images, test_labels)):
        logits = ndl.relu(ndl.Tensor(X) @ W1) @ W2
        history[name].append(simple_ml.loss_err(logits, y)[1])
curves(history, xlabel="epoch", ylabel="share of wrong answers")

# %% [markdown]
# And the graph of one step: everything between the two weights and the loss is your operators.

# %%
X_b = ndl.Tensor(train_images[:50], requires_grad=False)
y_b = ndl.Tensor(np.eye(10)[train_labels[:50]], requires_grad=False)
loss = simple_ml.softmax_loss(ndl.relu(X_b @ W1) @ W2, y_b)
show_graph(loss, names={"W1": W1, "W2": W2, "X": X_b, "one-hot": y_b})

# %% [markdown]
# ### Two questions that want a measurement
#
# 1. `ndl.autograd.TENSOR_COUNTER` counts the Tensors that are alive. Print it after every epoch.
#    Then let the loop keep its losses, `losses.append(loss)`: what happens, and what should be
#    kept instead?
# 2. Compare the time of an epoch with that of the same network with gradients by hand, in NumPy.
#    What does a step's bookkeeping cost, and for which batch size does it stop to matter?
#
# The points so far:

# %%
check("hw1")
