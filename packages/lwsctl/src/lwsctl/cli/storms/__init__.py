"""Storms of `lws chaos`: ordered faults, their effects, and the report."""
