"""The state mc_proxy.hook of makina-states: an anchor for requisites, changed when what it watches changed."""


def hook(name, changes=None, **kwargs):
    """Do nothing, successfully. changes are reported as they are given."""
    return {
        "name": name,
        "result": True,
        "comment": "Dummy state for {}".format(name),
        "changes": changes or {},
    }


def mod_watch(name, **kwargs):
    """Report a change, so that what watches the hook runs."""
    return hook(name, changes={1: 1})
