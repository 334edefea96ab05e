"""Train a language model on a text in the layout of the Penn Treebank, and let it write.

python apps/train_lm.py --model lstm
python apps/train_lm.py --model transformer
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # this tree's needle

from collections.abc import Iterator, Sequence

import needle as ndl
import numpy as np
from models import LanguageModel
from needle import nn
from training import Log, folder_of, progress, script


@script(
    __doc__,
    model=("lstm", "transformer", "rnn"),
    data=("ptb", "shakespeare"),
    epochs=5,
    batch_size=20,
    optimizer=("auto", "sgd", "adam", "both"),
    lr=10.0,
    inner_lr=5e-4,
    weight_decay=0.0,
    seq_len=20,
    embedding_size=256,
    hidden_size=256,
    num_layers=1,
    dropout=0.3,
    clip=0.5,
    words=120,
    temperature=0.8,
    helps={
        "model": "what reads the text",
        "data": "folder of train.txt and test.txt",
        "optimizer": "of the vectors and scores of words, and of the rest; auto: both for a transformer, else sgd",
        "lr": "learning rate of the vectors and scores of words, and of all where there is one optimizer",
        "inner_lr": "learning rate of adam for the rest, with the optimizer both",
        "seq_len": "words in one step",
        "embedding_size": "numbers that stand for a word",
        "hidden_size": "units of a layer",
        "num_layers": "layers of the sequence model",
        "dropout": "share of the numbers between the layers that training sets to zero",
        "clip": "bound on the norm of the gradient",
        "words": "how many to write in the end",
        "temperature": "below 1 the likeliest words are preferred",
    },
    smoke={"epochs": 2, "embedding_size": 16, "hidden_size": 16, "batch_size": 8, "seq_len": 8, "words": 20},
)
def main(chosen: argparse.Namespace) -> None:
    corpus = ndl.data.Corpus(text_folder(chosen))
    train, test = (ndl.data.batchify(ids, chosen.batch_size) for ids in (corpus.train, corpus.test))
    vocabulary = len(corpus.dictionary)
    print(f"{len(corpus.train):,} words to learn from, {len(corpus.test):,} to be tested on, {vocabulary:,} different")

    sizes = (chosen.embedding_size, vocabulary, chosen.hidden_size, chosen.num_layers)
    model = LanguageModel(*sizes, seq_model=chosen.model, seq_len=chosen.seq_len, dropout=chosen.dropout)
    start_small(model)
    teacher = Teacher(model, chosen, steps=chosen.epochs * len(range(0, len(train) - 1, chosen.seq_len)))
    unseen = Unseen(corpus.train, vocabulary)

    log = Log(chosen)
    for epoch in range(1, chosen.epochs + 1):
        train_loss = learn(model, train, chosen, teacher, f"epoch {epoch} of {chosen.epochs}")
        test_loss = examine(model, test, chosen, unseen)
        log.row(epoch=epoch, train_perplexity=perplexity(train_loss), test_perplexity=perplexity(test_loss))
    text = write(model, corpus.dictionary, chosen)
    (log.folder / "sample.txt").write_text(text + "\n", encoding="utf-8")
    print(f"\n{text}\n")
    baseline = perplexity(unigram_loss(corpus, vocabulary))
    log.close(
        unigram_perplexity=baseline, test_perplexity=perplexity(test_loss), ratio=perplexity(test_loss) / baseline
    )


def start_small(model: LanguageModel) -> None:
    """Shrink the vectors that stand for words and places, the scores, and what a transformer's layers add.

    A word that is seldom read keeps the vector that it started with: chance should speak low.  (After Zaremba et al.
    2014, who draw all weights from ±0.1.)  A transformer's layers add to each other, where Kaiming's weights, made for
    one ReLU after another, are too loud: their variance becomes 1 / (3 inputs).
    """
    vectors, layers = [model.embedding.weight], [model.linear.weight]
    if hasattr(model.sequence_model, "positions"):
        positions = model.sequence_model.positions.weight
        layers += [p for p in model.sequence_model.parameters() if p.ndim == 2 and p is not positions]
        shrink([*vectors, positions], 0.1)
        shrink(layers, 6**-0.5)
    else:
        shrink(vectors + layers, 0.1)


def shrink(weights: Sequence[ndl.Tensor], factor: float) -> None:
    for weight in weights:
        weight.data = weight.data * factor


class Teacher:
    """What changes the weights: one optimizer for all of them, or one for words and one for the rest.

    Most words are seldom read, and Adam takes full steps from each of the few examples, until it knows the training
    text by heart; SGD moves a word by as much as it was seen.  What is read all the time does better with Adam.
    """

    def __init__(self, model: LanguageModel, chosen: argparse.Namespace, steps: int) -> None:
        words = [model.embedding.weight, *model.linear.parameters()]
        rest = [p for p in model.parameters() if all(p is not word for word in words)]
        sgd, adam = ndl.optim.SGD, ndl.optim.Adam
        kind = {"auto": "both" if chosen.model == "transformer" else "sgd"}.get(chosen.optimizer, chosen.optimizer)
        plans = {"both": [(sgd, words, chosen.lr), (adam, rest, chosen.inner_lr)]}
        plans |= {name: [(make, words + rest, chosen.lr)] for name, make in (("sgd", sgd), ("adam", adam))}
        self.optimizers = [make(params, lr=lr, weight_decay=chosen.weight_decay) for make, params, lr in plans[kind]]
        self.schedules = [ndl.optim.CosineAnnealingLR(optimizer, steps) for optimizer in self.optimizers]
        self.parameters, self.bound = words + rest, chosen.clip

    def step(self, loss: ndl.Tensor) -> None:
        """Move the weights against the gradient of the loss."""
        for optimizer in self.optimizers:
            optimizer.reset_grad()
        loss.backward()
        ndl.optim.clip_grad_norm_(self.parameters, self.bound)
        for changes in (*self.optimizers, *self.schedules):
            changes.step()


def learn(model: LanguageModel, text: np.ndarray, chosen: argparse.Namespace, teacher: Teacher, title: str) -> float:
    """Predict every next word of a batchified text, and learn from it.  Returns the mean loss over all words.

    The first step begins somewhere within the first seq_len words, so that the text is cut at other places each time.
    """
    model.train()
    total, count, first = 0.0, 0, np.random.randint(min(chosen.seq_len, len(text) - 1))
    for logits, following in predictions(model, text, chosen, range(first, len(text) - 1, chosen.seq_len), title):
        loss = nn.SoftmaxLoss()(logits, following)
        teacher.step(loss)
        total += loss.item() * len(following)
        count += len(following)
    return total / count


def examine(model: LanguageModel, text: np.ndarray, chosen: argparse.Namespace, unseen: Unseen) -> float:
    """The mean loss over all next words of a batchified text."""
    model.eval()
    total, count = 0.0, 0
    with ndl.no_grad():
        for logits, following in predictions(model, text, chosen, range(0, len(text) - 1, chosen.seq_len), "test"):
            scores = ndl.Tensor(unseen.allowed_for(logits.numpy()), device=logits.device)
            total += nn.SoftmaxLoss()(scores, following).item() * len(following)
            count += len(following)
    return total / count


def predictions(
    model: LanguageModel, text: np.ndarray, chosen: argparse.Namespace, starts: range, title: str
) -> Iterator[tuple[ndl.Tensor, ndl.Tensor]]:
    """Scores and next words, step by step.  An rnn or lstm carries its state on; gradients end where a step does."""
    state = None
    for start in progress(starts, title):
        words, following = ndl.data.get_batch(text, start, chosen.seq_len)
        logits, state = model(words, state)
        state = detached(state)
        yield logits, following


class Unseen:
    """The words of the dictionary that the training text does not use, such as the names in another play.

    A model is only ever taught that they do not occur. How likely they are all the same is told by the words that the
    training text uses once: their share of it (I. J. Good 1953, "The population frequencies of species", after Turing).
    """

    def __init__(self, train: Sequence[int], vocabulary: int) -> None:
        uses = np.bincount(train, minlength=vocabulary)
        self.words = uses == 0
        self.share = (uses == 1).sum() / len(train)

    def allowed_for(self, scores: np.ndarray) -> np.ndarray:
        """The scores (N, vocabulary) with those of unseen words such that they have that share of the probability."""
        if not self.share or not self.words.any():
            return scores
        known = scores[:, ~self.words]
        largest = known.max(axis=1, keepdims=True)
        total = largest + np.log(np.exp(known - largest).sum(axis=1, keepdims=True))
        each = np.log(self.share / (1 - self.share) / self.words.sum())
        return np.where(self.words, total + each, scores).astype(scores.dtype)


def detached(state: ndl.Tensor | tuple[ndl.Tensor, ...]) -> ndl.Tensor | tuple[ndl.Tensor, ...]:
    return tuple(part.detach() for part in state) if isinstance(state, tuple) else state.detach()


def write(model: LanguageModel, dictionary: ndl.data.Dictionary, chosen: argparse.Namespace) -> str:
    """Draw word after word from what the model finds likely."""
    model.eval()
    ids, state = [dictionary.word2idx["<eos>"]], None
    with ndl.no_grad():
        for _ in range(chosen.words):
            # a recurrent state holds what came before; a transformer has to see it again
            seen = ids[-chosen.seq_len :] if chosen.model == "transformer" else ids[-1:]
            column = ndl.Tensor(np.array(seen).reshape(-1, 1))
            logits, state = model(column, state)
            ids.append(draw(logits.numpy()[-1], chosen.temperature))
    return " ".join(dictionary.idx2word[i] for i in ids[1:]).replace("<eos>", "\n")


def draw(logits: np.ndarray, temperature: float) -> int:
    odds = np.exp((logits - logits.max()).astype(np.float64) / temperature)
    return int(np.random.choice(len(odds), p=odds / odds.sum()))


def perplexity(loss: float) -> float:
    """Between how many equally likely words one would have to choose to be as unsure."""
    return float(np.exp(loss))


def unigram_loss(corpus: ndl.data.Corpus, vocabulary: int) -> float:
    """The mean loss on the test text of a model that knows only how often each word is used, plus one."""
    counts = np.bincount(corpus.train, minlength=vocabulary) + 1
    return float(-np.log(counts / counts.sum())[corpus.test].mean())


def text_folder(chosen: argparse.Namespace) -> Path:
    """The folder of train.txt and test.txt; for --smoke one with sentences of a tiny language."""
    if not chosen.smoke:
        return folder_of(chosen.data, chosen.data, "train.txt", chosen.download)
    folder = chosen.out / "text"
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("train.txt", 200), ("test.txt", 50)):
        (folder / name).write_text("".join(f"{sentence()}\n" for _ in range(lines)))
    return folder


def sentence() -> str:
    parts: Sequence[Sequence[str]] = (("the", "a"), ("cat", "dog", "bird"), ("sees", "likes"), ("the", "a"), ("mouse",))
    return " ".join(str(np.random.choice(words)) for words in parts)


if __name__ == "__main__":
    main()
