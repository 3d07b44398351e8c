"""Runs the steps of one deployment in one Salt process.

usage: python3 driver.py SALT_CALL CONFIG_DIR SYNC

Salt's own entry point reads the configuration and makes the minion; this program takes over where salt-call would
run its one function. Requests come on standard input, answers leave on what was standard output; both are one JSON
object a line. Standard output itself becomes standard error, so that no print of a state gets among the answers.

Each step runs in a fork of the minion that was made at the start. So a step sees what a salt-call of its own would
see: no module's global, environment variable, umask or cached package list of the step before is there. Grains are
looked at again; where they differ from the minion's, the step makes a minion of its own.
"""

import gc
import os
import select
import shutil
import signal
import sys
import threading

answers = None
lock = threading.Lock()
json = None


def say(kind, **fields):
    """Write one answer. A fork of a step (a parallel state) has nothing to say: its lines would get mixed up."""
    if os.getpid() != say.owner:
        return
    fields["t"] = kind
    try:
        data = json.dumps(fields, default=repr).encode("utf-8", "backslashreplace") + b"\n"
    except (TypeError, ValueError):
        # As salt-call --out=json does with what has no form in JSON.
        fields.pop("ret", None)
        data = json.dumps(fields, default=repr).encode("utf-8", "backslashreplace") + b"\n"
    with lock:
        while data:
            data = data[os.write(answers, data) :]


say.owner = os.getpid()


class Requests:
    """The lines of standard input, read without a buffer that a fork would share."""

    def __init__(self, fd):
        self.fd, self.data = fd, b""

    def next(self):
        while b"\n" not in self.data:
            more = os.read(self.fd, 65536)
            if not more:
                return None
            self.data += more
        line, _, self.data = self.data.partition(b"\n")
        return json.loads(line)


# What a fresh process would see.


def python_path():
    """The folders that Python imports from. A package that a step installs there changes them."""
    out = {}
    for d in sys.path:
        try:
            out[d] = os.stat(d).st_mtime_ns
        except OSError:
            out[d] = 0
    return out


def forget(cachedir):
    """Remove what Salt cached: lists of files, downloads, compiled states. Synced modules stay."""
    try:
        entries = list(os.scandir(cachedir))
    except OSError:
        return
    for e in entries:
        if e.name in ("extmods", "proc"):
            continue
        try:
            if e.is_dir(follow_symlinks=False):
                shutil.rmtree(e.path, ignore_errors=True)
            else:
                os.unlink(e.path)
        except OSError:
            pass


def same_grains(old, new):
    def text(g):
        g = {k: g[k] for k in g if k != "pid"}
        return json.dumps(g, default=repr, sort_keys=True)

    try:
        return text(old) == text(new)
    except (TypeError, ValueError):
        return False


def refreshed(caller, first):
    """The caller, or one made anew where the machine is not what it was."""
    import salt.loader

    if first:
        return caller
    # salt.loader.grains writes to the options it is given.
    new = salt.loader.grains(dict(caller.opts))
    if same_grains(caller.minion.opts["grains"], new):
        return caller
    return type(caller)(caller.opts)


# What is told while a step runs.


