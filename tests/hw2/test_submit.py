"""What is handed in for homework 2: `python3 -m mugrade submit KEY hw2 -k nn_linear`, and likewise for the others."""

from __future__ import annotations

import mlp_resnet
import mugrade
import needle as ndl
import numpy as np
from needle import nn
from stages import write_mnist


def numbers(*shape, seed=0):
    return np.asarray(np.random.RandomState(seed).randn(*shape), np.float32)


def tensor(*shape, seed=0):
    return ndl.Tensor(numbers(*shape, seed=seed))


def forward_and_back(f, *shape, seed=0):
    """The output of f, and the gradients of its input and, if it is a module, of its parameters."""
    x = tensor(*shape, seed=seed)
    out = f(x)
    out.backward(tensor(*out.shape, seed=seed + 1))
    parameters = f.parameters() if isinstance(f, nn.Module) else []
    mugrade.submit([out.numpy(), x.grad.numpy(), *(p.grad.numpy() for p in parameters)])


def seeded(make):
    np.random.seed(0)
    return make()


# ---- first values, modules and operators ----------------------------------------------------------------------------


def submit_init():
    for initialise in (ndl.init.kaiming_uniform, ndl.init.kaiming_normal, ndl.init.xavier_uniform,
                       ndl.init.xavier_normal):  # fmt: skip
        np.random.seed(0)
        mugrade.submit(initialise(5, 7).numpy())
    np.random.seed(0)
    mugrade.submit(ndl.init.xavier_uniform(5, 7, gain=1.7).numpy())


def submit_nn_linear():
    layer = seeded(lambda: nn.Linear(6, 4))
    mugrade.submit((layer.weight.numpy(), layer.bias.numpy()))
    forward_and_back(layer, 5, 6)
    forward_and_back(seeded(lambda: nn.Linear(6, 4, bias=False)), 2, 5, 6)


def submit_nn_relu():
    forward_and_back(nn.ReLU(), 4, 5)


def submit_nn_sequential():
    forward_and_back(seeded(lambda: nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))), 4, 5)


def submit_op_logsumexp():
    for axes in (None, (0,), (1, 2)):
        forward_and_back(lambda z: ndl.logsumexp(z, axes=axes), 2, 3, 4)  # noqa: B023
    mugrade.submit(ndl.logsumexp(ndl.Tensor([[1e3, 1e3 + 1.0]]), axes=(1,)).numpy())


def submit_op_logsoftmax():
    forward_and_back(ndl.logsoftmax, 4, 6)
    mugrade.submit(ndl.logsoftmax(ndl.Tensor([[1e3, 1e3 + 1.0]])).numpy())


def submit_nn_softmax_loss():
    y = np.arange(8) % 5
    Z = tensor(8, 5)
    loss = nn.SoftmaxLoss()(Z, ndl.Tensor(y))
    loss.backward()
    mugrade.submit((loss.numpy(), Z.grad.numpy()))


def submit_nn_layernorm():
    layer = nn.LayerNorm1d(6)
    layer.weight.data, layer.bias.data = tensor(*layer.weight.shape, seed=3), tensor(*layer.bias.shape, seed=4)
    forward_and_back(layer, 4, 6)


def submit_nn_flatten():
    forward_and_back(nn.Flatten(), 3, 2, 2, 3)


def submit_nn_batchnorm():
    layer = nn.BatchNorm1d(5, momentum=0.3)
    for seed in (0, 2):
        forward_and_back(layer, 8, 5, seed=seed)
        mugrade.submit((layer.running_mean.numpy(), layer.running_var.numpy()))
    layer.eval()
    forward_and_back(layer, 8, 5, seed=4)


def submit_nn_dropout():
    np.random.seed(0)
    forward_and_back(nn.Dropout(0.3), 6, 7)
    still = nn.Dropout(0.3)
    still.eval()
    forward_and_back(still, 6, 7)


def submit_nn_residual():
    forward_and_back(seeded(lambda: nn.Residual(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))), 3, 4)


# ---- optimizers -----------------------------------------------------------------------------------------------------


def trained(make, **settings):
    """The parameters of a small model after some steps."""
    model = seeded(lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)))
    opt, loss_fn = make(model.parameters(), **settings), nn.SoftmaxLoss()
    for step in range(5):
        opt.reset_grad()
        loss_fn(model(tensor(16, 6, seed=step)), ndl.Tensor((np.arange(16) + step) % 3)).backward()
        opt.step()
    mugrade.submit([p.numpy() for p in model.parameters()])


def submit_optim_sgd():
    trained(ndl.optim.SGD, lr=0.1)
    trained(ndl.optim.SGD, lr=0.1, momentum=0.8, weight_decay=0.05)


def submit_optim_adam():
    trained(ndl.optim.Adam, lr=0.01)
    trained(ndl.optim.Adam, lr=0.01, beta1=0.7, beta2=0.95, weight_decay=0.05)


# ---- data -----------------------------------------------------------------------------------------------------------


def submit_flip_horizontal():
    image = numbers(5, 4, 3)
    for p in (0.0, 1.0, 0.5, 0.5, 0.5):
        np.random.seed(int(10 * p))
        mugrade.submit(ndl.data.RandomFlipHorizontal(p)(image))


def submit_random_crop():
    for seed, padding in enumerate((0, 1, 3)):
        np.random.seed(seed)
        mugrade.submit(ndl.data.RandomCrop(padding)(numbers(6, 5, 1)))


def written_mnist(folder, count=30):
    write_mnist(folder, "train", count, seed=5)
    return ndl.data.MNISTDataset(str(folder / "train-images-idx3-ubyte.gz"), str(folder / "train-labels-idx1-ubyte.gz"))


def submit_mnist_dataset(tmp_path):
    dataset = written_mnist(tmp_path)
    mugrade.submit(len(dataset))
    for i in (0, 17, 29):
        image, label = dataset[i]
        mugrade.submit((np.reshape(image, -1), int(label)))


def submit_dataloader(tmp_path):
    for shuffle in (False, True):
        np.random.seed(0)
        for images, labels in ndl.data.DataLoader(written_mnist(tmp_path), 13, shuffle=shuffle):
            mugrade.submit((images.numpy().reshape(len(labels.numpy()), -1), labels.numpy()))


# ---- a network ------------------------------------------------------------------------------------------------------


def submit_mlp_resnet(tmp_path):
    model = seeded(lambda: mlp_resnet.MLPResNet(10, 8, num_blocks=2, num_classes=4, norm=nn.LayerNorm1d, drop_prob=0.0))
    forward_and_back(model, 6, 10)
    loader = ndl.data.DataLoader(written_mnist(tmp_path), 10)
    model = seeded(lambda: mlp_resnet.MLPResNet(784, 16))
    mugrade.submit(mlp_resnet.epoch(loader, model))
    opt = ndl.optim.SGD(model.parameters(), lr=0.01)
    mugrade.submit(mlp_resnet.epoch(loader, model, opt))
