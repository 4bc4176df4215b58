"""Admission over HTTPS: the AdmissionReview codec, the server, and its certificates."""
