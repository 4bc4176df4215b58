"""The clusters that tests run on: the embedded one, and a control plane with nodes that kwok plays."""
