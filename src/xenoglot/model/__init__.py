"""The canonical model: frozen values that cover every dialect. Imports nothing else of the package."""
