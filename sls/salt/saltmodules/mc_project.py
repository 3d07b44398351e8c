

def get_configuration(name, *args, **kwargs):
    """The configuration of the project itself, as a reference: what a template changes in it stays changed in the step."""
    cfg = __opts__.get("ms_project")
    if not cfg or cfg.get("name") != name:
        raise salt.exceptions.CommandExecutionError("the configuration of another project cannot be read")
    return cfg


def get_configuration_item(project, *args, **kwargs):
    """One key of the configuration, else of its data."""
    cfg = get_configuration(project)
    if not args and "item" not in kwargs:
        return {"item": cfg, "cfg": cfg, "key": "cfg"}
    key = args[0] if args else kwargs["item"]
    item = cfg[key] if key in cfg else (cfg.get("data") or {}).get(key)
    return {"item": item, "cfg": cfg, "key": key}
