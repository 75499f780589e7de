"""The gate stream: pods announce themselves over HTTP and wait for the verdict. Imported by `controllers`."""
