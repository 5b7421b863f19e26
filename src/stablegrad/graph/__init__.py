"""The engine-free program: nodes, operations, the normal form of broadcasts."""
