"""Records of what a dialect supports in addition to generation: embeddings, batches, tokens, stored responses."""
