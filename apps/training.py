"""What the training scripts share: their options, where data lies, progress, logs and pictures."""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))  # this tree's needle, whatever else is installed

import needle as ndl
import numpy as np
from needle import nn, visualize
from needle.data.download import SOURCES
from needle.errors import ArgumentError, DeviceError

SCRIPT = Path(sys.argv[0]).stem

# ---- options --------------------------------------------------------------------------------------------------------

HELP = {
    "epochs": "passes over the training data",
    "batch_size": "samples in one step",
    "lr": "learning rate",
    "weight_decay": "pull of the weights towards zero",
    "data": "which images to learn from; the digits come with needle",
    "device": "where to compute: cpu, cpu_numpy, cuda",
    "seed": "of weights, order and all that is random",
}


def script(doc: str | None, *, smoke: dict[str, Any], helps: dict[str, str] | None = None, **defaults: Any) -> Callable:
    """Make main(chosen) a script: read the command line, seed, compute on --device, keep errors to one line.

    defaults  an option each, whose type it has; of a tuple one is chosen, the first unless said otherwise
    smoke     what `--smoke` changes: a run of seconds that needs no data
    helps     what is said of options that HELP does not know
    """

    def decorate(main: Callable[[argparse.Namespace], None]) -> Callable[[], None]:
        def run() -> None:
            chosen = parse(doc or "", {**defaults, "seed": 0, "device": "cpu"}, {**HELP, **(helps or {})}, smoke)
            ndl.seed(chosen.seed)
            with ndl.device(chosen.device):
                main(chosen)

        return lambda: one_line_for_errors(run)

    return decorate


def parse(doc: str, defaults: dict[str, Any], helps: dict[str, str], smoke: dict[str, Any]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    for key, default in defaults.items():
        flag, text = "--" + key.replace("_", "-"), helps[key]
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true", help=text)
        elif isinstance(default, tuple):
            parser.add_argument(flag, choices=default, default=default[0], help=f"{text} (default: {default[0]})")
        else:
            parser.add_argument(flag, type=type(default), default=default, help=f"{text} (default: {default})")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / SCRIPT, help="folder of logs and pictures")
    parser.add_argument("--download", action="store_true", help="fetch the data if they are not there")
    parser.add_argument("--smoke", action="store_true", help="a run of seconds that only shows that everything works")
    if parser.parse_known_args()[0].smoke:
        parser.set_defaults(**smoke)
    chosen = parser.parse_args()
    for key, default in defaults.items():
        if type(default) is int and key != "seed" and getattr(chosen, key) < 1:
            parser.error(f"argument --{key.replace('_', '-')}: {getattr(chosen, key)}, wanted at least 1")
    return chosen


