"""The live agent as a process: wires the parts together, turns the loop, stops in order."""
