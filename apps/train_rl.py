"""Learn to balance a pole on a cart by trial and error: REINFORCE (Williams 1992).

python apps/train_rl.py
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))  # this tree's needle

import needle as ndl
import numpy as np
from needle import nn
from training import Log, script


class CartPoles:
    """Many carts at once, each with a pole that falls (Barto, Sutton, Anderson 1983), in plain NumPy.

    State (n, 4): position m, speed m/s, angle rad, its speed rad/s.  Action 0 pushes left, 1 right.  Every step on
    which the pole is within 12° and the cart within 2.4 m of the middle earns 1; an episode ends after `limit` steps.
    """

    GRAVITY, CART, POLE, HALF_LENGTH, FORCE, SECONDS = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self, count: int, limit: int = 500) -> None:
        self.limit = limit
        self.steps = 0
        self.state = np.random.uniform(-0.05, 0.05, (count, 4))
        self.up = np.ones(count, bool)

    def step(self, actions: np.ndarray) -> None:
        """Push each cart for SECONDS; those whose pole has fallen stay as they are."""
        _, speed, angle, turn = self.state.T
        force = np.where(actions == 1, self.FORCE, -self.FORCE)
        mass, sine, cosine = self.CART + self.POLE, np.sin(angle), np.cos(angle)
        push = (force + self.POLE * self.HALF_LENGTH * turn**2 * sine) / mass
        spin = (self.GRAVITY * sine - cosine * push) / (self.HALF_LENGTH * (4 / 3 - self.POLE * cosine**2 / mass))
        acceleration = push - self.POLE * self.HALF_LENGTH * spin * cosine / mass
        change = np.stack([speed, acceleration, turn, spin], axis=1)
        self.state = np.where(self.up[:, None], self.state + self.SECONDS * change, self.state)
        self.steps += 1
        inside = (np.abs(self.state[:, 0]) < 2.4) & (np.abs(self.state[:, 2]) < np.radians(12))
        self.up &= inside & (self.steps < self.limit)


@script(
    __doc__,
    epochs=80,
    episodes=16,
    lr=0.01,
    hidden_dim=32,
    discount=0.99,
    limit=500,
    helps={
        "epochs": "updates of the policy",
        "episodes": "carts that run side by side for one update",
        "hidden_dim": "units of the policy",
        "discount": "what a reward of the next step is worth now",
        "limit": "steps after which an episode ends",
    },
    smoke={"epochs": 5, "episodes": 4, "limit": 100},
)
def main(chosen: argparse.Namespace) -> None:
    policy = nn.Sequential(nn.Linear(4, chosen.hidden_dim), nn.Tanh(), nn.Linear(chosen.hidden_dim, 2))
    optimizer = ndl.optim.Adam(policy.parameters(), lr=chosen.lr)
    log = Log(chosen)
    for update in range(1, chosen.epochs + 1):
        states, actions, alive = play(policy, CartPoles(chosen.episodes, chosen.limit))
        loss = improve(policy, optimizer, states, actions, alive, chosen.discount)
        log.row(update=update, mean_return=float(alive.sum(axis=0).mean()), loss=loss)
    returns = play(policy, CartPoles(100, chosen.limit))[2].sum(axis=0)
    log.close(mean_return_of_100_new_episodes=float(returns.mean()), shortest=int(returns.min()))


def play(policy: nn.Module, carts: CartPoles) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run all carts until they are down: states (T, n, 4), actions (T, n), and who was still up (T, n)."""
    states, actions, alive = [], [], []
    with ndl.no_grad():
        while carts.up.any():
            right = nn.Softmax()(policy(ndl.Tensor(carts.state))).numpy()[:, 1]
            states.append(carts.state)
            alive.append(carts.up.copy())
            actions.append((np.random.rand(len(right)) < right).astype(int))
            carts.step(actions[-1])
    return np.stack(states), np.stack(actions), np.stack(alive)


def improve(
    policy: nn.Module,
    optimizer: ndl.optim.Optimizer,
    states: np.ndarray,
    actions: np.ndarray,
    alive: np.ndarray,
    discount: float,
) -> float:
    """Make actions likelier that were followed by more reward than usual at that point of time; returns the loss."""
    gains = np.zeros(alive.shape)  # discounted rewards from each step on
    for t in reversed(range(len(alive))):
        gains[t] = alive[t] + (discount * gains[t + 1] if t + 1 < len(alive) else 0)
    advantage = gains - gains.mean(axis=1, keepdims=True)
    advantage = advantage[alive] / (advantage[alive].std() + 1e-8)

    optimizer.reset_grad()
    chances = ndl.logsoftmax(policy(ndl.Tensor(states[alive])))
    weights = np.eye(2)[actions[alive]] * advantage[:, None] / len(advantage)
    loss = -(chances * ndl.Tensor(weights, requires_grad=False)).sum()
    loss.backward()
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    main()
