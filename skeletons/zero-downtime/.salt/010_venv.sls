{# The virtualenv lies in the project, untracked: a rollback restores it with the rest. pip runs when requirements.txt has changed. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-venv:
  cmd.run:
    - name: python3 -m venv --system-site-packages venv
    - cwd: {{cfg.project_root}}
    - unless: test -x venv/bin/python

{{cfg.name}}-requirements:
  cmd.run:
    - name: venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt && cp requirements.txt venv/installed.txt
    - cwd: {{cfg.project_root}}
    - unless: cmp -s requirements.txt venv/installed.txt
    - require:
      - cmd: {{cfg.name}}-venv
