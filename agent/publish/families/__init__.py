"""The families of metrics, one entry each: name, type, meaning, labels and reader."""
