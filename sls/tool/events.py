"""Callback of ansible-playbook: one line of JSON for each task of each host, as it begins and ends.

Results arrive without what no_log hides: Ansible replaces them before it calls this.
"""
from __future__ import annotations

import json
import os

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: corpus_events
type: stdout
short_description: a line of JSON for each task
description: A line of JSON on standard output for each task.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = 'stdout'
    CALLBACK_NAME = 'corpus_events'

    def _say(self, task, **more):
        path = task.get_path() or ''
        file, _, line = path.rpartition(':')
        name = task.get_name().strip()
        out = {'state': name, 'function': task.action, 'file': file, 'line': int(line) if line.isdigit() else 0}
        out.update((k, v) for k, v in more.items() if v not in (None, ''))
        print(json.dumps(out), flush=True)

    def _rescued(self, task):
        """Whether a failure of the task is handled by the rescue section of a block around it."""
        child, parent = task, getattr(task, '_parent', None)
        while parent is not None:
            if getattr(parent, 'rescue', None) and any(t._uuid == child._uuid for t in parent.block):
                return True
            child, parent = parent, getattr(parent, '_parent', None)
        return False

    def _end(self, result, status, passed=''):
        r, task = result._result, result._task
        if r.get('censored'):
            return self._say(task, status=status, comment=str(r['censored']))
        what, exit = None, None
        if status == 'failed':
            exit = r.get('rc')
            parts = [r.get('msg'), r.get('stderr') or r.get('module_stderr'), r.get('stdout') if not r.get('stderr') else None]
            for item in r.get('results') or []:
                if isinstance(item, dict) and item.get('failed'):
                    parts += ['item %s' % item.get('item'), item.get('msg'), item.get('stderr')]
            comment = '\n'.join(str(p).strip() for p in parts if p)
        else:
            comment = r.get('skip_reason') if status == 'skipped' else r.get('msg')
            if passed:
                comment = 'failed, %s: %s' % (passed, r.get('msg') or '')
            if not isinstance(comment, str):
                comment = None
        diffs = [d for part in [r] + list(r.get('results') or []) if isinstance(part, dict) for d in self._diffs(part)]
        self._say(task, status=status, comment=comment, exit=exit if isinstance(exit, int) else None, diff='\n'.join(diffs), name=what)

    def _diffs(self, part):
        given = part.get('diff')
        if not given or part.get('censored') or part.get('_ansible_no_log'):
            return
        text = self._get_diff(given)
        if text and text.strip():
            yield text.rstrip('\n')

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._say(task, begins=True)

    def v2_playbook_on_handler_task_start(self, task):
        self._say(task, begins=True)

    def v2_runner_on_ok(self, result):
        self._end(result, 'changed' if result._result.get('changed') else 'ok')

    def v2_runner_on_failed(self, result, ignore_errors=False):
        passed = 'ignored (ignore_errors)' if ignore_errors else 'rescued' if self._rescued(result._task) else ''
        if passed:
            return self._end(result, 'changed' if result._result.get('changed') else 'ok', passed)
        return self._end(result, 'failed')

    def v2_runner_on_unreachable(self, result):
        self._end(result, 'failed')

    def v2_runner_on_skipped(self, result):
        self._end(result, 'skipped')

    def v2_playbook_on_stats(self, stats):
        """What set_stats collected are outputs of the step. A plan has no file for them."""
        wrote = dict(stats.custom.get('_run') or {})
        wrote.update(stats.custom.get('localhost') or {})
        path = os.environ.get('CORPUS_OUTPUTS')
        if wrote and path and os.path.exists(path):
            with open(path, 'a', encoding='utf-8') as out:
                out.write('\n' + json.dumps(wrote, default=str) + '\n')

    def v2_playbook_on_no_hosts_matched(self):
        print(json.dumps({'state': 'hosts', 'status': 'failed', 'comment': 'no host of the play is localhost'}), flush=True)
