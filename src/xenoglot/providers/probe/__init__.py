"""The probe: questions that find out what a server supports."""
