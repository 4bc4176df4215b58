"""Train a small network with data parallelism and jax.distributed on CPUs, and compare it with one process.

Every rank holds an equal share of each batch. The coordinator is the leader of the group; gradients are averaged over
all ranks by gloo. After the last step the leader trains the same network alone on whole batches: the losses agree.

    python3 train.py [--steps N]
"""

import argparse
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

PORT = 29700
BATCH, FEATURES, HIDDEN, RATE = 64, 16, 32, 0.1

Parameters = dict[str, jax.Array]


def batch(step: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs and targets of a step, which are the same on every rank."""
    random = np.random.default_rng(step)
    inputs = random.normal(size=(BATCH, FEATURES)).astype("float32")
    return inputs, np.sin(inputs.sum(axis=1)).astype("float32")


def initial() -> Parameters:
    """Return the initial parameters, which are the same on every rank."""
    random = np.random.default_rng(0)
    return {
        "first": jnp.asarray(random.normal(0, 0.2, (FEATURES, HIDDEN)), "float32"),
        "second": jnp.asarray(random.normal(0, 0.2, (HIDDEN,)), "float32"),
    }


def loss(parameters: Parameters, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    """Return the mean squared error of a network with one hidden layer."""
    predictions = jnp.tanh(inputs @ parameters["first"]) @ parameters["second"]
    return jnp.mean((predictions - targets) ** 2)


@jax.jit
def update(parameters: Parameters, inputs: jax.Array, targets: jax.Array) -> tuple[Parameters, jax.Array]:
    """Perform one step of gradient descent. For sharded inputs, the compiler inserts the sums over ranks."""
    value, gradients = jax.value_and_grad(loss)(parameters, inputs, targets)
    return jax.tree.map(lambda parameter, gradient: parameter - RATE * gradient, parameters, gradients), value


def train_together(steps: int) -> float:
    """Train with a share of each batch on every rank, and return the last loss."""
    mesh = Mesh(np.array(jax.devices()), ("ranks",))
    everywhere, shared = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("ranks"))
    parameters = {
        name: jax.make_array_from_process_local_data(everywhere, np.asarray(value)) for name, value in initial().items()
    }
    share = slice(
        jax.process_index() * BATCH // jax.process_count(), (jax.process_index() + 1) * BATCH // jax.process_count()
    )
    value = jnp.zeros(())
    for step in range(steps):
        inputs, targets = batch(step)
        parameters, value = update(
            parameters,
            jax.make_array_from_process_local_data(shared, inputs[share]),
            jax.make_array_from_process_local_data(shared, targets[share]),
        )
    return float(value)


def train_alone(steps: int) -> float:
    """Train on complete batches in this process, and return the last loss."""
    parameters, value = initial(), jnp.zeros(())
    for step in range(steps):
        parameters, value = update(parameters, *map(jnp.asarray, batch(step)))
    return float(value)


def main() -> None:
    """Join the group, train, and compare the results."""
    parser = argparse.ArgumentParser(description="Data parallelism over the ranks of a group.")
    parser.add_argument("--steps", type=int, default=20)
    steps = parser.parse_args().steps
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        coordinator_address=f"{os.environ['LWS_LEADER_ADDRESS']}:{PORT}",
        num_processes=int(os.environ["LWS_GROUP_SIZE"]),
        process_id=int(os.environ["LWS_WORKER_INDEX"]),
    )
    rank, size = jax.process_index(), jax.process_count()
    print(f"rank {rank} of {size} sees {len(jax.devices())} devices", flush=True)
    together = train_together(steps)
    print(f"loss after {steps} steps: {together:.6f}", flush=True)
    if rank == 0:
        alone = train_alone(steps)
        if abs(together - alone) > 1e-5:
            sys.exit(f"{size} ranks end at {together:.6f}, one process at {alone:.6f}")
        print(f"verified: {size} ranks and one process end at the same loss, {together:.6f}", flush=True)
    jax.distributed.shutdown()


if __name__ == "__main__":
    main()
