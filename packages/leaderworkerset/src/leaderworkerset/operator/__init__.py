"""The operator: keeps one installation of the manager as the object `cluster` of LeaderWorkerSetOperators specifies.

```
operatorprocess ─► operatorcontroller ─► comparison ─► sync ─► operatorstatus | operand ─► restoration | desired ─► names
  parts, lease       caches, observe     what differs   plan     conditions     objects    of drift       spec
                                                                 operandconfig: its file; openshift: facts of that cluster
```

All but the first three are pure. The operator's own installation, and its packages for OLM, are built below `deploy/`.
"""
