{# The modules lie in the project, untracked: a rollback restores them with the rest. npm runs when package-lock.json has changed; without one
   there is nothing to install. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-modules:
  cmd.run:
    - name: npm ci --omit=dev --no-audit --no-fund && cp package-lock.json node_modules/installed.json
    - cwd: {{cfg.project_root}}
    - onlyif: test -e package-lock.json
    - unless: cmp -s package-lock.json node_modules/installed.json
