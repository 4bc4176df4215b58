"""The clusters for tests: the embedded one, and a control plane whose nodes kwok simulates."""
