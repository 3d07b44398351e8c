

# What is asked of the server goes there as JSON. These look at Python's objects themselves, or give one back.


def odict(instance=True):
    return collections.OrderedDict() if instance else collections.OrderedDict


def deepcopy(arg):
    return copy.deepcopy(arg)


def dictupdate(dict1, dict2):
    """Merge dict2 into dict1 itself, mappings deeply."""
    return salt.utils.dictupdate.update(dict1, dict2)


def uniquify(seq):
    seen = []
    for item in seq:
        if item not in seen:
            seen.append(item)
    return seen


def get(key, *args, **kwargs):
    return __salt__["config.get"](key, *args, **kwargs)


def magicstring(thestr):
    return str(thestr)


def is_a_str(value):
    return isinstance(value, str)


def is_a_bool(value):
    return isinstance(value, bool)


def is_a_int(value):
    return isinstance(value, int)


def is_a_float(value):
    return isinstance(value, float)


def is_a_number(value):
    return isinstance(value, (int, float))


def is_a_list(value):
    return isinstance(value, list)


def is_a_tuple(value):
    return isinstance(value, tuple)


def is_a_dict(value):
    return isinstance(value, dict)


def is_a_set(value):
    return isinstance(value, set)
