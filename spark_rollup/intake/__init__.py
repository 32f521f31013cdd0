"""Events into bronze: read from a source, judged, each once; compacted and removed again."""
