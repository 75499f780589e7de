"""`demo groups`: two gangs that each need most of a cluster, once without us and once with us."""
