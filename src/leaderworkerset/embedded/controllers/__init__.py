"""The controllers of the embedded cluster: StatefulSets, garbage, scheduling, namespaces."""
