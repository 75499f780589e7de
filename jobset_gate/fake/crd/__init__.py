"""The schema of the JobSet CRD stand-in, in parts."""
