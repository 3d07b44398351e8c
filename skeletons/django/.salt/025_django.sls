{# The secret key, the migrations and the static files. manage.py runs as the project's user, with the environment of the service. #}
{% set cfg = opts.ms_project %}
{% set manage = 'set -a; . ' ~ cfg.data_root ~ '/environment; . ' ~ cfg.data_root ~ '/secret; exec venv/bin/python manage.py' %}

{# Made once, and never printed. Everything in it belongs to this installation. #}
{{cfg.name}}-secret:
  cmd.run:
    - name: umask 077; printf 'SECRET_KEY=%s\n' "$(python3 -c 'import secrets; print(secrets.token_urlsafe(50))')" > secret.part && mv secret.part secret
    - cwd: {{cfg.data_root}}
    - runas: {{cfg.user}}
    - creates: {{cfg.data_root}}/secret

{{cfg.name}}-environment:
  file.managed:
    - name: {{cfg.data_root}}/environment
    - source: salt://makina-projects/{{cfg.name}}/files/environment
    - template: jinja
    - user: {{cfg.user}}
    - group: {{cfg.group}}
    - mode: '0600'
    - defaults:
        environment: {{cfg.default_env}}
        data_root: {{cfg.data_root}}
        domain: {{cfg.data.domain}}
    - require:
      - cmd: {{cfg.name}}-secret

{{cfg.name}}-media:
  file.directory:
    - name: {{cfg.data_root}}/media
    - user: {{cfg.user}}
    - group: {{cfg.group}}

{# No rollback undoes a migration, as it would take what visitors wrote since. A copy of the database of before is kept beside it; and a migration
   that the old code can live with (add first, remove in a later release) needs neither. #}
{{cfg.name}}-migrate:
  cmd.run:
    - name: |
        set -e
        test ! -e {{cfg.data_root}}/db.sqlite3 || python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2]))' {{cfg.data_root}}/db.sqlite3 {{cfg.data_root}}/before-migration.sqlite3
        {{manage}} migrate --noinput
    - cwd: {{cfg.project_root}}
    - runas: {{cfg.user}}
    - unless: {{manage}} migrate --check
    - require:
      - file: {{cfg.name}}-environment
      - file: {{cfg.name}}-media

{{cfg.name}}-static:
  cmd.run:
    - name: {{manage}} collectstatic --noinput --clear --verbosity 0
    - cwd: {{cfg.project_root}}
    - runas: {{cfg.user}}
    - require:
      - cmd: {{cfg.name}}-migrate
