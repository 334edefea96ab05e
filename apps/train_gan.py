"""Teach a network to draw digits: a generator that tries to fool a discriminator (Goodfellow et al. 2014).

python apps/train_gan.py                        and look at samples.png
python apps/train_gan.py --data digits          without any download
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # this tree's needle

import needle as ndl
import numpy as np
from needle import nn, visualize
from training import Log, grey_images, progress, script

CODE = 64  # numbers that a picture is made from


def Generator(pixels: int, hidden_dim: int) -> nn.Module:
    """A picture from random numbers.  (B, CODE) → (B, pixels), in [-1, 1]"""
    return nn.Sequential(
        nn.Linear(CODE, hidden_dim),
        nn.BatchNorm1d(hidden_dim),
        nn.ReLU(),
        nn.Linear(hidden_dim, hidden_dim),
        nn.BatchNorm1d(hidden_dim),
        nn.ReLU(),
        nn.Linear(hidden_dim, pixels),
        nn.Tanh(),
    )


def Discriminator(pixels: int, hidden_dim: int) -> nn.Module:
    """How real a picture looks.  (B, pixels) → logits (B, 1): above 0 is real"""
    return nn.Sequential(
        nn.Linear(pixels, hidden_dim),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Linear(hidden_dim, hidden_dim),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Linear(hidden_dim, 1),
    )


@script(
    __doc__,
    epochs=30,
    batch_size=100,
    lr=2e-4,
    hidden_dim=256,
    data=("mnist", "fashion_mnist", "digits"),
    helps={"hidden_dim": "width of both networks"},
    smoke={"data": "digits", "epochs": 2, "hidden_dim": 32},
)
def main(chosen: argparse.Namespace) -> None:
    images, _ = grey_images(chosen)
    height, width, _ = images[0][0].shape
    generator, discriminator = (net(height * width, chosen.hidden_dim) for net in (Generator, Discriminator))
    draw = ndl.optim.Adam(generator.parameters(), lr=chosen.lr, beta1=0.5)
    judge = ndl.optim.Adam(discriminator.parameters(), lr=chosen.lr, beta1=0.5)
    batches = ndl.data.DataLoader(images, chosen.batch_size, shuffle=True, drop_last=True)
    codes = ndl.init.randn(64, CODE)  # the same in every picture, so that one can see them change

    log = Log(chosen)
    for epoch in range(1, chosen.epochs + 1):
        losses = []
        for real, _ in progress(batches, f"epoch {epoch} of {chosen.epochs}"):
            real = real.reshape((len(real), height * width)) * 2 - 1
            fake = generator(ndl.init.randn(len(real), CODE))
            losses.append((teach_judge(discriminator, judge, real, fake.detach()), fool(discriminator, draw, fake)))
        judge_loss, draw_loss = np.mean(losses, axis=0)
        log.row(epoch=epoch, discriminator_loss=float(judge_loss), generator_loss=float(draw_loss))
        log.picture("samples.png", samples(generator, codes, height, width, f"after epoch {epoch}"))
    log.close(discriminator_loss=float(judge_loss), generator_loss=float(draw_loss))


def teach_judge(discriminator: nn.Module, judge: ndl.optim.Optimizer, real: ndl.Tensor, fake: ndl.Tensor) -> float:
    """One step towards telling real pictures from fakes.  Real ones count 0.9: being too sure teaches nothing."""
    loss_fn = nn.BCEWithLogitsLoss()
    judge.reset_grad()
    on_real, on_fake = discriminator(real), discriminator(fake)
    loss = loss_fn(on_real, ndl.ones_like(on_real) * 0.9) + loss_fn(on_fake, ndl.zeros_like(on_fake))
    loss.backward()
    judge.step()
    return loss.item()


def fool(discriminator: nn.Module, draw: ndl.optim.Optimizer, fake: ndl.Tensor) -> float:
    """One step of the generator towards fakes that are taken for real."""
    draw.reset_grad()
    opinion = discriminator(fake)
    loss = nn.BCEWithLogitsLoss()(opinion, ndl.ones_like(opinion))
    loss.backward()
    draw.step()
    return loss.item()


def samples(generator: nn.Module, codes: ndl.Tensor, height: int, width: int, title: str) -> visualize.Picture:
    """What the generator draws from codes, in a grid."""
    generator.eval()
    with ndl.no_grad():
        pictures = generator(codes).numpy().reshape(len(codes), height, width)
    generator.train()
    return visualize.image_grid(pictures, columns=8, title=title)


if __name__ == "__main__":
    main()
