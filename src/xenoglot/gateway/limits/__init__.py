"""Rate and concurrency limits, in memory or shared between workers and gateways."""
