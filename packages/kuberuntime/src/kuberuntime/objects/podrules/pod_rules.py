"""Validates pod specs, pod templates, and pod updates.

Input: the spec after defaulting, and its path. Output: errors with the messages of kube-apiserver.
"""

from collections.abc import Iterator
from ipaddress import ip_address

from kuberuntime.objects import names, objectmeta
from kuberuntime.objects.field import FieldError, all_invalid, invalid, required_error
from kuberuntime.objects.meta import JSONObject
from kuberuntime.objects.podrules import container_rules, scheduling_rules, security_rules, volume_rules
from kuberuntime.objects.podrules.container_rules import Names
from kuberuntime.objects.podrules.values import duplicate, forbidden, validate_choice

RESTART_POLICIES = ("Always", "Never", "OnFailure")
DNS_POLICIES = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")
OPERATING_SYSTEMS = ("linux", "windows")
MAX_NAMESERVERS = 3
LONGEST_DEADLINE = 2**31 - 1

NAME_RULES: dict[str, objectmeta.NameRule] = {
    "hostname": names.dns_1123_label,
    "subdomain": names.dns_1123_label,
    "serviceAccountName": names.dns_1123_subdomain,
    "nodeName": names.dns_1123_subdomain,
    "priorityClassName": names.dns_1123_subdomain,
    "runtimeClassName": names.dns_1123_subdomain,
}

CHANGEABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations`"
    " (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was"
    " previously negative)"
)


def validate_template(template: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield all errors of a pod template."""
    metadata = template["metadata"]
    yield from names.label_errors(metadata.get("labels") or {}, f"{path}.labels")
    yield from objectmeta.annotation_errors(metadata.get("annotations") or {}, f"{path}.annotations")
    yield from validate_spec(template["spec"], f"{path}.spec")


def validate_spec(spec: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield all errors of a pod spec."""
    volumes: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        errors = list(volume_rules.validate(volume, volumes, f"{path}.volumes[{index}]"))
        yield from errors
        volumes |= set() if errors else {volume["name"]}
    declared = Names(volumes=volumes, claims={claim["name"] for claim in spec.get("resourceClaims") or ()})
    yield from container_rules.validate(spec, declared, path)
    yield from validate_choice(spec["restartPolicy"], RESTART_POLICIES, f"{path}.restartPolicy")
    yield from validate_choice(spec["dnsPolicy"], DNS_POLICIES, f"{path}.dnsPolicy")
    yield from _validate_numbers(spec, path)
    yield from _validate_names(spec, path)
    yield from _validate_dns(spec, path)
    yield from scheduling_rules.validate(spec, path)
    yield from security_rules.validate(spec, path)
    yield from _validate_host_port_uses(spec, path)
    if spec.get("hostNetwork"):
        yield from _validate_host_ports(spec, path)
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate["conditionType"]
        yield from all_invalid(f"{path}.readinessGates[{index}].conditionType", kind, names.qualified_name(kind))
    if "os" in spec:
        yield from validate_choice(spec["os"].get("name", ""), OPERATING_SYSTEMS, f"{path}.os")
    if "preemptionPolicy" in spec:
        yield from validate_choice(spec["preemptionPolicy"], PREEMPTION_POLICIES, f"{path}.preemptionPolicy")


def _validate_numbers(spec: JSONObject, path: str) -> Iterator[FieldError]:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= LONGEST_DEADLINE:
        text = f"must be between 1 and {LONGEST_DEADLINE}, inclusive"
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, text)


def _validate_names(spec: JSONObject, path: str) -> Iterator[FieldError]:
    for field, rule in NAME_RULES.items():
        if spec.get(field):
            yield from all_invalid(f"{path}.{field}", spec[field], rule(spec[field]))
    if "schedulingGates" in spec:
        yield from _validate_gate_names(spec["schedulingGates"], f"{path}.schedulingGates")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from _validate_alias(alias, f"{path}.hostAliases[{index}]")


def _validate_alias(alias: JSONObject, path: str) -> Iterator[FieldError]:
    address = alias.get("ip", "")
    try:
        ip_address(address)
    except ValueError:
        yield invalid(f"{path}.ip", address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    for index, name in enumerate(alias.get("hostnames") or ()):
        yield from all_invalid(f"{path}.hostnames[{index}]", name, names.dns_1123_subdomain(name))


def _validate_gate_names(gates: list[JSONObject], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        yield from all_invalid(f"{path}[{index}]", gate["name"], names.label_key(gate["name"]))
        if gate["name"] in seen:
            yield duplicate(f"{path}[{index}]", gate["name"])
        seen.add(gate["name"])


def _validate_host_port_uses(spec: JSONObject, path: str) -> Iterator[FieldError]:
    """Yield the errors of host ports that are used by more than one container."""
    uses: set[str] = set()
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            use = f"{port['protocol']}/{port.get('hostIP', '')}/{port.get('hostPort')}"
            if port.get("hostPort") and use in uses:
                yield duplicate(f"{path}.containers[{index}].ports[{number}].hostPort", use)
            uses.add(use)


def _validate_dns(spec: JSONObject, path: str) -> Iterator[FieldError]:
    nameservers = (spec.get("dnsConfig") or {}).get("nameservers") or []
    if spec["dnsPolicy"] == "None" and "dnsConfig" not in spec:
        yield required_error(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
    elif spec["dnsPolicy"] == "None" and not nameservers:
        text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        yield required_error(f"{path}.dnsConfig.nameservers", text)
    if len(nameservers) > MAX_NAMESERVERS:
        text = f"must not have more than {MAX_NAMESERVERS} nameservers"
        yield invalid(f"{path}.dnsConfig.nameservers", nameservers, text)


def _validate_host_ports(spec: JSONObject, path: str) -> Iterator[FieldError]:
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort", port["containerPort"]) != port["containerPort"]:
                where = f"{path}.containers[{index}].ports[{number}].containerPort"
                yield invalid(where, port["containerPort"], "must match `hostPort` when `hostNetwork` is true")


def validate_change(new: JSONObject, old: JSONObject) -> Iterator[FieldError]:
    """Yield the errors of an update to a pod spec, which is mostly immutable."""
    before, after = old["spec"], new["spec"]
    if after == before:
        return
    yield from _validate_gates(after, before)
    yield from _validate_deadline(after, before)
    tolerations_before = [_without_seconds(toleration) for toleration in before.get("tolerations") or ()]
    tolerations_after = [_without_seconds(toleration) for toleration in after.get("tolerations") or ()]
    if any(toleration not in tolerations_after for toleration in tolerations_before):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
    gated = bool(before.get("schedulingGates"))
    bound = before.get("nodeName", after.get("nodeName")) != after.get("nodeName")
    if bound or _immutable_part(after, gated=gated) != _immutable_part(before, gated=gated):
        yield forbidden("spec", f"pod updates may not change fields other than {CHANGEABLE}")


def _without_seconds(toleration: JSONObject) -> JSONObject:
    return toleration | {"tolerationSeconds": None}


def _validate_gates(after: JSONObject, before: JSONObject) -> Iterator[FieldError]:
    old_gates = [gate["name"] for gate in before.get("schedulingGates") or ()]
    for index, gate in enumerate(after.get("schedulingGates") or ()):
        if gate["name"] not in old_gates:
            text = f"only deletion is allowed, but found new scheduling gate '{gate['name']}'"
            yield forbidden(f"spec.schedulingGates[{index}].name", text)


def _validate_deadline(after: JSONObject, before: JSONObject) -> Iterator[FieldError]:
    new, old = after.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    if old is not None and new is None:
        text = "must not update from a positive integer to nil value"
        yield invalid("spec.activeDeadlineSeconds", None, text)
    elif old is not None and new is not None and new > old:
        yield invalid("spec.activeDeadlineSeconds", new, "must be less than or equal to previous value")


def _immutable_part(spec: JSONObject, *, gated: bool) -> JSONObject:
    """Return the immutable part of a spec.

    The node selection of a gated pod can be narrowed, and binding sets the node.
    """
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates", "nodeName"}
    if gated:
        free |= {"nodeSelector", "affinity"}
    rest = {name: value for name, value in spec.items() if name not in free}
    for field in ("containers", "initContainers"):
        if rest.get(field):
            rest[field] = [container | {"image": ""} for container in rest[field]]
    return rest
