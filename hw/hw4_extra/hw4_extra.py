# %% [markdown]
# # Homework 4 extra · The transformer
#
# A recurrent network reads a text through a keyhole: everything it will ever know about the past
# has to fit into one state, and has to survive step after step. In this homework you write a
# network that keeps all words in view and decides, at each place, which of them to look at. It is
# called a *transformer*, and it is made of four pieces, each built of the one before.
#
# | part | what you write, all in `python/needle/nn/nn_transformer.py` | time |
# |---|---|---|
# | 1 | `MultiHeadAttention`: who looks at whom | 90 min |
# | 2 | `AttentionLayer`: looking, with weights | 60 min |
# | 3 | `TransformerLayer`: looking, then thinking | 45 min |
# | 4 | `Transformer`: layers, and a sense of order | 60 min |

# %%
setup("hw4_extra")

# %% [markdown]
# ## Part 1 · Attention
#
# File: `python/needle/nn/nn_transformer.py`, `MultiHeadAttention.forward`.

# %%
here("nn/MultiHeadAttention")

# %% [markdown]
# ### First, watch it happen
#
# A dictionary of Python finds the value whose key *equals* what you ask for. Make it soft: let
# everything be a vector, compare what you ask for, the *query*, with every *key*, and take a mean
# of all *values*, weighted by how well their keys fit. How well two vectors fit is their dot
# product; to make weights of any numbers, positive and of sum 1, there is softmax.

# %%
import numpy as np


