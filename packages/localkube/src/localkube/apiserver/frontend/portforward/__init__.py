"""Forwards pod ports, either through a tunnel with many connections (kubectl) or over channels (`kuberuntime`)."""
