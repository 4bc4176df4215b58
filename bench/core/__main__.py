"""Benchmarks of decisions alone: the largest objects, the steps of rollouts."""

from bench.choosing import run

NAMES = ("decisions", "rollouts")

if __name__ == "__main__":
    run("bench.core", NAMES)
