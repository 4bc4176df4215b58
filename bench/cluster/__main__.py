"""Runs benchmarks of the embedded cluster: many pods, idle usage, memory over time, and rollouts."""

from bench.choosing import run

NAMES = ("groups", "many", "idle", "soak", "inplace", "sets")

if __name__ == "__main__":
    run("bench.cluster", NAMES)
