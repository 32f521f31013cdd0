"""The dossier of every task directory and the reducer that keeps it. Pure: values in, values out."""
