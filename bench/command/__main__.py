"""Benchmarks of the command `lws`: startup, `lws get`, following logs, and the dashboard."""

from bench.choosing import run

NAMES = ("start", "get", "logs", "dashboard")

if __name__ == "__main__":
    run("bench.command", NAMES)
