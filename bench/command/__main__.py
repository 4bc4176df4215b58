"""Runs benchmarks of `lws` commands: startup, `lws get`, log following, and the dashboard."""

from bench.choosing import run

NAMES = ("start", "get", "logs", "dashboard")

if __name__ == "__main__":
    run("bench.command", NAMES)
