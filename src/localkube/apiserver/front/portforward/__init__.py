"""Ports of pods for clients: over a tunnel of many connections (kubectl), or over channels (`kuberuntime`)."""
