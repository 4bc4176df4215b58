"""Groups are moved off nodes under maintenance: selection of nodes, pods and groups (docs/adr/0023)."""
