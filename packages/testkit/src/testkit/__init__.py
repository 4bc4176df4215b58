"""Code that the tests of several packages share: virtual time, fakes, clusters, distribution and reports of runs."""
