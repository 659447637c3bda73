"""Files and batches: endpoints, input, workers."""
