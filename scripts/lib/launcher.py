"""How the scripts start several ranks."""


def mpirun(ranks):
    """The words before a command that several ranks run; more of them than cores, and as root, too."""
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
