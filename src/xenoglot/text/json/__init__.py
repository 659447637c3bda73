"""JSON output of models: schemas, partial values, repair, prompting."""
