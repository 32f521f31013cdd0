"""Recorded runs: the trace reader and the in-memory disk that answers like the real one."""
