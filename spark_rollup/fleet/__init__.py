"""One application of the fleet, judged in plain Python: no Spark, no clock, no input or output."""
