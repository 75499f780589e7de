"""The status page: gangs and pod groups as a person sees them in a browser, read from the controller's own cache."""
