"""Groups that run to completion, that hang, or that miss a deadline (`run-to-completion`, `progress-timeout`)."""
