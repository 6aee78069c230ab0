"""The rules by which relevance goes through layers, against numbers by hand and against loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from whence.trace.relevance import (
    CrossLayer,
    encoder_decoder,
    normalised,
    positive_mean,
    self_matrix,
    self_row,
    two_modalities,
)

A1 = torch.tensor([[0.8, 0.2], [0.3, 0.7]], dtype=torch.float64)
A2 = torch.tensor([[0.6, 0.4], [0.1, 0.9]], dtype=torch.float64)


def some(seed: int, *shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def same(result: Tensor, expected: Tensor | np.ndarray) -> None:
    np.testing.assert_allclose(result.numpy(), np.asarray(expected), atol=1e-12)


def test_two_layers_by_hand() -> None:
    # would catch: the layers in the other order ([[2.96, 1.04], …]), rows normalised, no identity
    # ([[.6, .4], …])
    same(self_matrix([A1, A2]), np.array([[3, 1], [0.75, 3.25]]))
    same(self_row(torch.eye(2, dtype=torch.float64)[0], [A1, A2]), np.array([2, 1]))
    same(self_row(torch.eye(2, dtype=torch.float64)[1], [A1, A2]), np.array([0.75, 2.25]))
    other = self_matrix([A2, A1])
    assert not torch.allclose(other, self_matrix([A1, A2]))


def test_one_layer_and_no_gradient() -> None:
    same(self_matrix([A1]), torch.eye(2, dtype=torch.float64) + A1)
    nothing = positive_mean(torch.zeros(4, 2, 2, dtype=torch.float64), some(0, 4, 2, 2))
    same(self_matrix([nothing, nothing]), np.eye(2))
    # the authors' code divides nought by nought here
    same(normalised(torch.eye(2, dtype=torch.float64)), np.eye(2))


def test_heads_are_cut_at_zero_before_they_are_averaged() -> None:
    gradient = torch.tensor([[[1.0]], [[-1.0]]])
    weights = torch.tensor([[[0.5]], [[0.5]]])
    assert positive_mean(gradient, weights).item() == 0.25  # after the mean it would be 0
    rng = torch.Generator().manual_seed(1)
    gradient, weights = torch.randn(3, 5, 5, generator=rng, dtype=torch.float64), some(2, 3, 5, 5)
    kept, flipped = (
        positive_mean(gradient[:1], weights[:1]) > 0,
        positive_mean(-gradient[:1], weights[:1]) > 0,
    )
    assert torch.equal(kept, ~flipped)  # the other target keeps what this one drops
    assert positive_mean(gradient.half(), weights.half()).dtype == torch.float32


def test_a_row_is_that_row_of_the_matrix_also_in_a_batch() -> None:
    layers = [some(s, 6, 6) for s in range(4)]
    whole = self_matrix(layers) - torch.eye(6, dtype=torch.float64)
    start = some(9, 6)
    same(self_row(start, layers), start @ whole)
    starts = torch.stack([start, torch.eye(6, dtype=torch.float64)[2]])
    same(self_row(starts, [torch.stack([layer, layer]) for layer in layers])[1], whole[2])


def test_small_additions_do_not_drown_in_the_identity() -> None:
    # float32 has no number between 1 and 1 + 1e-7: a row computed as e·R − e would be rounded to
    # nothing
    layers = [(some(s, 5, 5) * 1e-9).float() for s in range(3)]
    start = torch.eye(5)[1]
    np.testing.assert_allclose(
        self_row(start, layers), sum(layer[1].double() for layer in layers), rtol=1e-5
    )


def test_normalised_rows_sum_to_two_or_stay_the_identity() -> None:
    r = self_matrix([some(3, 4, 4)])
    r[2] = torch.eye(4, dtype=torch.float64)[2]
    bar = normalised(r)
    same(bar.sum(-1), np.array([2.0, 2.0, 1.0, 2.0]))
    same(bar[2], np.eye(4)[2])
    same(
        bar[0] - torch.eye(4, dtype=torch.float64)[0],
        ((r - torch.eye(4, dtype=torch.float64))[0] / (r[0].sum() - 1)),
    )


def test_the_first_cross_layer_gives_its_own_weights() -> None:
    nothing, cross = torch.zeros(2, 2, dtype=torch.float64), some(4, 2, 3)
    crossed, _ = encoder_decoder([torch.zeros(3, 3, dtype=torch.float64)], [(nothing, cross)])
    same(crossed, cross)
    layer = CrossLayer(cross, some(5, 3, 2), nothing, torch.zeros(3, 3, dtype=torch.float64))
    _, ti = two_modalities([nothing], [torch.zeros(3, 3, dtype=torch.float64)], [layer])
    same(ti, cross)


def bar_by_loops(r: np.ndarray) -> np.ndarray:
    """R̄ as the paper writes it, a row at a time."""
    out = np.eye(len(r))
    for m, row in enumerate(r - np.eye(len(r))):
        if row.any():
            out[m] += row / row.sum()
    return out


def test_encoder_decoder_step_by_step() -> None:
    # would catch: the cross rule before the self rule, R̄ not transposed, the encoder's R not
    # normalised
    encoder = [some(s, 5, 5) for s in range(3)]
    decoder = [(some(10 + s, 3, 3).tril(), some(20 + s, 3, 5)) for s in range(2)]
    r_ii, r_qq, r_qi = np.eye(5), np.eye(3), np.zeros((3, 5))
    for a in encoder:
        r_ii = r_ii + a.numpy() @ r_ii
    for own, cross in decoder:
        r_qq, r_qi = r_qq + own.numpy() @ r_qq, r_qi + own.numpy() @ r_qi
        r_qi = r_qi + bar_by_loops(r_qq).T @ cross.numpy() @ bar_by_loops(r_ii)
    crossed, own_places = encoder_decoder(encoder, decoder)
    same(crossed, r_qi)
    same(own_places, r_qq - np.eye(3))


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_two_modalities_step_by_step(depth: int) -> None:
    # would catch: one side's update seen by the other within a layer, the self rule without R_sq,
    # R̄ without its transpose
    t, i = 4, 3
    text, image = [some(s, t, t) for s in range(2)], [some(30 + s, i, i) for s in range(3)]
    cross = [
        CrossLayer(some(40 + s, t, i), some(50 + s, i, t), some(60 + s, t, t), some(70 + s, i, i))
        for s in range(depth)
    ]
    r = {"tt": np.eye(t), "ii": np.eye(i), "ti": np.zeros((t, i)), "it": np.zeros((i, t))}

    def self_rule(s: str, q: str, a: Tensor) -> None:
        for pair in (s + s, s + q):
            r[pair] = r[pair] + a.numpy() @ r[pair]

    def cross_rule(s: str, q: str, a: Tensor) -> dict[str, np.ndarray]:
        return {
            s + q: bar_by_loops(r[s + s]).T @ (a.numpy() @ bar_by_loops(r[q + q])),
            s + s: a.numpy() @ r[q + s],
        }

    for a in text:
        self_rule("t", "i", a)
    for a in image:
        self_rule("i", "t", a)
    for layer in cross[:-1]:
        additions = cross_rule("t", "i", layer.text_to_image) | cross_rule(
            "i", "t", layer.image_to_text
        )
        for pair, addition in additions.items():
            r[pair] = r[pair] + addition
        self_rule("t", "i", layer.text)
        self_rule("i", "t", layer.image)
    for pair, addition in cross_rule("t", "i", cross[-1].text_to_image).items():
        r[pair] = r[pair] + addition
    self_rule("t", "i", cross[-1].text)
    tt, ti = two_modalities(text, image, cross)
    same(tt + torch.eye(t, dtype=torch.float64), r["tt"])
    same(ti, r["ti"])
