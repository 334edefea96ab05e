"""The parts of the applications: shared helpers, the cart and its pole, language models, the course's names."""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from pathlib import Path

import needle as ndl
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def app(monkeypatch):
    """Import a module of apps/ by name, as the scripts do that lie beside it."""
    monkeypatch.syspath_prepend(str(ROOT / "apps"))
    return importlib.import_module


# ---- shared helpers -------------------------------------------------------------------------------------------------


def test_a_failed_write_leaves_the_old_file_and_no_other(app, tmp_path):
    training = app("training")
    path = tmp_path / "log.csv"
    training.write_atomically(path, lambda part: part.write_text("whole"))

    def fail(part):
        part.write_text("ha")
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match="disk full"):
        training.write_atomically(path, fail)
    assert path.read_text() == "whole"
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


def test_progress_gives_every_item_and_prints_no_bar_without_a_terminal(app, capsys):
    training = app("training")
    assert list(training.progress(range(5), "counting")) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().out == ""


def test_progress_prints_a_line_when_it_takes_long(app, capsys, monkeypatch):
    training = app("training")
    monkeypatch.setattr(training, "SILENCE", -1.0)
    assert list(training.progress("ab", "reading")) == ["a", "b"]
    assert capsys.readouterr().out.splitlines() == ["  reading: 0 of 2", "  reading: 1 of 2"]


def test_a_log_is_a_table_and_a_record(app, tmp_path, capsys):
    training = app("training")
    log = training.Log(argparse.Namespace(out=tmp_path / "new", lr=0.5))
    log.row(epoch=1, loss=0.75)
    log.row(epoch=2, loss=0.5)
    log.close(loss=0.5)
    assert (tmp_path / "new" / "log.csv").read_text().splitlines()[0] == "epoch,loss,seconds"
    assert "0.75" in capsys.readouterr().out


def test_classify_weighs_every_sample_once(app):
    training = app("training")
    images = np.random.RandomState(0).randn(7, 4).astype(np.float32)
    labels = np.array([0, 1, 2, 0, 1, 2, 0])
    model = ndl.nn.Linear(4, 3)
    loader = ndl.data.DataLoader(ndl.data.NDArrayDataset(images, labels), 3)  # the last batch has one sample
    accuracy, loss = training.classify(model, loader, lambda x: x)
    logits = model(ndl.Tensor(images)).numpy().astype(float)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(7), labels]
    np.testing.assert_allclose(loss, losses.mean(), rtol=1e-5)
    np.testing.assert_allclose(accuracy, np.mean(logits.argmax(axis=1) == labels))


# ---- the cart and its pole ------------------------------------------------------------------------------------------


def test_cart_poles_mirror(app):
    carts, mirrored = app("train_rl").CartPoles(6), app("train_rl").CartPoles(6)
    mirrored.state = -carts.state
    for actions in np.random.RandomState(0).randint(0, 2, (12, 6)):
        carts.step(actions)
        mirrored.step(1 - actions)
    np.testing.assert_allclose(mirrored.state, -carts.state)


def test_a_pole_at_rest_that_leans_falls_as_gravity_says(app):
    carts = app("train_rl").CartPoles(1)
    carts.FORCE, carts.CART = 0.0, 1e9  # a cart that cannot be moved
    carts.state[:] = 0, 0, 0.1, 0
    carts.step(np.array([0]))
    # a rod of half length l that turns about its end: angular acceleration g sin a / (4 l / 3)
    np.testing.assert_allclose(carts.state[0, 3] / carts.SECONDS, 9.8 * np.sin(0.1) / (0.5 * 4 / 3), rtol=1e-6)


def test_cart_poles_that_fell_stay_and_the_limit_ends_all(app):
    carts = app("train_rl").CartPoles(3, limit=20)
    carts.state[:] = 0
    carts.state[0, 2] = 0.3  # over 12°
    while carts.up.any():
        carts.step(np.full(3, carts.steps % 2))
        if carts.steps == 1:
            assert carts.up.tolist() == [False, True, True]
            fallen = carts.state[0].copy()
    np.testing.assert_array_equal(carts.state[0], fallen)
    assert carts.steps == 20


def test_play_counts_a_step_for_every_pole_that_was_up(app):
    train_rl = app("train_rl")
    policy = ndl.nn.Linear(4, 2)
    states, actions, alive = train_rl.play(policy, train_rl.CartPoles(5, limit=30))
    assert states.shape == (len(alive), 5, 4) and actions.shape == alive.shape
    assert alive[0].all() and len(alive) <= 30
    assert (np.diff(alive.astype(int), axis=0) <= 0).all()  # nobody gets up again


def test_improve_makes_actions_with_more_reward_likelier(app):
    train_rl = app("train_rl")
    np.random.seed(0)
    policy = ndl.nn.Linear(4, 2)
    optimizer = ndl.optim.SGD(policy.parameters(), lr=0.1)
    states = np.ones((3, 2, 4))
    actions = np.array([[0, 1]] * 3)
    alive = np.array([[True, True], [True, False], [True, False]])  # action 0 kept its pole up, action 1 did not

    def chance_of_0():
        return ndl.nn.Softmax()(policy(ndl.Tensor(states[0]))).numpy()[0, 0]

    before = chance_of_0()
    train_rl.improve(policy, optimizer, states, actions, alive, discount=0.9)
    assert chance_of_0() > before


