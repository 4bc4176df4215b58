"""A small byte-level model, in which every token changes a state that determines the next token.

Reading a prompt into a state is prefill, going on from a state is decode. All numbers are whole, so that a state of
another prompt, or of another version of the model, cannot end in the right tokens.
"""

import random
from typing import TypeAlias

State: TypeAlias = list[int]

SIZE, PRIME = 24, 2_147_483_647


class Model:
    """One version of the model, whose parameters are derived from the version."""

    def __init__(self, version: str) -> None:
        source = random.Random(version)
        self.version = version
        self.mixing = [[source.randrange(PRIME) for _ in range(SIZE)] for _ in range(SIZE)]
        self.embedding = [[source.randrange(PRIME) for _ in range(SIZE)] for _ in range(256)]
        self.output = [source.randrange(PRIME) for _ in range(SIZE)]

    def read(self, state: State, token: int) -> State:
        """Return the state after one more token."""
        mixed = (sum(map(int.__mul__, row, state)) for row in self.mixing)
        return [(value + added) % PRIME for value, added in zip(mixed, self.embedding[token], strict=True)]

    def prefill(self, prompt: bytes) -> State:
        """Return the state after a prompt."""
        state = [1] * SIZE
        for token in prompt:
            state = self.read(state, token)
        return state

    def decode(self, state: State, count: int) -> list[int]:
        """Return `count` tokens after a state, which are lowercase letters."""
        tokens = []
        for _ in range(count):
            token = ord("a") + sum(map(int.__mul__, self.output, state)) % PRIME % 26
            tokens.append(token)
            state = self.read(state, token)
        return tokens
