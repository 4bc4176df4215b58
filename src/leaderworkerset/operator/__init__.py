"""The operator: keeps one installation of the manager as the object `cluster` of LeaderWorkerSetOperators specifies.

```
operatorprocess ─► operatorcontroller ─► sync ─► operatorstatus | operand ─► drift | desired ─► operatornames
  parts, lease       caches, observe      plan     conditions     objects    differences  spec    names, labels
                                                                 operandconfig: its file; openshift: facts of that cluster
```

All but the first two are pure; `comparison.py` asks the API server between observing and planning what differs. `operatordeployment.py` builds the operator's own installation, `packaging/bundle.py`
its packages for OLM.
"""
