"""Implements the scheduler with the rules of kube-scheduler's default plugins, without preemption.

`podinfo.py` reads the requirements of a pod, and `capacity.py` tracks the free capacity of nodes. `predicates.py`,
`affinity.py` and `spread.py` filter nodes, `scores.py` chooses the best node, and `decision.py` combines them.
`queue.py` sorts pods and records why pods are unschedulable. `controller.py` binds pods.
"""
