"""One container: what it runs, how it is started, asked, probed and ended."""
