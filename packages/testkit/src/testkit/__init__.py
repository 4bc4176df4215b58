"""What the tests of several packages share: virtual time, fakes, clusters, and how a run is shared out and reported."""