def one_line_for_errors(run: Callable[[], None]) -> None:
    """What the user can mend becomes one line on standard error and status 2; a fault of the code stays loud."""
    try:
        run()
    except (ArgumentError, DeviceError, ndl.data.DataFileError, ImportError, OSError) as error:
        print(f"{SCRIPT}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(f"{SCRIPT}: stopped", file=sys.stderr)
        sys.exit(130)


# ---- data -----------------------------------------------------------------------------------------------------------


def folder_of(name: str, folder: str, probe: str, download: bool, instead: str = "--smoke") -> Path:
    """The folder of a data set; where it is missing, it is fetched or a DataMissingError says what to do.

    instead: the option that needs no data.
    """
    path = ndl.data.data_dir() / folder
    if (path / probe).is_file():
        return path
    if download and name in SOURCES:
        return ndl.data.fetch(name)
    step = "add --download" if name in SOURCES else "put its files there"
    raise ndl.data.DataMissingError(
        f"no {probe} in {path}; {step}, set NEEDLE_DATA_DIR to the folder that holds {folder}, or try {instead}"
    )


def grey_images(chosen: argparse.Namespace) -> tuple[ndl.data.Dataset, ndl.data.Dataset]:
    """The training and test images (H, W, 1) that --data names: digits, mnist or fashion_mnist."""
    if chosen.data == "digits":
        return ndl.data.DigitsDataset(train=True), ndl.data.DigitsDataset(train=False)
    folder = folder_of(chosen.data, chosen.data, "train-images-idx3-ubyte.gz", chosen.download, "--data digits")
    train, test = (
        ndl.data.MNISTDataset(folder / f"{part}-images-idx3-ubyte.gz", folder / f"{part}-labels-idx1-ubyte.gz")
        for part in ("train", "t10k")
    )
    return train, test


# ---- progress -------------------------------------------------------------------------------------------------------

SILENCE = 20.0  # seconds between two lines where there is no terminal to draw a bar on


def progress(items: Iterable, text: str) -> Iterator:
    """Give the items, and show how far it is: a bar on a terminal, else a line now and then."""
    total = len(items)  # type: ignore[arg-type]
    if sys.stdout.isatty():
        try:
            from rich.progress import track

            yield from track(items, text, total, transient=True)
            return
        except ImportError:
            pass  # lines will do
    last = time.monotonic()
    for number, item in enumerate(items):
        if time.monotonic() - last > SILENCE:
            print(f"  {text}: {number} of {total}", flush=True)
            last = time.monotonic()
        yield item


# ---- logs -----------------------------------------------------------------------------------------------------------


class Log:
    """The table of a run: printed row by row, and kept in log.csv, log.json and curves.png of the folder --out."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.options = {key: str(value) if isinstance(value, Path) else value for key, value in vars(chosen).items()}
        self.folder = Path(chosen.out)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.rows: list[dict[str, float]] = []
        self.start = time.perf_counter()

    def row(self, **numbers: float) -> None:
        """Add a row: integers and floats by name, the same names each time."""
        if not self.rows:
            print("".join(f"{name.replace('_', ' '):>{width(name)}}" for name in [*numbers, "seconds"]))
        numbers["seconds"] = round(time.perf_counter() - self.start, 1)
        self.rows.append(numbers)
        print("".join(f"{shown(value):>{width(name)}}" for name, value in numbers.items()), flush=True)
        write_atomically(self.folder / "log.csv", self.write_csv)

    def close(self, **results: float) -> None:
        """Write log.json, which holds options, rows and results, draw the curves, and print the results."""
        record = {"options": self.options, "rows": self.rows, "results": results}
        write_atomically(self.folder / "log.json", lambda path: path.write_text(json.dumps(record, indent=1) + "\n"))
        x = next(iter(self.rows[0]))
        curves = [{name: value for name, value in row.items() if name != "seconds"} for row in self.rows]
        self.picture("curves.png", visualize.learning_curves(curves, x=x))
        for name, value in results.items():
            print(f"{name.replace('_', ' ')} {shown(value)}")
        print(f"log and pictures: {self.folder}")

    def picture(self, name: str, picture: visualize.Picture) -> None:
        """Save a picture in the folder."""
        write_atomically(self.folder / name, picture.save)

    def write_csv(self, path: Path) -> None:
        with path.open("w", newline="") as file:
            table = csv.DictWriter(file, self.rows[0])
            table.writeheader()
            table.writerows(self.rows)


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Let write(another name) make the file, then give it its name: nobody ever sees half of it."""
    part = path.with_name(f".part-{os.getpid()}-{path.name}")
    try:
        write(part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def width(name: str) -> int:
    return max(9, len(name) + 3)


def shown(value: float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# ---- classifiers ----------------------------------------------------------------------------------------------------


def train_classifier(
    model: nn.Module,
    train: ndl.data.Dataset,
    test: ndl.data.Dataset,
    optimizer: ndl.optim.Optimizer,
    chosen: argparse.Namespace,
    prepare: Callable[[ndl.Tensor], ndl.Tensor] = lambda images: images,
    schedule: Any = None,
) -> None:
    """Train for --epochs passes, test after each, and log both.

    prepare   makes of a batch of images what the model takes
    schedule  a learning-rate schedule; it moves on after each step
    """
    log = Log(chosen)
    train_batches = ndl.data.DataLoader(train, chosen.batch_size, shuffle=True)
    test_batches = ndl.data.DataLoader(test, 500)
    for epoch in range(1, chosen.epochs + 1):
        batches = progress(train_batches, f"epoch {epoch} of {chosen.epochs}")
        train_accuracy, train_loss = classify(model, batches, prepare, optimizer, schedule)
        with ndl.no_grad():
            test_accuracy, test_loss = classify(model, test_batches, prepare)
        log.row(
            epoch=epoch,
            train_loss=train_loss,
            test_loss=test_loss,
            train_accuracy=train_accuracy,
            test_accuracy=test_accuracy,
        )
    log.close(test_accuracy=test_accuracy)


def classify(
    model: nn.Module,
    batches: Iterable[Sequence[ndl.Tensor]],
    prepare: Callable[[ndl.Tensor], ndl.Tensor],
    optimizer: ndl.optim.Optimizer | None = None,
    schedule: Any = None,
) -> tuple[float, float]:
    """One pass over the batches, training if an optimizer is given.  Returns accuracy and mean loss."""
    model.train() if optimizer else model.eval()
    loss_fn = nn.SoftmaxLoss()
    right, total_loss, count = 0, 0.0, 0
    for images, labels in batches:
        logits = model(prepare(images))
        loss = loss_fn(logits, labels)
        if optimizer:
            optimizer.reset_grad()
            loss.backward()
            optimizer.step()
            if schedule:
                schedule.step()
        right += int(np.sum(logits.numpy().argmax(axis=1) == labels.numpy()))
        total_loss += loss.item() * len(labels)
        count += len(labels)
    return right / count, total_loss / count
