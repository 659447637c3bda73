"""Results of a call: replies, streams, parsed values, costs."""
