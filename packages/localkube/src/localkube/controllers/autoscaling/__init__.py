"""The HorizontalPodAutoscaler controller, which reads metrics, computes the number of replicas, and writes `/scale`.

Mirrors `podautoscaler` of kube-controller-manager for metrics of type Resource and ContainerResource.
"""
