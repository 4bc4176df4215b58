"""The operator: keeps one installation of the manager as the object `cluster` of LeaderWorkerSetOperators specifies.

```
operatorprocess ─► operatorcontroller ─► comparison ─► sync ─► operatorstatus | operand ─► restoration | desired ─► names
  parts, lease       caches, observe     what differs   plan     conditions     objects    of drift       spec
                                                                 operandconfig: its file; openshift: facts of that cluster
```

All but the first three are pure. `operatordeployment.py` builds the operator's own installation, `packaging/bundle.py` its
packages for OLM.
"""
