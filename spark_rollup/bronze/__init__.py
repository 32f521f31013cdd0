"""Events at rest: where they are, how they are read, each once; and what an audit reads of them."""
