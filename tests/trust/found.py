"""Programs that once broke the contract, with the points where they did: (expression, x, y)."""

FOUND: list[tuple[str, list[float], list[float]]] = [
    ("jnp.exp(nn.log_softmax(x)[2] - nn.log_softmax(y)[2])", [1.0, 0.0, -90.0], [1.0, 0.5, -91.0]),
    ("jnp.linalg.norm(nn.softmax(x) @ (W - 1))", [1.0, 100.0, 0.0], [0.0, 0.0, 0.0]),
    (
        "jnp.max(x) + jnp.log(jnp.sum(jnp.exp(x - jnp.max(x))) + jnp.exp(y[0] - jnp.max(x)))",
        [-200.0, -201.0, -200.0],
        [0.0, 1.0, 0.0],
    ),
]
