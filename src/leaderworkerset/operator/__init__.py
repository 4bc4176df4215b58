"""The operator: keeps one installation of the manager as the object `cluster` of LeaderWorkerSetOperators asks for.

```
operatorprocess ─► operatorcontroller ─► sync ─► operatorstatus | operand ─► covering | desired ─► operatornames
  parts, lease       caches, observe      plan     conditions     objects      drift      spec       names, labels
                                                                 operandconfig: its file; openshift: what that cluster says
```

All but the first two is pure. What the operator installs on a cluster is built in `operatordeployment.py`, its packages for
OLM in `bundle.py`.
"""
