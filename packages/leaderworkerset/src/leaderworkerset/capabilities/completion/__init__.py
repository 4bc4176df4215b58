"""Groups that run to completion, hang, or miss a deadline (`run-to-completion`, `progress-timeout`)."""
