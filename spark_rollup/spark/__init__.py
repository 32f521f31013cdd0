"""Spark itself: its session, Java, jars, what it prints, how it fails, where it writes."""
