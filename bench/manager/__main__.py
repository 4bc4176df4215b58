"""Runs benchmarks of the manager: memory, idle usage, a lost lease, a hostile tenant, and calls."""

from bench.choosing import run

NAMES = ("memory", "kept", "rest", "fencing", "hostile", "calls")

if __name__ == "__main__":
    run("bench.manager", NAMES)
