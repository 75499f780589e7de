"""The start barrier's controller: counts a gang's pods, decides once. For `controllers.manager`."""
