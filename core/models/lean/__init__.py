"""A lean int8 forward pass for the Llama family on the CPU."""
