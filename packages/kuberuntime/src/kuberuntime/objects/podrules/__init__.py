"""Sets the defaults of pods and pod templates, and validates them like kube-apiserver. The functions are pure."""
