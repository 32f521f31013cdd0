"""Preflight: is the agent in the right place, with the right rights? `facts` reads, `checks` judges, `telling` says."""
