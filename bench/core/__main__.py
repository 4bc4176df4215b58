"""Runs benchmarks of decisions only, with the largest objects and the steps of rollouts."""

from bench.choosing import run

NAMES = ("decisions", "rollouts")

if __name__ == "__main__":
    run("bench.core", NAMES)
