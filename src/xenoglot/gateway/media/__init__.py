"""Media that requests name: images by URL, stored files by id."""