class Watch:
    """Tells the start and the end of each state, and the output of commands as it comes."""

    def __init__(self):
        self.low = None
        self.live = False
        self.depth = 0

    def install(self):
        import salt.state
        import salt.utils.timed_subprocess

        state = salt.state.State
        call, call_chunk = state.call, state.call_chunk
        proc = salt.utils.timed_subprocess.TimedProc
        begin = proc.__init__
        watch = self

        def watched_call(self, low, chunks=None, *args, **kwargs):
            if low.get("__prereq__"):
                return call(self, low, chunks, *args, **kwargs)
            before = watch.low, watch.live
            watch.low, watch.live = low, False
            watch.depth += 1
            try:
                if watch.depth == 1:  # else a retry of the same state
                    say(
                        "start",
                        state=str(low.get("state")),
                        fun=str(low.get("fun")),
                        id=str(low.get("__id__")),
                        name=str(low.get("name")),
                        sls=str(low.get("__sls__")),
                        of=len(chunks or ()),
                    )
                ret = call(self, low, chunks, *args, **kwargs)
                if not watch.live:
                    watch.late(low, ret)
                return ret
            finally:
                watch.depth -= 1
                watch.low, watch.live = before

        def watched_chunk(self, low, running, chunks, *args, **kwargs):
            tag = "{0[state]}_|-{0[__id__]}_|-{0[name]}_|-{0[fun]}".format(low)
            done = tag in running
            out = call_chunk(self, low, running, chunks, *args, **kwargs)
            ret = running.get(tag)
            if not done and isinstance(ret, dict) and "result" in ret:
                say("done", tag=tag, ret=ret, of=len(chunks or ()))
            return out

        def watched_begin(self, *args, **kwargs):
            begin(self, *args, **kwargs)
            if watch.command():
                watch.tap(self)

        state.call, state.call_chunk = watched_call, watched_chunk
        proc.__init__ = watched_begin

    def hidden(self, low):
        return (
            low.get("hide_output")
            or low.get("no_log")
            or low.get("quiet")
            or str(low.get("output_loglevel")).lower() == "quiet"
        )

    def command(self):
        """True where the process that starts is the command of a cmd state, and no condition (onlyif, unless)."""
        low = self.low
        if low is None or low.get("state") != "cmd" or self.hidden(low):
            return False
        f, inside = sys._getframe(2), False
        for _ in range(60):
            if f is None:
                break
            name = f.f_code.co_name
            if name in ("mod_run_check", "_run_check", "_run_check_cmd", "mod_run_check_cmd"):
                return False
            if f.f_code.co_filename.endswith("/states/cmd.py"):
                inside = True
            f = f.f_back
        return inside

    def tap(self, timed):
        """Read the pipes of a process line by line in place of all at once."""
        process = timed.process
        if process.stdout is None and process.stderr is None:
            return
        name = str(self.low.get("__id__"))
        self.live = True

        def pump(stream, which, into):
            try:
                for line in iter(stream.readline, b""):
                    into.append(line)
                    say("out", id=name, stream=which, line=line.rstrip(b"\r\n").decode("utf-8", "replace"))
            except (OSError, ValueError):
                pass  # closed below us, by a timeout
            finally:
                stream.close()

        def communicate(input=None, timeout=None):
            threads, got = [], {}
            for which in ("stdout", "stderr"):
                stream = getattr(process, which)
                if stream is not None:
                    got[which] = []
                    threads.append(threading.Thread(target=pump, args=(stream, which, got[which]), daemon=True))
            for t in threads:
                t.start()
            if process.stdin is not None:
                try:
                    if input:
                        process.stdin.write(input)
                    process.stdin.close()
                except BrokenPipeError:
                    pass
            for t in threads:
                t.join()
            process.wait()
            return tuple(b"".join(got[w]) if w in got else None for w in ("stdout", "stderr"))

        process.communicate = communicate

    def late(self, low, ret):
        """What a command printed, where it could not be read while it ran."""
        if low.get("state") != "cmd" or self.hidden(low) or low.get("use_vt") or not isinstance(ret, dict):
            return
        changes = ret.get("changes")
        if not isinstance(changes, dict) or "retcode" not in changes:
            return
        for which in ("stdout", "stderr"):
            text = changes.get(which)
            if isinstance(text, str) and text:
                for line in text.splitlines():
                    say("out", id=str(low.get("__id__")), stream=which, line=line)


# What a look before anything runs, and a plan, leave alone.