# ---- language models ------------------------------------------------------------------------------------------------


def test_unigram_loss_adds_one_to_every_count(app):
    corpus = argparse.Namespace(train=[0, 0, 1], test=[0, 2])
    wanted = -(np.log(3 / 6) + np.log(1 / 6)) / 2
    np.testing.assert_allclose(app("train_lm").unigram_loss(corpus, 3), wanted)


def test_unseen_words_share_what_good_and_turing_keep_for_them(app):
    unseen = app("train_lm").Unseen([0, 0, 0, 1, 2], 5)  # 3 and 4 are never used; of five words two are used once
    scores = np.array([[1.0, 2.0, 3.0, -9.0, 1000.0], [0.0, 500.0, 0.0, 0.0, 0.0]])
    chances = np.exp(unseen.allowed_for(scores))
    chances /= chances.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chances[:, 3:], 0.4 / 2)
    np.testing.assert_allclose(chances[0, :3], 0.6 * np.exp([1, 2, 3]) / np.exp([1, 2, 3]).sum())


def test_nothing_is_kept_for_unseen_words_where_there_are_none(app):
    scores = np.zeros((2, 3), np.float32)
    for train in ([0, 1, 2], [0, 0, 1, 1]):  # all are used; none is used just once
        np.testing.assert_array_equal(app("train_lm").Unseen(train, 3).allowed_for(scores), scores)


@pytest.mark.parametrize(("model", "kinds"), [("lstm", ["SGD"]), ("transformer", ["SGD", "Adam"])])
def test_every_weight_has_one_teacher(app, model, kinds):
    chosen = argparse.Namespace(model=model, optimizer="auto", lr=1.0, inner_lr=1e-3, weight_decay=0.0, clip=1.0)
    network = app("models").LanguageModel(4, 5, 6, seq_model=model, seq_len=3)
    teacher = app("train_lm").Teacher(network, chosen, steps=10)
    assert [type(optimizer).__name__ for optimizer in teacher.optimizers] == kinds
    taught = [id(p) for optimizer in teacher.optimizers for p in optimizer.params]
    assert sorted(taught) == sorted(map(id, network.parameters()))


def test_drawing_prefers_what_is_likely_and_stays_finite(app):
    np.random.seed(0)
    logits = np.array([0.0, 2.0, 1000.0], np.float32)
    assert {app("train_lm").draw(logits, 0.8) for _ in range(20)} == {2}
    assert {app("train_lm").draw(np.zeros(3, np.float32), 1.0) for _ in range(50)} == {0, 1, 2}


# ---- the course's modules -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["np", "nd"])
def test_course_apps_import_under_both_backends_and_names(backend):
    program = (
        "import sys; sys.path[:0] = ['python', 'apps', '.']\n"
        "import numpy as np, needle as ndl, needle.nn as nn\n"
        "before = np, ndl, nn\n"
        "from simple_ml import *\n"
        "from mlp_resnet import *\n"
        "assert (np, ndl, nn) == before\n"
        "import models, apps.models\n"
        "state = np.random.get_state()[1].tolist(); np.random.seed(0)\n"
        "assert state == np.random.get_state()[1].tolist()\n"  # importing the models seeds the generator
        "train_ptb, evaluate_ptb, epoch_general_ptb, train_cifar10, evaluate_cifar10, epoch_general_cifar10\n"
        "parse_mnist, softmax_loss, nn_epoch, loss_err, ResidualBlock, MLPResNet, epoch, train_mnist\n"
        "models.ResNet9, apps.models.LanguageModel\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        env={**os.environ, "NEEDLE_BACKEND": backend},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""


def test_language_model_names_the_sequence_models_it_knows(app):
    with pytest.raises(ValueError, match=r"'gru'.*'rnn', 'lstm', 'transformer'"):
        app("models").LanguageModel(2, 3, 4, seq_model="gru")


def test_softmax_loss_of_huge_logits_is_finite_U070(app):
    Z = ndl.Tensor(np.array([[0.0, 1e8]]), dtype="float64")
    loss = app("simple_ml").softmax_loss(Z, ndl.Tensor(np.array([[1.0, 0.0]]), dtype="float64"))
    loss.backward()
    assert loss.item() == 1e8
    np.testing.assert_allclose(Z.grad.numpy(), [[-1, 1]])


def test_evaluation_leaves_no_graph_and_no_gradient(app):
    simple_ml, models = app("simple_ml"), app("models")
    model = models.LanguageModel(3, 5, 4, 1, "lstm")
    simple_ml.evaluate_ptb(model, ndl.data.batchify(list(range(5)) * 8, 4), seq_len=3)
    assert all(p.grad is None for p in model.parameters())
