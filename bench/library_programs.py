"""Programs of JAX's own libraries, for bench/libraries.py: each a function and its arguments, trees of arrays."""
import numpy as np


def reals(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def whole(limit, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, limit, shape).astype(np.int32)


def rigid_body(creature, physics, environments=32, steps=4):
    import jax  # pylint: disable=import-outside-toplevel
    from brax import envs  # pylint: disable=import-outside-toplevel

    environment = envs.get_environment(creature, backend=physics)
    state = jax.jit(jax.vmap(environment.reset))(jax.random.split(jax.random.PRNGKey(0), environments))

    def rollout(state, action):
        def step(state, _):
            state = jax.vmap(environment.step)(state, action)
            return state, state.reward

        state, rewards = jax.lax.scan(step, state, None, length=steps)
        return state.obs, rewards, state.done

    return rollout, (state, reals(environments, environment.action_size, scale=0.3))


def regression(rows, columns):
    """Inputs of a logistic regression, and the logarithm of its posterior."""
    import jax.numpy as jnp  # pylint: disable=import-outside-toplevel

    inputs = reals(rows, columns)
    labels = (inputs @ reals(columns, seed=1) > 0).astype(np.float32)

    def density(inputs, labels):
        return lambda weights: -jnp.logaddexp(0, -(2 * labels - 1) * (inputs @ weights)).sum() - 0.5 * (weights * weights).sum()

    return inputs, labels, density


def blackjax_nuts():
    import blackjax  # pylint: disable=import-outside-toplevel
    import jax  # pylint: disable=import-outside-toplevel
    import jax.numpy as jnp  # pylint: disable=import-outside-toplevel

    inputs, labels, density = regression(500, 10)

    def sample(inputs, labels, weights, key):
        chain = blackjax.nuts(density(inputs, labels), step_size=0.05, inverse_mass_matrix=jnp.ones(10))

        def step(state, key):
            state, _ = chain.step(key, state)
            return state, state.position

        return jax.lax.scan(step, chain.init(weights), jax.random.split(key, 10))[1]

    return sample, (inputs, labels, reals(10, scale=0.1), jax.random.PRNGKey(1))


def numpyro_nuts():
    import jax  # pylint: disable=import-outside-toplevel
    import numpyro  # pylint: disable=import-outside-toplevel
    from numpyro import distributions  # pylint: disable=import-outside-toplevel

    inputs, labels, _ = regression(300, 6)
    labels = labels.astype(np.int32)

    def model(inputs, labels):
        weights = numpyro.sample("weights", distributions.Normal(0, 1).expand([6]).to_event(1))
        numpyro.sample("labels", distributions.Bernoulli(logits=inputs @ weights), obs=labels)

    kernel = numpyro.infer.NUTS(model, step_size=0.1, adapt_step_size=False, max_tree_depth=5)
    start = kernel.init(jax.random.PRNGKey(0), 0, model_args=(inputs, labels), model_kwargs={}, init_params=None)

    def sample(state, inputs, labels):
        def step(state, _):
            state = kernel.sample(state, (inputs, labels), {})
            return state, state.z

        return jax.lax.scan(step, state, None, length=5)[1]

    return sample, (start, inputs, labels)


def tree_search(policy, **settings):
    import jax  # pylint: disable=import-outside-toplevel
    import jax.numpy as jnp  # pylint: disable=import-outside-toplevel
    import mctx  # pylint: disable=import-outside-toplevel

    shapes = {"inner": (64, 128), "outer": (128, 64), "logits": (64, 16), "value": (64, 1), "actions": (16, 64)}

    def search(weights, roots, key):
        def recurrent(_, __, action, state):
            state = jnp.tanh(jax.nn.relu((state + weights["actions"][action]) @ weights["inner"]) @ weights["outer"])
            output = mctx.RecurrentFnOutput(reward=state[:, 0] * 0.1, discount=jnp.full(action.shape, 0.99), prior_logits=state @ weights["logits"],
                                            value=(state @ weights["value"])[:, 0])
            return output, state

        root = mctx.RootFnOutput(prior_logits=roots @ weights["logits"], value=(roots @ weights["value"])[:, 0], embedding=roots)
        found = getattr(mctx, policy)(params=(), rng_key=key, root=root, recurrent_fn=recurrent, num_simulations=24, **settings)
        return found.action, found.action_weights

    return search, ({name: reals(*shape, scale=0.1) for name, shape in shapes.items()}, reals(32, 64), jax.random.PRNGKey(0))


def jumanji_game(name):
    import jax  # pylint: disable=import-outside-toplevel
    import jax.numpy as jnp  # pylint: disable=import-outside-toplevel
    import jumanji  # pylint: disable=import-outside-toplevel

    environment = jumanji.make(name)
    state, _ = jax.jit(jax.vmap(environment.reset))(jax.random.split(jax.random.PRNGKey(0), 32))
    spec = environment.action_spec

    def play(state, key):
        def step(state, key):
            choose = lambda key: jax.random.randint(key, spec.shape, 0, jnp.asarray(spec.num_values)).astype(spec.dtype)  # noqa: E731
            state, seen = jax.vmap(environment.step)(state, jax.vmap(choose)(jax.random.split(key, 32)))
            return state, seen.reward

        return jax.lax.scan(step, state, jax.random.split(key, 5))

    return play, (state, jax.random.PRNGKey(1))


def board_game(name):
    import jax  # pylint: disable=import-outside-toplevel
    import jax.numpy as jnp  # pylint: disable=import-outside-toplevel
    import pgx  # pylint: disable=import-outside-toplevel

    environment = pgx.make(name)
    state = jax.jit(jax.vmap(environment.init))(jax.random.split(jax.random.PRNGKey(0), 32))

    def play(state, key):
        def step(state, key):
            action = jax.random.categorical(key, jnp.where(state.legal_action_mask, 0.0, -1e9))
            state = jax.vmap(environment.step)(state, action)
            return state, state.rewards

        state, rewards = jax.lax.scan(step, state, jax.random.split(key, 4))
        return rewards, state.observation.astype(jnp.float32).sum(0), state.legal_action_mask

    return play, (state, jax.random.PRNGKey(1))


def ott_sinkhorn():
    from ott.geometry import pointcloud  # pylint: disable=import-outside-toplevel
    from ott.problems.linear import linear_problem  # pylint: disable=import-outside-toplevel
    from ott.solvers.linear import sinkhorn  # pylint: disable=import-outside-toplevel

    def match(x, y):
        solver = sinkhorn.Sinkhorn(max_iterations=50, threshold=1e-9, inner_iterations=10)
        found = solver(linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.5)))
        return found.f, found.g, found.reg_ot_cost

    return match, (reals(512, 8), reals(512, 8, seed=1))


