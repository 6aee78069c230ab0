"""A small stand-in for a game, a linear part plus ratios of sums: the way attention itself depends on which units are kept (first version)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class Surrogate:
    """h(z) = constant + linear.z + sum_t N_t(z) / D_t(z), N_t = n0_t + z.n_t + (1-z).nh_t, D_t = d0_t + z.g_t + (1-z).gh_t."""

    constant: float
    linear: Float[np.ndarray, " unit"]
    n: Float[np.ndarray, "term unit"]
    nh: Float[np.ndarray, "term unit"]
    g: Float[np.ndarray, "term unit"]
    gh: Float[np.ndarray, "term unit"]
    n0: Float[np.ndarray, " term"]
    d0: Float[np.ndarray, " term"]

    def __call__(self, masks: Bool[np.ndarray, "mask unit"]) -> Float[np.ndarray, " mask"]:
        """The surrogate's value for each mask (True = kept)."""
        z = masks.astype(np.float64)
        top = self.n0 + self.nh.sum(1) + z @ (self.n - self.nh).T
        bottom = self.d0 + self.gh.sum(1) + z @ (self.g - self.gh).T
        return self.constant + z @ self.linear + (top / bottom).sum(1)


def fit(
    masks: Bool[np.ndarray, "mask unit"], values: Float[np.ndarray, " mask"], folds: Int[np.ndarray, " mask"], terms: int = 8
) -> list[Surrogate]:
    """For each fold the surrogate fitted to the rows of the others."""
    f_count, (n, d), k = int(folds.max()) + 1, masks.shape, terms
    z = masks.astype(np.float32)
    weight = (folds[None] != np.arange(f_count)[:, None]).astype(np.float64)
    weight /= np.maximum(weight.sum(1, keepdims=True), 1)
    mean = (weight @ values)[:, None]
    spread = np.sqrt((weight * (values - mean) ** 2).sum(1, keepdims=True))
    spread[spread <= 1e-12 * np.abs(values).max(initial=0.0)] = 1.0
    y, w = ((values - mean) / spread).astype(np.float32), weight.astype(np.float32)
    start = 0.3 * np.random.default_rng(0).standard_normal((3 * k * d))
    theta = np.tile(np.concatenate([start, np.zeros(d + 1)]), (f_count, 1)).astype(np.float32)
    first, second, grad = np.zeros_like(theta), np.zeros_like(theta), np.empty_like(theta)

    def parts(x: np.ndarray) -> tuple[np.ndarray, ...]:
        block = x[:, : 3 * k * d].reshape(f_count, 3, k, d)
        return block[:, 0], block[:, 1], block[:, 2], x[:, 3 * k * d : -1], x[:, -1:]

    for step in range(1, 401):
        a, u, uh, linear, constant = parts(theta)
        g = np.exp(a)
        bottom = (g - 1) @ z.T + (d + 1)
        ratio = ((g * u - uh) @ z.T + uh.sum(2, keepdims=True)) / bottom
        residual = (linear @ z.T + constant + ratio.sum(1) - y) * w
        by_top = residual[:, None] / bottom
        top_z, bottom_z = by_top @ z, -(by_top * ratio) @ z
        for part, value in zip(
            parts(grad),
            ((bottom_z + top_z * u) * g, top_z * g, by_top.sum(2, keepdims=True) - top_z, residual @ z, residual.sum(1, keepdims=True)),
            strict=True,
        ):
            part[...] = value
        first += 0.1 * (grad - first)
        second += 0.001 * (grad**2 - second)
        theta *= 1 - 0.03 * 0.03
        theta -= 0.03 / (1 - 0.9**step) * first / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    a, u, uh, linear, constant = parts(theta.astype(np.float64))
    return [
        Surrogate(
            float(mean[f, 0] + spread[f, 0] * constant[f, 0]), spread[f, 0] * linear[f], spread[f, 0] * np.exp(a[f]) * u[f],
            spread[f, 0] * uh[f], np.exp(a[f]), np.ones((k, d)), np.zeros(k), np.ones(k),
        )
        for f in range(f_count)
    ]  # fmt: skip
