"""The inventory of all task directories and the reducer that keeps it. Pure: values in, values out."""
