"""InvokeModel: the endpoints of Bedrock that take the body of the model's own API."""