def distrax_hidden_markov():
    import distrax  # pylint: disable=import-outside-toplevel
    import jax.numpy as jnp  # pylint: disable=import-outside-toplevel

    def infer(observed, transitions, means):
        model = distrax.HMM(trans_dist=distrax.Categorical(logits=transitions), init_dist=distrax.Categorical(logits=transitions[0]),
                            obs_dist=distrax.Normal(means, jnp.ones(16)))
        _, _, shares, likelihood = model.forward_backward(observed)
        return shares, likelihood, model.viterbi(observed)

    return infer, (reals(300), reals(16, 16), reals(16, scale=3))


def graph_network():
    import jax  # pylint: disable=import-outside-toplevel
    import jax.numpy as jnp  # pylint: disable=import-outside-toplevel
    import jraph  # pylint: disable=import-outside-toplevel

    graph = jraph.GraphsTuple(nodes=reals(2000, 64), edges=reals(8000, 32), senders=whole(2000, 8000), receivers=whole(2000, 8000, seed=1),
                              n_node=np.full(20, 100, np.int32), n_edge=np.full(20, 400, np.int32), globals=reals(20, 16))
    weights = {"edge": reals(176, 64, scale=0.1), "node": reals(208, 64, scale=0.1), "all": reals(144, 16, scale=0.1)}

    def update(graph, weights):
        layer = lambda name: lambda *parts: jax.nn.relu(jnp.concatenate(parts, -1) @ weights[name])  # noqa: E731
        updated = jraph.GraphNetwork(layer("edge"), layer("node"), layer("all"))(graph)
        return updated.nodes, updated.edges, updated.globals

    return update, (graph, weights)


PROGRAMS = {
    **{f"brax_{creature}_{physics}": lambda creature=creature, physics=physics: rigid_body(creature, physics)
       for creature, physics in (("ant", "spring"), ("hopper", "positional"), ("halfcheetah", "generalized"), ("humanoid", "generalized"))},
    "blackjax_nuts": blackjax_nuts,
    "numpyro_nuts": numpyro_nuts,
    "mctx_muzero": lambda: tree_search("muzero_policy"),
    "mctx_gumbel": lambda: tree_search("gumbel_muzero_policy", max_num_considered_actions=8),
    "jumanji_binpack": lambda: jumanji_game("BinPack-v2"),
    "jumanji_rubikscube": lambda: jumanji_game("RubiksCube-v0"),
    "pgx_chess": lambda: board_game("chess"),
    "pgx_othello": lambda: board_game("othello"),
    "ott_sinkhorn": ott_sinkhorn,
    "distrax_hidden_markov": distrax_hidden_markov,
    "jraph_network": graph_network,
}
