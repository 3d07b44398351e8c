"""The state mc_git.latest of makina-states: Salt's git.latest."""


def latest(name, **kwargs):
    """Do what git.latest does, with its arguments."""
    for key in [k for k in kwargs if k.startswith("__")]:
        del kwargs[key]
    return __states__["git.latest"](name, **kwargs)
