"""Provides test clusters: the embedded cluster, and a control plane with kwok nodes."""
