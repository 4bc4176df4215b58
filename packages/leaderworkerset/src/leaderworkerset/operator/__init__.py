"""Implements the operator, which maintains a manager installation according to the `cluster` object.

```
operatorprocess ─► operatorcontroller ─► comparison ─► sync ─► operatorstatus | operand ─► restoration | desired ─► names
  parts, lease       caches, observe     what differs   plan     conditions     objects    of drift       spec
                                                                 operandconfig: its file; openshift: facts of that cluster
```

All modules except the first three are pure. The operator's installation and its OLM packages are built in `deploy/`.
"""
