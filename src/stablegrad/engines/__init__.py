"""The engines: each knows one framework, and of the rest of the package only `graph` and `numerics`."""
