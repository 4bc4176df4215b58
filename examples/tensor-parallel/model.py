"""A small byte-level transformer whose matrices are split over ranks, and the same model without splitting.

Attention is split by heads, the feed-forward network by hidden units. Each rank computes its part of every layer from
the whole input; the sum of the parts is the layer's output. That is the whole of tensor parallelism: two sums a layer.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float64]

VOCABULARY, WIDTH, HEADS, HIDDEN, LAYERS = 256, 64, 8, 256, 3


def parameters(name: str, *shape: int) -> Matrix:
    """Return the parameters with this name, which are the same on every rank and derived from the name."""
    seed = int.from_bytes(name.encode(), "little") % 2**63
    return np.random.default_rng(seed).normal(0, shape[0] ** -0.5, shape)


class Shard:
    """The columns and rows of every layer that one of `size` ranks stores."""

    def __init__(self, rank: int, size: int) -> None:
        if HEADS % size or HIDDEN % size:
            raise ValueError(f"{HEADS} heads and {HIDDEN} hidden units do not split over {size} ranks")
        heads = slice(rank * WIDTH // size, (rank + 1) * WIDTH // size)
        units = slice(rank * HIDDEN // size, (rank + 1) * HIDDEN // size)
        self.heads = HEADS // size
        layers = range(LAYERS)
        self.queries = [parameters(f"q{layer}", WIDTH, WIDTH)[:, heads] for layer in layers]
        self.keys = [parameters(f"k{layer}", WIDTH, WIDTH)[:, heads] for layer in layers]
        self.values = [parameters(f"v{layer}", WIDTH, WIDTH)[:, heads] for layer in layers]
        self.outputs = [parameters(f"o{layer}", WIDTH, WIDTH)[heads] for layer in layers]
        self.up = [parameters(f"u{layer}", WIDTH, HIDDEN)[:, units] for layer in layers]
        self.down = [parameters(f"d{layer}", HIDDEN, WIDTH)[units] for layer in layers]

    def part(self, step: int, state: Matrix) -> Matrix:
        """Compute the part of this rank in a step. Even steps are attention, and odd steps are feed-forward."""
        layer, is_feed_forward = divmod(step, 2)
        return self.feed_forward(layer, state) if is_feed_forward else self.attention(layer, state)

    def attention(self, layer: int, state: Matrix) -> Matrix:
        """Compute causal attention with the heads of this rank. `state` has the shape (positions, width)."""
        positions = len(state)
        queries, keys, values = (
            (state @ weights[layer]).reshape(positions, self.heads, -1).transpose(1, 0, 2)
            for weights in (self.queries, self.keys, self.values)
        )
        scores = queries @ keys.transpose(0, 2, 1) / (WIDTH // HEADS) ** 0.5
        scores = np.where(np.tril(np.ones((positions, positions), bool)), scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (shares / shares.sum(-1, keepdims=True)) @ values
        output: Matrix = mixed.transpose(1, 0, 2).reshape(positions, -1) @ self.outputs[layer]
        return output

    def feed_forward(self, layer: int, state: Matrix) -> Matrix:
        """Apply two matrices with a ReLU in between, with the hidden units of this rank."""
        output: Matrix = np.maximum(state @ self.up[layer], 0) @ self.down[layer]
        return output


def normalize(state: Matrix) -> Matrix:
    """Scale every position to zero mean and unit variance."""
    scaled: Matrix = (state - state.mean(-1, keepdims=True)) / (state.std(-1, keepdims=True) + 1e-6)
    return scaled


def logits(tokens: list[int], compute: Callable[[int, Matrix], Matrix]) -> Matrix:
    """Return the scores of the next token. `compute(step, state)` performs a complete step on all ranks."""
    embedding = parameters("embedding", VOCABULARY, WIDTH)
    state = embedding[tokens] + parameters("positions", 512, WIDTH)[: len(tokens)]
    for step in range(2 * LAYERS):
        state = state + compute(step, normalize(state))
    scores: Matrix = normalize(state)[-1] @ embedding.T
    return scores


def generate(prompt: bytes, count: int, compute: Callable[[int, Matrix], Matrix]) -> tuple[list[int], Matrix]:
    """Append the `count` most likely tokens one by one. Return them and the last scores."""
    tokens, scores = list(prompt), np.zeros(VOCABULARY)
    for _ in range(count):
        scores = logits(tokens, compute)
        tokens.append(int(scores.argmax()))
    return tokens[len(prompt) :], scores