class Guard:
    """Keeps templates from running commands while they render, and, in a plan, everything else that the files name."""

    # What these modules tell hangs on nothing that an earlier step may change.
    pure = ("config", "defaults", "grains", "hashutil", "log", "match", "pillar", "slsutil", "test")
    # Renderers of a plan: all others can run what the file says.
    renderers = ("jinja", "yaml", "yamlex", "json", "json5", "hjson", "toml", "msgpack")
    # Functions that templates, slots and conditions of a plan may call, of other modules: those that only read, by their names.
    reading = (
        "basename", "contains", "dirname", "directory_exists", "exist", "file_exists", "fqdn", "get", "has", "info", "ip_", "is_", "items", "join",
        "latest", "list", "lookup", "ls", "path_exists", "read", "search", "seek_read", "show", "stats", "status", "version", "which",
    )
    tools = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")

    def __init__(self, plan):
        self.plan = plan
        self.rendering = 0
        # The command that was refused, and the function that a template asked of the machine.
        self.refused = self.asked = ""
        self.left = []

    def install(self):
        import subprocess

        import salt.loader.lazy
        import salt.state
        import salt.template
        import salt.utils.templates
        import salt.utils.vt

        guard = self
        system = os.system
        for owner in (subprocess.Popen, salt.utils.vt.Terminal):
            self.refuse(owner)

        def watched_system(command):
            guard.check(command, True)
            return system(command)

        os.system = watched_system
        salt.template.compile_template = salt.state.compile_template = self.render(salt.template.compile_template)
        registry = salt.utils.templates.TEMPLATE_REGISTRY
        for name in list(registry):
            if self.plan and name != "jinja":
                registry[name] = self.never(name)
            else:
                registry[name] = self.render(registry[name])
        loaded = salt.loader.lazy.LoadedFunc.__call__

        def watched_loaded(self, *args, **kwargs):
            module = self.name.partition(".")[0]
            if guard.plan and guard.rendering and self.loader.tag == "module" and module not in guard.pure and not guard.reads(self.name):
                guard.never(self.name)()
            if guard.rendering and not guard.asked and self.loader.tag == "module" and module not in guard.pure:
                guard.asked = self.name
            return loaded(self, *args, **kwargs)

        salt.loader.lazy.LoadedFunc.__call__ = watched_loaded
        if self.plan:
            pipes = salt.template.check_render_pipe_str

            def watched_pipes(pipestr, *args, **kwargs):
                for part in (pipestr or "jinja").split("|"):
                    name = (part.split() or [""])[0]
                    if name not in guard.renderers:
                        guard.never("#!" + name)()
                return pipes(pipestr, *args, **kwargs)

            salt.template.check_render_pipe_str = watched_pipes
            slots = salt.state.State.format_slots
            salt.state.State.format_slots = self.render(slots)
            self.defer(salt.state.State)

    def reads(self, function):
        module, _, name = function.partition(".")
        return name.startswith(self.reading) and (module != "cp" or name == "get_file_str")  # cp.get_file writes

    def never(self, what):
        """A function that refuses what a plan does not run."""

        def refused(*args, **kwargs):
            import salt.exceptions

            self.refused = what
            raise salt.exceptions.CommandExecutionError(what + " is not run in a plan")

        return refused

    def check(self, args, shell):
        """Refuses a command while a template renders, and in a plan all but the tools of the machine."""
        program = args if isinstance(args, str) else str(args[0]) if args else ""
        if self.rendering or self.plan and (shell or "/" in program and os.path.dirname(program) not in self.tools):
            import salt.exceptions

            self.refused = program
            raise salt.exceptions.CommandExecutionError("commands are not run in a plan")

    def refuse(self, owner):
        guard, begin = self, owner.__init__

        def watched(self, args=None, *more, **kwargs):
            guard.check(args, kwargs.get("shell"))
            begin(self, args, *more, **kwargs)

        owner.__init__ = watched

    def render(self, function):
        def rendered(*args, **kwargs):
            self.rendering += 1
            try:
                return function(*args, **kwargs)
            finally:
                self.rendering -= 1

        return rendered

    def defer(self, state):
        """Takes conditions that run commands out of a plan, and says so in the result of the state."""
        guard, call = self, state.call

        def condition(name):
            ask = getattr(state, "_run_check_" + name)

            def asked(self, low, *args):
                out = {"result": False, "comment": name + " not evaluated in a plan"}
                for key in ("__sls__", "__id__", "name"):
                    out[key] = low.get(key)
                entries = low[name] if isinstance(low[name], list) else [low[name]]
                if not any(isinstance(e, str) for e in entries):
                    guard.rendering, guard.refused = guard.rendering + 1, ""
                    try:
                        ret = ask(self, low, *args)
                    except Exception:  # pylint: disable=broad-except
                        if not guard.refused:
                            raise
                    finally:
                        guard.rendering -= 1
                    if not guard.refused:
                        return ret
                    guard.refused = ""
                guard.left.append(name)
                return out

            setattr(state, "_run_check_" + name, asked)

        def check_cmd(self, low):
            guard.left.append("check_cmd")
            return {}

        def called(self, low, *args, **kwargs):
            before = guard.left, guard.refused
            guard.left, guard.refused = [], ""
            try:
                ret = call(self, low, *args, **kwargs)
                if guard.refused:
                    guard.left.append("a needed command")
                if guard.left and isinstance(ret, dict):
                    ret["__unevaluated__"] = list(dict.fromkeys(guard.left))
                    if guard.refused or ret.get("result") is False:
                        ret["result"] = None
                return ret
            finally:
                guard.left, guard.refused = before

        condition("onlyif")
        condition("unless")
        state._run_check_cmd, state.call = check_cmd, called


def compile_only():
    """Lets state.sls do everything but run the states; gives the list that their number is put in."""
    import salt.state

    seen = []

    def call_chunks(self, chunks, *args, **kwargs):
        seen.append(len(chunks))
        return {}

    salt.state.State.call_chunks = call_chunks
    for name in ("call_listen", "call_beacons"):
        if hasattr(salt.state.State, name):
            setattr(salt.state.State, name, lambda self, chunks, running: running)
    return seen


# Serving.


def share(opts):
    """Every template sees the project's configuration as cfg."""
    if "ms_project" not in opts:
        return
    try:
        from salt.utils.decorators.jinja import JinjaGlobal

        JinjaGlobal.salt_jinja_globals["cfg"] = opts["ms_project"]
    except (ImportError, AttributeError) as err:
        sys.stderr.write("[WARNING ] this Salt's templates have no cfg, but opts.ms_project: %s\n" % err)


