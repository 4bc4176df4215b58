"""Implements the dashboard, whose web pages share one model of the cluster."""
