"""Programs that once broke the contract, with the points where they did: (expression, x, y)."""

FOUND: list[tuple[str, list[float], list[float]]] = [
    ("nn.silu(y) + nn.softmax(jnp.log2(y))", [1.0, 1.0, 1.0], [1e30, 1e30, 1e30]),
    ("jnp.linalg.norm(jnp.minimum(nn.gelu(y), 1.0) - nn.gelu(nn.gelu(y)))", [1.0, 1.0, 1.0], [-89.0, 20.0, -20.0]),
    ("jnp.log(jnp.where(x > y, jnp.exp(x), jnp.maximum(y, 0.0))[1])", [89.0, 1e4, -50.0], [89.0, 1e4, -50.0]),
    ("jnp.log(((jnp.flip(x)) * jnp.log(jnp.flip(x)) - jnp.flip(y))[1])", [0.0, 1e4, -0.5], [0.0, 1e4, -0.5]),
    ("jnp.log(jnp.sum(x / jnp.sin(jnp.sort(x))))", [1e-4, 1e-4, 1e-4], [1.0, 1.0, 1.0]),
    ("-jnp.sum(jnp.exp(nn.softmax(x) - nn.softmax(x)) * (nn.softmax(x) - nn.softmax(x)))", [89.0] * 3, [1.0] * 3),
    ("1 / (1 + jnp.exp(-nn.log_sigmoid(y)))", [1.0, 1.0, 1.0], [-89.0, 10.0, 20.0]),
    ("nn.logsumexp(y**1.5 * jnp.log(jnp.where(y > 0, jnp.log(y), 0.0)))", [1.0, 1.0, 1.0], [2.0, 120.0, 10.0]),
    ("jnp.std(jnp.hypot(x - nn.logsumexp(x), x - nn.logsumexp(x)))", [1e-4, 50.0, -0.5], [1.0, 1.0, 1.0]),
    ("jnp.sum(jnp.clip(y, 1e-7, 1.0) * jnp.log(jnp.clip(y, 1e-7, 1.0) * jnp.cos(y)))", [1.0] * 3, [1.0, 0.5, -120.0]),
    ("jnp.exp(jnp.maximum(x, 0.0) - jnp.log10(x))", [89.0, 89.0, 89.0], [1.0, 1.0, 1.0]),
    ("jnp.exp(nn.log_softmax(x)[2] - nn.log_softmax(y)[2])", [1.0, 0.0, -90.0], [1.0, 0.5, -91.0]),
    ("jnp.linalg.norm(nn.softmax(x) @ (W - 1))", [1.0, 100.0, 0.0], [0.0, 0.0, 0.0]),
    (
        "jnp.max(x) + jnp.log(jnp.sum(jnp.exp(x - jnp.max(x))) + jnp.exp(y[0] - jnp.max(x)))",
        [-200.0, -201.0, -200.0],
        [0.0, 1.0, 0.0],
    ),
]

# The same, that still do, with the reason.
OPEN: list[tuple[str, list[float], list[float], str]] = [
    (
        "-jnp.mean(y * jnp.log(((jnp.clip((jnp.log10(y)), 1e-7, 1.0)) / "
        "(jnp.exp((jnp.log10(y))) / jnp.sum(jnp.exp((jnp.log10(y))))))))",
        [120.0, 0.0, -1e-4],
        [1e-4, 120.0, 1.0],
        "log(a / b**p) near 0 is written as log(a) - p log(b), which cancels",
    ),
]
