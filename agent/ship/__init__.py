"""Ship: from records to a sink, without losing one on the way.

The spool keeps records in segments on the agent's own volume; the shipper sends sealed segments and lets go
of one only when the sink has acknowledged it. Knows the contract, the errors and the clock, nothing else of
the agent; never touches a state directory.
"""