def step(caller, request, first):
    """Run one step, in a process of its own. Never returns."""
    say.owner = os.getpid()
    status = 70
    try:
        caller = refreshed(caller, first)
        args = [request["sls"], "concurrent=True"]
        if request.get("test"):
            args.append("test=True")
        caller.opts["fun"], caller.opts["arg"] = "state.sls", args
        share(caller.opts)
        watch = Watch()
        try:
            watch.install()
        except (ImportError, AttributeError) as err:
            sys.stderr.write("[WARNING ] this Salt does not tell its progress: %s\n" % err)
        guard, seen = None, None
        if request.get("check") or request.get("plan"):
            # Without it nothing is promised, so what goes wrong here is not caught.
            guard = Guard(bool(request.get("plan")))
            guard.install()
        if request.get("check"):
            seen = compile_only()
        out = caller.call()
        found = {} if seen is None else {"of": sum(seen), "refused": guard.refused, "asked": guard.asked}
        say("result", retcode=out.get("retcode", 0), ret={"local": out.get("return", {})}, **found)
        status = 0
    except SystemExit as err:
        if isinstance(err.code, int):
            status = err.code
        elif err.code is None:
            status = 0
        else:
            sys.stderr.write("%s\n" % err.code)
            status = 1
    except BaseException:  # pylint: disable=broad-except
        import traceback

        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status & 255)


def wait(pid, requests, wake):
    """Wait for a step. When the requests end before it does, nobody waits for it any more, and all of us end."""
    poll = select.poll()
    poll.register(requests.fd, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        for fd, _ in poll.poll():
            if fd == wake:
                try:
                    os.read(wake, 4096)
                except BlockingIOError:
                    pass
            else:
                more = os.read(requests.fd, 65536)
                if not more:
                    os.killpg(0, signal.SIGKILL)
                requests.data += more


def serve(caller):
    """Takes the place of the method of salt-call that runs one function."""
    import salt.version

    for name in ("state.sls", "saltutil.is_running", "config.option", "cp.get_file"):
        caller.minion.functions[name]  # pylint: disable=pointless-statement
    for name in ("salt.states.file", "salt.states.cmd", "salt.modules.file", "salt.utils.jinja"):
        try:
            __import__(name)
        except Exception:  # pylint: disable=broad-except
            pass
    # After the imports: the first of all writes byte code.
    begun_with = python_path()
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()
    wake, alarm = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(alarm, False)
    requests = Requests(serve.input)
    say("ready", salt=str(salt.version.__version__), python="%d.%d.%d" % sys.version_info[:3])
    first = True
    while True:
        request = requests.next()
        if request is None:
            break
        if python_path() != begun_with and not request.get("anyway"):
            say("stale", why="the packages of Salt's Python changed")
            break
        forget(caller.opts["cachedir"])
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(alarm)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for fd in (wake, alarm, requests.fd):
                os.close(fd)
            step(caller, request, first)
        status = wait(pid, requests, wake)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        first = False
        # The same on both pipes, so that the reader knows that it has all of this step.
        sys.stderr.write("\x1e%s\n" % request["mark"])
        sys.stderr.flush()
        fate = {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"status": os.WEXITSTATUS(status)}
        say("end", **fate)
    sys.stderr.flush()
    os._exit(0)


def sync(argv):
    """saltutil.sync_all, in a process of its own: it loads modules in their old form."""
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            os.close(answers)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            sys.argv = argv + ["saltutil.sync_all"]
            import salt.scripts

            salt.scripts.salt_call()
            status = 0
        except SystemExit as err:
            status = err.code if isinstance(err.code, int) else int(err.code is not None)
            if isinstance(err.code, str):
                sys.stderr.write(err.code + "\n")
        except BaseException:  # pylint: disable=broad-except
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status & 255)
    _, status = os.waitpid(pid, 0)
    if status:
        say("fatal", why="sync", text="saltutil.sync_all failed")
        os._exit(1)


def main():
    global answers, json
    # Where this file lies is no place to import from.
    sys.path.pop(0)
    import json as plain

    json = plain
    answers = os.dup(1)
    serve.input = os.dup(0)
    os.dup2(2, 1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    program, conf, syncs = sys.argv[1:4]
    say("hello", pid=os.getpid())
    try:
        import salt.cli.call
        import salt.cli.caller
        import salt.scripts
        import salt.state
        import salt.utils.json
    except ImportError as err:
        say("fatal", why="import", text=str(err))
        os._exit(1)
    json = salt.utils.json
    argv = [program, "--local", "-c", conf, "--retcode-passthrough", "--out=json", "--no-color", "--log-level=warning"]
    if syncs == "sync":
        sync(argv)
    salt.cli.caller.BaseCaller.run = serve
    sys.argv = argv + ["state.sls", "none"]
    salt.scripts.salt_call()
    say("fatal", why="start", text="salt-call ended before it ran anything")
    os._exit(1)


if __name__ == "__main__":
    main()
