"""Ship: from records to a sink, without losing one on the way.

The spool keeps records in a database on the agent's own volume; the shipper sends sealed batches as segments and
forgets one only when the sink has acknowledged it. Knows the contract, the errors and the clock, nothing else of the
agent; never touches a state directory.
"""
