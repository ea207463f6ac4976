#!/usr/bin/env python3
"""A small neural network from scratch: two spirals told apart, every product by sycl_mat.

    python examples/python/network.py [steps]

Forward, a layer is one call: the bias and the activation are fused into the product. Backward, the transposes cost no copy.
"""

from __future__ import annotations

import itertools
import sys

import numpy as np
from numpy.typing import NDArray

import sycl_mat

Matrix = NDArray[np.float32]


def spirals(points: int, random: np.random.Generator) -> tuple[Matrix, Matrix]:
    """`points` places in the plane on two arms, and which arm (0 or 1) each is on."""
    arm = random.integers(0, 2, points)
    angle = np.sqrt(random.random(points)) * 3 * np.pi
    radius = angle / (3 * np.pi)
    turned = angle + np.pi * arm
    places = np.stack([radius * np.cos(turned), radius * np.sin(turned)], axis=1) + random.normal(0, 0.01, (points, 2))
    return places.astype(np.float32), arm.astype(np.float32)[:, np.newaxis]


class Network:
    """Layers of tanh, a sigmoid at the end; trained by Adam."""

    def __init__(self, sizes: list[int], random: np.random.Generator) -> None:
        pairs = list(itertools.pairwise(sizes))
        self.weights = [(random.normal(0, 1, pair) * np.sqrt(2 / pair[0])).astype(np.float32) for pair in pairs]
        self.biases = [np.zeros(size, np.float32) for size in sizes[1:]]
        self.moments = [[np.zeros_like(p), np.zeros_like(p)] for p in (*self.weights, *self.biases)]
        self.steps = 0

    def forward(self, x: Matrix) -> list[Matrix]:
        values = [x]
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            last = i == len(self.weights) - 1
            values.append(sycl_mat.gemm(values[-1], weight, bias=bias, activation="sigmoid" if last else "tanh"))
        return values

    def train(self, x: Matrix, target: Matrix, rate: float) -> float:
        values = self.forward(x)
        output = np.clip(values[-1], 1e-6, 1 - 1e-6)
        slope = (values[-1] - target) / np.float32(len(x))  # of the cross entropy, behind the sigmoid
        slopes: list[Matrix] = []
        for i in reversed(range(len(self.weights))):
            slopes[:0] = [sycl_mat.matmul(values[i], slope, transpose_a=True)]
            slopes.append(slope.sum(axis=0))
            if i > 0:
                slope = sycl_mat.matmul(slope, self.weights[i], transpose_b=True) * (1 - values[i] ** 2)
        layers = len(self.weights)
        self.adam([*slopes[:layers], *reversed(slopes[layers:])], rate)
        return float(-np.mean(target * np.log(output) + (1 - target) * np.log(1 - output)))

    def adam(self, slopes: list[Matrix], rate: float) -> None:
        self.steps += 1
        for parameter, slope, (first, second) in zip((*self.weights, *self.biases), slopes, self.moments, strict=True):
            first += np.float32(0.1) * (slope - first)
            second += np.float32(0.001) * (slope * slope - second)
            mean = first / (1 - 0.9**self.steps)
            parameter -= (rate * mean / (np.sqrt(second / (1 - 0.999**self.steps)) + 1e-8)).astype(np.float32)


def main(steps: int = 1500) -> float:
    """Trains and returns the share of new points that are told right."""
    random = np.random.default_rng(3)
    network = Network([2, 64, 64, 1], random)
    for step in range(steps):
        loss = network.train(*spirals(512, random), rate=0.005)
        if step % 250 == 0 or step == steps - 1:
            print(f"step {step:5d}  cross entropy {loss:.3f}")
    x, arm = spirals(2000, random)
    right = float(np.mean((network.forward(x)[-1] > 0.5) == (arm > 0.5)))
    print(f"{right:.1%} of 2000 new points are right; the last product ran on the kernel '{sycl_mat.last_kernel()}'")
    return right


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
