"""Implements the storms of `lws chaos`: ordered faults, their effects, and the report."""
