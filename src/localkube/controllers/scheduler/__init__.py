"""The scheduler: which node a pod runs on, with the rules of kube-scheduler's default plugins, without preemption.

`pod.py` reads what a pod asks for, `capacity.py` keeps what the nodes have left, `predicates.py`, `affinity.py` and
`spread.py` decide on which nodes a pod may run, `scores.py` which of them is best, `decision.py` puts them together,
`queue.py` orders pods and remembers why they were refused, `controller.py` binds.
"""
