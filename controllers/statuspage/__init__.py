"""The status page: gangs and pod groups in a browser, read from the controller's own caches.

Only controllers.manager, the command line and tests import it.
"""
