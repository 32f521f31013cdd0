"""Events at rest: where they lie, how they are read, each once; and what an audit reads of them."""
