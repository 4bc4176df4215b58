"""Implements the HorizontalPodAutoscaler controller, which reads metrics and writes replicas to `/scale`.

Mirrors `podautoscaler` of kube-controller-manager for metrics of type Resource and ContainerResource.
"""
