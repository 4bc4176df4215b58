"""The controller of HorizontalPodAutoscalers: reads loads, decides how many replicas there should be, writes `/scale`.

Mirrors `podautoscaler` of kube-controller-manager for metrics of type Resource and ContainerResource.
"""
