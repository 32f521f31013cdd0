"""The core at work: hints in, observations reduced and judged, records and findings out. Pure: no clock, no thread."""
