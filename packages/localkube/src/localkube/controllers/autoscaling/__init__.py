"""The HorizontalPodAutoscaler controller: reads metrics, decides the number of replicas, writes `/scale`.

Mirrors `podautoscaler` of kube-controller-manager for metrics of type Resource and ContainerResource.
"""
