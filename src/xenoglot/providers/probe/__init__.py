"""The probe: requests that find out what a server supports."""
