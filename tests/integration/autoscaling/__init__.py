"""Autoscaling by the real kube-controller-manager, fed by a metrics API of the tests."""
