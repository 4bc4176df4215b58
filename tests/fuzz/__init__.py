"""Seeded fuzzers: whatever a client sends is served or refused, and never ends, slows or confuses a server."""
