"""The sources of gangs: how the objects of each kind of workload become the snapshot that the rules take.

Imported by the injection, the controllers and the command line; imports the rules' values, which know no source.
"""
