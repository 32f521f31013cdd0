"""What `statewarden-rollup verify` proves by digests: each kind of finding has its module, as each rule has."""