def softmax(x):
    odds = np.exp(x - x.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


keys = np.array([[4.0, 0, 0], [0, 4.0, 0], [0, 0, 4.0]])           # apple, pear, plum
values = np.array([[1.0], [2.0], [10.0]])                          # what each of them costs
for query in ([4.0, 0, 0], [0.2, 0.2, 0], [0, 1.0, 1.0]):
    weights = softmax(np.array(query) @ keys.T)
    print(f"query {query}: weights {weights.round(3)}, value {(weights @ values).round(2)}")

# %% [markdown]
# The first query is sure, the others hesitate and get a mixture. Unlike a dictionary's, this answer
# changes smoothly with the query, the keys and the values; so gradients flow into all three, and
# what to look for can be *learned*.
#
# In a text every word asks, and every word may answer. Stack the queries of all T words as rows of
# $q$ (T, D), the keys as rows of $k$ (T, D), and the values as rows of $v$ (T, D), with D numbers
# for each. All dot products at once are $q k^T$, (T, T): row $i$ says where word $i$ looks. The
# whole of attention is
#
# $$\text{probs} = \text{softmax}\!\left(\frac{q\,k^T}{\sqrt{D}} + \text{mask}\right), \qquad \text{result} = \text{probs}\; v ,$$
#
# softmax taken over each row. What are $\sqrt D$ and the mask for?
#
# ### Why divide by √D
#
# A dot product of two vectors of D random numbers is a sum of D terms, and its size grows like √D.
# Large numbers make softmax decide: nearly all weight on one word, and hardly any gradient to
# change its mind. Look:

# %%
rng = np.random.default_rng(0)
for D in (4, 64, 1024):
    q, k = rng.standard_normal((1000, D)), rng.standard_normal((50, D))
    plain, scaled = q @ k.T, q @ k.T / np.sqrt(D)
    largest, tamed = (softmax(scores).max(axis=1).mean() for scores in (plain, scaled))
    print(f"D = {D:4}: scores of size {plain.std():5.1f}, largest of 50 weights {largest:.2f} "
          f"on average; divided by √D {tamed:.2f}")

# %% [markdown]
# ### Why a mask
#
# A network that learns to predict the next word must not see it. Word $i$ may look at words 0 … i,
# itself included, and at none after it: attention of this kind is *causal*. So the scores of later
# words get a huge negative number before the softmax, which makes their weight exactly 0:

# %%
scores = np.zeros((4, 4))
later = np.triu(np.ones((4, 4)), 1)                # 1 where the key comes after the query
print(softmax(scores + later * np.finfo(np.float32).min).round(2))

# %% [markdown]
# Why not $-\infty$? A row in which *everything* is masked would be $-\infty - (-\infty)$, not a
# number, and one NaN soon fills the network. With a finite number such a row looks everywhere
# alike: no use, but no harm.
#
# ### The contract
#
# Texts come in batches of B, and each word looks in H ways at once, its *heads*, each with its own
# query, key and value.
#
# | | |
# |---|---|
# | in | q (B, H, Tq, D), k and v (B, H, Tk, D): Tensors |
# | out | result (B, H, Tq, D) and probs (B, H, Tq, Tk) |
# | dropout | applied to probs, after the softmax; the probs that are returned are the dropped-out ones |
# | `padding_mask` | (B, Tk), 1 at keys that nobody may look at, or None |
# | given | `self.matmul(a, b)`, which is a bᵀ over the last two axes; `self.softmax(x)` over the last axis; `self.mask(logits, padding_mask)`, what to add, (1 or B, 1, Tq, Tk); `self.dropout`; `self.causal` |
# | parameters | none |
#
# Mind `matmul`: its second operand comes already transposed. That is convenient for $q k^T$, and a
# trap for probs · v.
#
# ### A neighbour, complete
#
# The simplest attention of all looks at all words so far alike. It is a running mean, and a product
# with a fixed (T, T) matrix of weights.

# %%
ndl = fresh()


def running_mean(v):
    """(B, T, D) → (B, T, D): row i is the mean of rows 0 to i."""
    steps = v.shape[1]
    weights = np.tril(np.ones((steps, steps))) / np.arange(1, steps + 1)[:, None]
    return ndl.matmul(ndl.Tensor(weights, device=v.device), v)


print(running_mean(ndl.Tensor([[[2.0], [4.0], [9.0]]])).numpy()[0, :, 0])

# %% [markdown]
# ### Yours

# %%
show_blank("hw4_extra/attention_activation")

# %% [markdown]
# hints("hw4_extra/attention_activation")

# %%
check("hw4_extra/attention")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *shapes do not fit, or fit only for T = D*: v has to be transposed before `self.matmul`;
# - *right without dropout only*: the dropped-out probs are used *and* returned;
# - *right for all, wrong for causal*: the mask was added after the softmax, or not broadcast.
#
# ### Look at it
#
# Six words with random vectors, two heads. Which word looks where, and what does the mask change?

# %%
ndl = fresh()
np.random.seed(1)
q, k, v = (ndl.Tensor(np.random.randn(1, 2, 6, 8) * 1.5) for _ in range(3))
maps = [ndl.nn.MultiHeadAttention(causal=causal)(q, k, v)[1].numpy()[0] for causal in (False, True)]
images(np.concatenate(maps), ["all, head 0", "all, head 1", "causal, head 0", "causal, head 1"],
       alt="Four 6 by 6 maps of attention; the causal ones are empty above the diagonal")

# %% [markdown]
# ### What it costs
#
# Every word looks at every word: T² scores, each of D multiplications, for each head. A recurrent
# network does T steps of H² multiplications. Measure how time and memory grow with the length of
# the text:

# %%
run_fresh("""
import os, numpy as np, needle as ndl
from needle_course.experiments import best_of
layer, before = ndl.nn.MultiHeadAttention(causal=True), 0
for T in (32, 64, 128) if os.environ.get("NEEDLE_SMOKE") else (64, 128, 256, 512):
    q = ndl.Tensor(np.random.randn(1, 4, T, 16))
    seconds = best_of(lambda: layer(q, q, q), 3)
    grown = f", {seconds / before:.1f} times the one before" if before else ""
    print(f"T = {T:4}: {1e3 * seconds:7.2f} ms, probs take {4 * 4 * T * T / 1e6:6.2f} MB{grown}")
    before = seconds
""")

# %% [markdown]
# Doubling the text takes about four times as long, more where probs no longer fit into a cache.
# That is the price for a path of length *one* between any two words: a gradient from the last word
# to the first passes a single softmax, not T cells.
#
# ### Two questions that want a measurement
#
# 1. Attention of a text with a million words, as above, with 4 heads: how much memory would probs
#    take? At which length are they as large as q, k and v together, for D = 16?
# 2. Put a large number, 1000, into one entry of one query. What becomes of its row of probs, and
#    what gradient arrives at the keys? Compare with the plain and the scaled scores above.

# %% [markdown]
# ## Part 2 · The attention layer
#
# File: `python/needle/nn/nn_transformer.py`, `AttentionLayer`.

# %%
here("nn/AttentionLayer")

# %% [markdown]
# ### First, watch it happen
#
# Where do queries, keys and values come from? From the words themselves: three linear maps of the
# same vector of F numbers give what the word asks for, what it answers to, and what it tells. Each
# map makes H · D numbers, for H heads of D. And then they have to be dealt out to the heads. Watch
# the numbers of one word, 100 + head · 10 + entry:

# %%
batch, steps, heads, dim = 1, 3, 2, 4
flat = np.array([[[100 * (t + 1) + 10 * h + d for h in range(heads) for d in range(dim)]
                  for t in range(steps)]])
print("projected:", flat.shape)
print(flat[0])
print("right, head 0:\n", flat.reshape(batch, steps, heads, dim).swapaxes(1, 2)[0, 0])
print("wrong, head 0:\n", flat.reshape(batch, heads, steps, dim)[0, 0])

# %% [markdown]
# Both have shape (B, H, T, D). The second one has cut the text into pieces and given head 0 the
# first word and a half. It trains, too, badly; no shape will tell you. *Reshape splits an axis
# where it stands; to move it, transpose.*
#
# Before the projections stands a *layer norm*, which brings each word's vector to mean 0 and
# variance 1: `prenorm_q`, `prenorm_k`, `prenorm_v`. A layer norm wants rows, (B · T, F).
#
# ### The contract
#
# | | |
# |---|---|
# | `heads(x, prenorm, projection)` | (B, T, F) → (B, H, T, D): norm, projection, dealing out |
# | `forward(q, k=None, v=None)` | each (B, T, F); k and v are q if left out: a text that looks at itself (*self-attention*) |
# | | queries, keys and values through `heads`; `self.attn`; the heads put together again, (B, T, H · D); `self.out_projection` → (B, T, out_features) |
# | given | the constructor, with all norms, projections and `attn` |
#
# Putting together is dealing out, backwards: transpose, then reshape.
#
# A neighbour, complete: how the constructor makes four projections without bias, in the order in
# which their numbers are drawn.

# %%
show_source("nn/AttentionLayer.__init__")

# %%
show_blank("hw4_extra/attention_heads")

# %% [markdown]
# hints("hw4_extra/attention_heads")

# %%
show_blank("hw4_extra/attention_forward")

# %% [markdown]
# hints("hw4_extra/attention_forward")

# %%
check("hw4_extra/attention_layer")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *right for one head, wrong for two*: reshaped where a transpose was needed, in the one direction
#   or the other;
# - *right for a batch of one*: B and T changed places;
# - *slightly off everywhere*: `prenorm_q` was used for all three.
#
# ### Look at it
#
# How many weights does a layer have, and how does their number depend on the length of the text?

# %%
ndl = fresh()
layer = ndl.nn.AttentionLayer(64, 4, 16)
for parameter in layer.parameters():
    print(parameter.shape, end=" ")
total = sum(p.numpy().size for p in layer.parameters())
print(f"\n{total:,} in all;", [layer(ndl.Tensor(np.random.randn(1, T, 64))).shape for T in (5, 50)])

# %% [markdown]
# The same layer reads texts of any length, as a recurrent network does: the weights belong to the
# maps, not to the places.
#
# ### Two questions that want a measurement
#
# 1. One head of 64 or four of 16: compare the numbers of weights, and the time of a forward pass.
#    What do you get for nothing?
# 2. Shuffle the words of a text (T, without mask) and put it through the layer. What happens to the
#    output? (You will need the answer in part 4.)

# %% [markdown]
# ## Part 3 · The transformer layer
#
# File: `python/needle/nn/nn_transformer.py`, `TransformerLayer`.

# %%
here("nn/TransformerLayer")

# %% [markdown]
# ### First, watch it happen
#
# Attention only *mixes*: apart from the softmax, its result is a weighted mean of values. To
# compute something with what was gathered, each word gets a small network of its own, the same at
# every place: a linear layer to more numbers, a ReLU, a linear layer back. Can a mean do what such
# a network can? Let both try to learn the product of two numbers:

# %%
np.random.seed(0)
x = np.random.randn(256, 2)
product = ndl.Tensor((x[:, :1] * x[:, 1:]))


def learn(model, steps=size(200, smoke=20)):
    optimizer = ndl.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(steps):
        loss = ((model(ndl.Tensor(x)) - product) ** 2).sum() / 256
        optimizer.reset_grad()
        loss.backward()
        optimizer.step()
    return loss.numpy().item()


print("linear only:       ", learn(ndl.nn.Linear(2, 1)))
print("with a hidden layer:", learn(ndl.nn.Sequential(
    ndl.nn.Linear(2, 32), ndl.nn.ReLU(), ndl.nn.Linear(32, 1))))

# %% [markdown]
# Around both halves goes a shortcut: what comes in is added to what comes out, so that a deep stack
# has a path without obstacles for values and gradients. With x for the words (B, T, F):
#
# $$x \leftarrow x + \text{Dropout}(\text{Attention}(x)), \qquad x \leftarrow x + \text{Dropout}(\text{Linear}_2(\text{Dropout}(\text{ReLU}(\text{Linear}_1(\text{LayerNorm}(x)))))) .$$

# %%
from needle_course.figures import networks as draw

draw.chain(
    [("x", "(B, T, F)"), ("AttentionLayer, Dropout", "(B, T, F)"), ("LayerNorm", "(B · T, F)"),
     ("Linear(F, hidden), ReLU, Dropout", "(B · T, hidden)"),
     ("Linear(hidden, F), Dropout", "(B, T, F)")],
    shortcuts=[(0, 1), (1, 4)], alt="A transformer layer.")

# %% [markdown]
# ### The contract
#
# | | |
# |---|---|
# | `TransformerLayer(q_features, num_head, dim_head, hidden_size, *, dropout=0., causal=True, …)` | makes, in this order: the attention layer, Linear(q_features, hidden_size), Linear(hidden_size, q_features), both with bias; a LayerNorm1d and a Dropout draw nothing |
# | `forward(x)` | (B, T, F) → (B, T, F) |
# | dropout | drawn in this order: in the attention, behind it, behind the ReLU, behind the second linear layer |
#
# A neighbour, complete: a residual block of the second homework, which is made of the same parts.

# %%
show_source("apps/ResidualBlock")

# %%
show_blank("hw4_extra/transformer_layer_init")

# %% [markdown]
# hints("hw4_extra/transformer_layer_init")

# %%
show_blank("hw4_extra/transformer_layer_forward")

# %% [markdown]
# hints("hw4_extra/transformer_layer_forward")

# %%
check("hw4_extra/transformer_layer")

# %% [markdown]
# ### Look at it: the path without obstacles
#
# How much of a gradient arrives at the input of a stack of such layers, deep as it may be?

# %%
ndl = fresh()


def arriving(depth):
    np.random.seed(0)
    layers = [ndl.nn.TransformerLayer(16, 2, 8, 32) for _ in range(depth)]
    x = ndl.Tensor(np.random.randn(2, 5, 16))
    (ndl.nn.Sequential(*layers)(x) ** 2).sum().backward()
    return float(np.linalg.norm(x.grad.numpy()))


depths = [1, 2, 4, 8]
sizes = [arriving(depth) for depth in depths]
curves({"gradient at the input": sizes}, x=depths, xlabel="layers", ylabel="size", log=True)

# %% [markdown]
# It does not vanish; with numbers as they are at the start, every layer adds to it.
#
# ### Two questions that want a measurement
#
# 1. Where are the weights of a layer, in the attention or in the small network, for F = 64, four
#    heads of 16 and a hidden size of 256? And where is the time, for T = 16 and for T = 512?
# 2. Take away the layer norms (give `Identity()` in their place) and stack eight layers. What
#    becomes of the size of x, layer by layer?

# %% [markdown]
# ## Part 4 · The transformer
#
# File: `python/needle/nn/nn_transformer.py`, `Transformer`.

# %%
here("nn/Transformer")

# %% [markdown]
# ### First, watch it happen
#
# "The dog bites the man" and "the man bites the dog" have the same words. Can attention tell them
# apart? Give a layer a text, and the same text shuffled:

# %%
np.random.seed(0)
layer = ndl.nn.TransformerLayer(8, 2, 4, 16, causal=False)
text = np.random.randn(1, 5, 8)
order = np.array([3, 0, 4, 2, 1])
out = layer(ndl.Tensor(text)).numpy()
out_of_shuffled = layer(ndl.Tensor(text[:, order])).numpy()
print("largest difference to the shuffled output:", np.abs(out[:, order] - out_of_shuffled).max())

# %% [markdown]
# The output is the same, shuffled the same way. Nothing in queries, keys and values says *where* a
# word stands; without a mask, a text is a bag of words to this layer. So its place is added to each
# word, as a vector. But which vector for place $t$?
#
# **Waves.** Take sines and cosines of $t$ with many wave lengths, as the hands of a clock: short
# waves tell neighbours apart, long ones the beginning from the end. For entries $2m$ and $2m + 1$
# of F:
#
# $$p_{t,2m} = \sin\!\left(t / 10000^{2m/F}\right), \qquad p_{t,2m+1} = \cos\!\left(t / 10000^{2m/F}\right).$$

# %%
F, T = 32, 64
waves = np.arange(T)[:, None] / 10000 ** (np.arange(0, F, 2) / F)
positions = np.stack([np.sin(waves), np.cos(waves)], axis=2).reshape(T, F)
figure, [left, right] = panels(2)
left.imshow(positions.T, aspect="auto", cmap="PuOr")
left.set(xlabel="place t", ylabel="entry", title="position vectors")
right.imshow(positions @ positions.T, cmap="viridis")
right.set(xlabel="place", ylabel="place", title="how well two places fit")
Plot(figure, "Position vectors as waves, and their dot products, which depend on the distance only")

# %% [markdown]
# The picture on the right is the same along every diagonal: the fit of two places depends on their
# *distance* only, so "the word before me" can be learned once for all places.
#
# **Or learn them.** An `Embedding` with a row for each place, trained like any other weight. It is
# simpler, can take any form, and knows nothing of places beyond its last row. This is what you
# build here.
#
# ### The contract
#
# | | |
# |---|---|
# | `Transformer(embedding_size, hidden_size, num_layers, *, num_head=8, dim_head=32, dropout=0., causal=True, …, batch_first=False, sequence_len=2048)` | makes, in this order: `Embedding(sequence_len, embedding_size)` for the places, then the layers; `hidden_size` is the width of the small network in each |
# | `embedded_positions(x)` | (B, T, F) → (B, T, F): the vectors of places 0 … T − 1, the same for every text |
# | `forward(x, h=None)` | x (T, B, F), or (B, T, F) if `batch_first` → the same shape, and zeros of that shape in place of a state |
#
# It is called as an RNN is, so that it can take its place in a model; therefore time comes first
# unless you say otherwise, and inside it is the batch that comes first. A neighbour, complete: the
# numbers of places, and how they become rows of a table.

# %%
places = ndl.nn.Embedding(10, 4)
numbers = ndl.Tensor(np.arange(3))
print(numbers.shape, "→", places(numbers).shape, "→",
      ndl.broadcast_to(places(numbers).reshape((1, 3, 4)), (2, 3, 4)).shape)

# %%
show_blank("hw4_extra/transformer_init")

# %% [markdown]
# hints("hw4_extra/transformer_init")

# %%
show_blank("hw4_extra/embedded_positions")

# %% [markdown]
# hints("hw4_extra/embedded_positions")

# %%
show_blank("hw4_extra/transformer_forward")

# %% [markdown]
# hints("hw4_extra/transformer_forward")

# %%
check("hw4_extra/transformer_model")

# %% [markdown]
# If it is red, it is usually one of these:
#
# - *right for batch_first only*: swapped on the way in and not on the way out;
# - *all numbers are off*: the places were drawn after the layers;
# - *right for T = B only*: positions were looked up for the wrong axis.
#
# ### Look at it: who can tell what came first?
#
# The game of the last homework: of a sequence of numbers, was the *first* one positive? There, a
# recurrent network gave up at 18 steps.

# %%
ndl = fresh()


def play(make, length, steps=size(120, smoke=3), seed=0):
    """Train a layer of width 16 on the game; its share of right answers on new ones, and itself."""
    np.random.seed(seed)
    widen, layer, head = ndl.nn.Linear(1, 16), make(), ndl.nn.Linear(16, 2)
    parameters = widen.parameters() + layer.parameters() + head.parameters()
    optimizer = ndl.optim.Adam(parameters, lr=0.01)
    for step in range(steps + 1):
        X = np.random.randn(length, 64, 1)
        answers = ndl.Tensor(X[0, :, 0] > 0)
        rows = widen(ndl.Tensor(X).reshape((length * 64, 1)))
        outputs, _ = layer(rows.reshape((length, 64, 16)))
        scores = head(ndl.split(outputs, 0)[length - 1])
        if step == steps:
            return (scores.numpy().argmax(axis=1) == answers.numpy()).mean(), widen, layer
        loss = ndl.nn.SoftmaxLoss()(scores, answers)
        optimizer.reset_grad()
        loss.backward()
        optimizer.clip_grad_norm(1.0)
        optimizer.step()


def transformer():
    return ndl.nn.Transformer(16, 32, 1, num_head=2, dim_head=8, sequence_len=64)


for length in (6, 18):
    print(f"{length:2} steps: RNN {play(lambda: ndl.nn.RNN(16, 16), length)[0]:.2f}, "
          f"transformer {play(transformer, length)[0]:.2f}")

# %% [markdown]
# One look, and it is there, however far away. What did it look at? Train once more on sequences of
# eight, and draw the attention of the *last* place, for both heads:

# %%
_, widen, trained = play(transformer, 8)
attention = trained.layers[0].attention

numbers = ndl.Tensor(np.random.randn(64 * 8, 1))             # 64 new games, the batch first
x = widen(numbers).reshape((64, 8, 16))
x = x + trained.embedded_positions(x)
q = attention.heads(x, attention.prenorm_q, attention.q_projection)
k = attention.heads(x, attention.prenorm_k, attention.k_projection)
_, probs = attention.attn(q, k, k)
last = probs.numpy().mean(axis=0)[:, -1]                     # (heads, keys)
curves({f"head {h}": last[h] for h in range(2)}, x=range(8), xlabel="place",
       ylabel="attention of the last place")

# %% [markdown]
# ### And a text
#
# `LanguageModel(…, seq_model="transformer")` puts your transformer where the LSTM was. The text is
# made as in the last homework: a sentence of two halves, each with a noun and a verb that fits it.

# %%
import tempfile
from pathlib import Path

FITTING = {"fox": ["runs", "hides"], "crow": ["sings", "flies"], "cat": ["sleeps", "hides"],
           "river": ["shines", "runs"]}
ADJECTIVES, NOUNS = ["old", "small", "quiet", "red"], list(FITTING)


def half(random):
    noun = NOUNS[random.integers(4)]
    adjective = [ADJECTIVES[random.integers(4)]] if random.random() < 0.5 else []
    return ["the", *adjective, noun, FITTING[noun][random.integers(2)]]


random, folder = np.random.default_rng(0), tempfile.mkdtemp()
for name, count in (("train", size(2000, smoke=100)), ("test", size(400, smoke=20))):
    drawn = [" ".join([*half(random), "and", *half(random)]) for _ in range(count)]
    Path(folder, name + ".txt").write_text("\n".join(drawn) + "\n")

ndl = fresh()
import models
import simple_ml

corpus = ndl.data.Corpus(folder)
vocabulary = len(corpus.dictionary)
train = ndl.data.batchify(corpus.train, 16, dtype="float32")
test = ndl.data.batchify(corpus.test, 16, dtype="float32")
np.random.seed(0)
model = models.LanguageModel(16, vocabulary, 32, 1, seq_model="transformer", seq_len=16)
for table in (model.embedding.weight, model.sequence_model.positions.weight):
    table.data = table.data * 0.3          # nothing normalizes the sum that enters the last layer
perplexities = []
for epoch in range(size(3, smoke=1)):
    simple_ml.train_ptb(model, train, seq_len=16, lr=0.005, clip=1.0, optimizer=ndl.optim.Adam)
    perplexities.append(np.exp(simple_ml.evaluate_ptb(model, test, seq_len=16)[1]))
    print(f"epoch {epoch + 1}: test perplexity {perplexities[-1]:.2f} of {vocabulary} words")

# %% [markdown]
# An honest remark: on this text the LSTM of the last homework is as good, or better, and cheaper.
# The next word here hangs on the word before it and little else, and a transformer that sees 16
# words starts each piece without a memory of the piece before. Its strength shows where far words
# matter, as in the game, and on hardware that computes all places of a text at once.
#
# ### Two questions that want a measurement
#
# 1. Set the vectors of all places to zero, and to zero *and frozen*, and play the game of length 18
#    again. What is left of the 1.00, and why is it not exactly one half? (The attention is causal.)
# 2. Evaluate the language model with `seq_len` 4 and 16 after training with 16. Which words suffer:
#    those at the start of a piece or those at its end? Compute the loss for each place to find out.
#
# ## That was it
#
# From a loop over bytes to a transformer, and every line of it is yours. `make check HW=hw4_extra`
# in a terminal runs every check once more, `needle-course status` counts your points.
