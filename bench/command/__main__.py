"""Benchmarks of the command `lws`: its start, `lws get`, and following logs."""

from bench.choosing import run

NAMES = ("start", "get", "logs")

if __name__ == "__main__":
    run("bench.command", NAMES)
