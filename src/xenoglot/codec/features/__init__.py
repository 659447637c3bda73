"""Records of what a dialect supports besides generation: embeddings, batches, tokens, stored responses."""
