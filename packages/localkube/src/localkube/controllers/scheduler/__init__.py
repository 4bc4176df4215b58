"""The scheduler: assigns nodes to pods by the rules of kube-scheduler's default plugins, without preemption.

`podinfo.py` reads the requirements of a pod, `capacity.py` keeps the free capacity of nodes. `predicates.py`,
`affinity.py` and `spread.py` decide on which nodes a pod may run, `scores.py` chooses the best, `decision.py` combines
them. `queue.py` sorts pods and keeps the causes of refusals, `controller.py` binds.
"""
