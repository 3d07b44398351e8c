"""The states mc_apache.include_module and exclude_module of makina-states: modules of Apache, by Debian's a2enmod and a2dismod."""


def include_module(name, modules, **kwargs):
    """Turn modules on: a list, or a text with commas."""
    return _toggle(name, modules, "a2enmod", True)


def exclude_module(name, modules, **kwargs):
    """Turn modules off."""
    return _toggle(name, modules, "a2dismod", False)


def _toggle(name, modules, action, wanted):
    if isinstance(modules, str):
        modules = [modules]
    names = [m.strip() for text in modules or [] for m in str(text).split(",") if m.strip()]
    listed = ", ".join(names)
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    if not __salt__["cmd.which"]("a2query"):
        if __opts__["test"]:
            ret.update(result=None, changes={m: action for m in names}, comment="{} {}".format(action, listed))
        else:
            ret.update(result=False, comment="a2query is not installed on this machine: it comes with Debian's package apache2")
        return ret
    todo = [m for m in names if (__salt__["cmd.retcode"](["a2query", "-q", "-m", m], python_shell=False, ignore_retcode=True) == 0) != wanted]
    if not todo:
        ret["comment"] = "{} {}: up to date".format(action, listed)
        return ret
    if __opts__["test"]:
        ret.update(result=None, changes={m: action for m in todo}, comment="{} {}".format(action, ", ".join(todo)))
        return ret
    failed = []
    for m in todo:
        out = __salt__["cmd.run_all"]([action, "-q", m], python_shell=False, ignore_retcode=True)
        if out["retcode"]:
            failed.append("FAILURE {0} {1}: {0} ended with exit status {2}: {3}".format(action, m, out["retcode"], out["stderr"]))
        else:
            ret["changes"][m] = action
    ret["comment"] = "\n".join(failed) or "{} {}".format(action, ", ".join(ret["changes"]))
    if failed:
        ret["result"] = False
    return ret
