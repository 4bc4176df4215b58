"""The parts of a pod's specification that the kubelet uses. Pure."""
