"""The page Fidelity: what becomes of each feature between every two dialects, shown by examples."""
