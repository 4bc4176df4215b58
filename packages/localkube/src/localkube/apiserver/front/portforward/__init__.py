"""Forwards ports of pods: through a tunnel of many connections (kubectl), or over channels (`kuberuntime`)."""
